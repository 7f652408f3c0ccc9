//! The io_parameters native module: weights that stay in files of their own.

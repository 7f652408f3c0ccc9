//! The hal_loader native module: loads executables and dispatches their functions.

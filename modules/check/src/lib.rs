//! The check native module: expectations of test programs.

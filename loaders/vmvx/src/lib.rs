//! Loader of VMVX executables, which are bytecode modules themselves.

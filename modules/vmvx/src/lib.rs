//! The vmvx native module: microkernels of VMVX executables.

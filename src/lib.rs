//! Runtime for `.vmfb` modules.

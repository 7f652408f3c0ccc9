//! Tests of the runtime from outside: programs are assembled op by op, and what they must do is known from elsewhere.
// Nothing leaves a test binary.
#![allow(unreachable_pub)]

mod buffers;
mod control;
mod conversions;
mod floats;
mod globals;
mod integers;
mod lists;
mod opcodes;
mod raw;
mod references;
mod support;

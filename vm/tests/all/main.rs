//! Tests of the runtime from outside: programs are assembled op by op, and what they must do is known from elsewhere.
// Nothing leaves a test binary.
#![allow(unreachable_pub)]

mod buffers;
mod calls;
mod control;
mod conversions;
mod cycles;
mod elements;
mod errors;
mod floats;
mod fuel;
mod generate;
mod globals;
mod host_functions;
mod idioms;
mod imports;
mod integers;
mod invocations;
mod lifecycle;
mod lifetimes;
mod limits;
mod linking;
mod lists;
mod loops;
mod nans;
mod natives;
mod opcodes;
mod property;
mod raw;
mod references;
mod rewrites;
mod support;

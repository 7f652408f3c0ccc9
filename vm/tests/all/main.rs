//! Tests of the runtime from outside: programs are assembled op by op, and what they must do is known from elsewhere.

mod conversions;
mod floats;
mod integers;
mod opcodes;
mod raw;
mod support;

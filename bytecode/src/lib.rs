//! Bytes of a `.vmfb` file to a checked module.
//!
//! What is here: the archive ([`archive`]), the module definition and its reader and writer ([`definition`], [`parse`],
//! [`builder`]), the instruction set ([`isa`]) with its decoder, encoder, verifier and disassembler.
//! What is not here: values, execution and linking; those are `vmfb-vm`.
#![forbid(unsafe_code)]

pub mod archive;
pub mod assemble;
pub mod builder;
pub mod calling_convention;
pub mod debug;
pub mod decode;
pub mod definition;
pub mod disassemble;
pub mod encode;
mod error;
pub mod flatbuffer;
pub mod flatbuffer_schema;
pub mod flatbuffer_writer;
pub mod isa;
pub mod parse;
pub mod types;
pub mod verify;

pub use error::{Error, Result, Status};

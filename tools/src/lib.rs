//! What the command-line tools are made of: the value grammar, array files, comparison and printing of results, and the tools
//! themselves. The programs are one line each.
#![forbid(unsafe_code)]

pub mod asserted;
pub mod bench;
pub mod check;
pub mod command_line;
pub mod compare;
pub mod declaration;
pub mod devices;
pub mod dump;
pub mod failure;
pub mod file_kind;
pub mod interrupt;
pub mod limited;
pub mod npy;
pub mod official;
pub mod output;
pub mod parameters;
pub mod report;
pub mod run;
pub mod session;
mod start_help;
pub mod statistics;
pub mod suggest;
pub mod trace;
pub mod values;

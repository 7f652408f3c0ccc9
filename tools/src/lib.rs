//! What the command-line tools are made of: the value grammar, array files, comparison and printing of results.
#![forbid(unsafe_code)]

pub mod compare;
pub mod declaration;
pub mod failure;
pub mod npy;
pub mod output;
pub mod report;
pub mod values;

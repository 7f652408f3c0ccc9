//! `vm-run`: see [`vmfb_tools::run`].

use std::process::ExitCode;

fn main() -> ExitCode {
    vmfb_tools::run::main()
}

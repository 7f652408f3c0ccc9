//! `vm-check`: see [`vmfb_tools::check`].

use std::process::ExitCode;

fn main() -> ExitCode {
    vmfb_tools::check::main()
}

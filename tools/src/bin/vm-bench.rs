//! `vm-bench`: see [`vmfb_tools::bench`].

use std::process::ExitCode;

fn main() -> ExitCode {
    vmfb_tools::bench::main()
}

//! `vm-dump`: see [`vmfb_tools::dump`].

use std::process::ExitCode;

fn main() -> ExitCode {
    vmfb_tools::dump::main()
}

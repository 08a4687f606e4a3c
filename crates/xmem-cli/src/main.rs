//! The `xmem` command.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    xmem_cli::run(std::env::args_os())
}

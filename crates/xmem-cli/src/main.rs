//! The `xmem` command.
use std::process::ExitCode;

fn main() -> ExitCode {
    xmem_cli::run(std::env::args_os())
}

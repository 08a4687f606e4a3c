//! The `xmem` command.
fn main() {}

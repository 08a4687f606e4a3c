//! The areas of CUDA: what is documented is what `areas/areas.py` checks.
#![allow(clippy::disallowed_methods, reason = "runs a program")]

use std::path::Path;
use std::process::Command;

/// `cargo xtask test-torch --engine virtual-gpu` checks the areas themselves.
#[test]
fn the_table_of_the_documentation_is_that_of_the_script() {
    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let script = crate_folder.join("tests/areas/areas.py");
    let output = Command::new("python3")
        .arg("-B")
        .arg(script)
        .arg("--table")
        .output()
        .expect("Python starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let table = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(table.lines().count() > 30, "{table}");
    let page = include_str!("../../../docs/reference/virtual-gpu-areas.md");
    assert!(
        page.contains(&table),
        "docs/reference/virtual-gpu-areas.md needs this table:\n{table}"
    );
}

//! Rust sources: module documentation, size, and no unsafe code where none is needed.

use super::findings::Findings;

/// Longest file: beyond it, it is two modules.
const MAX_LINES: usize = 800;

/// Crates that may hold unsafe code: vector instructions, and calls of a C library, are unsafe by
/// nature.
const UNSAFE: [&str; 2] = ["crates/xmem-cudnn/", "crates/xmem-trace/"];

/// Checks one Rust file.
pub(crate) fn check(name: &str, text: &str, findings: &mut Findings) {
    let is_prelude = |line: &&str| line.trim().is_empty() || line.starts_with("#![");
    let first = text.lines().find(|line| !is_prelude(line)).unwrap_or_default();
    if !first.starts_with("//!") {
        findings.add(name, "does not begin with `//!`: say what the module is for");
    }
    let lines = text.lines().count();
    if lines > MAX_LINES {
        findings.add(name, format!("{lines} lines, more than {MAX_LINES}: split it"));
    }
    let is_root = name.starts_with("crates/")
        && (name.ends_with("/src/lib.rs") || name.ends_with("/src/main.rs"));
    if is_root
        && !text.contains("#![forbid(unsafe_code)]")
        && !UNSAFE.iter().any(|allowed| name.starts_with(allowed))
    {
        findings.add(name, "lacks `#![forbid(unsafe_code)]`");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(name: &str, text: &str) -> Vec<String> {
        let mut findings = Findings::default();
        check(name, text, &mut findings);
        findings.lines().into_iter().map(str::to_owned).collect()
    }

    #[test]
    fn a_documented_module_of_usual_size_is_accepted() {
        assert_eq!(found("crates/a/src/b.rs", "\n//! Does b.\nfn f() {}\n"), [""; 0]);
        assert_eq!(found("fuzz/a.rs", "#![no_main]\n//! Breaks a.\n"), [""; 0]);
        assert_eq!(found("crates/a/src/lib.rs", "//! A.\n#![forbid(unsafe_code)]\n"), [""; 0]);
        assert_eq!(found("crates/xmem-trace/src/lib.rs", "//! Reads.\n"), [""; 0]);
    }

    #[test]
    fn missing_documentation_size_and_unsafe_code_are_found() {
        let long = format!("//! Long.\n{}", "// x\n".repeat(MAX_LINES));
        assert_eq!(found("a.rs", "use x;\n").len(), 1);
        assert_eq!(found("a.rs", &long), ["a.rs: 801 lines, more than 800: split it"]);
        assert_eq!(
            found("crates/a/src/main.rs", "//! A.\n"),
            ["crates/a/src/main.rs: lacks `#![forbid(unsafe_code)]`"]
        );
    }
}

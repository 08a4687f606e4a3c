//! Rust sources: module documentation, size, and no unsafe code where none is needed.

use super::findings::Findings;

/// Longest file: beyond it, it is two modules.
const MAX_LINES: usize = 800;

/// Crates that may hold unsafe code: vector instructions, calls of a C library, and names of exported functions are unsafe
/// by nature.
const UNSAFE: [&str; 3] = ["crates/xmem-cudnn/", "crates/xmem-trace/", "crates/xmem-web/"];

/// The crates whose messages reach a terminal.
const SHOWN: [&str; 7] = [
    "crates/xmem/src/",
    "crates/xmem-cli/src/",
    "crates/xmem-eval/src/",
    "crates/xmem-look/src/",
    "crates/xmem-recorder/src/",
    "crates/xmem-report/src/",
    "crates/xmem-trace/src/",
];

/// The files through which text goes to a terminal.
const WAYS: [&str; 2] = ["crates/xmem-cli/src/terminal.rs", "crates/xmem-look/src/view/text.rs"];

/// Ways to a terminal for text that nothing has made printable, and the way that is right.
const RAW_TEXT: [(&str, &str); 8] = [
    (concat!(".dis", "play()"), "name a path in a message with `printable_path`"),
    (concat!("writeln!(std::io::std", "err"), "print with `terminal::say`"),
    (concat!("writeln!(io::std", "err"), "print with `terminal::say`"),
    (concat!("with_writer(std::io::std", "err"), "log with `terminal::LogLine`"),
    (concat!(".set_str", "ing("), "put text into cells with `view::text::put`"),
    (concat!(".set_str", "ingn("), "put text into cells with `view::text::put`"),
    (concat!(".set_sym", "bol("), "put text into cells with `view::text::put`"),
    (concat!("BufWriter::new(io::std", "out"), "write with `output::stream` or `terminal::stdout`"),
];

/// Checks that text of inputs takes the way that makes it printable.
pub(crate) fn check_text(name: &str, text: &str, findings: &mut Findings) {
    let is_the_way = WAYS.contains(&name);
    if is_the_way || !SHOWN.iter().any(|shown| name.starts_with(shown)) {
        return;
    }
    for (number, line) in text.lines().enumerate() {
        for (way, right) in RAW_TEXT.iter().filter(|(way, _)| line.contains(way)) {
            findings.add(&format!("{name}:{}", number + 1), format!("`{way}`: {right}"));
        }
    }
}

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
    if name.contains("/src/") && name.ends_with("/mod.rs") {
        findings.add(name, "a module with parts is `x.rs` beside `x/`");
    }
    let is_root = (name.starts_with("crates/") || name.starts_with("xtask/"))
        && (name.ends_with("/src/lib.rs") || name.ends_with("/src/main.rs"));
    if is_root
        && !text.contains("#![forbid(unsafe_code)]")
        && !UNSAFE.iter().any(|allowed| name.starts_with(allowed))
    {
        findings.add(name, "lacks `#![forbid(unsafe_code)]`");
    }
}

/// Checks a source of the HTML page: as Rust files, it says what it is for, and is not too long.
pub(crate) fn check_page(name: &str, text: &str, findings: &mut Findings) {
    let is_source = name.starts_with("web/src/") && name.ends_with(".ts")
        || name.starts_with("web/") && name.ends_with(".mjs");
    if !is_source {
        return;
    }
    if !text.starts_with("// ") {
        findings.add(name, "does not begin with `// `: say what the module is for");
    }
    let lines = text.lines().count();
    if lines > MAX_LINES {
        findings.add(name, format!("{lines} lines, more than {MAX_LINES}: split it"));
    }
    // Text of recordings becomes text nodes: what makes markup of texts has no place here.
    for (number, line) in text.lines().enumerate().filter(|_| name.starts_with("web/src/")) {
        for way in MARKUP.iter().filter(|way| line.contains(**way)) {
            findings
                .add(&format!("{name}:{}", number + 1), format!("`{way}`: texts are no markup"));
        }
    }
}

/// Ways from text to markup or script.
const MARKUP: [&str; 6] =
    ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function"];

#[cfg(test)]
mod tests {
    use super::*;

    fn found(name: &str, text: &str) -> Vec<String> {
        let mut findings = Findings::default();
        check(name, text, &mut findings);
        findings.lines().into_iter().map(str::to_owned).collect()
    }

    #[test]
    fn a_module_with_parts_has_one_form() {
        let text = "//! Parts.\n";
        assert!(found("crates/xmem-types/src/parts.rs", text).is_empty());
        assert_eq!(found("crates/xmem-types/src/parts/mod.rs", text).len(), 1);
        assert!(found("crates/xmem-types/tests/parts/mod.rs", text).is_empty());
    }

    #[test]
    fn a_documented_module_of_usual_size_is_accepted() {
        assert_eq!(found("crates/a/src/b.rs", "\n//! Does b.\nfn f() {}\n"), [""; 0]);
        assert_eq!(found("fuzz/a.rs", "#![no_main]\n//! Breaks a.\n"), [""; 0]);
        assert_eq!(found("crates/a/src/lib.rs", "//! A.\n#![forbid(unsafe_code)]\n"), [""; 0]);
        assert_eq!(found("crates/xmem-trace/src/lib.rs", "//! Reads.\n"), [""; 0]);
    }

    #[test]
    fn sources_of_the_page_have_a_purpose_and_no_markup() {
        let found = |name: &str, text: &str| {
            let mut findings = Findings::default();
            check_page(name, text, &mut findings);
            findings.lines().into_iter().map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(found("web/src/a.ts", "// Does a.\n"), [""; 0]);
        assert_eq!(found("web/dist/a.js", "innerHTML"), [""; 0]);
        assert_eq!(found("web/src/a.ts", "const a = 1;\n").len(), 1);
        assert_eq!(
            found("web/src/a.ts", "// A.\nx.innerHTML = y;\n"),
            ["web/src/a.ts:2: `innerHTML`: texts are no markup"]
        );
        assert_eq!(found("web/build.mjs", &format!("// A.\n{}", "x\n".repeat(MAX_LINES))).len(), 1);
    }

    #[test]
    fn text_that_is_not_made_printable_is_found() {
        for (way, right) in RAW_TEXT {
            let mut findings = Findings::default();
            check_text("crates/xmem-cli/src/a.rs", &format!("//! A.\n{way}\n"), &mut findings);
            assert_eq!(findings.lines(), [format!("crates/xmem-cli/src/a.rs:2: `{way}`: {right}")]);
            check_text("crates/xmem-cli/src/terminal.rs", way, &mut findings);
            check_text("crates/xmem-cli/tests/a.rs", way, &mut findings);
            assert_eq!(findings.lines().len(), 1);
        }
    }

    #[test]
    fn missing_documentation_size_and_unsafe_code_are_found() {
        let long = format!("//! Long.\n{}", "// x\n".repeat(MAX_LINES));
        assert_eq!(found("a.rs", "use x;\n").len(), 1);
        assert_eq!(found("a.rs", &long), ["a.rs: 801 lines, more than 800: split it"]);
        for root in ["crates/a/src/main.rs", "xtask/a/src/lib.rs"] {
            let lacking = format!("{root}: lacks `#![forbid(unsafe_code)]`");
            assert_eq!(found(root, "//! A.\n"), [lacking]);
        }
    }
}

//! The first commands of each of the four uses, as they are typed, and what they print: `tests/transcripts/*.md`.
//!
//! A block `console` holds commands behind `$ `, what each prints on both streams, and behind `? ` its exit code if that
//! is not 0. `[..]` stands for what differs from run to run. `UPDATE_EXPECT=1` writes what is printed.

use crate::guide::recorded;
use crate::job::Folder;
use crate::shell;
use expect_test::expect_file;
use std::fmt::Write as _;
use std::os::unix::fs::symlink;
use std::path::Path;

const ANYTHING: &str = "[..]";
const REPOSITORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

#[test]
fn the_first_commands_of_someone_with_a_trace_from_elsewhere() {
    check("trace-from-elsewhere", None);
}

#[test]
fn the_first_commands_of_an_administrator() {
    check("administrator", None);
}

#[test]
fn the_first_commands_of_a_researcher() {
    check("researcher", None);
}

#[test]
#[ignore = "needs an interpreter with PyTorch's CUDA build, named by XMEM_TEST_PYTHON"]
fn the_first_commands_of_someone_with_a_training_script() {
    let python = std::env::var("XMEM_TEST_PYTHON").expect("XMEM_TEST_PYTHON names an interpreter");
    check("training-script", Path::new(&python).parent());
}

/// Runs the commands of a transcript in one folder, one after the other, with programs of `programs` before others.
fn check(name: &str, programs: Option<&Path>) {
    let folder = recorded();
    for (link, target) in
        [("contrib", "contrib"), ("train.py", "crates/xmem-cli/tests/transcripts/train.py")]
    {
        symlink(format!("{REPOSITORY}/{target}"), folder.path(link)).expect("linked");
    }
    let path = format!("{}/tests/transcripts/{name}.md", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).expect("the transcript");
    let mut now = String::new();
    let mut parts = text.split("```console\n");
    now.push_str(parts.next().unwrap_or_default());
    for part in parts {
        let (block, rest) = part.split_once("```\n").expect("the block is closed");
        now.push_str("```console\n");
        for entry in block.split("$ ").skip(1) {
            let (typed, printed) = entry.split_once('\n').expect("a line");
            let shown = run(typed, &folder, programs);
            _ = write!(now, "$ {typed}\n{}", with_gaps(&shown, printed));
        }
        _ = write!(now, "```\n{rest}");
    }
    expect_file![path].assert_eq(&now);
}

/// What a command prints, and its exit code.
fn run(typed: &str, folder: &Folder, programs: Option<&Path>) -> String {
    let output = shell::typed(typed, folder, programs).output().expect("runs");
    let mut shown: String = String::from_utf8(output.stdout)
        .expect("UTF-8")
        .lines()
        .filter(|line| !tells_progress(line))
        .map(|line| format!("{}\n", line.trim_end()))
        .collect();
    if !output.status.success() {
        _ = writeln!(shown, "? {}", output.status.code().expect("ended by itself"));
    }
    shown
}

/// Whether a line is printed only where a stage of a recording takes long, as on a machine with much other work.
fn tells_progress(line: &str) -> bool {
    line.starts_with("xmem: ") && line.contains(" s so far (total ")
}

#[test]
fn a_slow_machine_prints_the_same_transcript() {
    assert!(tells_progress("xmem: starting: 31 s so far (total 31 s, 389.61 MiB)"));
    assert!(!tells_progress("recorded 3 iterations in 31 s: trace.json.zst"));
}

/// The text with the lines of `earlier` that have gaps instead of those that they stand for.
fn with_gaps(text: &str, earlier: &str) -> String {
    let gaps: Vec<&str> = earlier.lines().filter(|line| line.contains(ANYTHING)).collect();
    let line = |line| gaps.iter().find(|gap| stands_for(gap, line)).copied().unwrap_or(line);
    text.lines().map(|read| format!("{}\n", line(read))).collect()
}

fn stands_for(pattern: &str, line: &str) -> bool {
    let mut parts = pattern.split(ANYTHING);
    let Some(mut rest) = line.strip_prefix(parts.next().unwrap_or_default()) else { return false };
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else { return rest.is_empty() };
    for part in middle {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

#[test]
fn a_gap_stands_for_what_differs() {
    for (pattern, line, expected) in [
        ("in [..] s", "in 12 s", true),
        ("in [..] s", "in 12 ms of 3 s", true),
        ("in [..] s", "on 12 s", false),
        ("in [..] s", "in 12 min", false),
        ("[..] of [..]: ok", "1 of 2: ok", true),
        ("[..] of [..]: ok", "1: ok", false),
    ] {
        assert_eq!(stands_for(pattern, line), expected, "{pattern}: {line}");
    }
    assert_eq!(with_gaps("took 1 s\nend\n", "took [..] s\nold\n"), "took [..] s\nend\n");
}

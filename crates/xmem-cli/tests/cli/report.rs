//! `xmem report`.

use crate::shell::xmem;

const TRACE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../traces/gpt2_adamw/trace.json.zst");

/// The stacks of a file and their bytes.
fn stacks(text: &str) -> Vec<(&str, u64)> {
    text.lines()
        .map(|line| {
            let (stack, bytes) = line.rsplit_once(' ').expect("a stack and a number");
            (stack, bytes.parse().expect("a number"))
        })
        .collect()
}

#[test]
fn folded_stacks_add_up_to_the_peak() {
    let options = ["--device", "a100-40g", "--cudnn", "model"];
    let replayed = xmem(["replay", TRACE, "--format", "json"].into_iter().chain(options));
    let peak = replayed.json()["peak"]["allocated_bytes"].as_u64().expect("bytes");
    for key in ["stack", "module", "line", "op", "role", "size"] {
        let ran =
            xmem(["report", TRACE, "--format", "folded", "--by", key].into_iter().chain(options));
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{key}");
        let stacks = stacks(&ran.stdout);
        assert_eq!(stacks.iter().map(|(_, bytes)| bytes).sum::<u64>(), peak, "{key}");
        let mut names: Vec<&str> = stacks.iter().map(|(stack, _)| *stack).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), stacks.len(), "{key}: every stack once");
    }
}

#[test]
fn frames_are_nested_modules() {
    let ran = xmem(["report", TRACE, "--format", "folded", "--by", "module", "--cudnn", "model"]);
    assert!(
        ran.stdout.lines().any(|line| line.starts_with("GPT2LMHeadModel_0;GPT2Model_0;")),
        "{}",
        ran.stdout
    );
}

#[test]
fn formats_of_viewers_are_written_to_files_and_to_standard_output() {
    let folder = tempfile::tempdir().expect("a folder");
    for (format, begin) in [
        ("perfetto", &b"\x0a"[..]),
        ("speedscope", b"{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\""),
        ("parquet", b"PAR1"),
        ("jsonl", b"{\"block\":"),
        ("svg", b"<svg xmlns=\"http://www.w3.org/2000/svg\""),
    ] {
        let file = folder.path().join(format);
        let file = file.to_str().expect("UTF-8");
        let ran = xmem(["report", TRACE, "--format", format, "--cudnn", "model", "-o", file]);
        assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.as_str()), (0, "", ""), "{format}");
        let written = std::fs::read(file).expect("a file");
        assert!(written.starts_with(begin), "{format}");
        if format == "svg" {
            let ran = xmem(["report", TRACE, "--format", format, "--cudnn", "model"]);
            assert_eq!(ran.stdout.as_bytes(), written);
        }
    }
}

#[test]
fn pages_are_the_same_each_time_and_name_no_other_place() {
    let page = || xmem(["report", TRACE, "--device", "a100-40g", "--cudnn", "model"]);
    let (one, other) = (page(), page());
    assert_eq!((one.code, one.stderr.as_str()), (0, ""));
    assert!(one.stdout == other.stdout, "equal inputs give equal pages");
    assert!(one.stdout.starts_with("<!DOCTYPE html>") && one.stdout.ends_with("</html>\n"));
    for way in ["http://", "https://", " src=", "@import", "url("] {
        assert!(!one.stdout.contains(way), "{way}");
    }
}

#[test]
fn only_a_page_shows_several_runs() {
    let ran = xmem(["report", TRACE, TRACE, "--format", "folded", "--cudnn", "model"]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("--format html shows several"), "{}", ran.stderr);
    let ran = xmem(["report", TRACE, "--open"]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("--output"), "{}", ran.stderr);
}

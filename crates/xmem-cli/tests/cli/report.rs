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

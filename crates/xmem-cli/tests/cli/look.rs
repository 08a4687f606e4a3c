//! `xmem look` in a pseudo-terminal, and where there is none.

use crate::job::Folder;
use crate::shell::{prepared, xmem};
use serde_json::{Value, json};
use std::process::Command;

const PTY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../xmem-look/tests/in_a_terminal.py");
const TRACE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../traces/gpt2_adamw/trace.json.zst");

/// What is typed after which text.
type Steps = &'static [(&'static str, &'static str)];

/// What is found in a pseudo-terminal; none without Python.
#[expect(clippy::print_stderr, reason = "a skipped test says so")]
fn ran(trace: &str, steps: Steps, variables: &[(&str, &str)]) -> Option<Value> {
    let steps = json!(steps.iter().map(|(text, keys)| [text, keys]).collect::<Vec<_>>());
    let mut command = prepared(Command::new("python3"));
    command.args([PTY, &steps.to_string(), env!("CARGO_BIN_EXE_xmem"), "look", trace]);
    command.args(["--device", "a100-40g", "--quiet"]).env("TERM", "xterm-256color");
    let Ok(ran) = command.envs(variables.iter().copied()).output() else {
        eprintln!("skipped: no python3, which opens the pseudo-terminal");
        return None;
    };
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    Some(serde_json::from_slice(&ran.stdout).expect("JSON"))
}

/// The exit code and the output in a pseudo-terminal, whose settings are as before; none without Python.
fn look(trace: &str, steps: Steps, variables: &[(&str, &str)]) -> Option<(i64, String)> {
    let found = ran(trace, steps, variables)?;
    assert_eq!(found["settings_are_as_before"], true);
    let hex = found["output"].as_str().expect("text");
    let byte = |at| u8::from_str_radix(&hex[at..at + 2], 16).expect("a number");
    let bytes = (0..hex.len()).step_by(2).map(byte).collect();
    Some((found["code"].as_i64().expect("a number"), String::from_utf8(bytes).expect("UTF-8")))
}

/// Asserts that the other screen was entered, left and nothing printed after it.
fn assert_left(output: &str) {
    let (before, after) = output.split_once("\u{1b}[?1049h").expect("the other screen");
    let (_, after) = after.split_once("\u{1b}[?1049l").expect("it is left");
    assert_eq!((before, after), ("", "\u{1b}[?25h"), "beside the other screen");
}

#[test]
fn keys_and_signals_end_it_and_the_terminal_is_as_before() {
    let by_key: Steps = &[("activation", "?"), ("ctrl-c", " "), ("tab list", "q")];
    for (steps, variables, code) in [
        (by_key, &[][..], 0),
        (by_key, &[("NO_COLOR", "1")], 0),
        (&[("activation", "\u{3}")], &[], 0),
        (&[("activation", "SIGTERM")], &[], 143),
    ] {
        let Some((ended, output)) = look(TRACE, steps, variables) else { return };
        assert_eq!(ended, code, "{steps:?}: {output}");
        assert_left(&output);
        assert!(output.contains("186.89 MiB allocated, 210.00 MiB reserved"), "{output}");
        let colors = ["\u{1b}[34m", "\u{1b}[38;5;"];
        let has_colors = colors.iter().any(|color| output.contains(color));
        assert_eq!(has_colors, variables.is_empty(), "{output:?}");
    }
}

#[test]
fn a_terminal_that_is_gone_ends_it() {
    let Some(found) = ran(TRACE, &[("activation", "HANGUP")], &[]) else { return };
    assert_eq!(found["code"], 143, "{found}");
}

#[test]
fn errors_are_printed_on_the_usual_screen() {
    let folder = Folder::new();
    let Some((code, output)) = look(&folder.path("bad.json"), &[], &[]) else { return };
    assert_eq!(code, 3);
    assert!(!output.contains("\u{1b}[?1049h"), "{output}");
}

#[test]
fn without_a_terminal_it_says_what_to_use() {
    let ran = xmem(["look", TRACE, "--device", "a100-40g"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (2, ""));
    for words in ["not an interactive terminal", "`xmem replay`", "`xmem report`"] {
        assert!(ran.stderr.contains(words), "{words}: {}", ran.stderr);
    }
}

//! The picture of a terminal in the README: what the program prints, in color. `UPDATE_EXPECT=1` draws it anew.

use crate::shell::prepared;
use anstyle_svg::Term;
use expect_test::expect_file;
use std::fmt::Write as _;
use std::process::Command;

const REPOSITORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// What is typed in the picture, from the repository's root.
const TYPED: [&str; 2] = [
    "xmem replay traces/big_gpt2s_adam_b6/trace.json.zst --device rtx3060-12g",
    "xmem replay traces/big_gpt2s_adam_b6/trace.json.zst --capacity 3GiB --quiet",
];

/// Seconds between two lines, between what is typed and what is printed, and until the picture begins again.
const LINE: f64 = 0.04;
const THINKING: f64 = 0.9;
const READING: f64 = 8.0;

#[test]
fn the_picture_of_the_readme_shows_what_is_printed() {
    let mut text = String::new();
    let mut begins = Vec::new();
    let mut now = 0.0;
    for typed in TYPED {
        _ = writeln!(text, "\u{1b}[2m$\u{1b}[0m {typed}");
        begins.push(now);
        now += THINKING;
        for line in printed(typed).lines().chain([""]) {
            _ = writeln!(text, "{line}");
            begins.push(now);
            now += LINE;
        }
        now += THINKING;
    }
    let drawn = Term::new().render_svg(text.trim_end());
    let moving = animated(&drawn, &begins, now + READING);
    expect_file![format!("{REPOSITORY}/docs/images/terminal.svg")].assert_eq(&moving);
}

fn printed(typed: &str) -> String {
    let words: Vec<&str> = typed.split(' ').collect();
    let mut command = prepared(Command::new(env!("CARGO_BIN_EXE_xmem")));
    command.env("CLICOLOR_FORCE", "1").args(&words[1..]).current_dir(REPOSITORY);
    let output = command.output().expect("runs");
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// A picture whose lines appear at these times, in seconds, and which begins again after `length`. Where nothing moves, such as
/// on paper, all lines are there.
fn animated(drawn: &str, begins: &[f64], length: f64) -> String {
    let mut rules = String::new();
    let mut lines = begins.iter().enumerate();
    let mut moving = String::new();
    for part in drawn.split_inclusive('\n') {
        let rest = part.trim_start().strip_prefix("<tspan x=");
        let Some((rest, (number, begin))) = rest.and_then(|rest| Some((rest, lines.next()?)))
        else {
            moving.push_str(part);
            continue;
        };
        let share = 100.0 * begin / length;
        _ = write!(
            rules,
            "    @keyframes l{number} {{ 0%, {share:.2}% {{ fill-opacity: 0 }} {:.2}%, 100% {{ fill-opacity: 1 }} }}\n    \
             .l{number} {{ animation: l{number} {length:.1}s infinite step-end }}\n",
            share + 0.01
        );
        _ = write!(moving, "    <tspan class=\"l{number}\" x={rest}");
    }
    moving.replacen("  </style>", &format!("{rules}  </style>"), 1)
}

//! `-h` and `--help`.

use crate::shell::xmem;

/// The commands that `xmem -h` lists, and those of `snapshot`.
fn commands() -> Vec<Vec<String>> {
    let listed = |args: &[&str]| -> Vec<String> {
        let page = xmem(args).stdout;
        let (_, rest) = page.split_once("Commands:\n").expect("commands");
        let rows = rest.lines().take_while(|line| !line.is_empty());
        // Descriptions go on further to the right.
        let rows = rows.filter(|line| !line.starts_with("   "));
        let names = rows.filter_map(|line| line.split_whitespace().next());
        names.filter(|name| *name != "help").map(str::to_owned).collect()
    };
    let mut all: Vec<Vec<String>> = listed(&["-h"]).into_iter().map(|name| vec![name]).collect();
    for name in listed(&["snapshot", "-h"]) {
        all.push(vec!["snapshot".to_owned(), name]);
    }
    all
}

/// The options of a page of help.
fn options(page: &str) -> std::collections::BTreeSet<String> {
    let is_row = |line: &&str| line.trim_start().starts_with('-') && line.starts_with("  ");
    let words = page.lines().filter(is_row).flat_map(str::split_whitespace);
    // Names in brackets are aliases.
    let names = words.filter(|word| word.starts_with("--") && !word.ends_with(']'));
    names
        .map(|name| {
            name.trim_end_matches([',', '.', ']']).split('=').next().unwrap_or(name).to_owned()
        })
        .collect()
}

#[test]
fn the_short_help_of_replay_had_136_lines() {
    let commands = commands();
    assert!(commands.len() > 15, "{commands:?}");
    for name in &commands {
        let page = |flag: &str| {
            let args = name.iter().map(String::as_str).chain([flag]);
            xmem(args.collect::<Vec<_>>()).stdout
        };
        let (short, long) = (page("-h"), page("--help"));
        let lines = short.lines().count();
        assert!((8..=40).contains(&lines), "{name:?} -h has {lines} lines:\n{short}");
        let (few, all) = (options(&short), options(&long));
        let more: Vec<&String> = few.difference(&all).collect();
        assert!(more.is_empty(), "{name:?}: only -h has {more:?}");
    }
}

#[test]
fn what_if_options_were_in_the_short_help_of_every_command() {
    for name in ["look", "report", "diff", "plan", "replay", "check"] {
        let short = xmem([name, "-h"]).stdout;
        let long = xmem([name, "--help"]).stdout;
        for option in ["--zero-grad", "--collectives", "--no-rule", "--cudnn-cache"] {
            assert!(!short.contains(option), "{name} -h: {option}");
            assert!(long.contains(option), "{name} --help: {option}");
        }
        for heading in ["What if:", "Convolutions:", "Allocator:", "Reading:"] {
            assert!(long.contains(&format!("\n{heading}\n")), "{name} --help: {heading}");
        }
    }
}

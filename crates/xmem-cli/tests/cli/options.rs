//! The page of all options is made from the help of the program, and the page of commands has each of them.

use clap::{Arg, Command};
use expect_test::expect_file;
use std::fmt::Write as _;

const COMMANDS: &str = include_str!("../../../../docs/reference/commands.md");

const INTRODUCTION: &str = "\
# Options of all commands

What `xmem COMMAND --help` prints, on one page. [Commands](commands.md) leads to the guides.

This page is made from the program: `UPDATE_EXPECT=1 cargo test -p xmem-cli --test cli options` writes it anew.
";

#[test]
fn the_page_follows_the_program() {
    let mut program = xmem_cli::command();
    program.build();
    let mut page = INTRODUCTION.to_owned();
    let common = rows(program.get_arguments().filter(|arg| arg.is_global_set()));
    let _ = write!(page, "\n## All commands\n\n{common}");
    for command in shown(&program) {
        describe(&mut page, "xmem", command);
        let name = format!("| `xmem {}` |", command.get_name());
        assert!(COMMANDS.contains(&name), "{name} is not on the page of commands");
    }
    expect_file!["../../../../docs/reference/options.md"].assert_eq(&page);
}

/// The commands of a command that its help shows.
fn shown(command: &Command) -> impl Iterator<Item = &Command> {
    let is_shown = |command: &&Command| !command.is_hide_set() && command.get_name() != "help";
    command.get_subcommands().filter(is_shown)
}

/// Adds a command with its options, and the commands below it.
fn describe(page: &mut String, parent: &str, command: &Command) {
    let name = format!("{parent} {}", command.get_name());
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let own = command.get_arguments().filter(|arg| !arg.is_global_set());
    let _ = write!(page, "\n## `{name}`\n\n{}\n\n{}", one_line(&about), rows(own));
    for command in shown(command) {
        describe(page, &name, command);
    }
}

/// The table of arguments.
fn rows<'a>(args: impl Iterator<Item = &'a Arg>) -> String {
    let mut rows = "| option | meaning |\n|---|---|\n".to_owned();
    let is_same_everywhere = |arg: &Arg| ["help", "version"].contains(&arg.get_id().as_str());
    for arg in args.filter(|arg| !arg.is_hide_set() && !is_same_everywhere(arg)) {
        let help = arg.get_long_help().or(arg.get_help()).map(ToString::to_string);
        let help = one_line(&help.unwrap_or_default());
        let _ = writeln!(rows, "| `{}` | {help}{} |", spelled(arg), default(arg));
    }
    rows
}

/// An argument as it is typed.
fn spelled(arg: &Arg) -> String {
    let short = arg.get_short().map(|short| format!("-{short}, ")).unwrap_or_default();
    one_line(&format!("{short}{arg}"))
}

/// The value of an argument that is not given.
fn default(arg: &Arg) -> String {
    let values: Vec<_> = arg.get_default_values().iter().map(|v| v.to_string_lossy()).collect();
    if arg.get_action().takes_values() && !values.is_empty() {
        format!(" (default: `{}`)", values.join(" "))
    } else {
        String::new()
    }
}

/// A text in one cell of a table.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}

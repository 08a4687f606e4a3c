//! `-h` on one screen: the options that most runs need, each in one sentence. `--help` has all of them, in groups.

use crate::commands::SHORT_HELP;
use clap::{Arg, Command};

/// The least length of the first sentence of an option.
const LEAST: usize = 24;

/// The most examples that `-h` shows.
const EXAMPLES: usize = 3;

/// The command line with an `-h` that fits on a screen.
pub(crate) fn on_one_screen(mut command: Command) -> Command {
    for (name, shown) in SHORT_HELP {
        command = command.mut_subcommand(name, |command| shortened(command, shown));
    }
    command
}

fn shortened(command: Command, shown: &[&str]) -> Command {
    let examples = command.get_after_help().map(ToString::to_string);
    let command = command.mut_args(|arg| {
        let is_shown = shown.contains(&arg.get_id().as_str());
        in_one_sentence(arg).hide_short_help(!is_shown)
    });
    match examples {
        Some(text) => command.after_help(few(&text)).after_long_help(text),
        None => command,
    }
}

/// `-h` has the first sentence of an option, `--help` all of it.
fn in_one_sentence(arg: Arg) -> Arg {
    let Some(help) = arg.get_help().map(ToString::to_string) else { return arg };
    let long = arg.get_long_help().map_or_else(|| help.clone(), ToString::to_string);
    let ends = [". ", "; ", ": ", " ("].iter().flat_map(|end| help.match_indices(end));
    let ends = ends.map(|(at, _)| at).filter(|at| *at >= LEAST);
    let first = ends.min().map_or(help.as_str(), |end| &help[..end]);
    let first = first.to_owned();
    arg.help(first).long_help(long)
}

/// The first examples.
fn few(text: &str) -> String {
    let mut lines = text.lines().filter(|line| !line.trim().is_empty());
    let heading = lines.find(|line| *line == "Examples:").unwrap_or("Examples:");
    let examples = lines.take_while(|line| line.starts_with("  ")).take(EXAMPLES);
    let lines: Vec<&str> = std::iter::once(heading).chain(examples).collect();
    lines.join("\n") + "\n\n--help has all options in groups, and more examples."
}

//! The help of the program: its tasks in groups, one line each.

use crate::tasks::{Benches, Checks, Clusters, Judges, Recordings, Release, Report};
use clap::{Command, Subcommand};
use std::fmt::Write as _;

/// Adds the tasks of a group to a command.
type Augment = fn(Command) -> Command;

/// The groups of tasks with their headings.
const GROUPS: [(&str, Augment); 7] = [
    ("Checks", Checks::augment_subcommands),
    ("Judges of the program", Judges::augment_subcommands),
    ("Recordings with PyTorch", Recordings::augment_subcommands),
    ("Clusters on this machine", Clusters::augment_subcommands),
    ("Reports in a browser", Report::augment_subcommands),
    ("Benches", Benches::augment_subcommands),
    ("Release", Release::augment_subcommands),
];

/// The command with the list of groups in place of one list of all tasks.
pub(crate) fn grouped(command: Command) -> Command {
    command.help_template("{about}\n\n{usage-heading} {usage}{after-help}").after_help(listing())
}

/// The groups with their tasks, and where more is said.
fn listing() -> String {
    let mut text = String::new();
    for (heading, augment) in GROUPS {
        // Writing to a string does not fail.
        let _ = writeln!(text, "{heading}:");
        for (name, about) in shown(augment) {
            let _ = writeln!(text, "  {name:<16} {about}");
        }
        text.push('\n');
    }
    text.push_str("`cargo xtask TASK --help` has the options of a task.");
    text
}

/// The names of a group's tasks that are not hidden, and what they do.
fn shown(augment: Augment) -> Vec<(String, String)> {
    let group = augment(Command::new("group"));
    let tasks = group.get_subcommands().filter(|task| !task.is_hide_set());
    let about = |task: &Command| task.get_about().map(ToString::to_string).unwrap_or_default();
    tasks.map(|task| (task.get_name().to_owned(), about(task))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;
    use std::collections::BTreeSet;

    #[test]
    fn every_task_stands_in_one_group_and_on_one_line() {
        let mut listed = BTreeSet::new();
        for (name, about) in GROUPS.into_iter().flat_map(|(_, augment)| shown(augment)) {
            assert!(name.len() <= 16, "{name} is longer than its column");
            assert!((1..=78).contains(&about.chars().count()), "{name}: {about}");
            assert!(listed.insert(name.clone()), "{name} stands in two groups");
        }
        let program = crate::Cli::command();
        let tasks = program.get_subcommands().filter(|task| !task.is_hide_set());
        assert_eq!(listed, tasks.map(|task| task.get_name().to_owned()).collect());
    }

    #[test]
    fn the_help_has_the_groups_in_place_of_one_list() {
        let help = grouped(crate::Cli::command()).render_help().to_string();
        assert!(help.contains("\nChecks:\n  tidy "), "{help}");
        assert!(!help.contains("Commands:"), "{help}");
    }
}

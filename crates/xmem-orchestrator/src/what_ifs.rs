//! What-ifs: a recorded job with one thing changed, replayed without recording it again.
//!
//! A [`WhatIf`] is one file: its name, its values, its help, and what it changes: the target of the lowering, or the schedule
//! after it. Registration is a line in [`WHAT_IFS`]. On the command line, all of them are given as `--what-if NAME=VALUE`.

mod amsgrad;
mod collectives;
mod cublas_workspace;
mod momentum;
mod optimizer_impl;
mod set_to_none;
mod world_size;
mod zero_grad;

use crate::change::{Change, ChosenWhatIf};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use thiserror::Error;

/// A change of a recorded job.
#[derive(Clone, Copy, Debug)]
pub struct WhatIf {
    /// Its name in options (`world-size`), that of its file.
    pub name: &'static str,
    /// The values that it may have.
    pub values: Values,
    /// A sentence about it, without a period.
    pub help: &'static str,
    /// The change that a value makes; none for text that is not one.
    change: fn(&str) -> Option<Arc<dyn Change>>,
}

/// The values of a what-if.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Values {
    /// One of these, each with what it means.
    Named(&'static [(&'static str, &'static str)]),
    /// Others: the word for them in help, and what is expected.
    Free(&'static str, &'static str),
}

/// All what-ifs, in the order in which they are applied.
pub const WHAT_IFS: [WhatIf; 8] = [
    // Settings of the target: no one depends on another.
    zero_grad::WHAT_IF,
    set_to_none::WHAT_IF,
    optimizer_impl::WHAT_IF,
    cublas_workspace::WHAT_IF,
    // What changes the schedule: another state of the optimizer is sharded like the recorded one.
    amsgrad::WHAT_IF,
    momentum::WHAT_IF,
    world_size::WHAT_IF,
    // The order of requests is that of all of them.
    collectives::WHAT_IF,
];

/// Text that names no what-if and value.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ParseWhatIfError {
    /// There is no value.
    #[error("expected NAME=VALUE: {}", names())]
    NoValue,
    /// The name is not one.
    #[error("unknown what-if `{name}`: {}", names())]
    Unknown {
        /// The name.
        name: String,
    },
    /// The name is that of something that decides what is recorded.
    #[error("`{name}` is not a what-if: {instead}")]
    OfTheJob {
        /// The name.
        name: String,
        /// What changes it.
        instead: &'static str,
    },
    /// The value is not one.
    #[error("{name}: {problem}")]
    Value {
        /// The name of the what-if.
        name: &'static str,
        /// What a value must be.
        problem: String,
    },
}

/// What decides the shapes and types of a job, and where it can be changed.
const OF_THE_JOB: [(&[&str], &str); 3] = [
    (
        &["batch", "batch-size"],
        "for a graph, use `xmem estimate --batch N`; for a script, `xmem fit`",
    ),
    (
        &["length", "seq-len"],
        "for a graph, use `xmem estimate --length N`; for recordings, `xmem replay --vary`",
    ),
    (
        &["dtype", "precision", "autocast"],
        "for a graph, use `xmem estimate --autocast` or `--dtype`; for a script, change it and record again",
    ),
];

/// The names with their values.
fn names() -> String {
    WHAT_IFS.iter().map(WhatIf::usage).collect::<Vec<_>>().join(", ")
}

impl WhatIf {
    /// Name and values (`zero-grad=pos0|pos1`).
    #[must_use]
    pub fn usage(&self) -> String {
        format!("{}={}", self.name, self.values)
    }

    /// What a value must be, for text that is not one.
    fn expected(&self, found: &str) -> String {
        let expected = match self.values {
            Values::Named(values) => {
                let names: Vec<&str> = values.iter().map(|(name, _)| *name).collect();
                names.join(" or ")
            }
            Values::Free(_, expected) => expected.to_owned(),
        };
        format!("expected {expected}, found `{found}`")
    }

    /// The what-if of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        static ALL: [WhatIf; WHAT_IFS.len()] = WHAT_IFS;
        ALL.iter().find(|what_if| what_if.name == name)
    }
}

impl ChosenWhatIf {
    /// The what-if of this name with a value.
    ///
    /// # Errors
    /// If there is none, or it does not have the value.
    pub fn new(name: &str, value: &str) -> Result<Self, ParseWhatIfError> {
        let of_the_job = OF_THE_JOB.iter().find(|(names, _)| names.contains(&name));
        let unknown = || match of_the_job {
            Some(&(_, instead)) => ParseWhatIfError::OfTheJob { name: name.to_owned(), instead },
            None => ParseWhatIfError::Unknown { name: name.to_owned() },
        };
        let order = WHAT_IFS.iter().position(|what_if| what_if.name == name);
        let order = order.ok_or_else(unknown)?;
        let (what_if, value) = (&WHAT_IFS[order], value.trim());
        let change = (what_if.change)(value).ok_or_else(|| ParseWhatIfError::Value {
            name: what_if.name,
            problem: what_if.expected(value),
        })?;
        Ok(Self::of_table((what_if.name, order), value, change))
    }
}

impl fmt::Display for Values {
    /// As help shows them (`pos0|pos1`).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Free(word, _) => f.write_str(word),
            Self::Named(values) => {
                let names: Vec<&str> = values.iter().map(|(name, _)| *name).collect();
                f.write_str(&names.join("|"))
            }
        }
    }
}

impl FromStr for ChosenWhatIf {
    type Err = ParseWhatIfError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (name, value) = text.split_once('=').ok_or(ParseWhatIfError::NoValue)?;
        Self::new(name.trim(), value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::Target;
    use xmem_devices::find;

    #[test]
    fn a_batch_size_is_no_what_if_and_the_error_names_the_command_that_changes_it() {
        let error = "batch=64".parse::<ChosenWhatIf>().expect_err("no what-if");
        assert!(error.to_string().contains("xmem estimate --batch N"), "{error}");
    }

    #[test]
    fn a_what_if_has_the_name_of_its_file_and_reads_its_own_values() {
        let source = include_str!("what_ifs.rs");
        let files: Vec<String> = source
            .lines()
            .filter_map(|line| line.strip_prefix("mod ")?.strip_suffix(';'))
            .map(|file| file.replace('_', "-"))
            .collect();
        let mut names: Vec<&str> = WHAT_IFS.iter().map(|what_if| what_if.name).collect();
        names.sort_unstable();
        assert_eq!(names, files);
        for what_if in WHAT_IFS {
            let values = match what_if.values {
                Values::Named(values) => values.iter().map(|(name, _)| *name).collect(),
                Values::Free("N", _) => vec!["1", "16"],
                Values::Free(..) => vec![":4096:8", ":0:0"],
            };
            for value in values {
                let chosen = ChosenWhatIf::new(what_if.name, value).expect(value);
                assert_eq!(chosen.to_string(), format!("{}={value}", what_if.name));
                assert_eq!(chosen.to_string().parse::<ChosenWhatIf>().expect("one").value(), value);
            }
            let odd = ChosenWhatIf::new(what_if.name, "odd").expect_err(what_if.name);
            assert!(odd.to_string().starts_with(&format!("{}: ", what_if.name)), "{odd}");
        }
        let unknown = "worlds=4".parse::<ChosenWhatIf>().expect_err("unknown").to_string();
        assert!(unknown.contains("`worlds`") && unknown.contains("world-size=N"), "{unknown}");
    }

    #[test]
    fn the_last_one_of_a_name_counts_and_the_table_orders_them() {
        let mut target = Target::new(find("t4-16g").expect("known").clone());
        for text in ["world-size=4", "zero-grad=pos0", "world-size=8"] {
            target.add(text.parse().expect(text));
        }
        let chosen: Vec<String> = target.what_ifs.iter().map(ToString::to_string).collect();
        assert_eq!(chosen, ["zero-grad=pos0", "world-size=8"]);
    }
}

//! A case of the table.

use super::TESTS;
use super::programs::Program;
use crate::cases;
use serde::Deserialize;
use std::collections::BTreeMap;
use xmem_task::Error;

/// A submission, and what must come out.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Case {
    pub(super) name: String,
    pub(super) command: Vec<String>,
    #[serde(default)]
    pub(super) trace: Option<String>,
    #[serde(default = "yes")]
    pub(super) client: bool,
    #[serde(default)]
    pub(super) xmem: Program,
    #[serde(default)]
    pub(super) asked: Option<usize>,
    #[serde(default)]
    pub(super) exit: i32,
    #[serde(default)]
    pub(super) stdin: String,
    #[serde(default = "once")]
    pub(super) times: usize,
    /// Of many submissions, those that end with status 1.
    #[serde(default)]
    pub(super) rejected: usize,
    #[serde(default)]
    pub(super) restart: bool,
    #[serde(default)]
    pub(super) output: Vec<String>,
    #[serde(default)]
    pub(super) without: Vec<String>,
    /// A file that must not be there afterwards.
    #[serde(default)]
    pub(super) absent: Option<String>,
    #[serde(default)]
    pub(super) change: Option<Change>,
    #[serde(default)]
    pub(super) job: BTreeMap<String, String>,
}

/// A change of a job that is in the queue.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Change {
    pub(super) arguments: Vec<String>,
    pub(super) exit: i32,
}

fn yes() -> bool {
    true
}

fn once() -> usize {
    1
}

/// All cases, in their order.
pub(super) fn all() -> Result<Vec<Case>, Error> {
    cases::read(TESTS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_cases_is_read_and_names_are_unique() {
        let cases = all().expect("cases");
        let names: std::collections::BTreeSet<&str> =
            cases.iter().map(|case| case.name.as_str()).collect();
        assert_eq!(names.len(), cases.len());
    }
}

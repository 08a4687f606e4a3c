//! A case of the table.

use super::TESTS;
use crate::cases;
use serde::Deserialize;
use xmem_task::Error;

/// Commands, and what must come out.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Case {
    pub(super) name: String,
    pub(super) manifest: String,
    #[serde(default = "research")]
    pub(super) namespace: String,
    #[serde(default = "large")]
    pub(super) gpu: String,
    #[serde(default)]
    pub(super) trace: Option<String>,
    #[serde(default)]
    pub(super) needs: Option<Feature>,
    pub(super) step: Vec<Step>,
}

/// What only newer versions of Kubernetes have.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Feature {
    MatchConditions,
    AdmissionPolicies,
}

/// A command of kubectl.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Step {
    pub(super) command: Vec<String>,
    #[serde(default)]
    pub(super) exit: i32,
    #[serde(default)]
    pub(super) output: Vec<String>,
    #[serde(default)]
    pub(super) without: Vec<String>,
    #[serde(default)]
    pub(super) asked: Option<usize>,
}

fn research() -> String {
    "research".to_owned()
}

fn large() -> String {
    super::LARGE.to_owned()
}

/// All cases, in their order.
pub(super) fn all() -> Result<Vec<Case>, Error> {
    cases::read(TESTS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use xmem_task::repo;

    #[test]
    fn the_table_of_cases_is_read_and_each_says_what_must_come_out() {
        let cases = all().expect("cases");
        let names: std::collections::BTreeSet<&str> =
            cases.iter().map(|case| case.name.as_str()).collect();
        assert_eq!(names.len(), cases.len());
        for case in &cases {
            let manifest = repo::root().join(TESTS).join("manifests").join(&case.manifest);
            assert!(manifest.is_file(), "{}", case.name);
            assert!(!case.step.is_empty(), "{}", case.name);
            assert!(case.step.iter().all(|step| !step.output.is_empty()), "{}", case.name);
        }
    }
}

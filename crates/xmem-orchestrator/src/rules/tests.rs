//! Properties of every rule.

use super::{RULES, SOURCES, cases};
use crate::testing::check;
use std::collections::BTreeSet;

#[test]
fn every_rule_changes_the_schedule_of_a_case_of_its_own() {
    for (name, cases) in cases() {
        let mut changes = false;
        for case in cases {
            assert_eq!(case.rule, name, "a case of another rule: {}", case.shows);
            let (effect, differs) = case.effect();
            assert_eq!(!effect.is_empty(), differs, "{name}: {}", case.shows);
            changes |= differs;
        }
        assert!(changes, "{name} has no case that it changes");
    }
}

/// The whole schedule, with the rule and without it.
#[test]
fn schedules_of_every_case_are_as_expected() {
    for (_, cases) in cases() {
        check(cases);
    }
}

#[test]
fn rules_have_a_kebab_case_name_of_their_own_a_summary_and_a_source() {
    let mut names = BTreeSet::new();
    for rule in RULES {
        let words: Vec<&str> = rule.name.split('-').collect();
        let kebab = words.iter().all(|w| {
            !w.is_empty() && w.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit())
        });
        assert!(kebab, "`{}` is not in kebab-case", rule.name);
        assert!(names.insert(rule.name), "two rules are called {}", rule.name);
        assert!(rule.summary.split_whitespace().count() >= 4, "{}: no summary", rule.name);
        let paths = ["aten/src/", "torch/", "c10/", "bitsandbytes/", "xMem paper"];
        assert!(
            paths.iter().any(|p| rule.source.contains(p)),
            "{}: the source names no file and no paper section",
            rule.name
        );
    }
}

#[test]
fn each_file_has_the_name_of_its_rule() {
    for (rule, (file, _)) in RULES.iter().zip(SOURCES) {
        assert_eq!(rule.name.replace('-', "_"), *file);
    }
}

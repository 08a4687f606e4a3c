//! The table of roles: its rows have names of their own, and each cites its source.

use std::collections::BTreeSet;
use xmem_analyzer::role_rules;

#[test]
fn every_row_of_the_table_of_roles_has_a_name_of_its_own_and_a_source() {
    let mut names = BTreeSet::new();
    for rule in role_rules() {
        assert!(names.insert(rule.name), "two rows are called {}", rule.name);
        let kebab = |c: char| c.is_ascii_lowercase() || c == '-';
        assert!(rule.name.chars().all(kebab), "{}", rule.name);
        let cites = ["torch/", "aten/src/", "xMem paper", "xmem.recording.1, "];
        assert!(cites.iter().any(|path| rule.source.starts_with(path)), "{}: no source", rule.name);
    }
}

#[test]
fn a_row_behind_one_that_always_holds_would_never_decide() {
    let rules: Vec<_> = role_rules().collect();
    let fallbacks = ["backward-temporary", "state", "trailing", "data", "activation"];
    for name in fallbacks {
        let at = rules.iter().position(|rule| rule.name == name).expect("a row of this name");
        let next = rules.get(at + 1).map(|rule| rule.stage);
        assert_ne!(next, Some(rules[at].stage), "{name} is not the last row of its stage");
    }
}

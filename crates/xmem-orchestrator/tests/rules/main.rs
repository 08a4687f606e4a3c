//! Every rule of the table on hand-made traces: the whole schedule, with the rule and without it.
//! Then what the rules do to recordings, and what holds for any trace.
//!
//! Sizes that CUDA asks for were recorded with PyTorch 2.11's CUDA build, kernels stubbed, or follow
//! from the source that the rule cites. `UPDATE_EXPECT=1 cargo test -p xmem-orchestrator` writes the
//! expectations anew.

mod attention;
mod autocast;
mod buffers;
mod cell;
mod clipping;
mod convolution;
mod documentation;
mod golden;
mod gradients;
mod growth;
mod host;
mod kernels;
mod marks;
mod normalisation;
mod optimizer;
mod products;
mod properties;
mod recordings;
mod recurrent;
mod reduction;
#[path = "../support/mod.rs"]
mod support;
mod transfer;

use std::collections::BTreeSet;
use support::Case;
use xmem_orchestrator::rules;

fn all_cases() -> Vec<Case> {
    [
        attention::cases(),
        autocast::cases(),
        buffers::cases(),
        cell::cases(),
        clipping::cases(),
        convolution::cases(),
        gradients::cases(),
        host::cases(),
        kernels::cases(),
        normalisation::cases(),
        marks::cases(),
        optimizer::cases(),
        products::cases(),
        recurrent::cases(),
        reduction::cases(),
        transfer::cases(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

#[test]
fn every_rule_changes_the_schedule_of_a_case() {
    let mut shown = BTreeSet::new();
    for case in all_cases() {
        let (effect, differs) = case.effect();
        assert_eq!(!effect.is_empty(), differs, "{}: {}", case.rule, case.shows);
        if differs {
            shown.insert(case.rule);
        }
    }
    let table: BTreeSet<&str> = rules().iter().map(|r| r.name).collect();
    let missing: Vec<_> = table.difference(&shown).collect();
    assert!(missing.is_empty(), "rules without a case in tests/rules: {missing:?}");
}

#[test]
fn rules_have_a_kebab_case_name_of_their_own_a_summary_and_a_source() {
    let mut names = BTreeSet::new();
    for rule in rules() {
        let words: Vec<&str> = rule.name.split('-').collect();
        let kebab = words.iter().all(|w| {
            !w.is_empty() && w.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit())
        });
        assert!(kebab, "`{}` is not in kebab-case", rule.name);
        assert!(names.insert(rule.name), "two rules are called {}", rule.name);
        assert!(rule.summary.split_whitespace().count() >= 4, "{}: no summary", rule.name);
        let paths = ["aten/src/", "torch/", "c10/", "xMem paper"];
        assert!(
            paths.iter().any(|p| rule.source.contains(p)),
            "{}: the source names no PyTorch file and no paper section",
            rule.name
        );
    }
}

//! The page of the book about rules, made from the rules' own documentation.

use super::{RULES, SOURCES};
use crate::{coverage, passes};
use expect_test::expect_file;
use std::collections::BTreeMap;
use std::fmt::Write as _;

const INTRODUCTION: &str = "\
# Rules

The changes on the way from the CPU recording to the GPU, rule by rule, each with its evidence.
`xmem replay --explain` says how many blocks and bytes each rule left out, added, resized or moved;
`--no-rule NAME` switches one off. Paths without a project are PyTorch's.

This page is made from the documentation of the rules in the code:
`UPDATE_EXPECT=1 cargo test -p xmem-orchestrator` writes it anew.
";

/// The module documentation of a source file.
fn documentation(source: &str) -> String {
    let lines = source.lines().map_while(|line| line.strip_prefix("//!"));
    lines.map(|line| line.strip_prefix(' ').unwrap_or(line)).collect::<Vec<_>>().join("\n")
}

/// The operators of a list, in code font.
fn listed(operators: &[&str]) -> String {
    operators.iter().map(|op| format!("`{op}`")).collect::<Vec<_>>().join(", ")
}

#[test]
fn the_page_of_the_book_follows_the_rules() {
    let mut page = INTRODUCTION.to_owned();
    for (rule, (_, source)) in RULES.iter().zip(SOURCES) {
        let _ = write!(page, "\n## {}\n\n{}\n", rule.name, documentation(source).trim());
        if !rule.operators.is_empty() {
            let _ = write!(page, "\nOperators: {}.\n", listed(rule.operators));
        }
        if !rule.covers.is_empty() {
            let _ = write!(page, "\nThrough these it accounts for {}.\n", listed(rule.covers));
        }
        let _ = write!(page, "\nSource: {}.\n", rule.source);
    }
    page.push_str("\n## Order of passes\n\nThe schedule is made in passes, each in its place for a reason.\n\n");
    for (number, (name, because)) in passes::reasons().enumerate() {
        let _ = writeln!(page, "{}. **{name}**: {because}.", number + 1);
    }
    page.push_str("\n## Index by operator\n\n| operator | rule |\n|---|---|\n");
    let index: BTreeMap<&str, &str> =
        coverage::ruled().map(|(operator, rule)| (operator, rule.name)).collect();
    for (operator, rule) in index {
        let _ = writeln!(page, "| `{operator}` | [{rule}](#{rule}) |");
    }
    expect_file!["../../../../docs/rules.md"].assert_eq(&page);
}

/// The rule that CONTRIBUTING.md shows is the rule as it is compiled.
#[test]
fn the_walk_through_shows_a_rule_as_it_is() {
    let page = include_str!("../../../../CONTRIBUTING.md");
    let (_, source) = SOURCES.iter().find(|(file, _)| *file == "softmax_backward").expect("it");
    let code = source.split("#[cfg(test)]").next().expect("code before the cases");
    let shown = page.split("```rust\n").nth(1).and_then(|rest| rest.split("```").next());
    let shown = shown.expect("a block of code").lines();
    let shown: Vec<&str> = shown.map(|line| line.strip_prefix("   ").unwrap_or(line)).collect();
    assert_eq!(shown.join("\n").trim(), code.trim());
}

//! The rules' page of the book is made from the table.

use expect_test::expect_file;
use std::fmt::Write as _;
use xmem_orchestrator::rules;

const INTRODUCTION: &str = "\
# Rules

What changes on the way from the CPU recording to the GPU, rule by rule, and where it is known from.
`xmem replay --explain` says how many blocks and bytes each rule left out, added, resized or moved;
`--no-rule NAME` switches one off. Paths without a project are PyTorch's.

This page is made from the table in the code: `UPDATE_EXPECT=1 cargo test -p xmem-orchestrator`
writes it anew.
";

#[test]
fn the_books_page_follows_the_table() {
    let mut page = INTRODUCTION.to_owned();
    for rule in rules() {
        let mut summary = rule.summary.to_owned();
        summary[..1].make_ascii_uppercase();
        let _ = write!(page, "\n## {}\n\n{summary}.\n\nSource: {}.\n", rule.name, rule.source);
    }
    expect_file!["../../../../docs/rules.md"].assert_eq(&page);
}

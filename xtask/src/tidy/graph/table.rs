//! The tables of crates in docs/architecture.md: those of the program, and those of development.

use std::collections::{BTreeMap, BTreeSet};

/// The line before each table.
const MARKER: &str = "<!-- tidy: crate graph -->";

/// The rows of all tables by their crates.
pub(super) type Table = BTreeMap<String, Row>;

/// The libraries and crates that one crate may and may not use.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Row {
    /// Crates of the workspace.
    pub(super) may_use: BTreeSet<String>,
    /// Libraries that it does not use, though a crate below it may.
    pub(super) never_uses: BTreeSet<String>,
    /// Libraries that it does not use and that no crate below it uses.
    pub(super) never_links: BTreeSet<String>,
}

/// Reads `| crate | … | may use | never uses | never links |` rows, of each table up to its end.
pub(super) fn parse(architecture: &str) -> Result<Table, String> {
    let mut table = Table::new();
    for row in architecture.split(MARKER).skip(1).flat_map(rows) {
        let cells: Vec<&str> = row.trim_matches('|').split('|').collect();
        let [name, _, may_use, never_uses, never_links] = cells[..] else {
            return Err(format!("a row with {} columns instead of 5: {row}", cells.len()));
        };
        let Some(name) = code(name).into_iter().next() else {
            return Err(format!("a row without the name of a crate: {row}"));
        };
        let row = Row {
            may_use: code(may_use),
            never_uses: code(never_uses),
            never_links: code(never_links),
        };
        table.insert(name, row);
    }
    if table.is_empty() { Err(format!("no table after `{MARKER}`")) } else { Ok(table) }
}

/// The lines of a table below its head.
fn rows(text: &str) -> impl Iterator<Item = &str> {
    let lines = text.lines().skip_while(|line| line.is_empty());
    lines.take_while(|line| line.starts_with('|')).skip(2)
}

/// The words that stand in backticks.
fn code(cell: &str) -> BTreeSet<String> {
    cell.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::tidy::graph) const TABLE: &str = "\
text
<!-- tidy: crate graph -->

| crate | does | may use | never uses | never links |
|---|---|---|---|---|
| `low` | things | – | – | `toml` |
| `high` | more | `low` | `serde` | `toml`, `clap` |

`other` text
";

    #[test]
    fn rows_are_read_up_to_the_end_of_the_table() {
        let table = parse(TABLE).expect("a table");
        assert_eq!(table.keys().collect::<Vec<_>>(), ["high", "low"]);
        let set = |names: &[&str]| names.iter().copied().map(str::to_owned).collect();
        let high = Row {
            may_use: set(&["low"]),
            never_uses: set(&["serde"]),
            never_links: set(&["clap", "toml"]),
        };
        assert_eq!(table["high"], high);
    }

    #[test]
    fn rows_of_all_marked_tables_are_read() {
        let second = TABLE.replace("`high`", "`tool`");
        let table = parse(&format!("{TABLE}{second}")).expect("two tables");
        assert_eq!(table.keys().collect::<Vec<_>>(), ["high", "low", "tool"]);
    }

    #[test]
    fn a_table_that_cannot_be_read_is_an_error() {
        assert!(parse("no table").is_err());
        assert!(parse(&TABLE.replace("| `serde` |", "|")).is_err(), "a column is missing");
    }
}

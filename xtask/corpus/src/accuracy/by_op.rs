//! Where schedules and recordings disagree: operator by operator, over all cases.

use super::case::Row;
use crate::table::{Format, mib};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// In what way, at which operator.
type Key = (String, String);

/// The differences of one kind at one operator.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Sum {
    bytes: u64,
    blocks: u64,
    /// By how much they make the recorded peaks too high or too low.
    at_peak: u64,
    cases: BTreeSet<String>,
}

/// Prints the sums over the cases, largest first.
pub(super) fn print(rows: &[Row], format: Format) {
    let head = ["MiB", "at peak", "blocks", "cases", "difference", "operator", "for example"];
    match format {
        Format::Markdown => {
            println!("| {} |\n|--:|--:|--:|--:|---|---|---|", head.join(" | "));
        }
        Format::Text => {
            let [a, b, c, d, e, f, g] = head;
            println!("{a:>10} {b:>10} {c:>8} {d:>6}  {e:9} {f:48} {g}");
        }
    }
    for ((kind, op), sum) in sorted(sums(rows)) {
        let (bytes, peak) = (mib(sum.bytes as f64), mib(sum.at_peak as f64));
        let (blocks, cases) = (sum.blocks, sum.cases.len());
        let example = sum.cases.first().map_or("", String::as_str);
        match format {
            Format::Markdown => println!(
                "| {bytes:.2} | {peak:.2} | {blocks} | {cases} | {kind} | `{op}` | `{example}` |"
            ),
            Format::Text => println!(
                "{bytes:>10.2} {peak:>10.2} {blocks:>8} {cases:>6}  {kind:9} {op:48} {example}"
            ),
        }
    }
}

fn sums(rows: &[Row]) -> BTreeMap<Key, Sum> {
    let mut sums: BTreeMap<Key, Sum> = BTreeMap::new();
    for row in rows {
        for difference in &row.differences {
            let kind = difference["kind"].as_str().unwrap_or_default().to_owned();
            let sum = sums.entry((kind, operator(difference))).or_default();
            sum.bytes += difference["bytes"].as_u64().unwrap_or_default();
            sum.blocks += difference["count"].as_u64().unwrap_or_default();
            let at_peak = difference["at_peak_bytes"].as_i64().unwrap_or_default();
            sum.at_peak += at_peak.unsigned_abs();
            sum.cases.insert(row.case.name.clone());
        }
    }
    sums
}

/// The operator; of blocks that are only recorded, the one of the block before.
fn operator(difference: &Value) -> String {
    match (innermost(&difference["place"]), innermost(&difference["after"])) {
        (Some(op), _) => op,
        (None, Some(op)) => format!("after {op}"),
        (None, None) => "no operator".to_owned(),
    }
}

/// The innermost operator of a place that does more than allocate.
fn innermost(place: &Value) -> Option<String> {
    let path: Vec<&str> = place["op_path"].as_array()?.iter().filter_map(Value::as_str).collect();
    let allocates = |op: &str| op.starts_with("aten::empty") || op == "aten::resize_";
    let op = path.iter().rev().find(|op| !allocates(op)).or(path.last())?;
    Some((*op).to_owned())
}

fn sorted(sums: BTreeMap<Key, Sum>) -> Vec<(Key, Sum)> {
    let mut list: Vec<(Key, Sum)> = sums.into_iter().collect();
    list.sort_by_key(|(_, sum)| std::cmp::Reverse(sum.bytes));
    list
}

#[cfg(test)]
mod tests {
    use super::super::case::tests::row;
    use super::*;
    use serde_json::json;

    #[test]
    fn differences_are_summed_over_cases_and_the_largest_comes_first() {
        let difference = |kind: &str, bytes: u64, place: Value, after: Value| {
            json!({"kind": kind, "bytes": bytes, "count": 2, "at_peak_bytes": -3,
                   "place": place, "after": after})
        };
        let op = || json!({"op_path": ["aten::matmul", "aten::mm", "aten::empty_strided"]});
        let mut first = row(1.0, 1.0);
        first.differences = vec![
            difference("extra", 10, op(), Value::Null),
            difference("missing", 15, Value::Null, op()),
        ];
        let mut second = row(2.0, 2.0);
        second.differences = vec![difference("extra", 10, op(), Value::Null)];
        let list = sorted(sums(&[first, second]));
        let key = |kind: &str, op: &str| (kind.to_owned(), op.to_owned());
        assert_eq!(list[0].0, key("extra", "aten::mm"));
        assert_eq!(list[1].0, key("missing", "after aten::mm"));
        let sum = &list[0].1;
        assert_eq!((sum.bytes, sum.blocks, sum.at_peak, sum.cases.len()), (20, 4, 6, 2));
    }
}

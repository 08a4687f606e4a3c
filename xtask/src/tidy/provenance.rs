//! Data files: every recording says how it was made, every number where it comes from.

use super::findings::Findings;
use super::{TRACES, TRACES_README};
use toml::{Table, Value};

/// The traces are part of every clone.
const MAX_TRACES: u64 = 53_600_000;

/// Keys of meta.toml that hold a text; dots go into tables.
const META: [&str; 6] =
    ["schema", "origin", "command", "paths", "versions.torch", "versions.python"];

/// Keys of expected.toml that hold a text.
const EXPECTED: [&str; 5] = ["schema", "how", "device.name", "versions.torch", "versions.cuda"];

/// Keys of expected.toml that hold a positive number.
const FIGURES: [&str; 3] = ["peak.allocated-bytes", "peak.reserved-bytes", "device.memory-bytes"];

/// Checks `meta.toml` and, where there is one, `expected.toml` of one recorded case.
pub(crate) fn check_case(case: &str, meta: &str, expected: Option<&str>, findings: &mut Findings) {
    let place = format!("{TRACES}/{case}/meta.toml");
    if let Some(table) = read(&place, meta, findings) {
        need_texts(&place, &table, &META, findings);
        if covers(&table).is_empty() {
            findings.add(&place, "needs `covers`: what does this case add?");
        }
        match get(&table, "command").and_then(Value::as_str) {
            Some(command) if !command.starts_with("traces/record.py ") => {
                findings.add(&place, "`command` does not start with `traces/record.py`");
            }
            _ => {}
        }
    }
    let place = format!("{TRACES}/{case}/expected.toml");
    if let Some(table) = expected.and_then(|text| read(&place, text, findings)) {
        need_texts(&place, &table, &EXPECTED, findings);
        for key in FIGURES {
            if get(&table, key).and_then(Value::as_integer).is_none_or(|figure| figure <= 0) {
                findings.add(&place, format!("needs a positive `{key}`"));
            }
        }
        check_iterations(&place, &table, findings);
    }
}

/// Running maxima grow, and end at the peak.
fn check_iterations(place: &str, table: &Table, findings: &mut Findings) {
    let iterations = table.get("iteration").and_then(Value::as_array);
    for (running, peak) in [
        ("max-allocated-bytes", "peak.allocated-bytes"),
        ("max-reserved-bytes", "peak.reserved-bytes"),
    ] {
        let values: Vec<i64> = iterations
            .into_iter()
            .flatten()
            .filter_map(|iteration| iteration.get(running)?.as_integer())
            .collect();
        if values.is_empty() || !values.is_sorted() {
            findings.add(place, format!("`{running}` of the iterations is missing or shrinks"));
        } else if get(table, peak).and_then(Value::as_integer) != values.last().copied() {
            findings.add(place, format!("`{peak}` is not the last iteration's `{running}`"));
        }
    }
}

/// Checks that the cases together cover what the traces' README promises.
pub(crate) fn check_coverage(readme: &str, cases: &[(String, String)], findings: &mut Findings) {
    let promised = readme.split_once("## What is covered").map_or("", |(_, rest)| rest);
    let promised = promised.split("\n\n").nth(1).unwrap_or_default();
    let list = promised.split_once(": ").map_or("", |(_, list)| list);
    let wanted: Vec<&str> = list.split('`').skip(1).step_by(2).collect();
    if wanted.is_empty() {
        findings.add(TRACES_README, "`What is covered` lists nothing");
    }
    let covered: Vec<String> = cases
        .iter()
        .filter_map(|(_, meta)| meta.parse::<Table>().ok())
        .flat_map(|meta| covers(&meta))
        .collect();
    for tag in wanted {
        if !covered.iter().any(|covered| covered == tag) {
            findings.add(TRACES, format!("no case covers `{tag}`"));
        }
    }
}

/// Checks that the folder of the traces stays small.
pub(crate) fn check_size(sizes: &[(String, u64)], findings: &mut Findings) {
    let total: u64 = sizes.iter().map(|(_, size)| size).sum();
    if total > MAX_TRACES {
        let problem = format!("{total} bytes, more than {MAX_TRACES}: leave out or shorten a case");
        findings.add(TRACES, problem);
    }
}

/// Checks a data file of xmem-devices: each number stands in a table that has a `source`, or in a
/// table below one.
pub(crate) fn check_data(name: &str, text: &str, findings: &mut Findings) {
    if let Some(table) = read(name, text, findings) {
        let mut unsourced = Vec::new();
        walk(&table, "", Sourced::No, &mut unsourced);
        for key in unsourced {
            findings.add(name, format!("`{key}` has no `source`"));
        }
    }
}

/// Whether a table around the current one names a source.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sourced {
    Yes,
    No,
}

fn walk(table: &Table, path: &str, outer: Sourced, unsourced: &mut Vec<String>) {
    let own = table.get("source").and_then(Value::as_str).is_some_and(|s| !s.trim().is_empty());
    let sourced = if own { Sourced::Yes } else { outer };
    for (key, value) in table {
        let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        walk_value(value, &path, sourced, unsourced);
    }
}

fn walk_value(value: &Value, path: &str, sourced: Sourced, unsourced: &mut Vec<String>) {
    match value {
        Value::Integer(_) | Value::Float(_) if sourced == Sourced::No => {
            unsourced.push(path.to_owned());
        }
        Value::Table(table) => walk(table, path, sourced, unsourced),
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                walk_value(item, &format!("{path}[{index}]"), sourced, unsourced);
            }
        }
        _ => {}
    }
}

fn read(place: &str, text: &str, findings: &mut Findings) -> Option<Table> {
    match text.parse() {
        Ok(table) => Some(table),
        Err(error) => {
            findings.add(place, format!("is not TOML: {error}"));
            None
        }
    }
}

fn get<'t>(table: &'t Table, key: &str) -> Option<&'t Value> {
    match key.split_once('.') {
        Some((outer, inner)) => table.get(outer)?.get(inner),
        None => table.get(key),
    }
}

fn need_texts(place: &str, table: &Table, keys: &[&str], findings: &mut Findings) {
    for key in keys {
        let text = get(table, key).and_then(Value::as_str);
        if text.is_none_or(|text| text.trim().is_empty()) {
            findings.add(place, format!("needs `{key}`"));
        }
    }
}

fn covers(meta: &Table) -> Vec<String> {
    let tags = meta.get("covers").and_then(Value::as_array);
    tags.into_iter().flatten().filter_map(|tag| tag.as_str().map(str::to_owned)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const META: &str = "\
schema = \"s\"
origin = \"o\"
command = \"traces/record.py x\"
paths = \"none\"
covers = [\"cnn\"]
[versions]
torch = \"2\"
python = \"3\"
";

    const EXPECTED: &str = "\
schema = \"s\"
how = \"h\"
[device]
name = \"d\"
memory-bytes = 9
[versions]
torch = \"2\"
cuda = \"13\"
[peak]
allocated-bytes = 3
reserved-bytes = 5
[[iteration]]
max-allocated-bytes = 2
max-reserved-bytes = 5
[[iteration]]
max-allocated-bytes = 3
max-reserved-bytes = 5
";

    fn lines(run: impl FnOnce(&mut Findings)) -> Vec<String> {
        let mut findings = Findings::default();
        run(&mut findings);
        findings.lines().into_iter().map(str::to_owned).collect()
    }

    #[test]
    fn a_complete_case_is_accepted() {
        assert_eq!(lines(|f| check_case("x", META, Some(EXPECTED), f)), [""; 0]);
        assert_eq!(lines(|f| check_case("x", META, None, f)), [""; 0]);
    }

    #[test]
    fn each_missing_fact_of_a_case_is_found() {
        for (from, to, finding) in [
            ("origin = \"o\"", "", "traces/x/meta.toml: needs `origin`"),
            ("torch = \"2\"", "torch = \" \"", "traces/x/meta.toml: needs `versions.torch`"),
            ("[\"cnn\"]", "[]", "traces/x/meta.toml: needs `covers`: what does this case add?"),
        ] {
            let meta = META.replace(from, to);
            assert_eq!(lines(|f| check_case("x", &meta, None, f)), [finding]);
        }
        for (from, to, finding) in [
            ("how = \"h\"", "", "traces/x/expected.toml: needs `how`"),
            (
                "memory-bytes = 9",
                "memory-bytes = 0",
                "traces/x/expected.toml: needs a positive `device.memory-bytes`",
            ),
            (
                "max-allocated-bytes = 3",
                "max-allocated-bytes = 4",
                "traces/x/expected.toml: `peak.allocated-bytes` is not the last iteration's \
                 `max-allocated-bytes`",
            ),
            (
                "max-allocated-bytes = 2",
                "max-allocated-bytes = 4",
                "traces/x/expected.toml: `max-allocated-bytes` of the iterations is missing or \
                 shrinks",
            ),
        ] {
            let expected = EXPECTED.replace(from, to);
            assert_eq!(lines(|f| check_case("x", META, Some(&expected), f)), [finding]);
        }
    }

    #[test]
    fn what_the_readme_promises_must_be_covered() {
        let readme =
            "# T\n\n## What is covered\n\nAll of `covers`: `cnn`, `amp`.\n\nMore `text`.\n";
        let cases = [("x".to_owned(), META.to_owned())];
        assert_eq!(lines(|f| check_coverage(readme, &cases, f)), ["traces: no case covers `amp`"]);
        assert_eq!(
            lines(|f| check_coverage("# T\n", &cases, f)),
            ["traces/README.md: `What is covered` lists nothing"]
        );
    }

    #[test]
    fn a_number_needs_a_source_in_its_table_or_above() {
        let text = "\
bare = 1
[a]
mib = 2
source = \"s\"
[a.b]
list = [3, 4]
[[c]]
x = 5
[[c]]
x = 6
source = \" \"
";
        assert_eq!(
            lines(|f| check_data("d.toml", text, f)),
            [
                "d.toml: `bare` has no `source`",
                "d.toml: `c[0].x` has no `source`",
                "d.toml: `c[1].x` has no `source`"
            ]
        );
    }

    #[test]
    fn a_folder_of_traces_that_grew_too_big_is_found() {
        let sizes = [("traces/a".to_owned(), MAX_TRACES), ("traces/b".to_owned(), 1)];
        assert_eq!(lines(|f| check_size(&sizes[..1], f)), [""; 0]);
        assert_eq!(lines(|f| check_size(&sizes, f)).len(), 1);
    }
}

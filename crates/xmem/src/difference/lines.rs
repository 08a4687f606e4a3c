//! Lines of both runs, matched by file and function: their numbers shift with every edit above them.

use super::groups::{self, DifferenceKey};
use super::row::{DifferenceRow, GroupFigures, NameMatch, row};
use std::collections::{BTreeMap, BTreeSet};
use xmem_predict::Timeline;

/// The numbers of lines of a function that are named.
const NAMED_LINES: usize = 3;

/// A function of the script with its lines.
#[derive(Clone, Debug, Default)]
struct Function<'t> {
    numbers: BTreeSet<u64>,
    figures: Option<GroupFigures>,
    file: &'t str,
    name: &'t str,
}

/// The rows by function.
pub(super) fn rows(a: &Timeline, b: &Timeline) -> Vec<DifferenceRow> {
    let (mut in_a, mut in_b) = (functions(a), functions(b));
    let mut rows = Vec::new();
    let both: Vec<String> = in_a.keys().filter(|name| in_b.contains_key(*name)).cloned().collect();
    for name in both {
        if let (Some(a), Some(b)) = (in_a.remove(&name), in_b.remove(&name)) {
            let matched = if a.numbers == b.numbers { NameMatch::Same } else { NameMatch::Shifted };
            rows.push(pair(&a, &b, matched));
        }
    }
    // What is left may be a file that was moved: the same function of a file of the same name.
    for function in in_a.values() {
        match moved(function, &in_a, &in_b) {
            Some(other) => {
                rows.push(pair(function, &in_b[&other], NameMatch::Renamed));
                in_b.remove(&other);
            }
            None => {
                rows.push(row(
                    (&function.title(), function.figures),
                    ("", None),
                    NameMatch::Single,
                ));
            }
        }
    }
    for function in in_b.values() {
        rows.push(row(("", None), (&function.title(), function.figures), NameMatch::Single));
    }
    rows
}

fn pair(a: &Function<'_>, b: &Function<'_>, matched: NameMatch) -> DifferenceRow {
    row((&a.title(), a.figures), (&b.title(), b.figures), matched)
}

/// The one function of the second run that has the same name in a file of the same name, if no other of the first
/// run has.
fn moved(
    function: &Function<'_>,
    in_a: &BTreeMap<String, Function<'_>>,
    in_b: &BTreeMap<String, Function<'_>>,
) -> Option<String> {
    let is_like = |other: &Function<'_>| {
        !function.file.is_empty()
            && (base(other.file), other.name) == (base(function.file), function.name)
    };
    if in_a.values().filter(|other| is_like(other)).count() != 1 {
        return None;
    }
    let mut found = in_b.iter().filter(|(_, other)| is_like(other));
    let (name, _) = found.next()?;
    found.next().is_none().then(|| name.clone())
}

/// The file without its folders.
fn base(file: &str) -> &str {
    file.rsplit(['/', '\\']).next().unwrap_or(file)
}

/// The functions of a run that have blocks at its peak, by file and name.
fn functions(timeline: &Timeline) -> BTreeMap<String, Function<'_>> {
    let mut functions: BTreeMap<String, Function<'_>> = BTreeMap::new();
    for (line, figures) in groups::at_peak(timeline, DifferenceKey::Line) {
        let (file, number, name) = parts(line);
        let function = functions.entry(format!("{file}\0{name}")).or_default();
        (function.file, function.name) = (file, name);
        function.numbers.extend(number);
        function.figures = Some(function.figures.unwrap_or(GroupFigures::NONE) + figures);
    }
    functions
}

/// `train.py(12): forward` as file, number and function; what is written otherwise is a function of no file.
fn parts(line: &str) -> (&str, Option<u64>, &str) {
    let parsed = line.split_once("): ").and_then(|(place, name)| {
        let (file, number) = place.rsplit_once('(')?;
        Some((file, Some(number.parse().ok()?), name))
    });
    parsed.unwrap_or(("", None, line))
}

impl Function<'_> {
    /// `train.py(12, 14): forward`.
    fn title(&self) -> String {
        if self.numbers.is_empty() {
            return self.name.to_owned();
        }
        let named: Vec<String> =
            self.numbers.iter().take(NAMED_LINES).map(u64::to_string).collect();
        let more = if self.numbers.len() > NAMED_LINES { ", …" } else { "" };
        format!("{}({}{more}): {}", self.file, named.join(", "), self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_a_file_a_number_and_a_function() {
        for (line, expected) in [
            ("train.py(12): forward", ("train.py", Some(12), "forward")),
            ("a (b)/train.py(7): <lambda>", ("a (b)/train.py", Some(7), "<lambda>")),
            ("", ("", None, "")),
            ("built-in", ("", None, "built-in")),
            ("train.py(x): f", ("", None, "train.py(x): f")),
        ] {
            assert_eq!(parts(line), expected, "{line}");
        }
    }
}

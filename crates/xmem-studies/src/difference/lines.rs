//! Lines of both runs, matched by file and function: their numbers shift with every edit above them.
//!
//! A file has many functions of one name (`forward`), each at a line of its own. Lines of one file and name are paired by
//! their numbers if these are the same in both runs; else in order, first with equal operators and equal bytes, then,
//! between these pairs, with equal operators and bytes that differ least.

use super::align::{Fingerprint, pairs};
use super::fnv::Fnv;
use super::group_row::{DifferenceRow, GroupFigures, NameMatch, row};
use super::groups::{self, DifferenceKey};
use std::collections::{BTreeMap, BTreeSet};
use xmem_predict::Timeline;

/// The file and the name of functions.
type Name<'t> = (&'t str, &'t str);

/// The lines of functions of one name in a file.
type Functions<'t> = BTreeMap<Name<'t>, Vec<Line<'t>>>;

/// A line that allocates.
#[derive(Clone, Copy, Debug)]
struct Line<'t> {
    /// `train.py(12): forward`.
    title: &'t str,
    number: u64,
    /// What it holds at the peak.
    at_peak: Option<GroupFigures>,
    print: Fingerprint,
}

/// The rows by line.
pub(super) fn rows(a: &Timeline, b: &Timeline) -> Vec<DifferenceRow> {
    matched(functions(a), functions(b))
}

fn matched<'t>(mut in_a: Functions<'t>, mut in_b: Functions<'t>) -> Vec<DifferenceRow> {
    let mut rows = Vec::new();
    let both: Vec<_> = in_a.keys().filter(|name| in_b.contains_key(*name)).copied().collect();
    for name in both {
        if let Some((a, b)) = in_a.remove(&name).zip(in_b.remove(&name)) {
            pair(&a, &b, NameMatch::Shifted, &mut rows);
        }
    }
    for (a, b) in moved(&in_a, &in_b) {
        if let Some((a, b)) = in_a.remove(&a).zip(in_b.remove(&b)) {
            pair(&a, &b, NameMatch::Renamed, &mut rows);
        }
    }
    in_a.values().for_each(|lines| pair(lines, &[], NameMatch::Single, &mut rows));
    in_b.values().for_each(|lines| pair(&[], lines, NameMatch::Single, &mut rows));
    rows
}

/// Adds the rows of the lines of one function.
fn pair(a: &[Line<'_>], b: &[Line<'_>], how: NameMatch, rows: &mut Vec<DifferenceRow>) {
    let prints = |lines: &[Line<'_>]| lines.iter().map(|line| line.print).collect::<Vec<_>>();
    let found = if a.iter().map(|line| line.number).eq(b.iter().map(|line| line.number)) {
        (0..a.len()).map(|row| (row, row)).collect()
    } else {
        pairs(&prints(a), &prints(b))
    };
    let (mut left_a, mut left_b) = (vec![true; a.len()], vec![true; b.len()]);
    for (row_a, row_b) in found {
        let (in_a, in_b) = (a[row_a], b[row_b]);
        let how = if in_a.title == in_b.title { NameMatch::Same } else { how };
        if in_a.at_peak.or(in_b.at_peak).is_some() {
            rows.push(row((in_a.title, in_a.at_peak), (in_b.title, in_b.at_peak), how));
        }
        (left_a[row_a], left_b[row_b]) = (false, false);
    }
    let is_alone = |(line, is_left): &(&Line<'_>, &bool)| **is_left && line.at_peak.is_some();
    for (line, _) in a.iter().zip(&left_a).filter(is_alone) {
        rows.push(row((line.title, line.at_peak), ("", None), NameMatch::Single));
    }
    for (line, _) in b.iter().zip(&left_b).filter(is_alone) {
        rows.push(row(("", None), (line.title, line.at_peak), NameMatch::Single));
    }
}

/// The functions that are the same in a file that was moved, or renamed: those of equal names in files of equal names,
/// if there is one of each; and those of the one file that is left of each run, if most of their names are the same.
fn moved<'t>(in_a: &Functions<'t>, in_b: &Functions<'t>) -> Vec<(Name<'t>, Name<'t>)> {
    let renamed = renamed_file(in_a, in_b);
    let mut by_base: BTreeMap<(&str, &str), Vec<Name<'t>>> = BTreeMap::new();
    for &(file, name) in in_a.keys().filter(|(file, _)| !file.is_empty()) {
        by_base.entry((base(file), name)).or_default().push((file, name));
    }
    let mut by_base_in_b: BTreeMap<(&str, &str), Vec<Name<'t>>> = BTreeMap::new();
    for &(file, name) in in_b.keys().filter(|(file, _)| !file.is_empty()) {
        let known = renamed.filter(|(_, new)| *new == file).map_or(file, |(old, _)| old);
        by_base_in_b.entry((base(known), name)).or_default().push((file, name));
    }
    let one = |all: &[Name<'t>]| (all.len() == 1).then(|| all[0]);
    let of_a = by_base.into_iter().filter(|(_, all)| all.len() == 1);
    of_a.filter_map(|(key, all)| Some((all[0], one(by_base_in_b.get(&key)?)?))).collect()
}

/// The one file that is left of each run, if most of their functions have the same names.
fn renamed_file<'t>(in_a: &Functions<'t>, in_b: &Functions<'t>) -> Option<(&'t str, &'t str)> {
    let ((file_a, names_a), (file_b, names_b)) = one_file(in_a).zip(one_file(in_b))?;
    let common = names_a.intersection(&names_b).count();
    let all = names_a.union(&names_b).count();
    (2 * common > all).then_some((file_a, file_b))
}

/// The file of all functions and their names, if there is one.
fn one_file<'t>(functions: &Functions<'t>) -> Option<(&'t str, BTreeSet<&'t str>)> {
    let mut names = functions.keys().filter(|(file, _)| !file.is_empty());
    let &(file, _) = names.next()?;
    let is_only = names.all(|(other, _)| *other == file);
    let of_file = functions.keys().filter(|(other, _)| *other == file);
    is_only.then(|| (file, of_file.map(|(_, name)| *name).collect()))
}

/// The file without its folders.
fn base(file: &str) -> &str {
    file.rsplit(['/', '\\']).next().unwrap_or(file)
}

/// The functions of a run that allocate, with their lines in order.
fn functions(timeline: &Timeline) -> Functions<'_> {
    let at_peak = groups::at_peak(timeline, DifferenceKey::Line);
    let mut lines: BTreeMap<&str, (GroupFigures, BTreeSet<&str>)> = BTreeMap::new();
    for block in &timeline.blocks {
        let (requested, operators) = lines
            .entry(timeline.text(block.line))
            .or_insert_with(|| (GroupFigures::NONE, BTreeSet::new()));
        *requested = *requested + groups::own_request(block);
        operators.insert(timeline.text(block.op));
    }
    let mut functions: Functions<'_> = BTreeMap::new();
    for (title, (requested, operators)) in lines {
        let (file, number, name) = parts(title);
        let at_peak = at_peak.get(title).copied();
        let line = Line { title, number, at_peak, print: print(requested, &operators) };
        functions.entry((file, name)).or_default().push(line);
    }
    for lines in functions.values_mut() {
        lines.sort_by_key(|line| line.number);
    }
    functions
}

fn print(requested: GroupFigures, operators: &BTreeSet<&str>) -> Fingerprint {
    let mut numbers = Fnv::default();
    operators.iter().for_each(|operator| numbers.text(operator));
    let structure = numbers.0;
    numbers.number(requested.bytes.get());
    numbers.number(requested.blocks.unwrap_or_default());
    Fingerprint { structure, exact: numbers.0, size: requested.bytes.get() }
}

/// File, number and function of a line as traces (`train.py(12): forward`) and snapshots (`train.py:12 forward`) have
/// it; what is written otherwise is a function of no file.
fn parts(line: &str) -> (&str, u64, &str) {
    let of_trace = || {
        let (place, name) = line.split_once("): ")?;
        let (file, number) = place.rsplit_once('(')?;
        Some((file, number.parse().ok()?, name))
    };
    let of_snapshot = || {
        line.match_indices(':').find_map(|(at, colon)| {
            let (number, name) = line[at + colon.len()..].split_once(' ')?;
            Some((&line[..at], number.parse().ok()?, name))
        })
    };
    of_trace().or_else(of_snapshot).unwrap_or(("", 0, line))
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};
    use xmem_types::Bytes;

    type Lines = &'static [(&'static str, &'static str, u64)];

    /// Lines with an operator and the bytes at the peak, `0` for those that have none then: all that they request.
    fn run(lines: Lines) -> Functions<'static> {
        let mut functions: Functions<'static> = BTreeMap::new();
        for &(title, operator, bytes) in lines {
            let figures = GroupFigures { bytes: Bytes(bytes), blocks: Some(1) };
            let (file, number, name) = parts(title);
            let at_peak = (bytes > 0).then_some(figures);
            let print = print(figures, &BTreeSet::from([operator]));
            functions.entry((file, name)).or_default().push(Line { title, number, at_peak, print });
        }
        functions
    }

    fn check(a: Lines, b: Lines, expected: &Expect) {
        let shown = |a: Lines, b: Lines| -> Vec<[String; 4]> {
            let rows = matched(run(a), run(b)).into_iter();
            let name = |name: Option<String>| name.unwrap_or_else(|| "-".to_owned());
            let mut rows: Vec<_> = rows
                .map(|row| {
                    let bytes = format!("{} {}", row.a.bytes.get(), row.b.bytes.get());
                    [name(row.name_a), name(row.name_b), row.matched.name().to_owned(), bytes]
                })
                .collect();
            rows.sort();
            rows
        };
        let rows = shown(a, b);
        let text: String = rows.iter().map(|row| format!("{}\n", row.join(" | "))).collect();
        expected.assert_eq(&text);
        let pairs = |rows: &[[String; 4]], [a, b]: [usize; 2]| {
            let mut pairs: Vec<_> =
                rows.iter().map(|row| [row[a].clone(), row[b].clone()]).collect();
            pairs.sort();
            pairs
        };
        assert_eq!(pairs(&rows, [0, 1]), pairs(&shown(b, a), [1, 0]), "the other way round");
    }

    #[test]
    fn functions_of_one_name_in_a_file_are_told_apart() {
        check(
            &[("m.py(8): forward", "mm", 10), ("m.py(20): forward", "gelu", 5)],
            &[
                ("m.py(8): forward", "mm", 10),
                ("m.py(14): forward", "conv2d", 40),
                ("m.py(26): forward", "gelu", 9),
            ],
            &expect![[r#"
                - | m.py(14): forward | single | 0 40
                m.py(20): forward | m.py(26): forward | shifted | 5 9
                m.py(8): forward | m.py(8): forward | same | 10 10
            "#]],
        );
    }

    #[test]
    fn lines_of_snapshots_that_shifted_are_paired() {
        check(
            &[("t.py:113 job", "", 10), ("t.py:118 job", "", 4)],
            &[("t.py:110 job", "", 1), ("t.py:115 job", "", 10), ("t.py:120 job", "", 4)],
            &expect![[r#"
                - | t.py:110 job | single | 0 1
                t.py:113 job | t.py:115 job | shifted | 10 10
                t.py:118 job | t.py:120 job | shifted | 4 4
            "#]],
        );
    }

    #[test]
    fn numbers_that_are_the_same_are_paired_whatever_they_allocate() {
        check(
            &[("m.py(8): forward", "mm", 10), ("m.py(20): forward", "gelu", 20)],
            &[("m.py(8): forward", "gelu", 20), ("m.py(20): forward", "mm", 10)],
            &expect![[r#"
                m.py(20): forward | m.py(20): forward | same | 20 10
                m.py(8): forward | m.py(8): forward | same | 10 20
            "#]],
        );
    }

    #[test]
    fn a_file_that_was_renamed_or_moved_is_found_again() {
        check(
            &[
                ("m.py(8): forward", "mm", 10),
                ("m.py(3): embed", "index", 4),
                ("t.py(1): f", "add", 1),
            ],
            &[
                ("net.py(9): forward", "mm", 12),
                ("net.py(3): embed", "index", 4),
                ("t.py(1): f", "add", 1),
            ],
            &expect![[r#"
                m.py(3): embed | net.py(3): embed | renamed | 4 4
                m.py(8): forward | net.py(9): forward | renamed | 10 12
                t.py(1): f | t.py(1): f | same | 1 1
            "#]],
        );
        check(
            &[("a/m.py(8): forward", "mm", 10), ("a/u.py(3): forward", "mm", 4)],
            &[("b/m.py(8): forward", "mm", 10), ("b/u.py(3): forward", "mm", 4)],
            &expect![[r#"
                a/m.py(8): forward | b/m.py(8): forward | renamed | 10 10
                a/u.py(3): forward | b/u.py(3): forward | renamed | 4 4
            "#]],
        );
        check(
            &[("a/m.py(8): forward", "mm", 10)],
            &[("b/m.py(8): forward", "mm", 10), ("c/m.py(8): forward", "mm", 4)],
            &expect![[r#"
                - | b/m.py(8): forward | single | 0 10
                - | c/m.py(8): forward | single | 0 4
                a/m.py(8): forward | - | single | 10 0
            "#]],
        );
    }

    #[test]
    fn a_line_has_a_file_a_number_and_a_function() {
        for (line, expected) in [
            ("train.py(12): forward", ("train.py", 12, "forward")),
            ("a (b)/train.py(7): <lambda>", ("a (b)/train.py", 7, "<lambda>")),
            ("", ("", 0, "")),
            ("built-in", ("", 0, "built-in")),
            ("train.py(x): f", ("", 0, "train.py(x): f")),
            ("src/train.py:12 forward", ("src/train.py", 12, "forward")),
            ("C:\\train.py:7 <lambda>", ("C:\\train.py", 7, "<lambda>")),
            ("torch::autograd::run", ("", 0, "torch::autograd::run")),
        ] {
            assert_eq!(parts(line), expected, "{line}");
        }
    }
}

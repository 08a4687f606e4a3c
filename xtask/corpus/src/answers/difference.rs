//! A difference between two answers, and the listing of many.

use super::set::Subject;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Characters of a value that are printed.
const WIDTH: usize = 90;

/// Something that is not the same before and after.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Difference {
    pub(super) subject: Subject,
    /// The place in the answer, in the words of the new one.
    pub(super) path: String,
    pub(super) before: String,
    pub(super) after: String,
}

impl Difference {
    /// An answer that only one side has.
    pub(super) fn missing(subject: Subject, before: &str, after: &str) -> Self {
        Self { subject, path: String::new(), before: before.to_owned(), after: after.to_owned() }
    }
}

/// The differences by their paths without positions: of each path how many, and the first few.
pub(super) fn listing(differences: &[Difference], examples: usize) -> String {
    let mut groups: BTreeMap<String, Vec<&Difference>> = BTreeMap::new();
    for difference in differences {
        groups.entry(shape(&difference.path)).or_default().push(difference);
    }
    let mut text = String::new();
    for (shape, group) in groups {
        let shape = if shape.is_empty() { "whole answers" } else { &shape };
        let _ = writeln!(text, "  {shape}: {} differences", group.len());
        for Difference { subject, path, before, after } in group.iter().take(examples) {
            let _ = writeln!(text, "    {} {} {path}", subject.trace, subject.device);
            let _ = writeln!(text, "      {} -> {}", cut(before), cut(after));
        }
        if group.len() > examples {
            let _ = writeln!(text, "    and {} more", group.len() - examples);
        }
    }
    text
}

/// A path without the positions and names in lists.
fn shape(path: &str) -> String {
    let mut depth = 0;
    let outside = |c: &char| {
        let opens = *c == '[';
        depth += i32::from(opens) - i32::from(*c == ']');
        depth == 0 && *c != ']'
    };
    path.chars().filter(outside).collect()
}

fn cut(value: &str) -> String {
    let start: String = value.chars().take(WIDTH).collect();
    if start.len() == value.len() { start } else { format!("{start}…") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn difference(path: &str) -> Difference {
        let subject = Subject { trace: "t".to_owned(), device: "d".to_owned() };
        let [before, after] = ["1", "2"].map(str::to_owned);
        Difference { subject, path: path.to_owned(), before, after }
    }

    #[test]
    fn differences_are_grouped_by_path() {
        let differences = ["a[0].b", "c", "a[1].b", "a[2].b"].map(difference);
        assert_eq!(
            listing(&differences, 2),
            "  a.b: 3 differences\n    t d a[0].b\n      1 -> 2\n    t d a[1].b\n      1 -> 2\n    and 1 more\n  \
             c: 1 differences\n    t d c\n      1 -> 2\n"
        );
    }

    #[test]
    fn long_values_are_cut() {
        assert_eq!(cut("é"), "é");
        assert_eq!(cut(&"x".repeat(WIDTH + 1)), format!("{}…", "x".repeat(WIDTH)));
    }
}

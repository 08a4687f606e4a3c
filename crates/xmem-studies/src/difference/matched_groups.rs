//! The groups of both runs, matched.

use super::group_row::{DifferenceRow, GroupFigures, NameMatch, row};
use super::groups::{self, DifferenceKey};
use super::{ComparisonRun, lines, modules};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use xmem_types::Bytes;

/// The groups of both runs.
pub(super) struct Rows {
    pub(super) changed: Vec<DifferenceRow>,
    pub(super) unchanged: GroupFigures,
    pub(super) total: (GroupFigures, GroupFigures),
}

impl Rows {
    /// Matches the groups; none if a run does not know them.
    pub(super) fn of(a: &ComparisonRun, b: &ComparisonRun, key: DifferenceKey) -> Option<Self> {
        let rows = match (key, a.timeline.as_ref().zip(b.timeline.as_ref())) {
            (DifferenceKey::Role, None) => by_name(&roles(a), &roles(b)),
            (_, None) => return None,
            (DifferenceKey::Module, Some((a, b))) => modules::rows(a, b),
            (DifferenceKey::Line, Some((a, b))) => lines::rows(a, b),
            (key, Some((a, b))) => by_name(&groups::at_peak(a, key), &groups::at_peak(b, key)),
        };
        Some(Self::sorted(rows))
    }

    fn sorted(rows: Vec<DifferenceRow>) -> Self {
        // Numbers of blocks are known if they are known of every group.
        let none = GroupFigures::NONE;
        let total = rows.iter().fold((none, none), |(a, b), row| (a + row.a, b + row.b));
        let (same, mut changed): (Vec<_>, Vec<_>) =
            rows.into_iter().partition(|row| row.a == row.b);
        let unchanged = same.into_iter().fold(none, |sum, row| sum + row.a);
        changed.sort_by(|x, y| {
            let order = |row: &DifferenceRow| Reverse(row.bytes().size());
            order(x).cmp(&order(y)).then_with(|| x.name().cmp(y.name()))
        });
        Self { changed, unchanged, total }
    }
}

/// The roles of a run; without their numbers of blocks if it was read from a document.
fn roles(run: &ComparisonRun) -> BTreeMap<&str, GroupFigures> {
    let roles = run.by_role.iter().filter(|(_, bytes)| *bytes > Bytes::ZERO);
    roles
        .map(|(name, bytes)| (name.as_str(), GroupFigures { bytes: *bytes, blocks: None }))
        .collect()
}

/// Groups of equal names.
fn by_name(
    a: &BTreeMap<&str, GroupFigures>,
    b: &BTreeMap<&str, GroupFigures>,
) -> Vec<DifferenceRow> {
    let only_b = b.keys().filter(|name| !a.contains_key(*name));
    let rows = a.keys().chain(only_b).map(|name| {
        let (in_a, in_b) = (a.get(name).copied(), b.get(name).copied());
        row((name, in_a), (name, in_b), NameMatch::Same)
    });
    rows.collect()
}

//! Figures of an earlier commit, and what grew since.

use crate::margin::Margin;
use std::collections::BTreeMap;
use xmem::{Answer, Bytes};

/// The figures of earlier outcomes, by trace and device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Baseline {
    /// The entries, by the name of the trace and that of the device.
    pub entries: BTreeMap<(String, String), BaselineEntry>,
}

/// The figures of one job on one device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BaselineEntry {
    /// Peak allocated.
    pub allocated: Bytes,
    /// Peak reserved.
    pub reserved: Bytes,
    /// Bytes alive at the peak of allocated memory, by the name of the role.
    pub by_role: BTreeMap<String, Bytes>,
    /// The same by module: the path of its class names down to [`BaselineEntry::DEPTH`] levels; empty for
    /// what no module made.
    pub by_module: BTreeMap<String, Bytes>,
}

/// Text that is not a baseline.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a baseline of xmem: {0}")]
pub struct BaselineError(pub String);

/// How much more a job needs than its baseline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Growth {
    /// Peak allocated, before and now.
    pub allocated: (Bytes, Bytes),
    /// Peak reserved, before and now.
    pub reserved: (Bytes, Bytes),
    /// True if a peak grew by more than the tolerance.
    pub beyond_tolerance: bool,
    /// The roles that grew, the one that grew most first.
    pub roles: Vec<RoleGrowth>,
    /// The modules that grew, the one that grew most first.
    pub modules: Vec<ModuleGrowth>,
}

/// A role that grew.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoleGrowth {
    /// The name of the role.
    pub role: String,
    /// Bytes before.
    pub before: Bytes,
    /// Bytes now.
    pub now: Bytes,
}

/// A module that grew.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModuleGrowth {
    /// The path of the module.
    pub module: String,
    /// Bytes before.
    pub before: Bytes,
    /// Bytes now.
    pub now: Bytes,
}

impl BaselineEntry {
    /// The levels of modules that are told apart.
    pub const DEPTH: usize = 3;

    /// The figures of an answer that lists every block of its peak.
    #[must_use]
    pub fn of(answer: &Answer) -> Self {
        let roles = answer.memory.by_role.iter().filter(|share| share.bytes > Bytes::ZERO);
        let mut by_module: BTreeMap<String, Bytes> = BTreeMap::new();
        for block in &answer.memory.largest {
            *by_module.entry(module(block.origin.module.as_deref())).or_default() += block.bytes;
        }
        Self {
            allocated: answer.memory.peak.allocated,
            reserved: answer.memory.peak.reserved,
            by_role: roles.map(|share| (share.role.name().to_owned(), share.bytes)).collect(),
            by_module,
        }
    }

    /// What grew since.
    #[must_use]
    pub fn grown_to(&self, now: &Self, tolerance: Margin) -> Growth {
        let beyond = |before: Bytes, now: Bytes| {
            let allowed = match tolerance {
                Margin::Size(size) => size,
                share @ Margin::PerMille(_) => share.of(before),
            };
            now > before + allowed
        };
        let roles = grown(&self.by_role, &now.by_role);
        let modules = grown(&self.by_module, &now.by_module);
        Growth {
            allocated: (self.allocated, now.allocated),
            reserved: (self.reserved, now.reserved),
            beyond_tolerance: beyond(self.allocated, now.allocated)
                || beyond(self.reserved, now.reserved),
            roles: roles
                .map(|(role, before, now)| RoleGrowth { role: role.to_owned(), before, now })
                .collect(),
            modules: modules
                .map(|(module, before, now)| ModuleGrowth {
                    module: module.to_owned(),
                    before,
                    now,
                })
                .collect(),
        }
    }
}

/// The first levels of a module's path.
fn module(path: Option<&str>) -> String {
    let levels = path.unwrap_or_default().split(" > ").take(BaselineEntry::DEPTH);
    levels.collect::<Vec<_>>().join(" > ")
}

fn grown<'a>(
    before: &BTreeMap<String, Bytes>,
    now: &'a BTreeMap<String, Bytes>,
) -> impl Iterator<Item = (&'a str, Bytes, Bytes)> {
    let mut grown: Vec<(&str, Bytes, Bytes)> = now
        .iter()
        .map(|(name, &now)| (name.as_str(), before.get(name).copied().unwrap_or_default(), now))
        .filter(|(_, before, now)| now > before)
        .collect();
    grown.sort_by_key(|&(name, before, now)| (std::cmp::Reverse(now - before), name));
    grown.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(allocated: u64, parts: &[(&str, u64)]) -> BaselineEntry {
        let parts = || parts.iter().map(|&(name, bytes)| (name.to_owned(), Bytes::mib(bytes)));
        BaselineEntry {
            allocated: Bytes::mib(allocated),
            reserved: Bytes::mib(allocated),
            by_role: parts().collect(),
            by_module: parts().collect(),
        }
    }

    #[test]
    fn growth_is_named_from_the_largest_and_counts_beyond_the_tolerance() {
        let before = entry(1000, &[("a", 500), ("b", 300), ("c", 200)]);
        let now = entry(1010, &[("a", 480), ("b", 305), ("c", 210), ("d", 15)]);
        for (tolerance, beyond) in [
            (Margin::PerMille(10), false),
            (Margin::PerMille(9), true),
            (Margin::NONE, true),
            (Margin::Size(Bytes::mib(10)), false),
        ] {
            let growth = before.grown_to(&now, tolerance);
            assert_eq!(growth.beyond_tolerance, beyond, "{tolerance}");
            let names: Vec<&str> =
                growth.modules.iter().map(|grown| grown.module.as_str()).collect();
            assert_eq!(names, ["d", "c", "b"]);
            assert_eq!(growth.roles[0].before, Bytes::ZERO);
        }
        assert!(!now.grown_to(&before, Margin::NONE).roles.is_empty());
        assert!(!before.grown_to(&before, Margin::NONE).beyond_tolerance);
    }

    #[test]
    fn modules_are_told_apart_down_to_three_levels() {
        assert_eq!(module(Some("A_0 > B_1 > C_2 > D_3")), "A_0 > B_1 > C_2");
        assert_eq!(module(Some("A_0")), "A_0");
        assert_eq!(module(None), "");
    }
}

//! Sibling modules that use each other in a circle.

use super::modules::{Module, Use};
use std::collections::{BTreeMap, BTreeSet};

/// Modules below one parent, each with all that lies in it, that reach each other.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Cycle {
    pub(super) parent: Module,
    /// The names of the modules below the parent.
    pub(super) modules: BTreeSet<String>,
    /// The uses that make it one.
    pub(super) uses: Vec<Use>,
}

impl Cycle {
    /// The files that use something over the border of two of its modules, or are used.
    pub(super) fn files(&self) -> BTreeSet<&Module> {
        self.uses.iter().flat_map(|u| [&u.from, &u.to]).collect()
    }
}

/// Every cycle, from the root down.
pub(super) fn cycles(uses: &[Use]) -> Vec<Cycle> {
    let mut levels: BTreeMap<Module, Vec<(&str, &str, &Use)>> = BTreeMap::new();
    for one in uses {
        let common = one.from.iter().zip(&one.to).take_while(|(a, b)| a == b).count();
        // Between a module and what lies in it nothing is counted.
        if let (Some(from), Some(to)) = (one.from.get(common), one.to.get(common)) {
            levels.entry(one.from[..common].to_vec()).or_default().push((from, to, one));
        }
    }
    let mut found = Vec::new();
    for (parent, uses) in levels {
        for modules in components(&uses) {
            let within = |&&(from, to, _): &&(&str, &str, &Use)| {
                modules.contains(from) && modules.contains(to)
            };
            found.push(Cycle {
                parent: parent.clone(),
                uses: uses.iter().filter(within).map(|&(_, _, one)| one.clone()).collect(),
                modules: modules.into_iter().map(str::to_owned).collect(),
            });
        }
    }
    found
}

/// Sets of more than one module in which each reaches every other.
fn components<'u>(uses: &[(&'u str, &'u str, &Use)]) -> Vec<BTreeSet<&'u str>> {
    let names: BTreeSet<&str> = uses.iter().flat_map(|&(from, to, _)| [from, to]).collect();
    let reached = |start: &'u str| {
        let mut seen = BTreeSet::new();
        let mut open = vec![start];
        while let Some(name) = open.pop() {
            for &(from, to, _) in uses {
                if from == name && seen.insert(to) {
                    open.push(to);
                }
            }
        }
        seen
    };
    let reached: BTreeMap<&str, BTreeSet<&str>> =
        names.iter().map(|&name| (name, reached(name))).collect();
    let mut found: Vec<BTreeSet<&str>> = Vec::new();
    for &name in &names {
        if found.iter().any(|component| component.contains(name)) {
            continue;
        }
        let mutual = reached[name].iter().copied().filter(|other| reached[other].contains(name));
        let component: BTreeSet<&str> = mutual.collect();
        if component.len() > 1 {
            found.push(component);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(uses: &[(&str, &str)]) -> Vec<(String, Vec<String>, usize)> {
        let module = |path: &str| path.split('/').map(str::to_owned).collect();
        let used = |&(from, to): &(&str, &str)| Use {
            from: module(from),
            to: module(to),
            path: to.to_owned(),
        };
        let uses: Vec<Use> = uses.iter().map(used).collect();
        let told = |cycle: Cycle| {
            let files = cycle.files().len();
            (cycle.parent.join("/"), cycle.modules.into_iter().collect(), files)
        };
        cycles(&uses).into_iter().map(told).collect()
    }

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().copied().map(str::to_owned).collect()
    }

    #[test]
    fn a_chain_is_no_cycle() {
        assert!(found(&[("a", "b"), ("b", "c"), ("a", "c")]).is_empty());
    }

    #[test]
    fn modules_count_with_all_that_lies_in_them() {
        let cycle = [("a/x", "b"), ("b", "a/y")];
        assert_eq!(found(&cycle), [(String::new(), names(&["a", "b"]), 3)]);
    }

    #[test]
    fn a_parent_and_its_children_may_use_each_other() {
        assert!(found(&[("a", "a/x"), ("a/x", "a"), ("a/y", "a")]).is_empty());
    }

    #[test]
    fn cycles_are_found_at_every_level_and_apart() {
        let uses = [
            ("a/x", "a/y/z"),
            ("a/y", "a/x"),
            ("b", "c"),
            ("c", "d"),
            ("d", "b"),
            ("d", "e"),
            ("a", "b"),
        ];
        assert_eq!(
            found(&uses),
            [(String::new(), names(&["b", "c", "d"]), 3), ("a".to_owned(), names(&["x", "y"]), 3)]
        );
    }
}

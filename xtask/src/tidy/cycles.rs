//! Modules of a crate that use each other in a circle.
//!
//! The modules below one parent form a graph: an arrow leads from one to another if any file in the
//! first uses something that is defined in a file of the second. Re-exports are followed to the
//! definition. Nothing is counted between a module and those that lie in it: a parent declares its
//! children, offers what they define and calls them, and they may use what it defines. Tests are left out.
//!
//! Two files that need each other pass, for example those of mutually recursive functions. A cycle over
//! more files fails, unless it is listed with a reason in `cycles/known.toml`.

mod components;
mod modules;
mod source;
mod tokens;

use super::findings::Findings;
use components::{Cycle, cycles};
use modules::{Modules, Use};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};

/// The list of cycles that stay.
pub(super) const KNOWN: &str = "xtask/src/tidy/cycles/known.toml";

/// The most files that a cycle may lead through.
const MAX_FILES: usize = 2;

/// The cycles that stay.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Known {
    #[serde(default)]
    cycle: Vec<Listed>,
}

/// A cycle that stays, and why.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Listed {
    /// The folder of the crate.
    #[serde(rename = "crate")]
    krate: String,
    /// The path of the modules' parent from the crate's root, which is empty.
    #[serde(default)]
    parent: String,
    modules: BTreeSet<String>,
    reason: String,
}

/// Finds the cycles of every crate; `sources` are the Rust files of the repository by their paths.
pub(super) fn check(sources: &[(String, String)], known: &str, findings: &mut Findings) {
    let mut known: Vec<Listed> = match toml::from_str::<Known>(known) {
        Ok(known) => known.cycle,
        Err(error) => return findings.add(KNOWN, error.to_string()),
    };
    for listed in known.iter().filter(|listed| listed.reason.trim().is_empty()) {
        findings.add(KNOWN, format!("{} has a cycle without a reason", listed.krate));
    }
    let mut crates: BTreeMap<&str, Vec<(&str, &str)>> = BTreeMap::new();
    for (name, text) in sources {
        if let Some((krate, path)) = name.split_once("/src/") {
            crates.entry(krate).or_default().push((path, text));
        }
    }
    for (krate, files) in crates {
        let cycles = cycles(&Modules::of(&files).uses());
        for cycle in cycles.iter().filter(|cycle| cycle.files().len() > MAX_FILES) {
            let parent = cycle.parent.join("::");
            let is_this = |listed: &Listed| {
                listed.krate == krate && listed.parent == parent && listed.modules == cycle.modules
            };
            match known.iter().position(is_this) {
                Some(position) => drop(known.swap_remove(position)),
                None => findings.add(krate, told(cycle)),
            }
        }
    }
    for Listed { krate, modules, .. } in known {
        let modules = Vec::from_iter(modules).join("`, `");
        findings.add(KNOWN, format!("{krate} has no cycle of `{modules}` any more: erase it"));
    }
}

/// The cycle with one use for each of its arrows.
fn told(cycle: &Cycle) -> String {
    let depth = cycle.parent.len();
    let mut arrows: BTreeMap<(&str, &str), (&Use, usize)> = BTreeMap::new();
    for one in &cycle.uses {
        let arrow = (one.from[depth].as_str(), one.to[depth].as_str());
        arrows.entry(arrow).or_insert((one, 0)).1 += 1;
    }
    let modules: Vec<&str> = cycle.modules.iter().map(String::as_str).collect();
    let mut text = format!(
        "the modules `{}`{} use each other, over {} files:",
        modules.join("`, `"),
        if depth == 0 { String::new() } else { format!(" of `{}`", cycle.parent.join("::")) },
        cycle.files().len()
    );
    for ((from, to), (example, uses)) in arrows {
        let file = example.from.join("::");
        text += &format!("\n  {from} -> {to} ({uses} uses): `{}` in {file}", example.path);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)], known: &str) -> Vec<String> {
        let owned = |&(name, text): &(&str, &str)| (name.to_owned(), text.to_owned());
        let sources: Vec<(String, String)> = files.iter().map(owned).collect();
        let mut findings = Findings::default();
        check(&sources, known, &mut findings);
        findings.lines().into_iter().map(str::to_owned).collect()
    }

    const CIRCLE: [(&str, &str); 4] = [
        ("crates/x/src/lib.rs", "mod a; mod b;"),
        ("crates/x/src/a.rs", "mod c; pub use c::C; pub struct A;"),
        ("crates/x/src/a/c.rs", "use crate::b::B; pub struct C;"),
        ("crates/x/src/b.rs", "use crate::a::A; pub struct B;"),
    ];

    #[test]
    fn a_cycle_over_three_files_is_found() {
        assert_eq!(
            found(&CIRCLE, ""),
            ["crates/x: the modules `a`, `b` use each other, over 3 files:\n  \
              a -> b (1 uses): `crate::b::B` in a::c\n  b -> a (1 uses): `crate::a::A` in b"]
        );
    }

    #[test]
    fn a_cycle_that_is_listed_with_a_reason_passes() {
        let known = "[[cycle]]\ncrate = 'crates/x'\nmodules = ['a', 'b']\nreason = 'they are one'";
        assert_eq!(found(&CIRCLE, known), [""; 0]);
        assert_eq!(found(&CIRCLE, &known.replace("they are one", " ")).len(), 1);
        assert_eq!(
            found(&CIRCLE[..1], known),
            [format!("{KNOWN}: crates/x has no cycle of `a`, `b` any more: erase it")]
        );
    }

    #[test]
    fn two_files_may_need_each_other() {
        let files = [
            ("crates/x/src/lib.rs", "mod a; mod b;"),
            ("crates/x/src/a.rs", "use crate::b;"),
            ("crates/x/src/b.rs", "use crate::a;"),
        ];
        assert_eq!(found(&files, ""), [""; 0]);
    }
}

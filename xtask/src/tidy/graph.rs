//! The crate graph against the table in docs/architecture.md: data flows one way.

mod resolved;
mod table;

use super::ARCHITECTURE;
use super::findings::Findings;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use table::Table;

/// Compares the manifests and the graph that cargo resolved with the table.
pub(crate) fn check(architecture: &str, metadata: &Value, findings: &mut Findings) {
    match table::parse(architecture) {
        Ok(table) => {
            drawn(&table, metadata, findings);
            resolved::check(&table, metadata, findings);
        }
        Err(problem) => findings.add(ARCHITECTURE, problem),
    }
}

/// Compares every normal and build dependency with the table. A dependency of tests alone may also
/// go to any crate that does not itself stand on the crate under test.
fn drawn(table: &Table, metadata: &Value, findings: &mut Findings) {
    let packages = packages(metadata);
    for (name, dependencies) in &packages {
        let Some(row) = table.get(name) else {
            findings.add(ARCHITECTURE, format!("the crate `{name}` is missing from the table"));
            continue;
        };
        for dependency in dependencies {
            let target = dependency.name.as_str();
            let inside = packages.contains_key(target);
            if dependency.only_for_tests {
                if inside && reaches(table, target, name) {
                    let problem = format!("its tests use `{target}`, which stands on it");
                    findings.add(name, problem);
                }
            } else if inside && !row.may_use.contains(target) {
                findings.add(name, format!("uses `{target}`, an edge that {ARCHITECTURE} lacks"));
            } else if row.never_uses.contains(target) || row.never_links.contains(target) {
                findings.add(name, format!("uses `{target}`, which {ARCHITECTURE} rules out"));
            }
        }
    }
    for (name, row) in table {
        let used = |target: &&String| {
            packages.get(name).is_none_or(|list| list.iter().any(|d| d.name == **target))
        };
        for target in row.may_use.iter().filter(|target| !used(target)) {
            findings
                .add(ARCHITECTURE, format!("`{name}` no longer uses `{target}`: erase the edge"));
        }
    }
    for name in table.keys().filter(|name| !packages.contains_key(*name)) {
        findings
            .add(ARCHITECTURE, format!("the table has `{name}`, which is not in the workspace"));
    }
}

/// Whether `from` stands on `to`, directly or not.
fn reaches(table: &Table, from: &str, to: &str) -> bool {
    let next = |name: &str| table.get(name).into_iter().flat_map(|row| row.may_use.iter());
    let mut seen = BTreeSet::new();
    let mut open = vec![from];
    while let Some(name) = open.pop() {
        if seen.insert(name) {
            open.extend(next(name).map(String::as_str));
        }
    }
    from != to && seen.contains(to)
}

struct Dependency {
    name: String,
    only_for_tests: bool,
}

/// The crates of the workspace with their direct dependencies.
fn packages(metadata: &Value) -> BTreeMap<String, Vec<Dependency>> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let mut found = BTreeMap::new();
    for package in list(&metadata["packages"]) {
        if !is_ours(&package) {
            continue;
        }
        let dependencies = list(&package["dependencies"])
            .iter()
            .map(|d| Dependency { name: text(&d["name"]), only_for_tests: d["kind"] == "dev" })
            .collect();
        found.insert(text(&package["name"]), dependencies);
    }
    found
}

/// Whether a package is of the workspace: the others come from a registry.
fn is_ours(package: &Value) -> bool {
    package["source"].is_null()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use table::tests::TABLE;

    fn package(name: &str, dependencies: &[(&str, Option<&str>)]) -> Value {
        let dependencies: Vec<Value> =
            dependencies.iter().map(|(name, kind)| json!({ "name": name, "kind": kind })).collect();
        json!({ "name": name, "source": null, "dependencies": dependencies })
    }

    fn found(packages: &[Value]) -> Vec<String> {
        let mut findings = Findings::default();
        check(TABLE, &json!({ "packages": packages }), &mut findings);
        findings.lines().into_iter().map(str::to_owned).collect()
    }

    #[test]
    fn the_drawn_graph_is_accepted() {
        let high = package("high", &[("low", None), ("memchr", None)]);
        assert_eq!(found(&[package("low", &[]), high]), [""; 0]);
    }

    #[test]
    fn an_edge_that_nothing_uses_any_more_is_found() {
        let lines = found(&[package("low", &[]), package("high", &[])]);
        assert_eq!(lines, ["docs/architecture.md: `high` no longer uses `low`: erase the edge"]);
    }

    #[test]
    fn an_arrow_back_up_is_found() {
        let high = package("high", &[("low", None)]);
        let lines = found(&[package("low", &[("high", None)]), high]);
        assert_eq!(lines, ["low: uses `high`, an edge that docs/architecture.md lacks"]);
    }

    #[test]
    fn tests_may_use_what_lies_below_but_not_what_stands_on_the_crate() {
        let lines = found(&[
            package("low", &[("high", Some("dev"))]),
            package("high", &[("low", Some("dev"))]),
        ]);
        assert_eq!(lines, ["low: its tests use `high`, which stands on it"]);
    }

    #[test]
    fn a_wall_against_an_outside_crate_holds() {
        let lines = found(&[package("low", &[("toml", None)]), package("high", &[("low", None)])]);
        assert_eq!(lines, ["low: uses `toml`, which docs/architecture.md rules out"]);
    }

    #[test]
    fn table_and_workspace_name_the_same_crates() {
        let lines = found(&[package("low", &[]), package("new", &[])]);
        assert_eq!(
            lines,
            [
                "docs/architecture.md: the crate `new` is missing from the table",
                "docs/architecture.md: the table has `high`, which is not in the workspace",
            ]
        );
    }
}

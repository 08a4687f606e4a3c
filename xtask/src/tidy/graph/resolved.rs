//! The walls that hold for everything that ends up in a crate: the graph that cargo resolved.
//!
//! A library can arrive through another crate of the workspace or through another library. Followed are
//! normal dependencies with the features that the workspace turns on, on this machine's platform.
//! Procedural macros and what they use run in the compiler and are not linked.

use super::table::Table;
use crate::tidy::findings::Findings;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Compares everything that each crate links with its walls.
pub(super) fn check(table: &Table, metadata: &Value, findings: &mut Findings) {
    let packages = packages(metadata);
    for (id, package) in &packages {
        let Some(row) = table.get(package.name).filter(|_| package.is_ours) else { continue };
        for path in forbidden(&packages, id, &row.never_links) {
            let (library, through) = path.split_last().expect("a path ends with the library");
            let through = through.join("` and `");
            findings.add(package.name, format!("links `{library}` through `{through}`"));
        }
    }
}

/// A node of the graph.
struct Package<'m> {
    name: &'m str,
    is_ours: bool,
    is_macro: bool,
    links: Vec<&'m str>,
}

/// The shortest way to each forbidden library that is reached through another crate.
fn forbidden<'m>(
    packages: &BTreeMap<&'m str, Package<'m>>,
    start: &'m str,
    never: &BTreeSet<String>,
) -> Vec<Vec<&'m str>> {
    let mut seen = BTreeSet::from([start]);
    let mut open = VecDeque::from([(start, Vec::new())]);
    let mut found = Vec::new();
    while let Some((id, path)) = open.pop_front() {
        for &next in &packages[id].links {
            let Some(package) = packages.get(next).filter(|package| !package.is_macro) else {
                continue;
            };
            if !seen.insert(next) {
                continue;
            }
            let path: Vec<&str> = path.iter().copied().chain([package.name]).collect();
            // A direct dependency is reported by the check of the drawn graph.
            if never.contains(package.name) && path.len() > 1 {
                found.push(path.clone());
            }
            open.push_back((next, path));
        }
    }
    found
}

/// The packages by their ids.
fn packages(metadata: &Value) -> BTreeMap<&str, Package<'_>> {
    let mut links: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for node in list(&metadata["resolve"]["nodes"]) {
        links.insert(text(&node["id"]), list(&node["deps"]).filter_map(link).collect());
    }
    let mut packages = BTreeMap::new();
    for package in list(&metadata["packages"]) {
        let id = text(&package["id"]);
        let of_macros = |target: &Value| list(&target["kind"]).any(|kind| kind == "proc-macro");
        let package = Package {
            name: text(&package["name"]),
            is_ours: super::is_ours(package),
            is_macro: list(&package["targets"]).any(of_macros),
            links: links.remove(id).unwrap_or_default(),
        };
        packages.insert(id, package);
    }
    packages
}

/// The id of a dependency that is linked.
fn link(dependency: &Value) -> Option<&str> {
    let is_normal = list(&dependency["dep_kinds"]).any(|kind| kind["kind"].is_null());
    is_normal.then(|| text(&dependency["pkg"]))
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::graph::table::{self, tests::TABLE};
    use serde_json::json;

    fn package(name: &str, kind: &str) -> Value {
        let source = (!["low", "high"].contains(&name)).then_some("registry");
        json!({"id": name, "name": name, "source": source, "targets": [{"kind": [kind]}]})
    }

    fn node(name: &str, links: &[(&str, Value)]) -> Value {
        let link =
            |(name, kind): &(&str, Value)| json!({"pkg": name, "dep_kinds": [{"kind": kind}]});
        json!({"id": name, "deps": links.iter().map(link).collect::<Vec<_>>()})
    }

    fn found(kind: &str, nodes: &[Value]) -> Vec<String> {
        let packages = ["low", "high", "reader", "clap", "toml"];
        let packages: Vec<Value> = packages
            .iter()
            .map(|&name| package(name, if name == "reader" { kind } else { "lib" }))
            .collect();
        let metadata = json!({"packages": packages, "resolve": {"nodes": nodes}});
        let table = table::parse(TABLE).expect("a table");
        let mut findings = Findings::default();
        check(&table, &metadata, &mut findings);
        findings.lines().into_iter().map(str::to_owned).collect()
    }

    #[test]
    fn a_library_that_arrives_through_another_crate_is_found() {
        let nodes = [
            node("high", &[("low", Value::Null)]),
            node("low", &[("reader", Value::Null)]),
            node("reader", &[("clap", Value::Null), ("toml", Value::Null)]),
        ];
        assert_eq!(
            found("lib", &nodes),
            [
                "high: links `clap` through `low` and `reader`",
                "high: links `toml` through `low` and `reader`",
                "low: links `toml` through `reader`",
            ]
        );
    }

    #[test]
    fn build_scripts_tests_and_macros_link_nothing() {
        let through = |kind: Value| {
            [node("low", &[("reader", kind)]), node("reader", &[("toml", Value::Null)])]
        };
        assert_eq!(found("lib", &through(Value::Null)).len(), 1);
        assert_eq!(found("lib", &through(json!("build"))), [""; 0]);
        assert_eq!(found("lib", &through(json!("dev"))), [""; 0]);
        assert_eq!(found("proc-macro", &through(Value::Null)), [""; 0]);
    }
}

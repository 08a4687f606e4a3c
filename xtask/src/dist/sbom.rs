//! The parts of the program as a CycloneDX document (version 1.5): the crates that cargo resolved for it, with their
//! licenses and checksums. No time and no random number is in it, so that the same sources give the same bytes.

use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use xmem_task::{Error, repo};

/// The package whose program is distributed.
const PROGRAM: &str = "xmem-cli";

/// The document.
pub(crate) fn document() -> Result<String, Error> {
    let metadata = repo::resolved_metadata()?;
    let lock = repo::text(Path::new("Cargo.lock"))?;
    let document = of(&metadata, &checksums(&lock));
    let mut text = serde_json::to_string_pretty(&document).map_err(Error::Metadata)?;
    text.push('\n');
    Ok(text)
}

fn of(metadata: &Value, checksums: &BTreeMap<(String, String), String>) -> Value {
    let packages: BTreeMap<&str, &Value> =
        list(metadata, "packages").map(|package| (text(package, "id"), package)).collect();
    let nodes: BTreeMap<&str, &Value> =
        list(&metadata["resolve"], "nodes").map(|node| (text(node, "id"), node)).collect();
    let root = packages.values().find(|package| text(package, "name") == PROGRAM);
    let Some(root) = root.map(|root| text(root, "id")) else { return Value::Null };
    // In the program, and what only builds it.
    let linked = reached(&nodes, root, false);
    let all = reached(&nodes, root, true);
    let components: Vec<Value> = all
        .iter()
        .filter(|id| **id != root)
        .filter_map(|id| Some((packages.get(id)?, linked.contains(id))))
        .map(|(package, is_linked)| component(package, is_linked, checksums))
        .collect();
    let dependencies: Vec<Value> = all
        .iter()
        .filter_map(|id| Some((packages.get(id)?, nodes.get(id)?)))
        .map(|(package, node)| {
            let on = dependencies(node, true).filter_map(|id| packages.get(id));
            let on: BTreeSet<String> = on.map(|package| url(package)).collect();
            json!({"ref": url(package), "dependsOn": on})
        })
        .collect();
    let mut program = component(packages[root], true, checksums);
    program["type"] = "application".into();
    program["name"] = "xmem".into();
    json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": program},
        "components": components,
        "dependencies": dependencies,
    })
}

fn component(
    package: &Value,
    is_linked: bool,
    checksums: &BTreeMap<(String, String), String>,
) -> Value {
    let (name, version) = (text(package, "name"), text(package, "version"));
    let mut fields = Map::new();
    fields.insert("type".into(), "library".into());
    fields.insert("bom-ref".into(), url(package).into());
    fields.insert("name".into(), name.into());
    fields.insert("version".into(), version.into());
    fields.insert("scope".into(), if is_linked { "required" } else { "excluded" }.into());
    if let Some(checksum) = checksums.get(&(name.to_owned(), version.to_owned())) {
        fields.insert("hashes".into(), json!([{"alg": "SHA-256", "content": checksum}]));
    }
    if let Some(license) = package["license"].as_str() {
        // crates.io had `/` for OR before it had SPDX's expressions.
        let expression = license.replace('/', " OR ");
        fields.insert("licenses".into(), json!([{"expression": expression}]));
    }
    fields.insert("purl".into(), url(package).into());
    if let Some(repository) = package["repository"].as_str() {
        fields.insert("externalReferences".into(), json!([{"type": "vcs", "url": repository}]));
    }
    fields.into()
}

/// The package URL (<https://github.com/package-url/purl-spec>).
fn url(package: &Value) -> String {
    format!("pkg:cargo/{}@{}", text(package, "name"), text(package, "version"))
}

/// The packages that one needs, and itself.
fn reached<'a>(
    nodes: &BTreeMap<&'a str, &'a Value>,
    from: &'a str,
    build: bool,
) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut open = vec![from];
    while let Some(id) = open.pop() {
        if reached.insert(id) {
            open.extend(nodes.get(id).into_iter().flat_map(|node| dependencies(node, build)));
        }
    }
    reached
}

/// The dependencies of a node that are not for its tests alone.
fn dependencies(node: &Value, build: bool) -> impl Iterator<Item = &str> {
    list(node, "deps")
        .filter(move |dependency| {
            list(dependency, "dep_kinds").any(|kind| match kind["kind"].as_str() {
                None => true,
                Some("build") => build,
                Some(_) => false,
            })
        })
        .map(|dependency| text(dependency, "pkg"))
}

/// The checksums in Cargo.lock, by name and version.
fn checksums(lock: &str) -> BTreeMap<(String, String), String> {
    let lock: toml::Table = lock.parse().unwrap_or_default();
    let packages = lock.get("package").and_then(toml::Value::as_array);
    let of = |package: &toml::Value, key: &str| {
        package.get(key).and_then(toml::Value::as_str).map(str::to_owned)
    };
    packages
        .into_iter()
        .flatten()
        .filter_map(|package| {
            Some(((of(package, "name")?, of(package, "version")?), of(package, "checksum")?))
        })
        .collect()
}

fn list<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    value[key].as_array().into_iter().flatten()
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_of_this_program_has_a_license_and_a_checksum() {
        let text = document().expect("cargo metadata");
        let document: Value = serde_json::from_str(&text).expect("JSON");
        let components: Vec<&Value> = list(&document, "components").collect();
        assert!(components.len() > 100, "{}", components.len());
        for component in components {
            let name = text_of(component);
            assert!(component["licenses"][0]["expression"].is_string(), "{name}");
            let is_own = name.starts_with("xmem");
            assert_eq!(component["hashes"][0]["content"].is_string(), !is_own, "{name}");
        }
    }

    fn text_of(component: &Value) -> &str {
        text(component, "name")
    }

    #[test]
    fn parts_of_the_program_are_told_from_what_builds_it_and_from_its_tests() {
        let package = |name: &str| json!({"id": name, "name": name, "version": "1.0.0", "license": "MIT/Apache-2.0"});
        let dependency =
            |name: &str, kind: Value| json!({"pkg": name, "dep_kinds": [{"kind": kind}]});
        let packages = ["xmem-cli", "a", "b", "c", "d"].map(package);
        let metadata = json!({
            "packages": packages,
            "resolve": {"nodes": [
                {"id": "xmem-cli", "deps": [dependency("a", Value::Null), dependency("b", "dev".into())]},
                {"id": "a", "deps": [dependency("c", "build".into())]},
                {"id": "b", "deps": [dependency("d", Value::Null)]},
                {"id": "c", "deps": []}, {"id": "d", "deps": []},
            ]},
        });
        let lock = "[[package]]\nname = \"a\"\nversion = \"1.0.0\"\nchecksum = \"12ab\"\n";
        let document = of(&metadata, &checksums(lock));
        let parts: Vec<(&str, &str)> = list(&document, "components")
            .map(|component| (text(component, "name"), text(component, "scope")))
            .collect();
        assert_eq!(parts, [("a", "required"), ("c", "excluded")]);
        assert_eq!(document["components"][0]["hashes"][0]["content"], "12ab");
        assert_eq!(document["components"][0]["licenses"][0]["expression"], "MIT OR Apache-2.0");
        assert_eq!(document["metadata"]["component"]["name"], "xmem");
        let depends = &document["dependencies"][0];
        assert_eq!(
            depends,
            &json!({"ref": "pkg:cargo/a@1.0.0", "dependsOn": ["pkg:cargo/c@1.0.0"]})
        );
    }
}

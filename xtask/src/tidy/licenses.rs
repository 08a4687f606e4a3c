//! Licenses and origins of dependencies against `deny.toml`, in the time that tidy takes. `cargo deny` knows more (texts of
//! licenses, advisories), and takes minutes to install.

use super::findings::Findings;
use serde_json::Value;
use toml::Table;

/// Relative to the root.
pub(crate) const POLICY: &str = "deny.toml";

const CRATES_IO: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// Compares every package that cargo resolved with the policy.
pub(crate) fn check(policy: &str, metadata: &Value, findings: &mut Findings) {
    let Ok(policy) = policy.parse::<Table>() else {
        findings.add(POLICY, "not TOML");
        return;
    };
    let licenses = policy.get("licenses");
    let allowed = texts(licenses.and_then(|licenses| licenses.get("allow")));
    let exceptions = licenses.and_then(|licenses| licenses.get("exceptions")?.as_array());
    let banned = policy.get("bans").and_then(|bans| bans.get("deny")?.as_array());
    for package in metadata["packages"].as_array().into_iter().flatten() {
        let name = package["name"].as_str().unwrap_or_default();
        // The workspace's own.
        let Some(source) = package["source"].as_str() else { continue };
        if source != CRATES_IO {
            findings.add(name, format!("comes from {source}, and not from crates.io"));
        }
        let of_package =
            |table: &&toml::Value| table.get("crate").and_then(toml::Value::as_str) == Some(name);
        let mut allowed = allowed.clone();
        let exception = exceptions.into_iter().flatten().find(of_package);
        allowed.extend(texts(exception.and_then(|exception| exception.get("allow"))));
        match package["license"].as_str() {
            None => findings.add(name, "names no license"),
            Some(license) if !is_allowed(license, &allowed) => {
                findings.add(
                    name,
                    format!("is licensed under {license}, which {POLICY} does not allow"),
                );
            }
            Some(_) => {}
        }
        let ban = banned.into_iter().flatten().find(of_package);
        if ban.is_some_and(|ban| ban.get("wrappers").is_none()) {
            findings.add(name, format!("is a crate that {POLICY} bans"));
        }
    }
}

fn texts(list: Option<&toml::Value>) -> Vec<String> {
    let items = list.and_then(toml::Value::as_array).into_iter().flatten();
    items.filter_map(toml::Value::as_str).map(str::to_owned).collect()
}

/// Returns whether an expression of SPDX can be satisfied by allowed licenses. `/` is an old OR of crates.io.
fn is_allowed(expression: &str, allowed: &[String]) -> bool {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut rest = words.as_slice();
    any(&mut rest, allowed) && rest.is_empty()
}

fn any(rest: &mut &[&str], allowed: &[String]) -> bool {
    let mut is_met = all(rest, allowed);
    while rest.first() == Some(&"OR") {
        *rest = &rest[1..];
        is_met |= all(rest, allowed);
    }
    is_met
}

fn all(rest: &mut &[&str], allowed: &[String]) -> bool {
    let mut is_met = one(rest, allowed);
    while rest.first() == Some(&"AND") {
        *rest = &rest[1..];
        is_met &= one(rest, allowed);
    }
    is_met
}

fn one(rest: &mut &[&str], allowed: &[String]) -> bool {
    let Some((&first, mut after)) = rest.split_first() else { return false };
    if first == "(" {
        let is_met = any(&mut after, allowed);
        let is_closed = after.first() == Some(&")");
        *rest = after.get(1..).unwrap_or_default();
        return is_met && is_closed;
    }
    let mut license = first.to_owned();
    if let ["WITH", exception, ..] = after {
        license = format!("{license} WITH {exception}");
        after = &after[2..];
    }
    *rest = after;
    allowed.contains(&license)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn expressions_are_met_as_spdx_says() {
        let allowed = ["MIT", "Apache-2.0", "ISC", "Apache-2.0 WITH LLVM-exception"];
        let allowed = allowed.map(str::to_owned);
        for (expression, expected) in [
            ("MIT", true),
            ("MIT OR GPL-3.0", true),
            ("GPL-3.0/MIT", true),
            ("MIT AND GPL-3.0", false),
            ("(MIT OR GPL-3.0) AND ISC", true),
            ("(GPL-3.0 OR LGPL-3.0) AND MIT", false),
            ("MIT OR GPL-3.0 AND LGPL-3.0", true),
            ("Apache-2.0 WITH LLVM-exception", true),
            ("GPL-2.0 WITH Classpath-exception-2.0", false),
            ("(MIT", false),
            ("MIT)", false),
            ("", false),
        ] {
            assert_eq!(is_allowed(expression, &allowed), expected, "{expression}");
        }
    }

    #[test]
    fn a_dependency_that_the_policy_does_not_allow_is_found() {
        let package = |name: &str, license: Value, source: &str| json!({"name": name, "license": license, "source": source});
        let metadata = json!({"packages": [
            package("good", "MIT".into(), CRATES_IO),
            package("fonts", "CC-BY-4.0".into(), CRATES_IO),
            package("copyleft", "GPL-3.0".into(), CRATES_IO),
            package("nothing", Value::Null, CRATES_IO),
            package("elsewhere", "MIT".into(), "git+https://example.org/x"),
            package("banned", "MIT".into(), CRATES_IO),
            json!({"name": "own", "license": null, "source": null}),
        ]});
        let policy = "[licenses]\nallow = [\"MIT\"]\nexceptions = [{ crate = \"fonts\", allow = [\"CC-BY-4.0\"] }]\n\
            [bans]\ndeny = [{ crate = \"banned\" }, { crate = \"good\", wrappers = [\"x\"] }]\n";
        let mut findings = Findings::default();
        check(policy, &metadata, &mut findings);
        assert_eq!(
            findings.lines(),
            [
                "copyleft: is licensed under GPL-3.0, which deny.toml does not allow",
                "nothing: names no license",
                "elsewhere: comes from git+https://example.org/x, and not from crates.io",
                "banned: is a crate that deny.toml bans",
            ]
        );
    }
}

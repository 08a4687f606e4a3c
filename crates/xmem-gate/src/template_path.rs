//! Paths in objects of Kubernetes.

use serde_json::Value;
use std::fmt;
use std::str::FromStr;

/// A step from a value into it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathStep {
    /// The value of a key.
    Key(String),
    /// The element of a list, from 0.
    Index(usize),
}

/// The paths of pod templates in the objects of one kind: keys with dots between them, `*` for every
/// element of a list or every value of a map (`spec.groups.*.template`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TemplatePath(Vec<String>);

impl FromStr for TemplatePath {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let keys: Vec<String> = text.split('.').map(str::to_owned).collect();
        let is_key = |key: &String| {
            let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
            key == "*" || (!key.is_empty() && key.bytes().all(plain))
        };
        if keys.len() <= 32 && keys.iter().all(is_key) {
            return Ok(Self(keys));
        }
        Err(format!("`{text}` is not a path: write keys with dots, as in spec.groups.*.template"))
    }
}

impl fmt::Display for TemplatePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0.join("."))
    }
}

impl TemplatePath {
    /// A built-in path; the empty one leads to the object itself.
    pub(crate) fn known(text: &str) -> Self {
        let keys = text.split('.').filter(|key| !key.is_empty());
        Self(keys.map(str::to_owned).collect())
    }

    /// The values to which the path leads.
    pub(crate) fn values<'a>(&self, object: &'a Value) -> Vec<(Vec<PathStep>, &'a Value)> {
        let mut found = vec![(Vec::new(), object)];
        for key in &self.0 {
            let next = found.into_iter().flat_map(|(path, value)| {
                children(value, key).into_iter().map(move |(step, child)| {
                    let mut path = path.clone();
                    path.push(step);
                    (path, child)
                })
            });
            found = next.collect();
        }
        found
    }
}

fn children<'a>(value: &'a Value, key: &str) -> Vec<(PathStep, &'a Value)> {
    match (value, key) {
        (Value::Array(items), "*") => {
            items.iter().enumerate().map(|(at, item)| (PathStep::Index(at), item)).collect()
        }
        (Value::Object(map), "*") => {
            map.iter().map(|(key, value)| (PathStep::Key(key.clone()), value)).collect()
        }
        (Value::Object(map), key) => {
            map.get(key).map(|value| (PathStep::Key(key.to_owned()), value)).into_iter().collect()
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_has_keys_and_stars() {
        for text in ["spec.template", "*", "spec.groups.*.template"] {
            assert_eq!(
                text.parse::<TemplatePath>().map(|path| path.to_string()),
                Ok(text.to_owned())
            );
        }
        for text in ["", ".spec", "spec..template", "spec.a b", "$.spec", "spec[0]"] {
            assert!(text.parse::<TemplatePath>().is_err(), "{text}");
        }
    }
}

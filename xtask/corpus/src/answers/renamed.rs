//! The differences that are meant: keys and texts with new names, and those that need not be the same.

use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use xmem_task::{Error, repo};

/// The data file.
const FILE: &str = "xtask/corpus/src/answers/renamed.toml";

/// The differences that are meant. Keys are those of JSON objects; a dotted path stands for a key at one
/// place, without the positions in lists.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Renamed {
    wording: BTreeSet<String>,
    ignored: BTreeSet<String>,
    added: BTreeSet<String>,
    removed: BTreeSet<String>,
    keys: BTreeMap<String, String>,
    lists: BTreeMap<String, String>,
    values: BTreeMap<String, BTreeMap<String, String>>,
}

/// How the value of a key is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Care {
    /// Numbers and texts are the same.
    Same,
    /// Texts may say it in other words.
    Wording,
    /// Not at all.
    Ignored,
}

/// A key in an object: its own name, and its path from the root.
#[derive(Clone, Debug, Default)]
pub(super) struct Key {
    name: String,
    path: String,
}

impl Key {
    /// A key in the object that is the value of this one.
    pub(super) fn join(&self, name: &str) -> Self {
        let path =
            if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) };
        Self { name: name.to_owned(), path }
    }

    fn is_in(&self, keys: &BTreeSet<String>) -> bool {
        keys.contains(&self.path) || keys.contains(&self.name)
    }

    fn find<'m, T>(&self, map: &'m BTreeMap<String, T>) -> Option<&'m T> {
        map.get(&self.path).or_else(|| map.get(&self.name))
    }
}

impl Renamed {
    /// Reads the data file of the repository.
    pub(super) fn read() -> Result<Self, Error> {
        let path = Path::new(FILE);
        toml::from_str(&repo::text(path)?)
            .map_err(|source| Error::Data { path: path.to_owned(), source })
    }

    /// How the value of a key of the new answers is compared.
    pub(super) fn care(&self, key: &Key) -> Care {
        if key.is_in(&self.ignored) {
            Care::Ignored
        } else if key.is_in(&self.wording) {
            Care::Wording
        } else {
            Care::Same
        }
    }

    /// Whether a key that only the new answers have was added on purpose.
    pub(super) fn is_added(&self, key: &Key) -> bool {
        key.is_in(&self.added)
    }

    /// The key by which the elements of a list are known, if it is such a list.
    pub(super) fn name_of_elements(&self, list: &Key) -> Option<&str> {
        list.find(&self.lists).map(String::as_str)
    }

    /// An old answer in the words of the new ones.
    pub(super) fn translate(&self, answer: Value) -> Value {
        let mut moved = Vec::new();
        self.value(answer, &Key::default(), &Key::default(), &mut moved)
    }

    /// `moved` receives values that go elsewhere, each with the path where it belongs.
    fn value(&self, value: Value, old: &Key, new: &Key, moved: &mut Moved) -> Value {
        match value {
            Value::Object(fields) => Value::Object(self.object(fields, old, new, moved)),
            Value::Array(list) => {
                let translated = list.into_iter().map(|value| self.value(value, old, new, moved));
                Value::Array(translated.collect())
            }
            Value::String(text) => {
                let renamed = new.find(&self.values).and_then(|texts| texts.get(&text));
                Value::String(renamed.cloned().unwrap_or(text))
            }
            other => other,
        }
    }

    fn object(
        &self,
        fields: Map<String, Value>,
        old: &Key,
        new: &Key,
        moved: &mut Moved,
    ) -> Map<String, Value> {
        let mut translated = Map::new();
        let mut from_below = Vec::new();
        for (name, value) in fields {
            let old = old.join(&name);
            if old.is_in(&self.removed) {
                continue;
            }
            let target = old.find(&self.keys).map_or(name.as_str(), String::as_str);
            if let Some((_, last)) = target.rsplit_once('.') {
                let key = Key { name: last.to_owned(), path: target.to_owned() };
                let value = self.value(value, &old, &key, &mut from_below);
                from_below.push((target.to_owned(), value));
            } else {
                let value = self.value(value, &old, &new.join(target), &mut from_below);
                translated.insert(target.to_owned(), value);
            }
        }
        for (path, value) in from_below {
            match inside(&path, &new.path) {
                Some(rest) => insert(&mut translated, rest, value),
                None => moved.push((path, value)),
            }
        }
        translated
    }
}

type Moved = Vec<(String, Value)>;

/// The rest of a path that lies below `parent`.
fn inside<'p>(path: &'p str, parent: &str) -> Option<&'p str> {
    if parent.is_empty() { Some(path) } else { path.strip_prefix(parent)?.strip_prefix('.') }
}

/// Puts a value where a path leads, through objects that are made where they lack.
fn insert(fields: &mut Map<String, Value>, path: &str, value: Value) {
    let Some((first, rest)) = path.split_once('.') else {
        fields.insert(path.to_owned(), value);
        return;
    };
    let below = fields.entry(first).or_insert_with(|| Value::Object(Map::new()));
    if let Value::Object(below) = below {
        insert(below, rest, value);
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use serde_json::json;

    pub(in crate::answers) fn renamed(text: &str) -> Renamed {
        toml::from_str(text).expect("as in the data file")
    }

    #[test]
    fn the_data_file_can_be_read() {
        Renamed::read().expect("it lies in the repository");
    }

    #[test]
    fn keys_are_renamed_wherever_they_stand_and_paths_at_one_place() {
        let renamed = renamed("[keys]\ndoubts = 'uncertainties'\n'a.name' = 'title'");
        let old = json!({"a": {"name": 1, "doubts": [2]}, "b": [{"name": 3, "doubts": 4}]});
        assert_eq!(
            renamed.translate(old),
            json!({"a": {"title": 1, "uncertainties": [2]}, "b": [{"name": 3, "uncertainties": 4}]})
        );
    }

    #[test]
    fn values_move_to_the_nearest_common_object() {
        let renamed = renamed(
            "[keys]\nrange = 'interval'\n'range.outlook' = 'interval.verdict.confidence'\n\
             'blocks.origin.op' = 'blocks.op'",
        );
        let old = json!({
            "range": {"outlook": "sure", "low": 1},
            "blocks": [{"origin": {"op": "a"}}, {"origin": {"op": "b"}}],
        });
        assert_eq!(
            renamed.translate(old),
            json!({
                "interval": {"low": 1, "verdict": {"confidence": "sure"}},
                "blocks": [{"origin": {}, "op": "a"}, {"origin": {}, "op": "b"}],
            })
        );
    }

    #[test]
    fn texts_are_renamed_under_the_new_key_only() {
        let renamed = renamed("[keys]\noutlook = 'confidence'\n[values.confidence]\nsure = 'high'");
        let old = json!({"outlook": "sure", "op": "sure", "list": [{"outlook": ["sure", "x"]}]});
        assert_eq!(
            renamed.translate(old),
            json!({"confidence": "high", "op": "sure", "list": [{"confidence": ["high", "x"]}]})
        );
    }

    #[test]
    fn removed_keys_are_left_out() {
        let old = json!({"gone": 1, "kept": {"gone": 2}});
        assert_eq!(renamed("removed = ['gone']").translate(old.clone()), json!({"kept": {}}));
        assert_eq!(
            renamed("removed = ['kept.gone']").translate(old),
            json!({"gone": 1, "kept": {}})
        );
    }

    #[test]
    fn misspelled_tables_are_refused() {
        assert!(toml::from_str::<Renamed>("[key]\na = 'b'").is_err());
    }
}

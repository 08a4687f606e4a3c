//! The layout of a published schema: keywords in one order, closed objects, and a part that is used once in its place.

use schemars::generate::SchemaSettings;
use schemars::{Schema, SchemaGenerator};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// The order of the keywords: what a value is, then its parts.
const KEYWORDS: [&str; 18] = [
    "$schema",
    "$id",
    "title",
    "description",
    "$ref",
    "type",
    "const",
    "enum",
    "minimum",
    "minItems",
    "maxItems",
    "additionalProperties",
    "required",
    "properties",
    "prefixItems",
    "items",
    "anyOf",
    "$defs",
];

/// Derives what is written, not what is accepted.
pub(super) fn generator() -> SchemaGenerator {
    SchemaSettings::draft2020_12().for_serialize().into_generator()
}

/// The text of the schema of the document `name`.
pub(super) fn published(name: &str, schema: Schema) -> String {
    let mut root = Value::from(schema);
    let definitions = match root["$defs"].take() {
        Value::Object(definitions) => definitions,
        _ => Map::new(),
    };
    let mut uses = BTreeMap::new();
    count(&root, &mut uses);
    definitions.values().for_each(|definition| count(definition, &mut uses));
    let parts = Parts { definitions: &definitions, uses };
    parts.place(&mut root);
    let mut shared = Map::new();
    for (definition, schema) in definitions.iter().filter(|(name, _)| parts.is_shared(name)) {
        let mut schema = schema.clone();
        parts.place(&mut schema);
        shared.insert(short(definition), schema);
    }
    let (kind, version) = name.rsplit_once(['/', '.']).expect("a name ends with its version");
    root["$id"] = json!(format!("urn:xmem:schema:{kind}:{version}"));
    root["title"] = json!(name);
    root["properties"]["schema"] = json!({ "const": name });
    let root = root.as_object_mut().expect("a document is an object");
    match shared.is_empty() {
        true => root.remove("$defs"),
        false => root.insert("$defs".to_owned(), shared.into()),
    };
    crate::encode::pretty(&laid_out(root.clone().into()))
}

/// The types of a document's parts.
struct Parts<'a> {
    definitions: &'a Map<String, Value>,
    /// The number of references to each.
    uses: BTreeMap<String, usize>,
}

impl Parts<'_> {
    fn is_shared(&self, definition: &str) -> bool {
        self.uses.get(definition).is_some_and(|&uses| uses > 1)
    }

    /// Puts each part that is used once in the place of its reference, and names the others as they are published.
    fn place(&self, schema: &mut Value) {
        if let Some(definition) = referred(schema) {
            if self.is_shared(&definition) {
                schema["$ref"] = json!(format!("#/$defs/{}", short(&definition)));
            } else {
                let mut part = self.definitions[&definition].clone();
                // What is said at the reference is more specific.
                let own = schema.as_object().into_iter().flatten();
                for (keyword, rule) in own.filter(|(keyword, _)| *keyword != "$ref") {
                    part[keyword] = rule.clone();
                }
                *schema = part;
            }
        }
        match schema {
            Value::Object(rules) => rules.values_mut().for_each(|rule| self.place(rule)),
            Value::Array(schemas) => schemas.iter_mut().for_each(|schema| self.place(schema)),
            _ => {}
        }
    }
}

fn count(schema: &Value, uses: &mut BTreeMap<String, usize>) {
    if let Some(definition) = referred(schema) {
        *uses.entry(definition).or_default() += 1;
    }
    match schema {
        Value::Object(rules) => rules.values().for_each(|rule| count(rule, uses)),
        Value::Array(schemas) => schemas.iter().for_each(|schema| count(schema, uses)),
        _ => {}
    }
}

/// The definition that a schema refers to.
fn referred(schema: &Value) -> Option<String> {
    Some(schema.get("$ref")?.as_str()?.strip_prefix("#/$defs/")?.to_owned())
}

/// The published name of a part: `place` for `PlaceDto`.
fn short(definition: &str) -> String {
    let mut name = String::new();
    for c in definition.replace("Dto", "").chars() {
        if c.is_ascii_uppercase() && !name.is_empty() {
            name.push('_');
        }
        name.push(c.to_ascii_lowercase());
    }
    name
}

/// A schema with its keywords in order. Defaults are for readers, and of the ranges of Rust's integers only the least
/// value 0 means something.
fn laid_out(schema: Value) -> Value {
    let Value::Object(mut rules) = schema else { return schema };
    rules.retain(|keyword, rule| match keyword.as_str() {
        "format" | "maximum" | "default" => false,
        "minimum" => rule.as_i64().is_none_or(|least| least >= 0),
        _ => true,
    });
    // Open objects say so: those within a trace, whose readers ignore unknown keys.
    if rules.get("additionalProperties") == Some(&Value::Bool(true)) {
        rules.remove("additionalProperties");
    } else if rules.contains_key("properties") {
        rules.entry("additionalProperties").or_insert(Value::Bool(false));
    }
    if let Some(Value::String(description)) = rules.get_mut("description") {
        *description = description.replace('\n', " ");
    }
    let mut rules: Vec<(String, Value)> = rules.into_iter().collect();
    for (keyword, rule) in &mut rules {
        *rule = match (keyword.as_str(), rule.take()) {
            ("properties" | "$defs", Value::Object(schemas)) => {
                let schemas = schemas.into_iter().map(|(name, schema)| (name, laid_out(schema)));
                schemas.collect::<Map<_, _>>().into()
            }
            ("anyOf" | "prefixItems", Value::Array(schemas)) => {
                schemas.into_iter().map(laid_out).collect()
            }
            ("items" | "additionalProperties", schema) => laid_out(schema),
            (_, rule) => rule,
        };
    }
    let place = |keyword: &str| KEYWORDS.iter().position(|known| *known == keyword);
    rules.sort_by_key(|(keyword, _)| {
        place(keyword).unwrap_or_else(|| panic!("the keyword `{keyword}` has no place"))
    });
    rules.into_iter().collect::<Map<_, _>>().into()
}

//! The part of JSON Schema (2020-12) that the project's schemas use. A keyword that is not
//! understood fails, so that nothing is silently unchecked.

use serde_json::{Map, Value};

/// Checks `value` against `schema`; the first violation, with its path.
pub(crate) fn check(schema: &Value, value: &Value) -> Result<(), String> {
    Checker { root: schema }.check(schema, value).map_err(|error| format!("${error}"))
}

struct Checker<'a> {
    root: &'a Value,
}

/// Errors begin with the path from the value that is checked: only what fails gets one.
impl Checker<'_> {
    fn check(&self, schema: &Value, value: &Value) -> Result<(), String> {
        let schema = schema.as_object().ok_or_else(|| ": schema is no object".to_owned())?;
        for (keyword, rule) in schema {
            self.keyword(schema, keyword, rule, value)?;
        }
        Ok(())
    }

    fn keyword(
        &self,
        schema: &Map<String, Value>,
        keyword: &str,
        rule: &Value,
        value: &Value,
    ) -> Result<(), String> {
        let fail = |what: String| Err(format!(": {what}"));
        let member = |rule: &Value, key: &str, inner: &Value| {
            self.check(rule, inner).map_err(|error| format!(".{key}{error}"))
        };
        let item = |rule: &Value, i: usize, inner: &Value| {
            self.check(rule, inner).map_err(|error| format!("[{i}]{error}"))
        };
        match keyword {
            "$schema" | "$id" | "$defs" | "title" | "description" => Ok(()),
            "$ref" => {
                let pointer = rule.as_str().and_then(|r| r.strip_prefix('#')).unwrap_or("/none");
                match self.root.pointer(pointer) {
                    Some(target) => self.check(target, value),
                    None => fail(format!("unknown reference {rule}")),
                }
            }
            "anyOf" => {
                let mut tried = Vec::new();
                for option in list(rule) {
                    match self.check(option, value) {
                        Ok(()) => return Ok(()),
                        Err(error) => tried.push(error),
                    }
                }
                fail(format!("{tried:?}"))
            }
            "const" if value == rule => Ok(()),
            "const" => fail(format!("{value} is not {rule}")),
            "enum" if list(rule).contains(value) => Ok(()),
            "enum" => fail(format!("{value} is not in {rule}")),
            "type" => {
                let allowed = if rule.is_array() { list(rule) } else { std::slice::from_ref(rule) };
                if allowed.iter().any(|t| is_of(value, t.as_str().unwrap_or(""))) {
                    return Ok(());
                }
                fail(format!("{value} is not of type {rule}"))
            }
            "minimum" => match (value.as_i64(), rule.as_i64()) {
                (Some(n), Some(least)) if n < least => fail(format!("{n} is below {least}")),
                _ => Ok(()),
            },
            "required" => {
                let missing = list(rule)
                    .iter()
                    .filter_map(Value::as_str)
                    .find(|k| value.as_object().is_some_and(|object| !object.contains_key(*k)));
                missing.map_or(Ok(()), |key| fail(format!("`{key}` is missing")))
            }
            "properties" => {
                let empty = Map::new();
                let rules = rule.as_object().unwrap_or(&empty);
                let present = value.as_object().unwrap_or(&empty);
                rules.iter().try_for_each(|(key, rule)| match present.get(key) {
                    Some(inner) => member(rule, key, inner),
                    None => Ok(()),
                })
            }
            "additionalProperties" if rule == &Value::Bool(false) => {
                let known = schema.get("properties").and_then(Value::as_object);
                let unknown = value
                    .as_object()
                    .into_iter()
                    .flat_map(Map::keys)
                    .find(|key| known.is_none_or(|known| !known.contains_key(*key)));
                unknown.map_or(Ok(()), |key| fail(format!("`{key}` is not in the schema")))
            }
            "additionalProperties" if rule.is_object() => {
                let known = schema.get("properties").and_then(Value::as_object);
                let others = value.as_object().into_iter().flatten();
                let mut others =
                    others.filter(|(key, _)| known.is_none_or(|known| !known.contains_key(*key)));
                others.try_for_each(|(key, inner)| member(rule, key, inner))
            }
            "minItems" | "maxItems" => match (value.as_array(), rule.as_u64()) {
                (Some(list), Some(least))
                    if keyword == "minItems" && list.len() < least as usize =>
                {
                    fail(format!("{} items are too few", list.len()))
                }
                (Some(list), Some(most)) if keyword == "maxItems" && list.len() > most as usize => {
                    fail(format!("{} items are too many", list.len()))
                }
                _ => Ok(()),
            },
            "prefixItems" => {
                let items = value.as_array().into_iter().flatten().zip(list(rule));
                items.enumerate().try_for_each(|(i, (inner, rule))| item(rule, i, inner))
            }
            "items" => value
                .as_array()
                .into_iter()
                .flatten()
                .enumerate()
                .try_for_each(|(i, inner)| item(rule, i, inner)),
            other => fail(format!("keyword `{other}` is not understood")),
        }
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn is_of(value: &Value, kind: &str) -> bool {
    match kind {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        _ => false,
    }
}

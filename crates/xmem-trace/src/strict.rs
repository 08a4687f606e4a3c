//! One event as standard JSON through serde_json: for the plain reader, and for events in which the
//! fast parsers find something odd.

use crate::builder::{Builder, Strings, Unusable};
use crate::event::{ArgKey, EventFields, EventKey};
use crate::number::Scalar;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::fmt;

pub(crate) const NOT_AN_OBJECT: &str = "it is not an object";

/// The reason why an event is not appended.
pub(crate) enum Rejected {
    NotJson(serde_json::Error),
    NotAnObject,
    Unusable(Unusable),
}

impl Rejected {
    /// The problem, as a fragment.
    pub(crate) fn reason(&self) -> String {
        match self {
            Self::NotJson(error) => error.to_string(),
            Self::NotAnObject => NOT_AN_OBJECT.to_owned(),
            Self::Unusable(unusable) => unusable.reason().to_owned(),
        }
    }
}

/// Appends the event with this text (standard JSON, white space around it allowed).
pub(crate) fn push_event<S: Strings>(text: &str, builder: &mut Builder<S>) -> Result<(), Rejected> {
    let raw: &RawValue = serde_json::from_str(text).map_err(Rejected::NotJson)?;
    if !raw.get().starts_with('{') {
        return Err(Rejected::NotAnObject);
    }
    let Pairs(pairs) = serde_json::from_str(raw.get()).map_err(Rejected::NotJson)?;
    let mut values = Vec::new();
    let mut args = Vec::new();
    for (key, raw) in &pairs {
        match EventKey::of(key) {
            Some(EventKey::Args) if raw.get().starts_with('{') => {
                let Pairs(pairs) = serde_json::from_str(raw.get()).map_err(Rejected::NotJson)?;
                args = pairs;
            }
            Some(key) => values.push((key, Value::of(raw).map_err(Rejected::NotJson)?)),
            None => {}
        }
    }
    let mut arg_values = Vec::new();
    for (key, raw) in &args {
        if let Some(key) = ArgKey::of(key) {
            arg_values.push((key, Value::of(raw).map_err(Rejected::NotJson)?));
        }
    }
    let mut event = EventFields::default();
    for (key, value) in &values {
        event.set(*key, value.scalar());
    }
    for (key, value) in &arg_values {
        match value {
            Value::Array(raw) => event.args.set_raw(*key, Some(raw.as_bytes())),
            value => event.args.set(*key, value.scalar()),
        }
    }
    builder.push(&event).map_err(Rejected::Unusable)
}

/// The keys and raw values of an object, in file order, repeated keys included.
pub(crate) struct Pairs<'a>(pub(crate) Vec<(String, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Pairs<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct PairsVisitor;

        impl<'de> Visitor<'de> for PairsVisitor {
            type Value = Pairs<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(Pairs(pairs))
            }
        }

        deserializer.deserialize_map(PairsVisitor)
    }
}

/// A value as far as the columns need it.
enum Value<'a> {
    Number(&'a str),
    String(String),
    Array(&'a str),
    Other,
}

impl<'a> Value<'a> {
    fn of(raw: &'a RawValue) -> Result<Self, serde_json::Error> {
        let raw = raw.get();
        Ok(match raw.as_bytes().first() {
            Some(b'"') => Self::String(serde_json::from_str(raw)?),
            Some(b'-' | b'0'..=b'9') => Self::Number(raw),
            Some(b'[') => Self::Array(raw),
            _ => Self::Other,
        })
    }

    fn scalar(&self) -> Option<Scalar<'_>> {
        match self {
            Self::Number(text) => Some(Scalar::from_number(text)),
            Self::String(text) => Some(Scalar::Text(text)),
            Self::Array(_) | Self::Other => None,
        }
    }
}

//! The plain reader: the whole document through serde_json, event by event. Slow, simple and
//! strict (it knows standard JSON only); the oracle of the chunked reader's differential tests.

use crate::ReadError;
use crate::builder::{Builder, Strings, Unusable};
use crate::columns::{Trace, TraceHeader};
use crate::event::{ArgKey, EventFields, EventKey};
use crate::finish::finish;
use crate::number::Scalar;
use crate::parse::NOT_AN_OBJECT;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::fmt;
use xmem_types::{Diagnostics, Interner, Severity};

/// Reads an uncompressed trace.
///
/// # Errors
/// [`ReadError::NotATrace`] for anything that is not standard JSON in one of the two forms of a
/// trace.
pub fn read(text: &[u8]) -> Result<(Trace, Diagnostics), ReadError> {
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    let text = String::from_utf8_lossy(text);
    let mut header = TraceHeader::default();
    let mut builder = Builder::new(Interner::default());
    let mut diagnostics = Diagnostics::default();
    if text.trim_start().starts_with('[') {
        events(&text, &mut builder, &mut diagnostics)?;
        if builder.event_count == 0 {
            return Err(not_a_trace(&"a list without events"));
        }
        return Ok((finish(builder, header, &mut diagnostics), diagnostics));
    }
    let Pairs(pairs) = serde_json::from_str(&text).map_err(|error| not_a_trace(&error))?;
    let mut found = false;
    for (key, value) in &pairs {
        if key == "traceEvents" {
            found = true;
            events(value.get(), &mut builder, &mut diagnostics)?;
        } else {
            header.take(key, value.get());
        }
    }
    if !found {
        return Err(not_a_trace(&"no `traceEvents` key"));
    }
    Ok((finish(builder, header, &mut diagnostics), diagnostics))
}

fn not_a_trace(reason: &dyn fmt::Display) -> ReadError {
    ReadError::NotATrace { input: "<bytes>".to_owned(), reason: reason.to_string() }
}

fn events(
    raw: &str,
    builder: &mut Builder<Interner>,
    diagnostics: &mut Diagnostics,
) -> Result<(), ReadError> {
    let list: Vec<&RawValue> = serde_json::from_str(raw).map_err(|error| not_a_trace(&error))?;
    for event in list {
        if let Err(reason) = push_event(event.get(), builder) {
            let reason = match reason {
                Rejected::NotJson(error) => return Err(not_a_trace(&error)),
                Rejected::NotAnObject => NOT_AN_OBJECT,
                Rejected::Unusable(unusable) => unusable.reason(),
            };
            diagnostics.report("bad-event", Severity::Warning, None, || {
                format!("an event is left out: {reason}")
            });
        }
    }
    Ok(())
}

/// Why an event is not appended.
pub(crate) enum Rejected {
    NotJson(serde_json::Error),
    NotAnObject,
    Unusable(Unusable),
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
struct Pairs<'a>(Vec<(String, &'a RawValue)>);

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

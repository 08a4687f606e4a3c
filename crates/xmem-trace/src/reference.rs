//! The plain reader: the whole document through serde_json, event by event. Slow, simple and
//! strict (it knows standard JSON only); the oracle of the chunked reader's differential tests.

use crate::ReadError;
use crate::builder::Builder;
use crate::columns::{Trace, TraceHeader};
use crate::finish::finish;
use crate::strict::{Pairs, Rejected, push_event};
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
        if let Err(rejected) = push_event(event.get(), builder) {
            if let Rejected::NotJson(error) = rejected {
                return Err(not_a_trace(&error));
            }
            let reason = rejected.reason();
            diagnostics.report("bad-event", Severity::Warning, None, || {
                format!("an event is ignored: {reason}")
            });
        }
    }
    Ok(())
}

//! A copy of a trace with changes: its top-level values one by one, and its events one by one. What they mean is
//! left to a [`Rewrite`].

use crate::document::Document;
use crate::read::InputFile;
use crate::source::{Bytes, with_text};
use crate::{ReadError, ReadOptions, TraceHeader};
use serde_json::value::RawValue;
use std::io::{self, Write};
use std::path::Path;
use thiserror::Error;
use xmem_types::{SEAL_KEY, Sealed, SealingWriter};

/// The changes.
pub trait Rewrite {
    /// The value of a top-level key in the copy, as JSON; none leaves the key out. `text` is the value: that of a
    /// text, number or literal, and JSON for objects and lists.
    fn value(&mut self, key: &str, text: &str) -> Option<String>;

    /// Appends an event in the copy, as JSON, to `to`; returns false to leave it out.
    fn event(&mut self, event: &str, to: &mut String) -> bool;
}

/// What was copied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RewriteSummary {
    /// Events in the copy.
    pub events: u64,
    /// Bytes that are no JSON, which are left out.
    pub unreadable: u64,
}

/// The copy ends early.
#[derive(Debug, Error)]
pub enum RewriteError {
    /// The trace cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The copy cannot be written.
    #[error("cannot write the copy")]
    Write(#[from] io::Error),
}

impl InputFile {
    /// Writes a copy of the trace, not compressed.
    ///
    /// # Errors
    /// As [`InputFile::read`], and if the copy cannot be written.
    pub fn rewrite(
        self,
        options: &ReadOptions,
        rewrite: &mut dyn Rewrite,
        to: &mut dyn Write,
    ) -> Result<RewriteSummary, RewriteError> {
        let (name, bytes) = self.into_stream();
        copy(bytes, &name, options, rewrite, to)
    }
}

/// Writes a copy of the trace at `path`, not compressed. `-` is standard input.
///
/// # Errors
/// As [`InputFile::rewrite`].
pub fn rewrite_path(
    path: &Path,
    options: &ReadOptions,
    rewrite: &mut dyn Rewrite,
    to: &mut dyn Write,
) -> Result<RewriteSummary, RewriteError> {
    InputFile::open(path)?.rewrite(options, rewrite, to)
}

fn copy(
    bytes: Bytes<'_>,
    input: &str,
    options: &ReadOptions,
    rewrite: &mut dyn Rewrite,
    to: &mut dyn Write,
) -> Result<RewriteSummary, RewriteError> {
    let mut failed = None;
    let mut is_sealed = false;
    let mut to = SealingWriter::new(to);
    let summary = with_text(bytes, input, options, |text| {
        let mut document = Document::new(text, input, options);
        let mut copy =
            Copy { rewrite, to: &mut to, written: Vec::new(), summary: RewriteSummary::default() };
        let mut is_first = true;
        while let Some(chunk) = document.next_chunk(Vec::new)? {
            let written = if is_first { copy.begin(&document.header) } else { Ok(()) };
            is_first = false;
            if let Err(error) = written.and_then(|()| copy.events(chunk.text())) {
                failed = Some(error);
                return Ok(copy.summary);
            }
        }
        let begun = if is_first { copy.begin(&document.header) } else { Ok(()) };
        if let Err(error) = begun.and_then(|()| copy.finish(&document.header)) {
            failed = Some(error);
        }
        is_sealed = document.sealed() == Sealed::Intact;
        Ok(copy.summary)
    })?;
    let finished = to.finish(is_sealed);
    failed = failed.or(finished.err());
    match failed {
        Some(error) => Err(RewriteError::Write(error)),
        None => Ok(summary),
    }
}

struct Copy<'a> {
    rewrite: &'a mut dyn Rewrite,
    to: &'a mut dyn Write,
    /// Top-level keys that are in the copy.
    written: Vec<String>,
    summary: RewriteSummary,
}

impl Copy<'_> {
    /// Writes what is known before the first event.
    fn begin(&mut self, header: &TraceHeader) -> io::Result<()> {
        self.to.write_all(b"{\n")?;
        self.values(header, "", ",\n")?;
        self.to.write_all(b"\"traceEvents\": [")
    }

    fn events(&mut self, text: &[u8]) -> io::Result<()> {
        let text = String::from_utf8_lossy(text);
        let mut out = String::new();
        let mut rest = after_comma(&text);
        while !rest.is_empty() {
            let mut values = serde_json::Deserializer::from_str(rest).into_iter::<&RawValue>();
            let Some(Ok(event)) = values.next() else {
                self.summary.unreadable += rest.len() as u64;
                break;
            };
            let event = event.get();
            rest = after_comma(&rest[values.byte_offset()..]);
            let before = out.len();
            out.push_str(if self.summary.events == 0 { "\n" } else { ",\n" });
            if self.rewrite.event(event, &mut out) {
                self.summary.events += 1;
            } else {
                out.truncate(before);
            }
        }
        self.to.write_all(out.as_bytes())
    }

    /// Writes what came behind the events.
    fn finish(&mut self, header: &TraceHeader) -> io::Result<()> {
        self.to.write_all(b"\n]")?;
        self.values(header, ",\n", "")?;
        self.to.write_all(b"\n}\n")
    }

    /// Writes the values that are not in the copy yet.
    fn values(&mut self, header: &TraceHeader, before: &str, after: &str) -> io::Result<()> {
        for (key, text) in of_profiler(header) {
            self.value(key, Some(text), before, after)?;
        }
        for (key, text) in &header.extra {
            if !self.written.contains(key) && key != SEAL_KEY {
                let value = self.rewrite.value(key, text);
                self.value(key, value, before, after)?;
            }
        }
        Ok(())
    }

    fn value(
        &mut self,
        key: &str,
        value: Option<String>,
        before: &str,
        after: &str,
    ) -> io::Result<()> {
        let (Some(value), false) = (value, self.written.iter().any(|known| known == key)) else {
            return Ok(());
        };
        self.written.push(key.to_owned());
        let key = serde_json::to_string(key)?;
        write!(self.to, "{before}{key}: {value}{after}")
    }
}

/// The values that the profiler itself writes, and that are numbers or names of devices.
fn of_profiler(header: &TraceHeader) -> Vec<(&str, String)> {
    let mut values = Vec::new();
    if let Some(version) = header.schema_version {
        values.push(("schemaVersion", version.to_string()));
    }
    if let Some(base) = header.base_time {
        values.push(("baseTimeNanoseconds", base.get().to_string()));
    }
    values.extend(header.options.iter().map(|option| (option.as_str(), "1".to_owned())));
    let devices: Vec<serde_json::Value> = header.device_properties.iter().map(device).collect();
    if !devices.is_empty() {
        values.push(("deviceProperties", serde_json::Value::from(devices).to_string()));
    }
    values
}

fn device(device: &crate::DeviceProperties) -> serde_json::Value {
    let mut fields = serde_json::Map::new();
    let mut put = |key: &str, value: Option<serde_json::Value>| {
        if let Some(value) = value {
            fields.insert(key.to_owned(), value);
        }
    };
    put("id", device.index.map(Into::into));
    put("name", device.name.clone().map(Into::into));
    put("totalGlobalMem", device.memory.map(|memory| memory.get().into()));
    put("computeMajor", device.compute_capability.map(|(major, _)| major.into()));
    put("computeMinor", device.compute_capability.map(|(_, minor)| minor.into()));
    put("numSms", device.multiprocessors.map(Into::into));
    fields.into()
}

fn after_comma(text: &str) -> &str {
    text.trim_start_matches(|c: char| c == ',' || c.is_ascii_whitespace())
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    /// Drops events named `b` and the key `secret`.
    struct Without;

    impl Rewrite for Without {
        fn value(&mut self, key: &str, text: &str) -> Option<String> {
            (key != "secret").then(|| serde_json::to_string(text).expect("a text"))
        }

        fn event(&mut self, event: &str, to: &mut String) -> bool {
            to.push_str(event);
            !event.contains("\"b\"")
        }
    }

    fn copied(text: &str) -> (String, RewriteSummary) {
        let mut to = Vec::new();
        let options = ReadOptions::default();
        let summary =
            copy(Box::new(text.as_bytes()), "x", &options, &mut Without, &mut to).expect("a trace");
        (String::from_utf8(to).expect("UTF-8"), summary)
    }

    #[test]
    fn values_and_events_are_copied_one_by_one() {
        let (text, summary) = copied(
            r#"{"schemaVersion": 1, "with_stack": 1, "secret": "x", "note": "kept", "deviceProperties":
            [{"id": 0, "name": "T4", "numSms": 40}], "traceEvents": [{"name": "a", "ts": 4497792407125.247},
            {"name": "b"}, {"name": "c"}], "traceName": "t"}"#,
        );
        assert_eq!(summary, RewriteSummary { events: 2, unreadable: 0 });
        expect![[r#"
            {
            "schemaVersion": 1,
            "with_stack": 1,
            "deviceProperties": [{"id":0,"name":"T4","numSms":40}],
            "note": "kept",
            "traceEvents": [
            {"name": "a", "ts": 4497792407125.247},
            {"name": "c"}
            ],
            "traceName": "t"
            }
        "#]]
        .assert_eq(&text);
    }

    #[test]
    fn the_changed_copy_of_a_sealed_recording_is_sealed() {
        let text = "{\"secret\": 1, \"traceEvents\": [{\"name\": \"a\"}],\n\"traceName\": \"t\"}\n";
        let mut to = SealingWriter::new(Vec::new());
        to.write_all(text.as_bytes()).expect("written");
        let sealed = String::from_utf8(to.finish(true).expect("written")).expect("text");
        let sealed_of = |text: &str| {
            let read = crate::read_bytes(text.as_bytes(), &ReadOptions::default());
            read.expect("a trace").0.evidence.sealed
        };
        let changed = sealed.replace("\"a\"", "\"c\"");
        for (text, expected) in
            [(text, Sealed::No), (&sealed, Sealed::Intact), (&changed, Sealed::No)]
        {
            let (copy, _) = copied(text);
            assert!(!copy.contains("secret"), "{copy}");
            assert_eq!(sealed_of(&copy), expected, "{copy}");
        }
    }

    #[test]
    fn what_is_no_json_is_counted_and_left_out() {
        let (text, summary) = copied(r#"{"traceEvents": [{"name": "a"}, {"name": c}]}"#);
        assert_eq!(summary, RewriteSummary { events: 1, unreadable: 11 });
        assert!(!text.contains('c') || !text.contains("{\"name\": c}"), "{text}");
    }
}

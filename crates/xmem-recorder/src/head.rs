//! The head of a trace in the stream: the metadata that the hook wrote.
//!
//! Kineto writes metadata before the list of events (libkineto/src/output_json.cpp,
//! `ChromeTraceLogger::handleTraceStart`).

use crate::recorded::RedirectedCalls;
use serde::Deserialize;

/// The key before the list of events.
const EVENTS: &[u8] = b"\"traceEvents\":";

/// Bytes of the longest head that is read.
const MAX_HEAD: usize = 64 << 20;

/// Collects the head.
#[derive(Debug, Default)]
pub(crate) struct Head {
    bytes: Vec<u8>,
    state: State,
}

#[derive(Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Growing,
    Whole,
    TooLong,
}

impl Head {
    /// Reads the next bytes of the trace.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        if self.state != State::Growing {
            return;
        }
        // The key may lie across two chunks.
        let from = self.bytes.len().saturating_sub(EVENTS.len());
        self.bytes.extend_from_slice(bytes);
        if let Some(at) = self.bytes[from..].windows(EVENTS.len()).position(|w| w == EVENTS) {
            self.bytes.truncate(from + at);
            self.state = State::Whole;
        } else if self.bytes.len() > MAX_HEAD {
            self.bytes = Vec::new();
            self.state = State::TooLong;
        }
    }

    /// The redirected calls; empty if the head does not list them.
    pub(crate) fn redirected(mut self) -> Vec<RedirectedCalls> {
        if self.state != State::Whole {
            return Vec::new();
        }
        let end = self.bytes.iter().rposition(|b| *b == b',').unwrap_or(self.bytes.len());
        self.bytes.truncate(end);
        self.bytes.push(b'}');
        let trace: Trace = serde_json::from_slice(&self.bytes).unwrap_or_default();
        let calls = trace.xmem_recording.redirected;
        calls.into_iter().map(|c| RedirectedCalls { function: c.what, count: c.times }).collect()
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Trace {
    xmem_recording: Recording,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Recording {
    redirected: Vec<Call>,
}

#[derive(Debug, Deserialize)]
struct Call {
    what: String,
    times: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = r#"{"schemaVersion": 1,
        "xmem_recording": {"redirected":[{"what":"Tensor.to","times":6}], "notes":["a \"traceEvents"]},
        "displayTimeUnit": "ms",
        "traceEvents": [{"name":"a","args":{}}]}"#;

    #[test]
    fn the_head_is_found_however_it_is_cut() {
        for size in [1, 2, 7, 13, 64, TRACE.len()] {
            let mut head = Head::default();
            TRACE.as_bytes().chunks(size).for_each(|chunk| head.push(chunk));
            let calls = head.redirected();
            assert_eq!(
                calls,
                [RedirectedCalls { function: "Tensor.to".into(), count: 6 }],
                "{size}"
            );
        }
    }

    #[test]
    fn a_head_without_metadata_lists_no_calls() {
        for text in ["", "{", r#"{"traceEvents":[]}"#, r#"{"a":1,"traceEvents":[]}"#, "[1,2]"] {
            let mut head = Head::default();
            head.push(text.as_bytes());
            assert_eq!(head.redirected(), [], "{text}");
        }
    }
}

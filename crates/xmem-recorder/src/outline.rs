//! The outline of a trace in the stream: its head with the metadata that the hook wrote, and its end.
//!
//! A script can export anything; this tells a trace from other content as far as its beginning and end do.
//! Kineto writes metadata before the list of events (libkineto/src/output_json.cpp,
//! `ChromeTraceLogger::handleTraceStart`).

use super::assumptions::{Assumed, DevicePeaks};
use super::recorded::RedirectedCalls;
use memchr::memmem;
use serde::Deserialize;
use std::path::PathBuf;

/// The key before the list of events.
const EVENTS: &[u8] = b"\"traceEvents\":";

/// The operator of all convolutions (aten/src/ATen/native/Convolution.cpp).
const CONVOLUTION: &[u8] = b"\"aten::_convolution\"";

/// Bytes of the longest head that is read.
const MAX_HEAD: usize = 64 << 20;

/// Collects the head and watches the end.
#[derive(Debug, Default)]
pub(crate) struct Outline {
    head: Vec<u8>,
    state: State,
    /// The last byte that is not white space.
    last: Option<u8>,
    /// True once an event of a convolution was seen.
    has_convolutions: bool,
    /// The end of the bytes before, where an operator's name may begin.
    before: Vec<u8>,
}

#[derive(Debug, Default, PartialEq, Eq)]
enum State {
    /// The list of events has not begun.
    #[default]
    Growing,
    /// The key of the list is complete.
    Key,
    /// The list has begun.
    Whole,
}

/// The content is not a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NotATrace;

impl Outline {
    /// Reads the next bytes of the stream; fails as soon as it cannot be a trace.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Result<(), NotATrace> {
        if let Some(last) = bytes.iter().rfind(|byte| !byte.is_ascii_whitespace()) {
            self.last = Some(*last);
        }
        let rest = match self.state {
            State::Growing => self.push_head(bytes)?,
            State::Key => bytes,
            State::Whole => {
                self.look_for_convolutions(bytes);
                return Ok(());
            }
        };
        self.look_for_convolutions(rest);
        match rest.iter().find(|byte| !byte.is_ascii_whitespace()) {
            Some(b'[') if self.state == State::Key => self.state = State::Whole,
            Some(_) if self.state == State::Key => return Err(NotATrace),
            _ => {}
        }
        Ok(())
    }

    fn look_for_convolutions(&mut self, bytes: &[u8]) {
        if self.has_convolutions {
            return;
        }
        let (first, _) = bytes.split_at(bytes.len().min(CONVOLUTION.len()));
        self.before.extend_from_slice(first);
        let found = |text: &[u8]| memmem::find(text, CONVOLUTION).is_some();
        self.has_convolutions = found(&self.before) || found(bytes);
        let whole = if bytes.len() > first.len() { bytes } else { self.before.as_slice() };
        let kept = whole[whole.len() - whole.len().min(CONVOLUTION.len() - 1)..].to_vec();
        self.before = kept;
    }

    /// Extends the head and returns the bytes after it.
    fn push_head<'a>(&mut self, bytes: &'a [u8]) -> Result<&'a [u8], NotATrace> {
        // The key may lie across two chunks.
        let before = self.head.len();
        let from = before.saturating_sub(EVENTS.len());
        self.head.extend_from_slice(bytes);
        let first = self.head.iter().find(|byte| !byte.is_ascii_whitespace());
        if first.is_some_and(|first| *first != b'{') {
            return Err(NotATrace);
        }
        let key = self.head[from..].windows(EVENTS.len()).position(|w| w == EVENTS);
        match key {
            Some(at) => {
                let end = from + at + EVENTS.len() - before;
                self.head.truncate(from + at);
                self.state = State::Key;
                Ok(&bytes[end..])
            }
            None if self.head.len() > MAX_HEAD => Err(NotATrace),
            None => Ok(&[]),
        }
    }

    /// True if the list of events has begun.
    pub(crate) fn has_events(&self) -> bool {
        self.state == State::Whole
    }

    /// True if the text ends as a JSON object does.
    pub(crate) fn has_end(&self) -> bool {
        self.last == Some(b'}')
    }

    /// What the hook wrote; empty if the head does not have it.
    pub(crate) fn facts(mut self) -> Facts {
        if !self.has_events() {
            return Facts::default();
        }
        let has_convolutions = self.has_convolutions;
        let end = self.head.iter().rposition(|b| *b == b',').unwrap_or(self.head.len());
        self.head.truncate(end);
        self.head.push(b'}');
        let trace: Trace = serde_json::from_slice(&self.head).unwrap_or_default();
        let Recording { redirected, virtual_gpu, cudnn, uses_gpu } = trace.xmem_recording;
        let calls = redirected.into_iter();
        let redirected =
            calls.map(|c| RedirectedCalls { function: c.what, count: c.times }).collect();
        let gpu = virtual_gpu.unwrap_or_default();
        Facts {
            redirected,
            has_convolutions,
            cudnn: cudnn.and_then(|cudnn| cudnn.library),
            uses_gpu: uses_gpu.unwrap_or(true),
            peaks: gpu.peaks,
            assumed: gpu.assumed,
        }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Trace {
    xmem_recording: Recording,
}

/// What the hook wrote into the head.
#[derive(Debug, Default)]
pub(crate) struct Facts {
    pub(crate) redirected: Vec<RedirectedCalls>,
    /// True if the events have a convolution.
    pub(crate) has_convolutions: bool,
    /// The cuDNN library of the recorded environment.
    pub(crate) cudnn: Option<PathBuf>,
    /// False if the script has put nothing on the GPU.
    pub(crate) uses_gpu: bool,
    /// The peaks on a virtual GPU.
    pub(crate) peaks: Option<DevicePeaks>,
    /// Sizes that follow from assumptions.
    pub(crate) assumed: Vec<Assumed>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Recording {
    redirected: Vec<Call>,
    virtual_gpu: Option<Gpu>,
    cudnn: Option<Cudnn>,
    uses_gpu: Option<bool>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Cudnn {
    library: Option<PathBuf>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Gpu {
    peaks: Option<DevicePeaks>,
    assumed: Vec<Assumed>,
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

    fn read(text: &[u8], size: usize) -> Result<Outline, NotATrace> {
        let mut outline = Outline::default();
        text.chunks(size).try_for_each(|chunk| outline.push(chunk))?;
        Ok(outline)
    }

    #[test]
    fn the_head_is_found_however_it_is_cut() {
        for size in [1, 2, 7, 13, 64, TRACE.len()] {
            let outline = read(TRACE.as_bytes(), size).expect("a trace");
            assert!(outline.has_events() && outline.has_end(), "{size}");
            assert_eq!(
                outline.facts().redirected,
                [RedirectedCalls { function: "Tensor.to".into(), count: 6 }],
                "{size}"
            );
        }
    }

    #[test]
    fn a_convolution_is_found_however_it_is_cut() {
        let head =
            r#"{"xmem_recording": {"cudnn":{"library":"/opt/libcudnn.so.9"}},"traceEvents": ["#;
        for (name, expected) in
            [("aten::_convolution", true), ("aten::_convolution_mode", false), ("aten::mm", false)]
        {
            let text = format!(r#"{head}{{"name":"aten::mm"}},{{"name":"{name}","args":{{}}}}]}}"#);
            for size in [1, 2, 7, 19, 20, 21, 64, text.len()] {
                let facts = read(text.as_bytes(), size).expect("a trace").facts();
                assert_eq!(facts.has_convolutions, expected, "{name} {size}");
                assert_eq!(facts.cudnn, Some(PathBuf::from("/opt/libcudnn.so.9")), "{size}");
            }
        }
    }

    #[test]
    fn a_head_without_metadata_lists_no_calls() {
        for text in ["", "{", r#"{"traceEvents":[]}"#, r#"{"a":1,"traceEvents":[]}"#] {
            let outline = read(text.as_bytes(), 3).expect("a trace or its beginning");
            assert_eq!(outline.facts().redirected, [], "{text}");
        }
    }

    #[test]
    fn other_content_is_not_a_trace() {
        // True: the beginning tells. Otherwise, no list of events has begun at the end.
        let rows: [(&[u8], bool); 8] = [
            (b"root:x:0:0:root:/root:/bin/bash\n", true),
            (b"[1,2]", true),
            (b"\0\0\0\0\0\0\0\0", true),
            (b"\x80\x02}q\x00", true),
            (br#"{"traceEvents": {"a": 1}}"#, true),
            (br#"{"a": [1, 2]}"#, false),
            (br#"{"notes": "\"traceEvents\":["}"#, false),
            (b" \n", false),
        ];
        for (text, by_its_beginning) in rows {
            for size in [1, 5, 64] {
                match read(text, size) {
                    Err(NotATrace) => assert!(by_its_beginning, "{text:?}"),
                    Ok(outline) => {
                        assert!(!by_its_beginning, "{text:?}");
                        assert!(!outline.has_events(), "{text:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn an_end_is_missing_where_the_text_was_cut_off() {
        for cut in [1, 2, 5] {
            let outline = read(&TRACE.as_bytes()[..TRACE.len() - cut], 64).expect("a trace");
            assert_eq!(outline.has_end(), TRACE.as_bytes()[TRACE.len() - cut - 1] == b'}', "{cut}");
        }
    }
}

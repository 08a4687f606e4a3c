//! A recorded trace, cut into its events.

use super::event::Event;
use crate::error::Error;
use crate::repo;
use std::path::{Path, PathBuf};

/// The text of a recorded trace and where its events stand.
#[derive(Debug)]
pub(crate) struct Recording {
    pub(crate) name: String,
    text: String,
    events: Vec<(usize, usize)>,
}

/// A trace to damage: what is before its events, the events, and what is behind them.
#[derive(Clone, Debug)]
pub(crate) struct Variant<'t> {
    pub(crate) head: String,
    pub(crate) events: Vec<Event<'t>>,
    pub(crate) tail: String,
}

impl Recording {
    /// Reads and inflates the trace of a case.
    pub(crate) fn read(path: &Path, name: &str) -> Result<Self, Error> {
        let file = std::fs::File::open(path).map_err(Error::file(path))?;
        let bytes = zstd::decode_all(file).map_err(Error::file(path))?;
        Ok(Self::new(name, String::from_utf8_lossy(&bytes).into_owned()))
    }

    pub(crate) fn new(name: &str, text: String) -> Self {
        let events = spans(&text);
        Self { name: name.to_owned(), text, events }
    }

    pub(crate) fn variant(&self) -> Variant<'_> {
        let (first, last) = match (self.events.first(), self.events.last()) {
            (Some(first), Some(last)) => (first.0, last.1),
            _ => (self.text.len(), self.text.len()),
        };
        Variant {
            head: self.text[..first].to_owned(),
            events: self
                .events
                .iter()
                .map(|&(from, to)| Event::new(&self.text[from..to]))
                .collect(),
            tail: self.text[last..].to_owned(),
        }
    }
}

impl Variant<'_> {
    pub(crate) fn render(&self) -> Vec<u8> {
        let length: usize = self.events.iter().map(|event| event.text.len() + 2).sum();
        let mut bytes = Vec::with_capacity(self.head.len() + length + self.tail.len());
        bytes.extend_from_slice(self.head.as_bytes());
        for (place, event) in self.events.iter().enumerate() {
            if place > 0 {
                bytes.extend_from_slice(b",\n");
            }
            bytes.extend_from_slice(event.text.as_bytes());
        }
        bytes.extend_from_slice(self.tail.as_bytes());
        bytes
    }
}

/// Where the events stand: the objects of the list `traceEvents`.
fn spans(text: &str) -> Vec<(usize, usize)> {
    let mut spans = Vec::new();
    let Some(list) = text.find("\"traceEvents\":") else { return spans };
    let bytes = text.as_bytes();
    let (mut depth, mut quoted, mut start) = (0_usize, false, 0);
    let mut at = list + "\"traceEvents\":".len();
    while at < bytes.len() {
        match bytes[at] {
            b'\\' if quoted => at += 1,
            b'"' => quoted = !quoted,
            _ if quoted => {}
            b'[' | b'{' => {
                depth += 1;
                if depth == 2 {
                    start = at;
                }
            }
            b']' | b'}' => {
                depth = depth.saturating_sub(1);
                match depth {
                    0 => break,
                    1 => spans.push((start, at + 1)),
                    _ => {}
                }
            }
            _ => {}
        }
        at += 1;
    }
    spans
}

/// The recordings that are damaged: exports of PyTorch's profiler of a transformer, of two kinds of
/// convolutional networks and of mixed precision with a scaler, and recordings of `xmem profile`.
pub(crate) const DAMAGED: [&str; 6] = [
    "gpt2_adamw",
    "vgg11_adagrad",
    "resnet18_sgdm",
    "bert_fp16_scaler_adamw",
    PROFILED[0],
    PROFILED[1],
];

/// Small ones, for the sample.
pub(crate) const SAMPLED: [&str; 3] = ["mlp_adam", "vgg11_adagrad", PROFILED[0]];

/// Recordings of `xmem profile`, which lie beside this task.
const PROFILED: [&str; 2] = ["profiled_convnet", "profiled_transformer"];

/// The file of a recording.
pub(crate) fn path(name: &str) -> PathBuf {
    if PROFILED.contains(&name) {
        return repo::root().join("xtask/data/attack").join(format!("{name}.json.zst"));
    }
    repo::root().join("traces").join(name).join("trace.json.zst")
}

/// The names of all recordings, sorted.
pub(crate) fn all() -> Result<Vec<String>, Error> {
    let folder = repo::root().join("traces");
    let mut names = PROFILED.map(str::to_owned).to_vec();
    for entry in std::fs::read_dir(&folder).map_err(Error::file(&folder))? {
        let name = entry.map_err(Error::file(&folder))?.file_name().to_string_lossy().into_owned();
        if path(&name).is_file() {
            names.push(name);
        }
    }
    names.sort();
    names.dedup();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attack::event::Class;

    const TEXT: &str = r#"{"schemaVersion": 1, "x": [{}], "traceEvents": [
        {"cat": "cpu_op", "name": "a}]\"", "args": {"Dims": [[1]]}},
        {"cat": "python_function", "name": "b"}
        ], "traceName": "t"}"#;

    #[test]
    fn a_trace_that_is_not_edited_is_the_same() {
        let recording = Recording::new("t", TEXT.to_owned());
        let variant = recording.variant();
        let classes: Vec<Class> = variant.events.iter().map(|event| event.class).collect();
        assert_eq!(classes, [Class::Operator, Class::Python]);
        let parse =
            |bytes: &[u8]| serde_json::from_slice::<serde_json::Value>(bytes).expect("JSON");
        assert_eq!(parse(&variant.render()), parse(TEXT.as_bytes()));
    }
}

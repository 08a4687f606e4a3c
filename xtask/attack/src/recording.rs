//! A recorded trace, cut into its events.

use crate::event::Event;
use crate::notes;
use std::path::{Path, PathBuf};
use xmem_task::{Error, repo};

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
        let recording = Self::new(name, String::from_utf8_lossy(&bytes).into_owned());
        Ok(if name.ends_with(WITHOUT_NOTES) { recording.without_notes() } else { recording })
    }

    /// As PyTorch's profiler writes it: without the notes and the marks of `xmem profile`.
    fn without_notes(&self) -> Self {
        let mut variant = self.variant();
        notes::remove(&mut variant.head);
        variant.events.retain(|event| !event.name().starts_with("xmem::"));
        variant.number_anew();
        Self::new(&self.name, String::from_utf8_lossy(&variant.render()).into_owned())
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
    /// Numbers the events anew, as a profiler would have.
    pub(crate) fn number_anew(&mut self) {
        let number = |event: &Event<'_>| event.whole("Ev Idx");
        let mut numbered: Vec<usize> =
            (0..self.events.len()).filter(|&at| number(&self.events[at]).is_some()).collect();
        numbered.sort_by_key(|&at| number(&self.events[at]));
        for (new, at) in numbered.into_iter().enumerate() {
            self.events[at].set("Ev Idx", &new.to_string());
        }
    }

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

/// Recordings of a GPU that are damaged: of `xmem profile` on a virtual GPU, with the history of the allocator and the
/// peaks that PyTorch counted, and behind them those of PyTorch's profiler, which have neither.
pub(crate) const OF_GPUS: [&str; 15] = [
    "networks/alexnet",
    "networks/alexnet_inference",
    "networks/resnet32",
    "networks/vgg16",
    "sharding/ranks8",
    "history/two_streams",
    "history/expandable_segments",
    "whole_runs/evaluation",
    "whole_runs/thawing",
    "gpu/mlp_adam",
    "gpu/resnet18_sgdm",
    "gpu/gpt2_adamw",
    "networks/alexnet without notes",
    "networks/resnet32_bottleneck without notes",
    "networks/googlenet_inference without notes",
];

/// Small ones, for the sample.
pub(crate) const SAMPLED_OF_GPUS: [&str; 3] =
    ["networks/alexnet", "gpu/mlp_adam", "history/two_streams"];

/// The end of the names of recordings from which the notes of `xmem profile` and its marks are taken out, so that they
/// are as PyTorch's profiler writes them.
const WITHOUT_NOTES: &str = " without notes";

/// Memory snapshots that are damaged. Their histories begin at zero.
pub(crate) const SNAPSHOTS: [&str; 8] = [
    "mlp_adam.pickle",
    "vgg11_adagrad.pickle",
    "resnet18_sgdm.pickle",
    "squeezenet_sgd.pickle",
    "gpt2_tok4k_sgd.pickle",
    "dcgan_adam.pickle",
    "history/two_streams.pickle",
    "history/expandable_segments.pickle",
];

/// What a recording is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// A trace of the host.
    HostTrace,
    /// A trace with memory events of a GPU.
    GpuTrace,
    /// A memory snapshot.
    Snapshot,
}

impl Input {
    pub(crate) const ALL: [Self; 3] = [Self::HostTrace, Self::GpuTrace, Self::Snapshot];

    /// What a recording of this name is.
    pub(crate) fn of(name: &str) -> Self {
        match name {
            name if name.ends_with(".pickle") => Self::Snapshot,
            name if name.contains('/') => Self::GpuTrace,
            _ => Self::HostTrace,
        }
    }

    /// The name of its part of the documentation.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::HostTrace => "traces",
            Self::GpuTrace => "recordings of GPUs",
            Self::Snapshot => "snapshots",
        }
    }
}

/// The file of a recording.
pub(crate) fn path(name: &str) -> PathBuf {
    let root = repo::root();
    let name = name.strip_suffix(WITHOUT_NOTES).unwrap_or(name);
    let history = root.join("crates/xmem/tests/gpu/history");
    if PROFILED.contains(&name) {
        return root.join("xtask/attack/data").join(format!("{name}.json.zst"));
    }
    match (name.split_once('/'), name.strip_suffix(".pickle")) {
        (Some(("history", file)), Some(_)) => history.join(format!("{file}.zst")),
        (Some(("history", file)), None) => history.join(format!("{file}.json.zst")),
        (Some(("gpu", file)), _) => {
            root.join("crates/xmem/tests/gpu").join(format!("{file}.json.zst"))
        }
        (Some((folder, file)), _) => {
            root.join("traces").join(folder).join(format!("{file}.json.zst"))
        }
        (None, Some(case)) => root.join("traces").join(case).join("snapshot.pickle.zst"),
        (None, None) => root.join("traces").join(name).join("trace.json.zst"),
    }
}

/// The names of all recordings that are not only damaged, sorted.
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
    names.extend(OF_GPUS.iter().chain(&SNAPSHOTS).map(|name| (*name).to_owned()));
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Class;

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

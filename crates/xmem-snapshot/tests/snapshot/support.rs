//! Python values and how they are pickled.

use xmem_snapshot::{Limits, Snapshot, SnapshotError, read};
use xmem_types::Diagnostics;

/// A value of a snapshot.
#[derive(Clone, Debug)]
pub(crate) enum Py {
    None,
    Bool(bool),
    Int(i64),
    Natural(u64),
    Float(f64),
    Text(String),
    List(Vec<Py>),
    Tuple(Vec<Py>),
    Dict(Vec<(Py, Py)>),
}

impl From<i64> for Py {
    fn from(number: i64) -> Self {
        Self::Int(number)
    }
}

impl From<&str> for Py {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<bool> for Py {
    fn from(flag: bool) -> Self {
        Self::Bool(flag)
    }
}

/// A dict with text keys.
pub(crate) fn dict<const N: usize>(pairs: [(&str, Py); N]) -> Py {
    Py::Dict(pairs.into_iter().map(|(key, value)| (key.into(), value)).collect())
}

impl Py {
    /// This dict with one more key.
    pub(crate) fn with(mut self, key: &str, value: impl Into<Self>) -> Self {
        let Self::Dict(pairs) = &mut self else { panic!("not a dict") };
        pairs.push((key.into(), value.into()));
        self
    }

    /// This dict without one key.
    pub(crate) fn without(mut self, key: &str) -> Self {
        let Self::Dict(pairs) = &mut self else { panic!("not a dict") };
        pairs.retain(|(known, _)| !matches!(known, Self::Text(text) if text == key));
        self
    }

    /// As CPython's protocol 4 writes it, without memo.
    pub(crate) fn pickle(&self) -> Vec<u8> {
        let mut out = vec![0x80, 4];
        self.write(&mut out);
        out.push(b'.');
        out
    }

    /// As the C++ pickler writes it (torch/csrc/jit/serialization/pickler.cpp): protocol 2, texts
    /// kept by index, integers of four or eight bytes, a list's elements one by one or at once.
    pub(crate) fn pickle_as_torchscript(&self) -> Vec<u8> {
        let mut out = vec![0x80, 2];
        self.write_as_torchscript(&mut out, &mut Vec::new());
        out.push(b'.');
        out
    }

    fn write_as_torchscript<'s>(&'s self, out: &mut Vec<u8>, texts: &mut Vec<&'s str>) {
        match self {
            Self::Int(number) => match i32::try_from(*number) {
                Ok(small) => {
                    out.push(b'J');
                    out.extend(small.to_le_bytes());
                }
                Err(_) => self.write(out),
            },
            Self::Text(text) => match texts.iter().position(|known| known == text) {
                Some(index) => out.extend([b'h', u8::try_from(index).unwrap()]),
                None => {
                    self.write(out);
                    out.extend([b'q', u8::try_from(texts.len()).unwrap()]);
                    texts.push(text);
                }
            },
            Self::List(items) => {
                out.push(b']');
                for item in items {
                    item.write_as_torchscript(out, texts);
                    out.push(b'a');
                }
            }
            Self::Tuple(items) => {
                items.iter().for_each(|item| item.write_as_torchscript(out, texts));
                out.push(b'\x86');
            }
            Self::Dict(pairs) => {
                out.extend(b"}(");
                for (key, value) in pairs {
                    key.write_as_torchscript(out, texts);
                    value.write_as_torchscript(out, texts);
                }
                out.push(b'u');
            }
            Self::None | Self::Bool(_) | Self::Natural(_) | Self::Float(_) => self.write(out),
        }
    }

    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::None => out.push(b'N'),
            Self::Bool(flag) => out.push(if *flag { 0x88 } else { 0x89 }),
            Self::Int(number) => {
                out.extend([0x8a, 8]);
                out.extend(number.to_le_bytes());
            }
            Self::Natural(number) => {
                out.extend([0x8a, 9]);
                out.extend(number.to_le_bytes());
                out.push(0);
            }
            Self::Float(number) => {
                out.push(b'G');
                out.extend(number.to_be_bytes());
            }
            Self::Text(text) => {
                out.push(b'X');
                out.extend(u32::try_from(text.len()).unwrap().to_le_bytes());
                out.extend(text.as_bytes());
            }
            Self::List(items) => {
                out.extend(b"](");
                items.iter().for_each(|item| item.write(out));
                out.push(b'e');
            }
            Self::Tuple(items) => {
                out.push(b'(');
                items.iter().for_each(|item| item.write(out));
                out.push(b't');
            }
            Self::Dict(pairs) => {
                out.extend(b"}(");
                for (key, value) in pairs {
                    key.write(out);
                    value.write(out);
                }
                out.push(b'u');
            }
        }
    }
}

/// Reads a hand-made snapshot.
pub(crate) fn read_py(value: &Py) -> Result<(Snapshot, Diagnostics), SnapshotError> {
    read(&value.pickle(), &Limits::default())
}

/// One frame.
pub(crate) fn frame(name: &str, line: i64) -> Py {
    dict([("name", name.into()), ("filename", "train.py".into()), ("line", line.into())])
}

/// A block as PyTorch 2.x writes it.
pub(crate) fn block(address: i64, size: i64, requested: i64, state: &str) -> Py {
    dict([
        ("address", address.into()),
        ("size", size.into()),
        ("requested_size", requested.into()),
        ("state", state.into()),
        ("frames", Py::List(vec![frame("step", 7)])),
    ])
}

/// A segment as PyTorch 2.1 and newer write it, with two blocks, the first of which is in use.
pub(crate) fn segment(address: i64) -> Py {
    dict([
        ("device", 0.into()),
        ("address", address.into()),
        ("total_size", 2_097_152.into()),
        ("allocated_size", 1024.into()),
        ("active_size", 1024.into()),
        ("requested_size", 1000.into()),
        ("stream", 0.into()),
        ("segment_type", "small".into()),
        ("segment_pool_id", Py::Tuple(vec![0.into(), 0.into()])),
        ("is_expandable", false.into()),
        ("frames", Py::List(vec![])),
        (
            "blocks",
            Py::List(vec![
                block(address, 1024, 1000, "active_allocated"),
                block(address + 1024, 2_096_128, 0, "inactive"),
            ]),
        ),
    ])
}

/// A trace entry on the default stream.
pub(crate) fn entry(action: &str, addr: i64, size: i64) -> Py {
    dict([
        ("action", action.into()),
        ("addr", addr.into()),
        ("size", size.into()),
        ("stream", 0.into()),
    ])
}

/// A snapshot of one device.
pub(crate) fn snapshot(segments: Vec<Py>, trace: Vec<Py>) -> Py {
    dict([("segments", Py::List(segments)), ("device_traces", Py::List(vec![Py::List(trace)]))])
}

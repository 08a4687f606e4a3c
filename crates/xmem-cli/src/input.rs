//! Inputs other than traces: a file or standard input, read as far as its kind may be long.

mod error;

pub(crate) use error::InputFailure;

use crate::terminal::shown;
use std::io::{self, Read};
use std::path::Path;
use xmem::Bytes;
use xmem::types::{ExceededLimit, InputLimits};

/// The kinds of inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A list of operations: JSON, perhaps compressed.
    Operations,
    /// A memory snapshot: a pickle, perhaps compressed.
    Snapshot,
    /// A device file: TOML.
    Device,
    /// A list of traces: one path per line.
    List,
    /// A job script, or the options of a submission.
    Script,
    /// The file of a baseline: JSON.
    Baseline,
    /// What can be planned: a recording, a list of operations or a table.
    Blocks,
    /// Durations of operators: a table.
    Durations,
    /// An answer: JSON.
    Answer,
    /// The graph of a model: a zip archive, or a model of ONNX.
    Graph,
}

/// The reason why an input was not read.
#[derive(Debug)]
enum ReadError {
    Io(io::Error),
    TooLarge(ExceededLimit),
}

impl From<io::Error> for ReadError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// The bytes that decide whether an input may be of its kind.
const HEAD: u64 = 4096;

impl Kind {
    /// The limits, with the value of `--max-input`, which is for genuine files and lifts the ratio.
    pub(crate) fn limits(self, max: Option<Bytes>) -> InputLimits {
        let usual = match self {
            Self::Operations => Bytes::gib(1),
            Self::Snapshot => Bytes::gib(8),
            Self::Device | Self::Durations => Bytes::mib(1),
            Self::Script => Bytes::mib(4),
            Self::List => Bytes::mib(16),
            Self::Baseline | Self::Answer => Bytes::mib(256),
            // Archives of torch.export and models of ONNX have the weights in them, which are not read.
            Self::Graph => Bytes::gib(8),
            Self::Blocks => Bytes::gib(8),
        };
        let ratio = max.is_none().then_some(InputLimits::RATIO);
        InputLimits { size: max.unwrap_or(usual), ratio }
    }

    /// Returns whether an input that begins with `head` may be of this kind, so that it is worth reading.
    fn may_begin_with(self, head: &[u8]) -> bool {
        match self {
            Self::Operations => {
                let first = head.iter().find(|byte| !byte.is_ascii_whitespace());
                is_compressed(head) || first.is_none_or(|first| b"[{\xef".contains(first))
            }
            Self::Snapshot => is_compressed(head) || head.starts_with(b"\x80"),
            // No text has a zero byte.
            Self::Blocks => is_compressed(head) || head.starts_with(b"\x80") || !head.contains(&0),
            Self::Device | Self::List | Self::Script | Self::Durations | Self::Answer => true,
            Self::Baseline => head.starts_with(b"{"),
            Self::Graph => head.starts_with(b"PK") || xmem_graph::onnx::is_model(head),
        }
    }

    /// The advice for an input that is too large.
    fn advice(self) -> &'static str {
        match self {
            Self::Operations | Self::Snapshot | Self::Blocks | Self::Answer => {
                "if the file is genuine, allow more with --max-input, for example --max-input 100GiB"
            }
            Self::Device => "a device file describes one GPU in a few lines: check the path",
            Self::Durations => "a table of durations has a line for each operator: check the path",
            Self::Script => "check the path: a job script is a short text",
            Self::Baseline => "write a new one with --update-baseline",
            Self::Graph => "save the graph without its weights, as `xmem export` does",
            Self::List => {
                "@FILE names a list with one path per line; for more traces give a folder or a pattern"
            }
        }
    }
}

/// By the first bytes: RFC 1952, RFC 8878; zstd's may begin with a skippable frame.
fn is_compressed(head: &[u8]) -> bool {
    matches!(
        head,
        [0x1f, 0x8b, ..] | [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..]
    )
}

/// Reads and decompresses all of `path` (`-` is standard input).
///
/// # Errors
/// If the input cannot be read, is empty, or exceeds the limits of its kind.
pub(crate) fn read(path: &Path, kind: Kind, max: Option<Bytes>) -> Result<Vec<u8>, InputFailure> {
    inflated(read_raw(path, kind, max)?, path, kind, max)
}

/// Decompresses the bytes of `path`, if they are compressed.
///
/// # Errors
/// If the text exceeds the limits of its kind.
fn inflated(
    bytes: Vec<u8>,
    path: &Path,
    kind: Kind,
    max: Option<Bytes>,
) -> Result<Vec<u8>, InputFailure> {
    let limits = kind.limits(max);
    let inflated = match bytes[..] {
        [0x1f, 0x8b, ..] => {
            inflate(flate2::bufread::MultiGzDecoder::new(&bytes[..]), bytes.len(), &limits)
        }
        _ if is_compressed(&bytes) => zstd::Decoder::with_buffer(&bytes[..])
            .map_err(ReadError::Io)
            .and_then(|decoder| inflate(decoder, bytes.len(), &limits)),
        _ => return Ok(bytes),
    };
    inflated.map_err(|error| failure(path, kind, error))
}

/// Reads all of `path` without decompressing it (`-` is standard input).
///
/// # Errors
/// As [`read`].
pub(crate) fn read_raw(
    path: &Path,
    kind: Kind,
    max: Option<Bytes>,
) -> Result<Vec<u8>, InputFailure> {
    let bytes = raw(path, kind, max)?;
    if bytes.is_empty() {
        return Err(InputFailure::Empty { input: display_name(path) });
    }
    Ok(bytes)
}

/// The bytes of `path`; only the first ones if they show that it is something else.
///
/// # Errors
/// If the input cannot be read, or is larger than its kind may be.
pub(crate) fn raw(path: &Path, kind: Kind, max: Option<Bytes>) -> Result<Vec<u8>, InputFailure> {
    bytes_of(path, kind, max).map_err(|error| failure(path, kind, error))
}

fn bytes_of(path: &Path, kind: Kind, max: Option<Bytes>) -> Result<Vec<u8>, ReadError> {
    let mut from: Box<dyn Read> = if path == Path::new("-") {
        Box::new(io::stdin().lock())
    } else {
        Box::new(xmem::trace::open_input(path)?)
    };
    let mut bytes = Vec::new();
    from.by_ref().take(HEAD).read_to_end(&mut bytes)?;
    if !kind.may_begin_with(&bytes) {
        return Ok(bytes);
    }
    let most = kind.limits(max).size;
    let rest = most.get().saturating_add(1).saturating_sub(bytes.len() as u64);
    from.take(rest).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most.get() {
        return Err(ReadError::TooLarge(ExceededLimit::Size(most)));
    }
    Ok(bytes)
}

/// The error of an input that was not read.
fn failure(path: &Path, kind: Kind, error: ReadError) -> InputFailure {
    match error {
        ReadError::Io(source) => InputFailure::Io { path: path.to_owned(), source },
        ReadError::TooLarge(limit) => {
            InputFailure::TooLarge { input: display_name(path), limit, advice: kind.advice() }
        }
    }
}

/// All of an input that cannot be read twice, and the beginning of any, inflated, which shows what it is.
///
/// # Errors
/// As [`read`].
pub(crate) fn beginning(
    path: &Path,
    kind: Kind,
    max: Option<Bytes>,
) -> Result<(Option<Vec<u8>>, Vec<u8>), InputFailure> {
    let is_file = std::fs::metadata(path).is_ok_and(|found| found.is_file());
    let bytes = if is_file { None } else { Some(read_raw(path, kind, max)?) };
    let head = match &bytes {
        Some(bytes) => head(&bytes[..]),
        None => xmem::trace::open_input(path).and_then(head),
    };
    let head = head.map_err(|source| InputFailure::Io { path: path.to_owned(), source })?;
    Ok((bytes, head))
}

/// The text of an input that was read already, or is read now.
///
/// # Errors
/// As [`read`].
pub(crate) fn text(
    bytes: Option<Vec<u8>>,
    path: &Path,
    kind: Kind,
    max: Option<Bytes>,
) -> Result<Vec<u8>, InputFailure> {
    match bytes {
        Some(bytes) => inflated(bytes, path, kind, max),
        None => read(path, kind, max),
    }
}

/// The name of an input in messages.
pub(crate) fn display_name(path: &Path) -> String {
    if path == Path::new("-") { "standard input".to_owned() } else { format!("`{}`", shown(path)) }
}

/// The bytes of an input, inflated, that [`head`] returns.
const INFLATED_HEAD: u64 = 64 << 10;

/// The first bytes of an input, inflated as far as they go: they decide what it is.
fn head(mut from: impl Read) -> io::Result<Vec<u8>> {
    let mut raw = Vec::new();
    from.by_ref().take(INFLATED_HEAD).read_to_end(&mut raw)?;
    let mut text = Vec::new();
    // The end of what was read is inside of a compressed block: what is before it is enough.
    let _ = match raw[..] {
        [0x1f, 0x8b, ..] => {
            let decoder = flate2::bufread::MultiGzDecoder::new(&raw[..]);
            decoder.take(INFLATED_HEAD).read_to_end(&mut text)
        }
        [0x28, 0xb5, 0x2f, 0xfd, ..] => match zstd::Decoder::with_buffer(&raw[..]) {
            Ok(decoder) => decoder.take(INFLATED_HEAD).read_to_end(&mut text),
            Err(_) => Ok(0),
        },
        _ => return Ok(raw),
    };
    Ok(text)
}

fn inflate(from: impl Read, compressed: usize, limits: &InputLimits) -> Result<Vec<u8>, ReadError> {
    let compressed = Bytes(compressed as u64);
    let most = limits.inflated(compressed);
    let mut text = Vec::new();
    from.take(most.get().saturating_add(1)).read_to_end(&mut text)?;
    match limits.exceeded(compressed, Bytes(text.len() as u64)) {
        None => Ok(text),
        Some(limit) => Err(ReadError::TooLarge(limit)),
    }
}

/// The name of an input as it was given: for documents, whose text is escaped, and for text, which is made
/// printable where it is written.
pub(crate) fn name(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_head_of_a_compressed_input_is_inflated() {
        let text = "id,lower,upper,size\n".repeat(100_000);
        let packed = zstd::encode_all(text.as_bytes(), 1).expect("compresses");
        assert!(head(&packed[..]).expect("reads").starts_with(b"id,lower"));
        assert_eq!(head(&b"plain"[..]).expect("reads"), b"plain");
    }
}

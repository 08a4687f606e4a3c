//! The entry points.

use crate::reference;
use crate::{ReadError, ReadOptions, Trace};
use std::io::Read;
use std::path::Path;
use xmem_types::Diagnostics;

/// Reads a trace file: plain, gzip or zstd, told apart by content. `-` is standard input.
///
/// # Errors
/// See [`ReadError`]. Odd content is not an error but a diagnostic.
pub fn read_path(path: &Path, options: &ReadOptions) -> Result<(Trace, Diagnostics), ReadError> {
    let input = path.display().to_string();
    let io = |source| ReadError::Io { input: input.clone(), source };
    let mut bytes = Vec::new();
    if path == Path::new("-") {
        std::io::stdin().lock().read_to_end(&mut bytes).map_err(io)?;
    } else {
        let metadata = std::fs::metadata(path).map_err(|source| match source.kind() {
            std::io::ErrorKind::NotFound => ReadError::NotFound { input: input.clone() },
            _ => io(source),
        })?;
        if metadata.is_dir() {
            return Err(ReadError::Directory { input });
        }
        bytes = std::fs::read(path).map_err(io)?;
    }
    read_bytes(&bytes, options)
}

/// Reads a trace from memory: plain, gzip or zstd, told apart by content.
///
/// # Errors
/// See [`ReadError`]. Odd content is not an error but a diagnostic.
pub fn read_bytes(bytes: &[u8], options: &ReadOptions) -> Result<(Trace, Diagnostics), ReadError> {
    let input = || "<bytes>".to_owned();
    let mut text = Vec::new();
    let limit = options.inflate_limit.get();
    let (format, result) = match bytes {
        [] => return Err(ReadError::Empty { input: input() }),
        [0x1f, 0x8b, ..] => (
            "gzip",
            flate2::read::MultiGzDecoder::new(bytes).take(limit + 1).read_to_end(&mut text),
        ),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => (
            "zstd",
            zstd::Decoder::new(bytes)
                .and_then(|decoder| decoder.take(limit + 1).read_to_end(&mut text)),
        ),
        _ => return reference::read(bytes),
    };
    result.map_err(|source| ReadError::Compressed {
        input: input(),
        format,
        inflated: text.len() as u64,
        source,
    })?;
    if text.len() as u64 > limit {
        return Err(ReadError::InflateLimit { input: input(), limit: options.inflate_limit });
    }
    reference::read(&text)
}

//! Inputs other than traces: a whole file or standard input, inflated if need be.

use crate::complaint::Complaint;
use std::io::{self, Read};
use std::path::Path;
use xmem::Bytes;

/// Reads all of `path`; `-` is standard input. No more than `limit` comes out of compressed data.
pub(crate) fn read(path: &Path, limit: Bytes) -> Result<Vec<u8>, Complaint> {
    let bytes = as_it_is(path)?;
    // By the first bytes: RFC 1952, RFC 8878; zstd's may begin with a skippable frame.
    match bytes[..] {
        [0x1f, 0x8b, ..] => inflate(flate2::bufread::MultiGzDecoder::new(&bytes[..]), limit),
        [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => {
            zstd::Decoder::with_buffer(&bytes[..]).and_then(|decoder| inflate(decoder, limit))
        }
        _ => Ok(bytes),
    }
    .map_err(|source| Complaint::Input { path: path.to_owned(), source })
}

/// Reads all of `path` as it is; `-` is standard input.
pub(crate) fn as_it_is(path: &Path) -> Result<Vec<u8>, Complaint> {
    let bytes = if path == Path::new("-") {
        let mut bytes = Vec::new();
        io::stdin().lock().read_to_end(&mut bytes).map(|_| bytes)
    } else {
        std::fs::read(path)
    };
    let bytes = bytes.map_err(|source| Complaint::Input { path: path.to_owned(), source })?;
    if bytes.is_empty() {
        return Err(Complaint::EmptyInput { input: name(path) });
    }
    Ok(bytes)
}

/// An input as one speaks of it.
pub(crate) fn name(path: &Path) -> String {
    if path == Path::new("-") {
        "standard input".to_owned()
    } else {
        format!("`{}`", path.display())
    }
}

fn inflate(from: impl Read, limit: Bytes) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    from.take(limit.get().saturating_add(1)).read_to_end(&mut text)?;
    if text.len() as u64 > limit.get() {
        let told =
            format!("it inflates to more than {limit}: raise --inflate-limit if it is genuine");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, told));
    }
    Ok(text)
}

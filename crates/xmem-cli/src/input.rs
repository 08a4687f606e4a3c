//! Inputs other than traces: a whole file or standard input, decompressed if necessary.

use crate::error::CliError;
use crate::terminal::shown;
use std::io::{self, Read};
use std::path::Path;
use xmem::Bytes;

/// Reads and decompresses all of `path` (`-` is standard input).
///
/// # Errors
/// If the input cannot be read, is empty, or inflates to more than `limit`.
pub(crate) fn read(path: &Path, limit: Bytes) -> Result<Vec<u8>, CliError> {
    let bytes = read_raw(path)?;
    // By the first bytes: RFC 1952, RFC 8878; zstd's may begin with a skippable frame.
    match bytes[..] {
        [0x1f, 0x8b, ..] => inflate(flate2::bufread::MultiGzDecoder::new(&bytes[..]), limit),
        [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => {
            zstd::Decoder::with_buffer(&bytes[..]).and_then(|decoder| inflate(decoder, limit))
        }
        _ => Ok(bytes),
    }
    .map_err(|source| CliError::Input { path: path.to_owned(), source })
}

/// Reads all of `path` without decompressing it (`-` is standard input).
pub(crate) fn read_raw(path: &Path) -> Result<Vec<u8>, CliError> {
    let bytes = if path == Path::new("-") {
        let mut bytes = Vec::new();
        io::stdin().lock().read_to_end(&mut bytes).map(|_| bytes)
    } else {
        std::fs::read(path)
    };
    let bytes = bytes.map_err(|source| CliError::Input { path: path.to_owned(), source })?;
    if bytes.is_empty() {
        return Err(CliError::EmptyInput { input: display_name(path) });
    }
    Ok(bytes)
}

/// The name of an input in messages.
pub(crate) fn display_name(path: &Path) -> String {
    if path == Path::new("-") { "standard input".to_owned() } else { format!("`{}`", shown(path)) }
}

fn inflate(from: impl Read, limit: Bytes) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    from.take(limit.get().saturating_add(1)).read_to_end(&mut text)?;
    if text.len() as u64 > limit.get() {
        let message =
            format!("inflates to more than {limit}; if the file is genuine, raise --inflate-limit");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
    }
    Ok(text)
}

/// The name of an input as it was given: for documents, whose text is escaped, and for text, which is made
/// printable where it is written.
pub(crate) fn name(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

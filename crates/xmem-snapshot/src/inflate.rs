//! Compressed files: PyTorch writes none, but people compress large ones.

use crate::budget::Budget;
use crate::error::{Compression, SnapshotError};
use std::borrow::Cow;
use std::io::Read;
use xmem_types::{Bytes, ExceededLimit};

impl Compression {
    /// By the first bytes of the file (RFC 1952, RFC 8878; zstd's may begin with a skippable
    /// frame).
    fn of(bytes: &[u8]) -> Option<Self> {
        match bytes {
            [0x1f, 0x8b, ..] => Some(Self::Gzip),
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Some(Self::Zstd),
            _ => None,
        }
    }
}

/// Returns whether a file that begins with `head` is a pickle of protocol 2 to 5, compressed or not, as
/// PyTorch writes snapshots. At least one block of compressed data has to be there as a whole.
#[must_use]
pub fn is_pickle(head: &[u8]) -> bool {
    let mut start = [0; 2];
    let from: &mut dyn Read = match Compression::of(head) {
        None => &mut { head },
        Some(Compression::Gzip) => &mut flate2::bufread::MultiGzDecoder::new(head),
        Some(Compression::Zstd) => match zstd_decoder(head) {
            Ok(decoder) => &mut { decoder },
            Err(_) => return false,
        },
    };
    from.read_exact(&mut start).is_ok() && matches!(start, [0x80, 2..=5])
}

/// The pickle in the file, inflated if need be; what that takes counts against the limits.
pub(crate) fn inflate<'a>(
    bytes: &'a [u8],
    budget: &mut Budget,
) -> Result<Cow<'a, [u8]>, SnapshotError> {
    let Some(compression) = Compression::of(bytes) else { return Ok(Cow::Borrowed(bytes)) };
    let compressed = Bytes(bytes.len() as u64);
    let limits = budget.inflation();
    let most = limits.inflated(compressed);
    let mut inflated = Vec::new();
    let done = match compression {
        Compression::Gzip => read(flate2::bufread::MultiGzDecoder::new(bytes), &mut inflated, most),
        Compression::Zstd => {
            zstd_decoder(bytes).and_then(|decoder| read(decoder, &mut inflated, most))
        }
    };
    let length = Bytes(inflated.len() as u64);
    if let Some(limit @ ExceededLimit::Ratio(_)) = limits.exceeded(compressed, length) {
        return Err(SnapshotError::Inflation { limit });
    }
    budget.take::<u8>(inflated.len(), inflated.len())?;
    match done {
        Ok(()) => Ok(Cow::Owned(inflated)),
        Err(source) if source.to_string().contains("not enough memory") => {
            Err(SnapshotError::Memory)
        }
        Err(source) => Err(SnapshotError::Compressed { compression, inflated: length, source }),
    }
}

/// Reads as much as is allowed, and one byte more.
fn read(from: impl Read, to: &mut Vec<u8>, most: Bytes) -> std::io::Result<()> {
    from.take(most.get().saturating_add(1)).read_to_end(to).map(|_| ())
}

#[cfg(not(target_family = "wasm"))]
fn zstd_decoder(bytes: &[u8]) -> std::io::Result<impl Read> {
    zstd::Decoder::with_buffer(bytes)
}

/// The library is in C, which is not compiled for WebAssembly.
#[cfg(target_family = "wasm")]
fn zstd_decoder(_: &[u8]) -> std::io::Result<std::io::Empty> {
    Err(std::io::ErrorKind::Unsupported.into())
}

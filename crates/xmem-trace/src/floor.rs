//! The least that reading can cost, for benches to compare with: text cut into chunks and put on
//! simd-json's tape, with nothing made of it.

use crate::document::Document;
use crate::parse::Parser;
use crate::source::{Bytes, with_text};
use crate::{ReadError, ReadOptions};

/// Cuts a trace into chunks and does no more; returns their number.
///
/// # Errors
/// As [`read_bytes`](crate::read_bytes).
pub fn split(bytes: &[u8], options: &ReadOptions) -> Result<usize, ReadError> {
    with_chunks(Box::new(bytes), options, |_| 1)
}

/// Cuts a trace into chunks and parses them onto tapes, on one thread; returns the number of
/// nodes. Chunks that are no JSON count as nothing.
///
/// # Errors
/// As [`read_bytes`](crate::read_bytes).
pub fn split_and_tape(bytes: &[u8], options: &ReadOptions) -> Result<usize, ReadError> {
    let mut parser = Parser::default();
    with_chunks(Box::new(bytes), options, |chunk| parser.count_nodes(chunk).unwrap_or(0))
}

fn with_chunks(
    bytes: Bytes<'_>,
    options: &ReadOptions,
    mut work: impl FnMut(&crate::parse::Chunk) -> usize,
) -> Result<usize, ReadError> {
    with_text(bytes, "<bytes>", options, |text| {
        let mut document = Document::new(text, "<bytes>", options);
        let mut spare = Vec::new();
        let mut sum = 0;
        while let Some(chunk) = document.next_chunk(|| std::mem::take(&mut spare))? {
            sum += work(&chunk);
            spare = chunk.buffer;
        }
        Ok(sum)
    })
}

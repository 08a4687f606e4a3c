//! The least that reading can cost, for benches to compare with: text cut into chunks and put on
//! simd-json's tape, with nothing made of it.

use crate::document::Document;
use crate::options::EventParser;
use crate::parse::{Chunk, Parser};
use crate::pipeline::{self, Worker};
use crate::read::{on_threads, open};
use crate::source::{Bytes, with_text};
use crate::{ReadError, ReadOptions};
use std::path::Path;

/// Cuts a trace into chunks and does no more; returns their number.
///
/// # Errors
/// As [`read_bytes`](crate::read_bytes).
pub fn split(bytes: &[u8], options: &ReadOptions) -> Result<usize, ReadError> {
    with_chunks(Box::new(bytes), options, || |_: &Chunk| 1)
}

/// Cuts a trace into chunks and parses them onto tapes; returns the number of nodes. Chunks that
/// are not JSON are not counted.
///
/// # Errors
/// As [`read_bytes`](crate::read_bytes).
pub fn split_and_tape(bytes: &[u8], options: &ReadOptions) -> Result<usize, ReadError> {
    with_chunks(Box::new(bytes), options, tape)
}

/// [`split_and_tape`] of a file.
///
/// # Errors
/// As [`read_path`](crate::read_path).
pub fn split_and_tape_file(path: &Path, options: &ReadOptions) -> Result<usize, ReadError> {
    with_chunks(open(path)?, options, tape)
}

/// Inflates a file, if it is compressed, and does no more; returns the number of bytes.
///
/// # Errors
/// As [`read_path`](crate::read_path).
pub fn inflate_file(path: &Path, options: &ReadOptions) -> Result<u64, ReadError> {
    with_text(open(path)?, "<file>", options, |mut text| {
        let mut buffer = vec![0; 256 << 10];
        let mut sum = 0;
        loop {
            match text.read(&mut buffer)? {
                0 => return Ok(sum),
                length => sum += length as u64,
            }
        }
    })
}

fn tape() -> impl FnMut(&Chunk) -> usize + Send {
    let mut parser = Parser::new(EventParser::Tape);
    move |chunk| parser.count_nodes(chunk).unwrap_or(0)
}

struct Counter<F>(F);

impl<F: FnMut(&Chunk) -> usize + Send> Worker for Counter<F> {
    type Done = usize;

    fn work(&mut self, chunk: Chunk) -> (usize, Vec<u8>) {
        ((self.0)(&chunk), chunk.buffer)
    }
}

fn with_chunks<F: FnMut(&Chunk) -> usize + Send>(
    bytes: Bytes<'_>,
    options: &ReadOptions,
    counter: impl Fn() -> F + Sync,
) -> Result<usize, ReadError> {
    with_text(bytes, "<bytes>", options, |text| {
        let mut document = Document::new(text, "<bytes>", options);
        let mut sum = 0;
        on_threads(options.threads, |threads| {
            let mut workers: Vec<_> = (0..threads).map(|_| Counter(counter())).collect();
            pipeline::run(&mut document, &mut workers, |_, count| sum += count)
        })?;
        Ok(sum)
    })
}

//! The entry points, and the flow from text to trace: one side reads and cuts, the other parses;
//! what is parsed is merged in file order. No more than a few chunks are in memory at a time.

use crate::builder::Builder;
use crate::document::Document;
use crate::finish::finish;
use crate::local::LocalStrings;
use crate::parse::{Chunk, Parsed, Parser};
use crate::source::{Bytes, Text, with_text};
use crate::{ReadError, ReadOptions, Trace};
use rayon::prelude::*;
use std::fs::File;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Mutex;
use xmem_types::{Diagnostics, Interner};

/// Most chunks that are parsed at once, however many threads there are: reading cannot keep up
/// with more, and memory stays small.
const MOST_AT_ONCE: usize = 16;

/// Reads a trace file: plain, gzip or zstd, told apart by content. `-` is standard input.
///
/// # Errors
/// See [`ReadError`]. Odd content is not an error but a diagnostic.
pub fn read_path(path: &Path, options: &ReadOptions) -> Result<(Trace, Diagnostics), ReadError> {
    if path == Path::new("-") {
        return read_stream(Box::new(std::io::stdin()), "standard input", options);
    }
    let input = path.display().to_string();
    let io = |source: std::io::Error| match source.kind() {
        std::io::ErrorKind::NotFound => ReadError::NotFound { input: input.clone() },
        _ => ReadError::Io { input: input.clone(), source },
    };
    if std::fs::metadata(path).map_err(io)?.is_dir() {
        return Err(ReadError::Directory { input });
    }
    #[expect(clippy::disallowed_methods, reason = "this is the room that opens trace files")]
    let file = File::open(path).map_err(io)?;
    read_stream(Box::new(file), &input, options)
}

/// Reads a trace from memory: plain, gzip or zstd, told apart by content.
///
/// # Errors
/// See [`ReadError`]. Odd content is not an error but a diagnostic.
pub fn read_bytes(bytes: &[u8], options: &ReadOptions) -> Result<(Trace, Diagnostics), ReadError> {
    read_stream(Box::new(bytes), "<bytes>", options)
}

fn read_stream(
    bytes: Bytes<'_>,
    input: &str,
    options: &ReadOptions,
) -> Result<(Trace, Diagnostics), ReadError> {
    tracing::debug!(input, "reading a trace");
    let (trace, diagnostics) =
        with_text(bytes, input, options, |text| read_text(text, input, options))?;
    tracing::debug!(events = trace.event_count, "read a trace");
    Ok((trace, diagnostics))
}

fn read_text(
    text: Text<'_>,
    input: &str,
    options: &ReadOptions,
) -> Result<(Trace, Diagnostics), ReadError> {
    let mut document = Document::new(text, input, options);
    let mut merged = Merged::default();
    match options.threads.map(NonZeroUsize::get) {
        Some(1) => one_thread(&mut document, &mut merged)?,
        Some(threads) => {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
            match pool {
                Ok(pool) => pool.install(|| many_threads(&mut document, &mut merged))?,
                Err(error) => {
                    tracing::debug!(%error, "no thread pool; one thread parses");
                    one_thread(&mut document, &mut merged)?;
                }
            }
        }
        None if rayon::current_num_threads() == 1 => one_thread(&mut document, &mut merged)?,
        None => many_threads(&mut document, &mut merged)?,
    }
    if document.is_bare_list() && merged.columns.event_count == 0 {
        return Err(ReadError::NotATrace {
            input: input.to_owned(),
            reason: "a list without events".to_owned(),
        });
    }
    let mut diagnostics = document.diagnostics;
    diagnostics.extend(merged.diagnostics);
    let trace = finish(merged.columns, document.header, &mut diagnostics);
    Ok((trace, diagnostics))
}

/// What all chunks so far come to.
struct Merged {
    columns: Builder<Interner>,
    diagnostics: Diagnostics,
    spare: Spare,
}

impl Default for Merged {
    fn default() -> Self {
        Self {
            columns: Builder::new(Interner::default()),
            diagnostics: Diagnostics::default(),
            spare: Spare::default(),
        }
    }
}

impl Merged {
    fn add(&mut self, parsed: Parsed) {
        self.columns.append(&parsed.columns);
        self.diagnostics.extend(parsed.diagnostics);
        self.spare.buffers.push(parsed.buffer);
        self.spare.columns.push(parsed.columns);
    }
}

/// Memory to be used again.
#[derive(Default)]
struct Spare {
    buffers: Vec<Vec<u8>>,
    columns: Vec<Builder<LocalStrings>>,
}

impl Spare {
    fn columns(&mut self) -> Builder<LocalStrings> {
        match self.columns.pop() {
            Some(mut columns) => {
                columns.clear();
                columns
            }
            None => Builder::new(LocalStrings::default()),
        }
    }
}

fn one_thread(document: &mut Document<'_>, merged: &mut Merged) -> Result<(), ReadError> {
    let mut parser = Parser::default();
    while let Some(chunk) =
        document.next_chunk(|| merged.spare.buffers.pop().unwrap_or_default())?
    {
        let columns = merged.spare.columns();
        merged.add(parser.parse(chunk, columns));
    }
    Ok(())
}

/// While one batch of chunks is parsed, the batch before is merged and the batch after is read.
fn many_threads(document: &mut Document<'_>, merged: &mut Merged) -> Result<(), ReadError> {
    let size = rayon::current_num_threads().min(MOST_AT_ONCE);
    let parsers = Mutex::new(Vec::<Parser>::new());
    let mut batch = next_batch(document, merged, size)?;
    let mut parsed = Vec::new();
    while !batch.is_empty() {
        let (now, next) = rayon::join(
            || parse_batch(batch, &parsers),
            || {
                parsed.drain(..).for_each(|parsed| merged.add(parsed));
                next_batch(document, merged, size)
            },
        );
        parsed = now;
        batch = next?;
    }
    parsed.into_iter().for_each(|parsed| merged.add(parsed));
    Ok(())
}

type Batch = Vec<(Chunk, Builder<LocalStrings>)>;

fn next_batch(
    document: &mut Document<'_>,
    merged: &mut Merged,
    size: usize,
) -> Result<Batch, ReadError> {
    let mut batch = Vec::with_capacity(size);
    while batch.len() < size {
        let spare = || merged.spare.buffers.pop().unwrap_or_default();
        let Some(chunk) = document.next_chunk(spare)? else { break };
        batch.push((chunk, merged.spare.columns()));
    }
    Ok(batch)
}

fn parse_batch(batch: Batch, parsers: &Mutex<Vec<Parser>>) -> Vec<Parsed> {
    let take = || parsers.lock().map_or(None, |mut parsers| parsers.pop()).unwrap_or_default();
    batch
        .into_par_iter()
        .map(|(chunk, columns)| {
            let mut parser = take();
            let parsed = parser.parse(chunk, columns);
            if let Ok(mut parsers) = parsers.lock() {
                parsers.push(parser);
            }
            parsed
        })
        .collect()
}

//! The entry points, and the flow from text to trace: text is cut into chunks, which are parsed on
//! several threads and merged in file order. No more than a few chunks are in memory at a time.

use crate::builder::Builder;
use crate::chunk_strings::LocalStrings;
use crate::document::Document;
use crate::finish::finish;
use crate::open::open_input;
use crate::options::EventParser;
use crate::parse::{Chunk, Parsed, Parser};
use crate::pipeline::{self, Worker};
use crate::source::{Bytes, Text, with_text};
use crate::{ReadError, ReadOptions, Trace};
use std::io::Read;
use std::num::NonZeroUsize;
use std::path::Path;
use xmem_types::{Bytes as Size, Diagnostics, Interner, printable_path};

/// The number of parsing threads beyond which reading cannot keep up with them.
const MAX_PARSERS: usize = 16;

/// Reads a trace file: plain, gzip or zstd, recognized by content. `-` is standard input.
///
/// # Errors
/// See [`ReadError`]. Odd content is not an error but a diagnostic.
pub fn read_path(path: &Path, options: &ReadOptions) -> Result<(Trace, Diagnostics), ReadError> {
    InputFile::open(path)?.read(options)
}

/// A file that was opened and may be a trace. Its first bytes can be looked at, to tell it from a file of
/// another kind.
pub struct InputFile {
    name: String,
    head: Vec<u8>,
    rest: Bytes<'static>,
}

/// The bytes of a file that are looked at: one block of zstd, which is inflated as a whole, and its
/// headers.
const HEAD: u64 = 192 << 10;

impl InputFile {
    /// Opens a file and reads its beginning. `-` is standard input.
    ///
    /// # Errors
    /// If it does not exist, is a folder or cannot be read.
    pub fn open(path: &Path) -> Result<Self, ReadError> {
        let (name, mut rest): (_, Bytes<'static>) = match path == Path::new("-") {
            true => ("standard input".to_owned(), Box::new(std::io::stdin())),
            false => (printable_path(path), open(path)?),
        };
        let mut head = Vec::new();
        let read = rest.by_ref().take(HEAD).read_to_end(&mut head);
        read.map_err(|source| ReadError::Io { input: name.clone(), source })?;
        Ok(Self { name, head, rest })
    }

    /// The name in messages.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The first bytes, compressed if the file is.
    #[must_use]
    pub fn head(&self) -> &[u8] {
        &self.head
    }

    /// All bytes of a file of another kind, and at most one more than `limit`.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn into_bytes(self, limit: Size) -> Result<Vec<u8>, ReadError> {
        let Self { name, head: mut bytes, rest } = self;
        let more = limit.get().saturating_add(1).saturating_sub(bytes.len() as u64);
        let read = rest.take(more).read_to_end(&mut bytes);
        read.map_err(|source| ReadError::Io { input: name, source })?;
        Ok(bytes)
    }

    /// Reads the trace, as [`read_path`].
    ///
    /// # Errors
    /// See [`ReadError`].
    pub fn read(self, options: &ReadOptions) -> Result<(Trace, Diagnostics), ReadError> {
        let (name, bytes) = self.into_stream();
        read_stream(bytes, &name, options)
    }

    /// The name, and all bytes.
    pub(crate) fn into_stream(self) -> (String, Bytes<'static>) {
        let Self { name, head, rest } = self;
        (name, Box::new(std::io::Cursor::new(head).chain(rest)))
    }
}

/// Opens a trace file.
pub(crate) fn open(path: &Path) -> Result<Bytes<'static>, ReadError> {
    let input = printable_path(path);
    let io = |source: std::io::Error| match source.kind() {
        std::io::ErrorKind::NotFound => ReadError::NotFound { input: input.clone() },
        _ => ReadError::Io { input: input.clone(), source },
    };
    if std::fs::metadata(path).map_err(io)?.is_dir() {
        return Err(ReadError::Directory { input });
    }
    Ok(Box::new(open_input(path).map_err(io)?))
}

/// Reads a trace from memory: plain, gzip or zstd, recognized by content.
///
/// # Errors
/// See [`ReadError`]. Odd content is not an error but a diagnostic.
pub fn read_bytes(bytes: &[u8], options: &ReadOptions) -> Result<(Trace, Diagnostics), ReadError> {
    read_named_bytes(bytes, "<bytes>", options)
}

/// Reads a trace from memory that messages call `name`.
///
/// # Errors
/// As [`read_bytes`].
pub fn read_named_bytes(
    bytes: &[u8],
    name: &str,
    options: &ReadOptions,
) -> Result<(Trace, Diagnostics), ReadError> {
    read_stream(Box::new(bytes), name, options)
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
    // The thread that inflates is busy all the time.
    let inflating = usize::from(text.is_inflated());
    let mut document = Document::new(text, input, options);
    let mut merged = Merged::default();
    on_threads(options.threads, |threads| {
        let threads = 1.max(threads - inflating);
        let mut readers: Vec<Reader> = (0..threads).map(|_| Reader::new(options.parser)).collect();
        pipeline::run(&mut document, &mut readers, |reader, parsed| merged.add(parsed, reader))
    })?;
    if document.is_bare_list() && merged.columns.event_count == 0 {
        return Err(ReadError::NotATrace {
            input: input.to_owned(),
            reason: "a list without events".to_owned(),
        });
    }
    merged.columns.evidence.sealed = document.sealed();
    let mut diagnostics = document.diagnostics;
    diagnostics.extend(merged.diagnostics);
    let trace = finish(merged.columns, document.header, &mut diagnostics);
    Ok((trace, diagnostics))
}

/// Calls `work` with the number of threads to use, inside a pool that has them.
pub(crate) fn on_threads<T: Send>(
    requested: Option<NonZeroUsize>,
    work: impl FnOnce(usize) -> T + Send,
) -> T {
    match requested.map(NonZeroUsize::get) {
        Some(1) => work(1),
        Some(threads) if threads == current_pool() => work(threads.min(MAX_PARSERS)),
        Some(threads) => match rayon::ThreadPoolBuilder::new().num_threads(threads).build() {
            Ok(pool) => pool.install(|| work(threads.min(MAX_PARSERS))),
            Err(error) => {
                tracing::debug!(%error, "no thread pool; one thread parses");
                work(1)
            }
        },
        None => work(rayon::current_num_threads().min(MAX_PARSERS)),
    }
}

/// Threads of the pool that this thread is of; none outside.
fn current_pool() -> usize {
    rayon::current_thread_index().map_or(0, |_| rayon::current_num_threads())
}

/// A parser with columns to fill.
struct Reader {
    parser: Parser,
    spare: Vec<Builder<LocalStrings>>,
}

impl Reader {
    fn new(kind: EventParser) -> Self {
        Self { parser: Parser::new(kind), spare: Vec::new() }
    }
}

impl Worker for Reader {
    type Done = Parsed;

    fn work(&mut self, chunk: Chunk) -> (Parsed, Vec<u8>) {
        let columns = match self.spare.pop() {
            Some(mut columns) => {
                columns.clear();
                columns
            }
            None => Builder::new(LocalStrings::default()),
        };
        let parsed = self.parser.parse(&chunk, columns);
        (parsed, chunk.buffer)
    }
}

/// The merged columns of all chunks so far.
struct Merged {
    columns: Builder<Interner>,
    diagnostics: Diagnostics,
}

impl Default for Merged {
    fn default() -> Self {
        Self { columns: Builder::new(Interner::default()), diagnostics: Diagnostics::default() }
    }
}

impl Merged {
    /// Adds a chunk; its columns' memory goes to `reader`.
    fn add(&mut self, parsed: Parsed, reader: &mut Reader) {
        self.columns.append(&parsed.columns);
        self.diagnostics.extend(parsed.diagnostics);
        reader.spare.push(parsed.columns);
    }
}

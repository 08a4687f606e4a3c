//! The source of text: a file, memory or standard input, inflated on a thread of its own where
//! it is compressed.

use crate::{ReadError, ReadOptions};
use std::io::{self, BufReader, Read};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use xmem_types::{Bytes as Size, ExceededLimit, InputLimits};

/// Text goes from the inflating thread to the reader in blocks of this many bytes.
const BLOCK: usize = 512 << 10;
/// The number of inflated blocks that may wait to be read: inflating continues while all other threads
/// parse.
const MAX_WAITING: usize = 6;

/// A reader of bytes that may move to another thread.
pub(crate) type Bytes<'a> = Box<dyn Read + Send + 'a>;

/// The text of a trace, piece by piece.
pub(crate) enum Text<'a> {
    /// As it stands in the file.
    Plain { bytes: Bytes<'a>, input: &'a str, limits: InputLimits, length: u64 },
    /// From the inflating thread.
    Inflated(Inflated),
    /// Inflated by the reader itself, where no thread can be started.
    Inflating { decoder: Decoder<'a>, truncated: bool },
}

/// Text from the inflating thread, block by block.
pub(crate) struct Inflated {
    blocks: Receiver<Block>,
    /// Returns blocks that are read, to be used again.
    spares: SyncSender<Vec<u8>>,
    block: Vec<u8>,
    used: usize,
    truncated: bool,
}

/// A message of the inflating thread.
pub(crate) enum Block {
    Text(Vec<u8>),
    /// The text has ended early.
    Ended(Stopped),
}

/// The reason why inflating stops before the end.
pub(crate) enum Stopped {
    /// The compressed data ended too early.
    Truncated,
    Failed(ReadError),
}

impl Text<'_> {
    /// Fills the beginning of `buffer`, which is not empty; zero bytes mean the end.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> Result<usize, ReadError> {
        match self {
            Self::Plain { bytes, input, limits, length } => {
                let read = read_some(bytes, buffer)
                    .map_err(|source| ReadError::Io { input: (*input).to_owned(), source })?;
                *length += read as u64;
                if *length > limits.size.get() {
                    let limit = ExceededLimit::Size(limits.size);
                    return Err(ReadError::InflateLimit { input: (*input).to_owned(), limit });
                }
                Ok(read)
            }
            Self::Inflated(inflated) => inflated.read(buffer),
            Self::Inflating { decoder, truncated } => match decoder.read(buffer) {
                Ok(length) => Ok(length),
                Err(Stopped::Failed(error)) => Err(error),
                Err(Stopped::Truncated) => {
                    *truncated = true;
                    Ok(0)
                }
            },
        }
    }

    /// Returns whether a thread of its own inflates it.
    pub(crate) fn is_inflated(&self) -> bool {
        matches!(self, Self::Inflated(_))
    }

    /// Returns whether compressed data ended too early; known at the end.
    pub(crate) fn truncated(&self) -> bool {
        match self {
            Self::Plain { .. } => false,
            Self::Inflated(inflated) => inflated.truncated,
            Self::Inflating { truncated, .. } => *truncated,
        }
    }
}

/// Reads once, whatever interrupts.
fn read_some(from: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match from.read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

impl Inflated {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize, ReadError> {
        while self.used == self.block.len() {
            match self.blocks.recv() {
                Ok(Block::Text(next)) => {
                    // With enough of them under way, one more is not missed.
                    let _ = self.spares.try_send(std::mem::replace(&mut self.block, next));
                    self.used = 0;
                }
                Ok(Block::Ended(Stopped::Truncated)) => self.truncated = true,
                Ok(Block::Ended(Stopped::Failed(error))) => return Err(error),
                Err(_) => return Ok(0),
            }
        }
        let length = buffer.len().min(self.block.len() - self.used);
        buffer[..length].copy_from_slice(&self.block[self.used..self.used + length]);
        self.used += length;
        Ok(length)
    }
}

/// The compression of input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Plain,
    Gzip,
    Zstd,
}

impl Format {
    /// By the first bytes of the input (RFC 1952, RFC 8878; a zstd stream may begin with a
    /// skippable frame).
    fn of(head: &[u8]) -> Self {
        match head {
            [0x1f, 0x8b, ..] => Self::Gzip,
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Self::Zstd,
            _ => Self::Plain,
        }
    }
}

/// Calls `read` with the text of `bytes`, whatever it is compressed with.
pub(crate) fn with_text<T>(
    bytes: Bytes<'_>,
    input: &str,
    options: &ReadOptions,
    read: impl FnOnce(Text<'_>) -> Result<T, ReadError>,
) -> Result<T, ReadError> {
    let compressed = Arc::new(AtomicU64::new(0));
    let bytes = Counted { bytes, count: Arc::clone(&compressed) };
    let mut bytes: Bytes<'_> = match &options.progress {
        Some(progress) => Box::new(Counted { bytes, count: Arc::clone(progress) }),
        None => Box::new(bytes),
    };
    let mut head = [0; 4];
    let mut length = 0;
    while length < head.len() {
        let read = read_some(&mut bytes, &mut head[length..]);
        match read.map_err(|source| ReadError::Io { input: input.to_owned(), source })? {
            0 => break,
            more => length += more,
        }
    }
    if length == 0 {
        return Err(ReadError::Empty { input: input.to_owned() });
    }
    let format = Format::of(&head[..length]);
    let bytes: Bytes<'_> = Box::new(io::Cursor::new(head).take(length as u64).chain(bytes));
    let limits = options.limits();
    if format == Format::Plain {
        return read(Text::Plain { bytes, input, limits, length: 0 });
    }
    let decoder = Decoder::new(bytes, format, input, limits, compressed)?;
    let (sender, blocks) = sync_channel(MAX_WAITING);
    let (spares, returned) = sync_channel(MAX_WAITING);
    let ends = Ends { blocks: sender, spares: returned };
    // Shared, so that the decoder is still there if the thread cannot be started.
    let decoder = Mutex::new(Some(decoder));
    std::thread::scope(|scope| {
        let inflating = std::thread::Builder::new().spawn_scoped(scope, || {
            let ends = ends;
            let decoder = decoder.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some(decoder) = decoder {
                inflate(decoder, &ends);
            }
        });
        match inflating {
            Ok(_) => {
                let (block, used, truncated) = (Vec::new(), 0, false);
                read(Text::Inflated(Inflated { blocks, spares, block, used, truncated }))
            }
            Err(error) => {
                tracing::debug!(%error, "no thread for inflating");
                let decoder = decoder.lock().unwrap_or_else(PoisonError::into_inner).take();
                let decoder = decoder.expect("no thread has taken it");
                read(Text::Inflating { decoder, truncated: false })
            }
        }
    })
}

/// Inflates input within limits.
pub(crate) struct Decoder<'a> {
    from: Bytes<'a>,
    format: Format,
    input: &'a str,
    limits: InputLimits,
    /// Bytes of the input that were read.
    compressed: Arc<AtomicU64>,
    inflated: u64,
}

impl<'a> Decoder<'a> {
    fn new(
        bytes: Bytes<'a>,
        format: Format,
        input: &'a str,
        limits: InputLimits,
        compressed: Arc<AtomicU64>,
    ) -> Result<Self, ReadError> {
        let bytes = BufReader::with_capacity(BLOCK, bytes);
        let from: Bytes<'a> = match format {
            Format::Plain => Box::new(bytes),
            Format::Gzip => Box::new(flate2::bufread::MultiGzDecoder::new(bytes)),
            Format::Zstd => match zstd_decoder(bytes) {
                Ok(decoder) => decoder,
                Err(_) => return Err(ReadError::Memory { input: input.to_owned() }),
            },
        };
        Ok(Self { from, format, input, limits, compressed, inflated: 0 })
    }

    /// Fills the beginning of `buffer`; zero bytes mean the end.
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize, Stopped> {
        let length = read_some(&mut self.from, buffer).map_err(|source| self.stopped(source))?;
        self.inflated += length as u64;
        let compressed = self.compressed.load(Ordering::Relaxed);
        match self.limits.exceeded(Size(compressed), Size(self.inflated)) {
            None => Ok(length),
            Some(limit) => {
                let input = self.input.to_owned();
                Err(Stopped::Failed(ReadError::InflateLimit { input, limit }))
            }
        }
    }

    fn stopped(&self, source: io::Error) -> Stopped {
        let input = self.input.to_owned();
        match source.kind() {
            io::ErrorKind::UnexpectedEof => Stopped::Truncated,
            _ if is_lack_of_memory(&source) => Stopped::Failed(ReadError::Memory { input }),
            _ => {
                let format = if self.format == Format::Gzip { "gzip" } else { "zstd" };
                let inflated = self.inflated;
                Stopped::Failed(ReadError::Compressed { input, format, inflated, source })
            }
        }
    }
}

#[cfg(not(target_family = "wasm"))]
fn zstd_decoder<'a>(bytes: BufReader<Bytes<'a>>) -> io::Result<Bytes<'a>> {
    Ok(Box::new(zstd::Decoder::with_buffer(bytes)?))
}

/// The library is in C, which is not compiled for WebAssembly.
#[cfg(target_family = "wasm")]
fn zstd_decoder<'a>(_: BufReader<Bytes<'a>>) -> io::Result<Bytes<'a>> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Returns whether an error says that memory is missing. zstd has only a text for it (lib/common/error_private.c,
/// `ERR_getErrorString`).
fn is_lack_of_memory(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::OutOfMemory || error.to_string().contains("not enough memory")
}

/// The inflating thread's ends of both channels.
struct Ends {
    blocks: SyncSender<Block>,
    /// Blocks that may be used again.
    spares: Receiver<Vec<u8>>,
}

/// Sends the inflated text, until it ends or the reader is dropped.
fn inflate(mut decoder: Decoder<'_>, Ends { blocks, spares }: &Ends) {
    loop {
        let mut block = spares.try_recv().unwrap_or_default();
        block.resize(BLOCK, 0);
        let mut length = 0;
        let stopped = loop {
            match decoder.read(&mut block[length..]) {
                Ok(0) => break None,
                Ok(more) => length += more,
                Err(stopped) => break Some(stopped),
            }
            if length == BLOCK {
                break None;
            }
        };
        let ended = length < BLOCK;
        block.truncate(length);
        if length > 0 && blocks.send(Block::Text(block)).is_err() {
            return;
        }
        if let Some(stopped) = stopped {
            // Nothing is lost where the reader has gone.
            let _ = blocks.send(Block::Ended(stopped));
            return;
        }
        if ended {
            return;
        }
    }
}

/// Counts what is read.
struct Counted<R> {
    bytes: R,
    count: Arc<AtomicU64>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.bytes.read(buffer)?;
        self.count.fetch_add(length as u64, Ordering::Relaxed);
        Ok(length)
    }
}

//! The source of text: a file, memory or standard input, inflated on a thread of its own where
//! it is compressed.

use crate::{ReadError, ReadOptions};
use std::io::{self, BufReader, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

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
    Plain { bytes: Bytes<'a>, input: &'a str },
    /// From the inflating thread.
    Inflated(Inflated),
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
    /// The compressed data ended too early.
    Truncated,
    Failed(ReadError),
}

impl Text<'_> {
    /// Fills the beginning of `buffer`, which is not empty; zero bytes mean the end.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> Result<usize, ReadError> {
        match self {
            Self::Plain { bytes, input } => loop {
                match bytes.read(buffer) {
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    result => {
                        return result.map_err(|source| ReadError::Io {
                            input: (*input).to_owned(),
                            source,
                        });
                    }
                }
            },
            Self::Inflated(inflated) => inflated.read(buffer),
        }
    }

    /// Returns whether a thread of its own inflates it.
    pub(crate) fn is_inflated(&self) -> bool {
        matches!(self, Self::Inflated(_))
    }

    /// Returns whether compressed data ended too early; known at the end.
    pub(crate) fn truncated(&self) -> bool {
        matches!(self, Self::Inflated(inflated) if inflated.truncated)
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
                Ok(Block::Truncated) => self.truncated = true,
                Ok(Block::Failed(error)) => return Err(error),
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
enum Format {
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
    let mut bytes: Bytes<'_> = match &options.progress {
        Some(progress) => Box::new(Counted { bytes, progress: Arc::clone(progress) }),
        None => bytes,
    };
    let mut head = [0; 4];
    let mut length = 0;
    while length < head.len() {
        match bytes.read(&mut head[length..]) {
            Ok(0) => break,
            Ok(more) => length += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(source) => return Err(ReadError::Io { input: input.to_owned(), source }),
        }
    }
    if length == 0 {
        return Err(ReadError::Empty { input: input.to_owned() });
    }
    let format = Format::of(&head[..length]);
    let bytes: Bytes<'_> = Box::new(io::Cursor::new(head).take(length as u64).chain(bytes));
    if format == Format::Plain {
        return read(Text::Plain { bytes, input });
    }
    let (sender, blocks) = sync_channel(MAX_WAITING);
    let (spares, returned) = sync_channel(MAX_WAITING);
    let ends = Ends { blocks: sender, spares: returned };
    std::thread::scope(|scope| {
        scope.spawn(move || inflate(bytes, format, input, options.inflate_limit, &ends));
        let (block, used, truncated) = (Vec::new(), 0, false);
        read(Text::Inflated(Inflated { blocks, spares, block, used, truncated }))
    })
}

/// The inflating thread's ends of both channels.
struct Ends {
    blocks: SyncSender<Block>,
    /// Blocks that may be used again.
    spares: Receiver<Vec<u8>>,
}

/// Sends the inflated text of `bytes`, until it ends or the reader is dropped.
fn inflate(
    bytes: Bytes<'_>,
    format: Format,
    input: &str,
    limit: xmem_types::Bytes,
    Ends { blocks, spares }: &Ends,
) {
    let bytes = BufReader::with_capacity(BLOCK, bytes);
    let decoder: io::Result<Bytes<'_>> = match format {
        Format::Plain => Ok(Box::new(bytes)),
        Format::Gzip => Ok(Box::new(flate2::bufread::MultiGzDecoder::new(bytes))),
        Format::Zstd => zstd::Decoder::with_buffer(bytes).map(|decoder| Box::new(decoder) as _),
    };
    let mut inflated = 0u64;
    let failed = |source: io::Error, inflated: u64| {
        if source.kind() == io::ErrorKind::UnexpectedEof {
            return Block::Truncated;
        }
        let format = if format == Format::Gzip { "gzip" } else { "zstd" };
        Block::Failed(ReadError::Compressed { input: input.to_owned(), format, inflated, source })
    };
    let mut decoder = match decoder {
        Ok(decoder) => decoder,
        Err(error) => {
            let _ = blocks.send(failed(error, 0));
            return;
        }
    };
    loop {
        let mut block = spares.try_recv().unwrap_or_default();
        block.resize(BLOCK, 0);
        let mut length = 0;
        let error = loop {
            match decoder.read(&mut block[length..]) {
                Ok(0) => break None,
                Ok(more) => length += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => break Some(error),
            }
            if length == BLOCK {
                break None;
            }
        };
        let ended = length < BLOCK;
        block.truncate(length);
        inflated += length as u64;
        if inflated > limit.get() {
            let _ = blocks
                .send(Block::Failed(ReadError::InflateLimit { input: input.to_owned(), limit }));
            return;
        }
        if length > 0 && blocks.send(Block::Text(block)).is_err() {
            return;
        }
        if let Some(error) = error {
            let _ = blocks.send(failed(error, inflated));
            return;
        }
        if ended {
            return;
        }
    }
}

/// Counts what is read.
struct Counted<'a> {
    bytes: Bytes<'a>,
    progress: Arc<AtomicU64>,
}

impl Read for Counted<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.bytes.read(buffer)?;
        self.progress.fetch_add(length as u64, Ordering::Relaxed);
        Ok(length)
    }
}

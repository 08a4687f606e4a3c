//! The reason why a snapshot could not be read.

use std::fmt;
use thiserror::Error;
use xmem_types::{Bytes, ExceededLimit};

/// The reason why a snapshot could not be read. Offsets count bytes from the start of the file; if
/// it is compressed, from the start of what was inflated.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SnapshotError {
    /// The file is empty.
    #[error("the file is empty; write it again with torch.cuda.memory._dump_snapshot(path)")]
    Empty,

    /// The file is something else than a pickle of protocol 2 or newer.
    #[error("not a memory snapshot: {found}")]
    NotAPickle {
        /// The format that it resembles, and the remedy.
        found: &'static str,
    },

    /// The file is compressed, and cannot be inflated.
    #[error(
        "the {compression} data is damaged or cut off (after {inflated} of inflated data); \
         copy the file again, or compress it again"
    )]
    Compressed {
        /// The compression.
        compression: Compression,
        /// The number of bytes that could be inflated.
        inflated: Bytes,
        /// The message of the inflating library.
        #[source]
        source: std::io::Error,
    },

    /// A pickle protocol that is older or newer than any writer of snapshots uses.
    #[error(
        "pickle protocol {version} is not supported; write the file again with protocol 2 to 5"
    )]
    Protocol {
        /// The version that the file names.
        version: u8,
    },

    /// The file ends too early.
    #[error(
        "the file ends at byte {at}, in the middle of {inside}; \
         it is cut off: copy it again or let the job finish writing it"
    )]
    Truncated {
        /// The length of the file.
        at: usize,
        /// The part that is incomplete.
        inside: &'static str,
    },

    /// An instruction that imports, calls or links to something outside the file.
    #[error(
        "refused: {opcode} at byte {at} makes Python load or run code, and a memory snapshot is \
         plain data; do not open this file with Python's pickle either"
    )]
    Refused {
        /// Its name in pickletools.
        opcode: &'static str,
        /// The offset.
        at: usize,
    },

    /// An instruction that is harmless, but that no writer of snapshots uses.
    #[error(
        "{opcode} at byte {at} does not occur in memory snapshots; if you made this file yourself, \
         write it with pickle.dump(snapshot, file, protocol=4), lists, dicts, text and numbers only"
    )]
    Unsupported {
        /// Its name in pickletools.
        opcode: &'static str,
        /// The offset.
        at: usize,
    },

    /// A byte that is no pickle instruction.
    #[error("byte {at} is {byte:#04x}, which is not a pickle instruction; the file is damaged")]
    UnknownOpcode {
        /// The byte.
        byte: u8,
        /// The offset.
        at: usize,
    },

    /// An instruction that cannot be carried out.
    #[error("{opcode} at byte {at}: {problem}; the file is damaged")]
    Malformed {
        /// Its name in pickletools.
        opcode: &'static str,
        /// The offset.
        at: usize,
        /// The problem.
        problem: &'static str,
    },

    /// More containers are open at once than the limit allows.
    #[error("more than {limit} nested containers at byte {at}; this is not a memory snapshot")]
    TooDeep {
        /// The offset at which the limit was passed.
        at: usize,
        /// The limit.
        limit: usize,
    },

    /// Reading the file would take more memory than the limit allows.
    #[error("more than {limit} of memory needed (passed at byte {at}); raise the limit to read it")]
    TooLarge {
        /// The offset at which the limit was passed.
        at: usize,
        /// The limit.
        limit: Bytes,
    },

    /// The file inflates to more than snapshots do.
    #[error("the file {limit}; raise the limit to read it")]
    Inflation {
        /// The limit.
        limit: ExceededLimit,
    },

    /// The memory for inflating cannot be had.
    #[error("not enough memory to inflate the file: allow more, or inflate it before")]
    Memory,

    /// Valid plain data, but not the layout of a snapshot.
    #[error("{path} (byte {at}): {problem}")]
    Layout {
        /// The place within the snapshot, as `segments[3].blocks[0].size`.
        path: String,
        /// The offset at which the innermost container of that place begins.
        at: usize,
        /// The problem with it.
        problem: String,
    },
}

/// The compression of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// RFC 1952.
    Gzip,
    /// RFC 8878.
    Zstd,
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
        })
    }
}

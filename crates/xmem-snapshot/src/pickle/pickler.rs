//! The other direction: plain values as a pickle, protocol 4.
//!
//! Uses only instructions that PyTorch's own snapshots have, since the unpickler of the memory_viz
//! page (torch/utils/viz/MemoryViz.js) knows few more. Frames (the instruction) are optional and
//! left out.

use super::opcode::plain;
use std::io::{self, Write};

/// The row in which a value is kept for later mentions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MemoIndex(u32);

impl MemoIndex {
    pub(crate) const fn new(index: u32) -> Self {
        Self(index)
    }
}

/// A pickle in the making: values in order, containers opened and closed around them.
#[derive(Debug)]
pub(crate) struct Pickler<W> {
    out: W,
    next_memo: u32,
}

impl<W: Write> Pickler<W> {
    /// Begins a pickle whose first `reserved` memo indices are given out by the caller.
    pub(crate) fn new(mut out: W, reserved: u32) -> io::Result<Self> {
        out.write_all(&[plain::PROTO, 4])?;
        Ok(Self { out, next_memo: reserved })
    }

    /// Ends the pickle.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        self.out.write_all(&[plain::STOP])?;
        self.out.flush()
    }

    pub(crate) fn none(&mut self) -> io::Result<()> {
        self.out.write_all(&[plain::NONE])
    }

    pub(crate) fn flag(&mut self, flag: bool) -> io::Result<()> {
        self.out.write_all(&[if flag { plain::NEWTRUE } else { plain::NEWFALSE }])
    }

    /// An integer, in the shortest way.
    pub(crate) fn integer(&mut self, number: impl Into<i128>) -> io::Result<()> {
        let number = number.into();
        if let Ok(small) = u8::try_from(number) {
            self.out.write_all(&[plain::BININT1, small])
        } else if let Ok(small) = u16::try_from(number) {
            self.argument(plain::BININT2, small.to_le_bytes())
        } else if let Ok(small) = i32::try_from(number) {
            self.argument(plain::BININT, small.to_le_bytes())
        } else {
            let bytes = number.to_le_bytes();
            let sign = if number < 0 { 0xff } else { 0 };
            let mut length = bytes.len();
            // The last byte that stays carries the sign in its highest bit.
            while length > 1 && bytes[length - 1] == sign && (bytes[length - 2] ^ sign) & 0x80 == 0
            {
                length -= 1;
            }
            self.out.write_all(&[plain::LONG1, length as u8])?;
            self.out.write_all(&bytes[..length])
        }
    }

    pub(crate) fn float(&mut self, number: f64) -> io::Result<()> {
        self.argument(plain::BINFLOAT, number.to_be_bytes())
    }

    /// # Errors
    /// Besides those of writing: a text of 4 GiB or more.
    pub(crate) fn text(&mut self, text: &str) -> io::Result<()> {
        if let Ok(length) = u8::try_from(text.len()) {
            self.out.write_all(&[plain::SHORT_BINUNICODE, length])?;
        } else {
            let length = u32::try_from(text.len()).map_err(|_| {
                io::Error::new(io::ErrorKind::InvalidInput, "a snapshot has no text of 4 GiB")
            })?;
            self.argument(plain::BINUNICODE, length.to_le_bytes())?;
        }
        self.out.write_all(text.as_bytes())
    }

    pub(crate) fn empty_list(&mut self) -> io::Result<()> {
        self.out.write_all(&[plain::EMPTY_LIST])
    }

    /// Gathers the values from here on, until the list below them takes them.
    pub(crate) fn open_batch(&mut self) -> io::Result<()> {
        self.out.write_all(&[plain::MARK])
    }

    /// Appends the gathered values to the list below them.
    pub(crate) fn close_batch(&mut self) -> io::Result<()> {
        self.out.write_all(&[plain::APPENDS])
    }

    /// Opens a dict; keys and values follow in turn.
    pub(crate) fn open_dict(&mut self) -> io::Result<()> {
        self.out.write_all(&[plain::EMPTY_DICT, plain::MARK])
    }

    /// Closes the innermost open dict.
    pub(crate) fn close_dict(&mut self) -> io::Result<()> {
        self.out.write_all(&[plain::SETITEMS])
    }

    /// Makes a tuple of the last two values.
    pub(crate) fn pair(&mut self) -> io::Result<()> {
        self.out.write_all(&[plain::TUPLE2])
    }

    /// Keeps the last value.
    pub(crate) fn keep(&mut self) -> io::Result<MemoIndex> {
        let index = MemoIndex(self.next_memo);
        self.next_memo = index.0.checked_add(1).expect("2^32 kept values would fill 64 GiB");
        self.keep_as(index)?;
        Ok(index)
    }

    /// Keeps the last value under an index that the caller gives out.
    pub(crate) fn keep_as(&mut self, index: MemoIndex) -> io::Result<()> {
        match u8::try_from(index.0) {
            Ok(short) => self.out.write_all(&[plain::BINPUT, short]),
            Err(_) => self.argument(plain::LONG_BINPUT, index.0.to_le_bytes()),
        }
    }

    /// Mentions a kept value.
    pub(crate) fn kept(&mut self, index: MemoIndex) -> io::Result<()> {
        match u8::try_from(index.0) {
            Ok(short) => self.out.write_all(&[plain::BINGET, short]),
            Err(_) => self.argument(plain::LONG_BINGET, index.0.to_le_bytes()),
        }
    }

    fn argument<const N: usize>(&mut self, opcode: u8, bytes: [u8; N]) -> io::Result<()> {
        self.out.write_all(&[opcode])?;
        self.out.write_all(&bytes)
    }
}

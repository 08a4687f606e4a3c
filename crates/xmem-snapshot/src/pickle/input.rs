//! The bytes of the file and the place in them.

use crate::SnapshotError;

/// The rest of the input.
#[derive(Debug)]
pub(super) struct Input<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Input<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// Offset of what is read next.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// The number of bytes left.
    pub(super) fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// The next byte, as part of `inside`.
    pub(super) fn byte(&mut self, inside: &'static str) -> Result<u8, SnapshotError> {
        let Some(&byte) = self.bytes.get(self.at) else { return Err(self.ended(inside)) };
        self.at += 1;
        Ok(byte)
    }

    /// The next `N` bytes, the argument of `inside`.
    pub(super) fn array<const N: usize>(
        &mut self,
        inside: &'static str,
    ) -> Result<[u8; N], SnapshotError> {
        match self.bytes[self.at..].first_chunk() {
            Some(bytes) => {
                self.at += N;
                Ok(*bytes)
            }
            None => Err(self.ended(inside)),
        }
    }

    /// The next `length` bytes, the argument of `inside`.
    pub(super) fn slice(
        &mut self,
        length: u64,
        inside: &'static str,
    ) -> Result<&'a [u8], SnapshotError> {
        let slice = usize::try_from(length).ok().and_then(|n| self.bytes[self.at..].get(..n));
        let slice = slice.ok_or_else(|| self.ended(inside))?;
        self.at += slice.len();
        Ok(slice)
    }

    fn ended(&self, inside: &'static str) -> SnapshotError {
        SnapshotError::Truncated { at: self.bytes.len(), inside }
    }
}

//! Limits on the cost of reading a file, set by the caller, and the account kept against them.

use crate::SnapshotError;
use xmem_types::{Bytes, InputLimits};

/// The limits on the cost of reading one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Memory for the inflated file (if it is compressed), the unpickled values and the snapshot
    /// together. What is counted are the entries of the tables, not the allocator's rounding: the
    /// process may use up to twice as much. PyTorch's files need two to three times their own size,
    /// besides the file itself.
    pub memory: Bytes,
    /// The highest number of containers that may be open at once while the file is read. PyTorch's
    /// files need at most 10.
    pub nesting: usize,
    /// The most inflated bytes for each byte of a compressed file, beyond the first 64 MiB
    /// ([`InputLimits::ratio`]); none for any amount.
    pub ratio: Option<u64>,
}

impl Default for Limits {
    /// 8 GiB, 64 open containers, the usual ratio.
    fn default() -> Self {
        Self { memory: Bytes::gib(8), nesting: 64, ratio: Some(InputLimits::RATIO) }
    }
}

/// The account of one reading.
#[derive(Debug)]
pub(crate) struct Budget {
    limit: Bytes,
    ratio: Option<u64>,
    used: u64,
}

impl Budget {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self { limit: limits.memory, ratio: limits.ratio, used: 0 }
    }

    /// The number of bytes that may still be booked.
    pub(crate) fn left(&self) -> u64 {
        self.limit.get().saturating_sub(self.used)
    }

    /// The limits on what a compressed file inflates to.
    pub(crate) fn inflation(&self) -> InputLimits {
        InputLimits { size: Bytes(self.left()), ratio: self.ratio }
    }

    /// Books `count` values of type `T`, needed because of what stands at byte `at`.
    pub(crate) fn take<T>(&mut self, count: usize, at: usize) -> Result<(), SnapshotError> {
        self.used = self.used.saturating_add((size_of::<T>() as u64).saturating_mul(count as u64));
        if self.used > self.limit.get() {
            return Err(SnapshotError::TooLarge { at, limit: self.limit });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_account_is_exact_and_does_not_wrap() {
        let limits = Limits { memory: Bytes(64), ..Limits::default() };
        let mut budget = Budget::new(&limits);
        budget.take::<u64>(8, 0).expect("64 of 64 bytes");
        let over = budget.take::<u8>(1, 7).expect_err("65 of 64 bytes");
        assert!(matches!(over, SnapshotError::TooLarge { at: 7, limit: Bytes(64) }), "{over}");
        budget.take::<u64>(usize::MAX, 0).expect_err("no wrap-around");
        budget.take::<u64>(usize::MAX, 0).expect_err("no wrap-around");
    }
}

//! A count with its bytes.

use xmem_types::Bytes;

/// A number of segments or blocks, with their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// The number.
    pub count: u64,
    /// Their bytes.
    pub bytes: Bytes,
}

impl Tally {
    pub(crate) fn add(&mut self, bytes: Bytes) {
        self.count += 1;
        self.bytes += bytes;
    }
}

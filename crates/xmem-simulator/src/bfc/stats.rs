//! Statistics as TensorFlow keeps them.

use xmem_types::Bytes;

/// TensorFlow's `AllocatorStats`, named as there: what `tf.config.experimental.get_memory_info`
/// and the message of a failed allocation show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BfcStats {
    /// Chunks handed out so far.
    pub num_allocs: u64,
    /// Bytes of chunks in use.
    pub bytes_in_use: Bytes,
    /// The most bytes that were in use.
    pub peak_bytes_in_use: Bytes,
    /// The largest chunk that was handed out.
    pub largest_alloc_size: Bytes,
    /// The memory that the allocator may take of the device; `None` where neither has a limit.
    pub bytes_limit: Option<Bytes>,
    /// Bytes of all regions.
    pub pool_bytes: Bytes,
    /// The most bytes that all regions had.
    pub peak_pool_bytes: Bytes,
}

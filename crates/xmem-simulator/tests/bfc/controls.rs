//! The operations on TensorFlow's allocator besides allocations and frees.

use xmem_simulator::{
    BfcAllocator, BfcConfig, Control, Device, DeviceConfig, FrameworkAllocator, MemoryLimit,
    RequestIndex, Unsupported,
};
use xmem_types::{Bytes, StreamId};

const AT: RequestIndex = RequestIndex(0);

fn allocator() -> BfcAllocator {
    let limit = MemoryLimit::Exactly(Bytes::mib(30));
    let config = BfcConfig { limit, allow_growth: true, ..BfcConfig::default() };
    BfcAllocator::new(&config, Device::new(&DeviceConfig::default()), ())
}

/// `BFCAllocator::ClearStats`.
#[test]
fn a_reset_forgets_all_peaks_but_that_of_reserved_memory() {
    let mut allocator = allocator();
    for size in [Bytes::mib(1), Bytes::mib(8)] {
        let chunk = allocator.allocate(AT, size, StreamId(0)).expect("room");
        allocator.free(AT, chunk.expect("not zero"));
    }
    // Both regions go back for one of 9.45 MiB, the first size that the device agrees to.
    allocator.device_mut().set_limit(Bytes::mib(10));
    let chunk = allocator.allocate(AT, Bytes::mib(9), StreamId(0)).expect("room");
    allocator.free(AT, chunk.expect("not zero"));
    let before = allocator.tf_stats();
    assert!(before.pool_bytes < Bytes::mib(10));

    allocator.control(AT, Control::ResetPeaks).expect("known");
    let after = allocator.tf_stats();
    assert_eq!((before.num_allocs, after.num_allocs), (3, 0));
    assert_eq!(before.largest_alloc_size, before.pool_bytes);
    assert_eq!(after.largest_alloc_size, Bytes::ZERO);
    assert_eq!(before.peak_bytes_in_use, before.pool_bytes);
    assert_eq!(after.peak_bytes_in_use, Bytes::ZERO);
    assert_eq!(after.peak_pool_bytes, Bytes::mib(10));
}

#[test]
fn what_tensorflow_does_not_know_is_refused() {
    let mut allocator = allocator();
    assert_eq!(allocator.control(AT, Control::Synchronize), Ok(()));
    assert_eq!(
        allocator.control(AT, Control::MemoryFraction(0.5)),
        Err(Unsupported::ByThisAllocator)
    );
    let block = allocator.allocate(AT, Bytes(1), StreamId(0)).expect("room").expect("not zero");
    assert_eq!(
        allocator.control(AT, Control::RecordStream { block, stream: StreamId(1) }),
        Err(Unsupported::ByThisAllocator)
    );
}

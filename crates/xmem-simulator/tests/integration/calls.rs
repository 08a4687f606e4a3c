//! Calls between the requests of a workload: private pools, frees that wait, releases of cached memory.

use xmem_simulator::{AllocatorConfig, Completion, DeviceConfig, Replay, replay};
use xmem_types::{
    AllocatorCall, BlockId, Bytes, Fallbacks, PlacedCall, PrivatePoolId, Request, RequestKind,
    StreamId, Workload,
};

const POOL: PrivatePoolId = PrivatePoolId(3);

/// A call, and the position of the request that follows.
type Call = (usize, AllocatorCall);

fn alloc(id: u32, mib: u64) -> Request {
    let kind = RequestKind::Alloc { size: Bytes::mib(mib), stream: StreamId(0) };
    Request { block: BlockId(id), kind }
}

fn free(id: u32) -> Request {
    Request { block: BlockId(id), kind: RequestKind::Free }
}

fn replayed(requests: &[Request], calls: &[Call], capacity: Option<Bytes>) -> Replay {
    let calls: Vec<PlacedCall> =
        calls.iter().map(|&(before, call)| PlacedCall { before, call }).collect();
    let fallbacks = Fallbacks::default();
    let work = Workload::new(requests, &fallbacks).with_calls(&calls);
    let device =
        DeviceConfig { completion: Completion::Immediate, capacity, ..DeviceConfig::default() };
    replay(work, &AllocatorConfig::default(), &device)
}

#[test]
fn memory_that_waits_is_not_reused_before_it_is_complete() {
    use AllocatorCall::{AwaitStreams, Complete};
    let requests = [alloc(0, 30), free(0), alloc(1, 30), free(1), alloc(2, 30)];
    let waits = (1, AwaitStreams(BlockId(0)));
    // (calls, reserved in MiB)
    let rows: [(&[Call], u64); 5] = [
        (&[], 30),
        (&[waits], 60),
        (&[waits, (2, Complete(BlockId(0)))], 30),
        (&[waits, (3, Complete(BlockId(0)))], 60),
        // A number that does not wait.
        (&[(2, Complete(BlockId(7)))], 30),
    ];
    for (calls, reserved) in rows {
        let replay = replayed(&requests, calls, None);
        assert_eq!(replay.peak.allocated, Bytes::mib(30), "{calls:?}");
        assert_eq!(replay.stats.reserved_bytes.all.peak, Bytes::mib(reserved), "{calls:?}");
    }
}

#[test]
fn an_allocator_that_is_short_of_memory_waits_for_the_device_itself() {
    use AllocatorCall::{AwaitStreams, Complete};
    let requests = [alloc(0, 30), free(0), alloc(1, 30), alloc(2, 10), free(1)];
    let calls = [(1, AwaitStreams(BlockId(0))), (4, Complete(BlockId(0)))];
    let replay = replayed(&requests, &calls, Some(Bytes::mib(50)));
    assert!(replay.fits());
    assert_eq!(replay.stats.reserved_bytes.all.peak, Bytes::mib(40));
    assert_eq!(replay.stats.active_bytes.all.current, Bytes::mib(10));
}

#[test]
fn pools_share_no_memory_and_give_it_back_when_they_are_deleted() {
    use AllocatorCall::{EnterPool, LeavePool, ReleaseCache, ReleasePool};
    let requests = [alloc(0, 30), free(0), alloc(1, 30), free(1), alloc(2, 40)];
    let pooled = [(0, EnterPool(POOL)), (1, LeavePool(POOL))];
    // (calls, highest reserved in MiB, reserved at the end)
    let rows: [(&[Call], u64, u64); 4] = [
        (&pooled, 100, 100),
        (&[pooled[0], pooled[1], (4, ReleaseCache)], 70, 70),
        (&[pooled[0], pooled[1], (2, ReleasePool(POOL))], 70, 70),
        (&[pooled[0], pooled[1], (4, ReleasePool(POOL)), (4, ReleaseCache)], 60, 40),
    ];
    for (calls, highest, end) in rows {
        let stats = replayed(&requests, calls, None).stats.reserved_bytes.all;
        assert_eq!(
            (stats.peak, stats.current),
            (Bytes::mib(highest), Bytes::mib(end)),
            "{calls:?}"
        );
    }
}

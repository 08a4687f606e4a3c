//! The wall between the replay and the allocators: the same code replays any of them. Expected
//! values are worked out by hand.

use xmem_simulator::{
    AddressOrder, AllocatorChoice, AllocatorConfig, DeviceConfig, Framework, MallocAsync, Replay,
    RequestIndex, Uncached, min_capacity, replay, runs_in,
};
use xmem_types::{BlockId, Bytes, KIB, MIB, Request, RequestKind, StreamId};

fn alloc(id: u32, size: u64) -> Request {
    let kind = RequestKind::Alloc { size: Bytes(size), stream: StreamId(0) };
    Request { block: BlockId(id), kind }
}

fn free(id: u32) -> Request {
    Request { block: BlockId(id), kind: RequestKind::Free }
}

fn device(mib: u64) -> DeviceConfig {
    DeviceConfig {
        capacity: Some(Bytes::mib(mib)),
        address_order: AddressOrder::Ascending,
        ..DeviceConfig::default()
    }
}

/// Two blocks of 5 and 30 MiB, then 33 MiB in place of the second.
fn job() -> Vec<Request> {
    let mib = |id, n| alloc(id, n * MIB);
    vec![mib(0, 5), mib(1, 30), free(1), mib(2, 33), free(0), free(2)]
}

fn curve(replay: &Replay) -> Vec<(u64, u64)> {
    let mib = |size: Bytes| size.get() / MIB;
    replay.curve.iter().map(|point| (mib(point.allocated), mib(point.reserved))).collect()
}

/// The smallest capacity really is one: with 2 MiB less the job does not run.
fn boundary<F: Framework>(job: &[Request], allocator: &F) -> Bytes {
    let smallest = min_capacity(job, allocator, &device(1));
    let mib = smallest.get() / MIB;
    assert!(runs_in(job, allocator, &device(mib)));
    assert!(!runs_in(job, allocator, &device(mib - 2)));
    smallest
}

#[test]
fn without_caching_the_device_holds_what_is_in_use() {
    let got = replay(&job(), &Uncached, &device(39));
    // The driver gives whole pages of 2 MiB: 6 for 5, 34 for 33.
    let curve_in_mib = [(5, 6), (35, 36), (5, 6), (38, 40), (33, 34), (0, 0)];
    assert_eq!(curve(&got), curve_in_mib);
    let oom = got.oom.expect("6 and 34 MiB do not fit into 39");
    assert_eq!((oom.request, oom.block), (RequestIndex(3), BlockId(2)));
    assert_eq!((oom.tried, oom.device_free), (Bytes::mib(33), Bytes::mib(33)));
    assert_eq!((oom.allocated, oom.reserved), (Bytes::mib(5), Bytes::mib(6)));
    assert_eq!(oom.largest_cached, Bytes::ZERO);
    assert_eq!(oom.needed, Bytes::mib(40));
    assert_eq!((got.peak.request, got.peak.allocated), (RequestIndex(3), Bytes::mib(38)));
    let live: Vec<u32> = got.live_at_peak.iter().map(|b| b.block.0).collect();
    assert_eq!(live, [0, 2]);
    assert_eq!(got.fragmentation.segments, 2);
    assert_eq!(boundary(&job(), &Uncached), Bytes::mib(40));
}

#[test]
fn without_caching_small_requests_share_pages() {
    // 5 requests of 500 KiB: four to a page of 2 MiB. The page stays while one of them does.
    let mut job: Vec<Request> = (0..5).map(|id| alloc(id, 500 * KIB)).collect();
    job.extend([free(0), free(1), free(2), free(4), free(3)]);
    let got = replay(&job, &Uncached, &device(100));
    let reserved: Vec<u64> = curve(&got).into_iter().map(|(_, reserved)| reserved).collect();
    assert_eq!(reserved, [2, 2, 2, 2, 4, 4, 4, 4, 2, 0]);
    assert_eq!(boundary(&job, &Uncached), Bytes::mib(4));
}

#[test]
fn a_pool_of_the_driver_grows_by_32_mib_and_keeps_what_it_has() {
    let allocator = MallocAsync { memory_fraction: None };
    let got = replay(&job(), &allocator, &device(60));
    // 5 MiB make the first step, 35 the second; 38 fit into both.
    let curve_in_mib = [(5, 32), (35, 64), (5, 64), (38, 64), (33, 64), (0, 64)];
    assert_eq!(curve(&got), curve_in_mib);
    let oom = got.oom.expect("64 MiB do not fit into 60");
    assert_eq!((oom.request, oom.tried), (RequestIndex(1), Bytes::mib(30)));
    assert_eq!((oom.allocated, oom.reserved), (Bytes::mib(5), Bytes::mib(32)));
    assert_eq!(oom.device_free, Bytes::mib(28));
    assert_eq!((got.peak.request, got.peak.allocated), (RequestIndex(3), Bytes::mib(38)));
    assert_eq!(got.peak.reserved, Bytes::mib(64));
    assert_eq!(boundary(&job(), &allocator), Bytes::mib(64));
}

#[test]
fn a_fraction_limits_what_is_used_of_the_drivers_pool() {
    // 40 % of 100 MiB: 35 and 38 MiB are allowed although the pool has 64. 30 % forbid both.
    let within = replay(&job(), &MallocAsync { memory_fraction: Some(0.4) }, &device(100));
    assert!(within.fits());
    let beyond = replay(&job(), &MallocAsync { memory_fraction: Some(0.3) }, &device(100));
    let oom = beyond.oom.expect("35 MiB are more than 30");
    assert_eq!(oom.request, RequestIndex(1));
    assert_eq!(oom.device_free, Bytes::mib(68));
}

#[test]
fn pytorchs_allocator_needs_more_for_the_same_job() {
    // 20 MiB for the first request; 30 MiB for the second, which go back for the 34 of the third.
    let config = AllocatorConfig::default();
    assert_eq!(boundary(&job(), &config), Bytes::mib(54));
    let expandable = AllocatorConfig { expandable_segments: true, ..config };
    // Pages of 20 MiB: 35 MiB need two, and 38 fit into them.
    assert_eq!(boundary(&job(), &expandable), Bytes::mib(40));
}

#[test]
fn an_allocator_chosen_by_a_value_replays_like_itself() {
    let pool = MallocAsync { memory_fraction: Some(0.5) };
    let same = |a: Replay, b: Replay| assert_eq!(format!("{a:?}"), format!("{b:?}"));
    let on = device(60);
    same(replay(&job(), &AllocatorChoice::Uncached, &on), replay(&job(), &Uncached, &on));
    same(replay(&job(), &AllocatorChoice::MallocAsync(pool), &on), replay(&job(), &pool, &on));
    let config = AllocatorConfig::default();
    same(
        replay(&job(), &AllocatorChoice::Caching(config.clone()), &on),
        replay(&job(), &config, &on),
    );
}

//! An allocator seeded with the state of another one goes on as that one does.

use proptest::prelude::*;
use std::collections::BTreeMap;
use xmem_simulator::{
    AllocConf, BlockHandle, CachingAllocator, Completion, Control, Device, DeviceConfig, Event,
    EventAction, FrameworkAllocator, RequestIndex, Seed, SeedError, SegmentId, SegmentState,
};
use xmem_types::{Addr, Bytes, StreamId, TorchVersion};

/// Recorded addresses have to lie outside the simulated space.
const SHIFT: u64 = 1 << 46;

#[derive(Clone, Copy, Debug)]
enum Step {
    Alloc {
        size: u64,
        stream: u32,
    },
    /// Frees one of the live blocks, counted round.
    Free(usize),
    /// Frees one of the live blocks that another stream uses. (That one uses a block which is not
    /// freed yet is nothing that a state tells.)
    FreeShared(usize),
    Synchronize,
    EmptyCache,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let size = prop_oneof![1_u64..5000, 200_000_u64..3_000_000, 4_000_000_u64..60_000_000];
    let step = prop_oneof![
        8 => (size, 0_u32..2).prop_map(|(size, stream)| Step::Alloc { size, stream }),
        6 => any::<usize>().prop_map(Step::Free),
        1 => any::<usize>().prop_map(Step::FreeShared),
        1 => Just(Step::Synchronize),
        1 => Just(Step::EmptyCache),
    ];
    prop::collection::vec(step, 0..80)
}

struct Program {
    allocator: CachingAllocator<Vec<Event>>,
    live: BTreeMap<u64, BlockHandle>,
}

impl Program {
    fn run(&mut self, steps: &[Step]) {
        for step in steps {
            let at = RequestIndex::default();
            let nth = |n: usize| self.live.keys().nth(n % self.live.len().max(1)).copied();
            match *step {
                Step::Alloc { size, stream } => {
                    let block = self.allocator.allocate(at, Bytes(size), StreamId(stream));
                    let handle = block.expect("no limit").expect("not zero");
                    self.live.insert(self.allocator.block(handle).addr.0, handle);
                }
                Step::Free(n) => {
                    if let Some(handle) = nth(n).and_then(|addr| self.live.remove(&addr)) {
                        self.allocator.free(at, handle);
                    }
                }
                Step::FreeShared(n) => {
                    if let Some(block) = nth(n).and_then(|addr| self.live.remove(&addr)) {
                        let share = Control::RecordStream { block, stream: StreamId(7) };
                        self.allocator.control(at, share).expect("known");
                        self.allocator.free(at, block);
                    }
                }
                Step::Synchronize => {
                    self.allocator.control(at, Control::Synchronize).expect("known");
                }
                Step::EmptyCache => self.allocator.release_cached(at),
            }
        }
    }

    fn events(&mut self) -> Vec<Event> {
        std::mem::take(self.allocator.observer_mut())
    }
}

fn shifted(addr: Addr) -> Addr {
    Addr(addr.0 + SHIFT)
}

fn shifted_states(states: Vec<SegmentState>) -> Vec<SegmentState> {
    let mut states = states;
    for state in &mut states {
        state.addr = shifted(state.addr);
        for block in &mut state.blocks {
            block.addr = shifted(block.addr);
        }
    }
    states
}

/// The part of a state that a snapshot has: free blocks have no requested size, segments no number.
fn told(states: Vec<SegmentState>) -> Vec<SegmentState> {
    let mut states = states;
    for state in &mut states {
        state.segment = SegmentId(0);
        for block in &mut state.blocks {
            if block.used == xmem_simulator::BlockUse::Free {
                block.requested = Bytes::ZERO;
            }
        }
    }
    states
}

/// Frees that complete together do so in an order that depends on how long they waited.
fn in_normal_order(mut events: Vec<Event>) -> Vec<Event> {
    let completes = |event: &Event| event.action == EventAction::FreeCompleted;
    for run in events.chunk_by_mut(|a, b| completes(a) && completes(b)) {
        run.sort_by_key(|event| event.addr);
    }
    events
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn a_seeded_allocator_goes_on_as_the_one_it_was_seeded_from(
        before in steps(),
        after in steps(),
        conf in prop::sample::select(vec![
            "",
            "expandable_segments:True",
            "max_split_size_mb:21",
            "max_split_size_mb:40,max_non_split_rounding_mb:30",
            "roundup_power2_divisions:4",
        ]),
    ) {
        let config = AllocConf::parse(conf, TorchVersion::new(2, 11)).expect("right").config;
        let device = DeviceConfig {
            completion: Completion::AtSynchronization,
            reported_total: Some(Bytes::gib(8)),
            ..DeviceConfig::default()
        };
        let allocator = CachingAllocator::new(&config, Device::new(&device), Vec::new());
        let mut first = Program { allocator, live: BTreeMap::new() };
        first.run(&before);
        // The allocator notices what the device is done with.
        first.run(&[Step::Alloc { size: 1, stream: 0 }]);
        first.events();
        let start = shifted_states(first.allocator.state());
        let begins: Vec<(SegmentId, Addr)> = start
            .iter()
            .filter(|state| state.expandable)
            .map(|state| (state.segment, first.allocator.segments()[state.segment.index()].addr))
            .map(|(id, addr)| (id, shifted(addr)))
            .collect();
        let live_then: Vec<u64> = first.live.keys().copied().collect();
        first.run(&after);
        let wanted: Vec<Event> = first
            .events()
            .into_iter()
            .map(|event| Event { addr: shifted(event.addr), ..event })
            .collect();

        let at = |action| {
            let of = move |event: &&Event| event.action == action;
            wanted.iter().filter(of).map(|event| event.addr).collect::<Vec<_>>()
        };
        let (segments, pages) = (at(EventAction::SegmentAlloc), at(EventAction::SegmentMap));
        let device = Device::recorded(&device, segments, pages);
        let seed = Seed { segments: &start, reservations: &begins };
        let (allocator, handles) =
            CachingAllocator::seeded(&config, device, Vec::new(), seed).expect("consistent");
        prop_assert_eq!(told(allocator.state()), told(start.clone()));
        let handles: BTreeMap<Addr, BlockHandle> = handles.into_iter().collect();
        let live = live_then.iter().map(|&addr| {
            let addr = shifted(Addr(addr));
            (addr.0, handles[&addr])
        });
        let mut second = Program { allocator, live: live.collect() };
        second.run(&after);
        prop_assert_eq!(in_normal_order(second.events()), in_normal_order(wanted));
        let end = shifted_states(first.allocator.state());
        prop_assert_eq!(told(second.allocator.state()), told(end));
        let (got, want) = (second.allocator.stats(), first.allocator.stats());
        prop_assert_eq!(got.reserved_bytes.all.current, want.reserved_bytes.all.current);
        prop_assert_eq!(got.segment.all.current, want.segment.all.current);
        prop_assert_eq!(got.active_bytes.all.current, want.active_bytes.all.current);
        prop_assert_eq!(got.allocation.all.current, want.allocation.all.current);
        prop_assert_eq!(got.requested_bytes.all.current, want.requested_bytes.all.current);
        prop_assert_eq!(got.inactive_split_bytes.all.current, want.inactive_split_bytes.all.current);
        prop_assert_eq!(got.inactive_split.all.current, want.inactive_split.all.current);
        prop_assert_eq!(got.oversize_segments.current, want.oversize_segments.current);
        prop_assert_eq!(got.oversize_allocations.current, want.oversize_allocations.current);
        prop_assert_eq!(second.allocator.device().used(), first.allocator.device().used());
    }
}

#[test]
fn a_completed_free_can_be_reused_and_others_still_wait() {
    let config = xmem_simulator::AllocatorConfig::default();
    let device =
        DeviceConfig { completion: Completion::AtSynchronization, ..DeviceConfig::default() };
    let mut allocator = CachingAllocator::new(&config, Device::new(&device), Vec::new());
    let at = RequestIndex::default();
    let mut shared = |stream| {
        let block = allocator.allocate(at, Bytes::mib(30), StreamId(0)).unwrap().unwrap();
        let share = Control::RecordStream { block, stream };
        allocator.control(at, share).unwrap();
        block
    };
    let (a, b) = (shared(StreamId(1)), shared(StreamId(2)));
    let place = allocator.block(b).addr;
    allocator.free(at, a);
    allocator.free(at, b);
    allocator.complete(b);
    allocator.complete(b);
    let c = allocator.allocate(at, Bytes::mib(30), StreamId(0)).unwrap().unwrap();
    assert_eq!(allocator.block(c).addr, place);
    let d = allocator.allocate(at, Bytes::mib(30), StreamId(0)).unwrap().unwrap();
    assert_eq!(allocator.segments().len(), 3, "the other one is not free yet");
    assert_ne!(allocator.block(d).addr, place);
}

#[test]
fn segments_that_contradict_each_other_are_refused() {
    let config = xmem_simulator::AllocatorConfig::default();
    let mut allocator = CachingAllocator::new(&config, Device::new(&DeviceConfig::default()), ());
    allocator.allocate(RequestIndex::default(), Bytes(700), StreamId(0)).unwrap();
    let good = shifted_states(allocator.state());
    let seeded = |states: &[SegmentState]| {
        let device = Device::new(&DeviceConfig::default());
        CachingAllocator::seeded(&config, device, (), Seed { segments: states, reservations: &[] })
            .map(|_| ())
    };
    assert_eq!(seeded(&good), Ok(()));
    let addr = good[0].addr;
    let twice = [good[0].clone(), good[0].clone()];
    assert_eq!(seeded(&twice), Err(SeedError::RangeTaken(addr)));
    let mut gap = good.clone();
    gap[0].blocks.remove(0);
    assert_eq!(seeded(&gap), Err(SeedError::NotCovered(addr)));
    assert!(matches!(seeded(&allocator.state()), Err(SeedError::RangeTaken(_))));
}

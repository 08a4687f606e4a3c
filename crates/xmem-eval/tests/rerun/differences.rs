//! Differences are found, with their places.

use crate::{again, recording};
use xmem_eval::{Addresses, Difference, MemoryPlace, PlaceContent, RerunOptions, rerun};
use xmem_simulator::{AddressOrder, EventAction};
use xmem_snapshot::{Action, BlockState, EntryIndex};
use xmem_types::Bytes;

#[test]
fn a_block_that_is_elsewhere_is_told_with_what_there_was_to_choose_from() {
    let mut snapshot = recording("mlp_adam");
    // The last block moves to where another one is still in use, and with it all that is said of it.
    let last = |entry: &xmem_snapshot::TraceEntry| entry.action == Action::Alloc;
    let row = snapshot.device_traces[0].iter().rposition(last).expect("an allocation");
    let addr = snapshot.device_traces[0][row].addr;
    let blocks = snapshot.segments.iter().flat_map(|segment| &segment.blocks);
    let large = |block: &&xmem_snapshot::SnapshotBlock| {
        block.state == BlockState::Inactive && block.size > Bytes::mib(1)
    };
    let moved = blocks.filter(large).find(|block| block.size < Bytes::mib(2)).expect("one").address;
    for entry in &mut snapshot.device_traces[0][row..] {
        if entry.addr == addr {
            entry.addr = moved;
        }
    }
    let rerun = again(&snapshot);
    let first = rerun.divergences.first.expect("a divergence");
    assert_eq!(first.entry, EntryIndex(row as u32));
    assert_eq!(first.difference, Difference::Placement);
    assert_eq!(first.recorded[0].place, MemoryPlace::Address(moved));
    assert_eq!(first.simulated[0].place, MemoryPlace::Address(addr));
    assert_eq!(first.candidates[0].place, MemoryPlace::Address(addr), "the best fit comes first");
    assert!(
        matches!(first.at_recorded_place, Some(PlaceContent::InUse(used)) if used.place == MemoryPlace::Address(moved))
    );
    assert_eq!(first.before.len(), 6);
    assert!(first.site.line.is_some_and(|line| line.contains("torch/optim/adam.py")));
}

#[test]
fn a_segment_of_another_size_is_told() {
    let mut snapshot = recording("mlp_adam");
    let row = 0;
    assert_eq!(snapshot.device_traces[0][row].action, Action::SegmentAlloc);
    snapshot.device_traces[0][row].size = Bytes::mib(22);
    let rerun = again(&snapshot);
    assert!(rerun.end.is_none(), "the end contradicts it");
    let first = rerun.divergences.first.expect("a divergence");
    assert_eq!(first.difference, Difference::Segments);
    let sizes = [first.recorded[0], first.simulated[0]].map(|action| action.size);
    assert_eq!(sizes, [Bytes::mib(22), Bytes::mib(20)]);
}

#[test]
fn a_request_that_failed_for_no_reason_is_told() {
    let mut snapshot = recording("mlp_adam");
    let mut failed = snapshot.device_traces[0][400];
    failed.action = Action::OutOfMemory { device_free: Bytes::gib(1) };
    failed.size = Bytes(512);
    snapshot.device_traces[0].push(failed);
    let rerun = again(&snapshot);
    assert_eq!(rerun.divergences.by_difference, [1, 0, 0]);
    let first = rerun.divergences.first.expect("a divergence");
    assert_eq!(first.recorded[0].kind, EventAction::Oom);
    assert_eq!(first.simulated[0].kind, EventAction::Alloc);
    assert_eq!(first.at_recorded_place, None);
}

#[test]
fn a_block_at_the_end_that_is_not_the_same_is_described() {
    let mut snapshot = recording("mlp_adam");
    let blocks = &mut snapshot.segments[0].blocks;
    blocks[0].requested = Some(Bytes(1));
    let end = again(&snapshot).end.expect("comparable");
    assert_eq!((end.segments_that_differ, end.blocks_that_differ), (0, 1));
    assert!(end.first[0].contains("1 B requested"), "{:?}", end.first);
}

#[test]
fn other_options_do_something_else() {
    for (name, conf) in [
        ("mlp_adam", "expandable_segments:True"),
        ("mlp_adam", "roundup_power2_divisions:4"),
        ("job_max_split", ""),
        ("job_expandable", ""),
    ] {
        let options = RerunOptions { conf: Some(conf.to_owned()), ..RerunOptions::default() };
        let rerun = rerun(&recording(name), &options).expect("a history");
        assert!(!rerun.is_exact(), "{name} with `{conf}`");
        assert!(rerun.divergences.total() > 0, "{name} with `{conf}`");
    }
}

#[test]
fn another_order_of_addresses_moves_blocks_among_equal_ones() {
    let order = AddressOrder::Ascending;
    let options = RerunOptions { addresses: Addresses::Order(order), ..RerunOptions::default() };
    let rerun = rerun(&recording("mlp_adam"), &options).expect("a history");
    assert_eq!(rerun.divergences.by_difference, [0, 0, 8]);
    let first = rerun.divergences.first.expect("a divergence");
    let [recorded, simulated] = [&first.recorded, &first.simulated].map(|actions| actions[0].place);
    let places = first.candidates.iter().map(|candidate| candidate.place);
    assert!(matches!(recorded, MemoryPlace::Segment { .. }) && recorded != simulated);
    assert_eq!(places.filter(|place| [recorded, simulated].contains(place)).count(), 2);
}

//! The simulator does what PyTorch did, wherever the recording begins.

use crate::{again, all_recordings, complaint, measured, recording, recordings};
use xmem_eval::{Addresses, MemoryPlace, RerunError, RerunOptions, rerun};
use xmem_simulator::AddressOrder;
use xmem_snapshot::{Action, DeviceIndex};
use xmem_types::{Addr, Bytes};

#[test]
fn recordings_run_again_without_a_difference() {
    let mut failures = String::new();
    for (name, snapshot) in all_recordings() {
        let rerun = again(&snapshot);
        if !rerun.is_exact() || rerun.end.is_none() {
            failures += &complaint(&name, &rerun);
        }
        assert!(rerun.counts.allocations > 0, "{name} has allocations");
        assert_eq!(
            rerun.figures.reserved_peak.recorded, rerun.figures.reserved_peak.simulated,
            "{name}"
        );
        assert_eq!(
            rerun.figures.allocated_end.recorded, rerun.figures.allocated_end.simulated,
            "{name}"
        );
    }
    assert!(failures.is_empty(), "\n{failures}");
}

/// As if only the newest entries had been kept: everything before is then known from the end alone.
#[test]
fn snapshots_of_a_real_gpu_run_again_without_a_difference() {
    let list = measured();
    assert!(list.len() >= 20, "the snapshots are missing");
    for (name, snapshot) in list {
        let rerun = again(&snapshot);
        assert!(rerun.is_exact(), "{}", complaint(&name, &rerun));
    }
}

#[test]
fn trials_of_convolutions_empty_the_cache() {
    let list = measured();
    let snapshot = list.iter().find(|(name, _)| name == "resnet18_sgdm_benchmark");
    let counts = again(&snapshot.expect("a snapshot").1).counts;
    assert_eq!((counts.empty_caches, counts.refusals), (16, 0));
}

#[test]
fn a_recording_that_begins_anywhere_runs_on_without_a_difference() {
    let mut failures = String::new();
    let mut refined = 0;
    for (name, snapshot) in recordings() {
        let entries = snapshot.device_traces[0].len();
        let last = entries * 9 / 10;
        for begin in (1..last).step_by((last / 60).max(1)) {
            let mut later = snapshot.clone();
            later.device_traces[0].drain(..begin);
            let rerun = again(&later);
            refined += rerun.start.uncertainty.refined;
            assert_eq!(rerun.start.uncertainty.contradictions, 0, "{name} from {begin}");
            if !rerun.is_exact() {
                failures += &complaint(&format!("{name} from {begin}"), &rerun);
            }
        }
    }
    assert!(failures.is_empty(), "\n{failures}");
    assert!(refined > 0, "no case needed what follows from later blocks");
}

/// The operations of the programs in `data/`, by their own text.
#[test]
fn what_the_trace_does_not_say_is_inferred() {
    // name, empty_cache, blocks that another stream used, failed allocations
    for (name, empty_caches, shared, failures) in [
        ("mlp_adam", 0, 0, 0),
        // Iterations 1 and 3 end with empty_cache; iterations 1, 2 and 4 fail at first; each step
        // has two tensors that another stream uses.
        ("job_tight", 2, 14, 3),
        ("job_expandable", 2, 14, 3),
        ("job_max_split", 2, 14, 3),
    ] {
        let counts = again(&recording(name)).counts;
        assert_eq!(
            (counts.empty_caches, counts.shared_frees, counts.failures),
            (empty_caches, shared, failures),
            "{name}"
        );
    }
}

#[test]
fn the_peak_of_allocated_memory_is_that_of_pytorch() {
    // `max_memory_allocated` in traces/mlp_adam/expected.toml.
    let figures = again(&recording("mlp_adam")).figures;
    assert_eq!(figures.allocated_peak, Bytes(228_864_000));
    assert_eq!(figures.reserved_peak.simulated, Bytes(262_144_000));
}

/// Recorded from an empty allocator on, with addresses in the driver's order.
#[test]
fn the_drivers_order_of_addresses_gives_the_same_places() {
    let order = Addresses::Order(AddressOrder::Driver);
    let options = RerunOptions { addresses: order, ..RerunOptions::default() };
    let rerun = rerun(&recording("mlp_adam"), &options).expect("a history");
    assert!(rerun.is_exact(), "{}", complaint("mlp_adam", &rerun));
}

#[test]
fn the_capacity_of_the_recording_makes_it_run_out_of_memory_where_it_did() {
    for (name, capacity) in [("job_tight", 262), ("job_expandable", 270), ("job_max_split", 280)] {
        let options =
            RerunOptions { capacity: Some(Bytes::mib(capacity)), ..RerunOptions::default() };
        let exact = rerun(&recording(name), &options).expect("a history");
        assert!(exact.is_exact(), "{}", complaint(name, &exact));
        let ample = RerunOptions { capacity: Some(Bytes::gib(4)), ..options };
        let other = rerun(&recording(name), &ample).expect("a history");
        // The allocations that failed no longer do.
        assert!(other.divergences.by_difference[0] >= 3, "{}", complaint(name, &other));
    }
}

/// As in snapshots that this program predicts.
#[test]
fn addresses_that_the_simulator_uses_itself_are_followed_too() {
    let mut snapshot = recording("mlp_adam");
    let lowest = snapshot.segments.iter().map(|segment| segment.address.0).min().expect("segments");
    let moved = |addr: Addr| Addr(addr.0 - lowest + (1 << 45) + (1 << 40));
    for segment in &mut snapshot.segments {
        segment.address = moved(segment.address);
        for block in &mut segment.blocks {
            block.address = moved(block.address);
        }
    }
    for entry in &mut snapshot.device_traces[0] {
        entry.addr = moved(entry.addr);
    }
    let exact = again(&snapshot);
    assert!(exact.is_exact(), "{}", complaint("moved", &exact));
    let mut entries = snapshot.device_traces[0].iter_mut().rev();
    let last = entries.find(|entry| entry.action == Action::Alloc).expect("an allocation");
    let wanted = last.addr;
    last.addr = Addr(last.addr.0 + 512);
    let first = again(&snapshot).divergences.first.expect("a difference");
    assert_eq!(first.simulated[0].place, MemoryPlace::Address(wanted), "told as recorded");
}

#[test]
fn a_device_without_history_is_refused() {
    let options = RerunOptions { device: DeviceIndex(3), ..RerunOptions::default() };
    let error = rerun(&recording("mlp_adam"), &options).expect_err("there is one device");
    assert!(matches!(error, RerunError::NoTrace { device: DeviceIndex(3) }), "{error}");
}

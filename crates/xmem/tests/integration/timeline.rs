//! The timeline of a predicted run says the same as its answer, and agrees with itself at every moment.
#![allow(clippy::disallowed_methods, reason = "a test reads the recorded traces")]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use xmem::convolutions::FittedModel;
use xmem::predict::{
    AllocatorKind, AllocatorSettings, BlockKey, MAX_LEFT_OUT, SnapshotEnd, Timeline,
};
use xmem::types::Diagnostics;
use xmem::{Bytes, Device, Estimate, EstimateBuilder, Job, ReadOptions, find};

fn trace(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../traces").join(name).join("trace.json.zst")
}

fn job(name: &str) -> Job {
    Job::from_path(trace(name), &ReadOptions::default()).expect("a trace")
}

fn on(device: &str) -> EstimateBuilder {
    Estimate::builder(find(device).expect("a known device").clone())
        .convolutions(Arc::new(FittedModel))
}

fn settings(conf: &str) -> AllocatorSettings {
    AllocatorSettings { conf: Some(conf.to_owned()), ..AllocatorSettings::default() }
}

/// What holds in every timeline, at moments all over it.
fn check(timeline: &Timeline) {
    let count = timeline.moments.len();
    assert!(count > 0);
    for moment in (0..count).step_by(1 + count / 50).chain([timeline.peak as usize]) {
        let at = moment as u32;
        let sum = |value: fn(&xmem::predict::TimelineBlock) -> Bytes| -> Bytes {
            timeline.allocated_at(at).map(|row| value(&timeline.blocks[row])).sum()
        };
        let figures = timeline.moments[moment];
        assert_eq!(sum(|block| block.size), figures.allocated, "allocated at {at}");
        assert_eq!(sum(|block| block.requested), figures.requested, "requested at {at}");
        let is_active = |block: &&xmem::predict::TimelineBlock| {
            block.start <= at && block.end.is_none_or(|end| at < end)
        };
        let active: Bytes = timeline.blocks.iter().filter(is_active).map(|block| block.size).sum();
        assert_eq!(active, figures.active, "active at {at}");
        let is_held = |segment: &&xmem::predict::TimelineSegment| {
            segment.start <= at && segment.end.is_none_or(|end| at < end)
        };
        let held: Bytes =
            timeline.segments.iter().filter(is_held).map(|segment| segment.size).sum();
        assert_eq!(held, figures.reserved, "reserved at {at}");
        for key in BlockKey::ALL {
            assert_eq!(timeline.tree(at, key).bytes, figures.allocated, "{}", key.name());
        }
    }
    let mut covered = 0;
    for span in &timeline.phases {
        assert_eq!(span.moments.start, covered);
        covered = span.moments.end;
    }
    assert_eq!(covered as usize, count);
    for key in BlockKey::ALL {
        let stacked = timeline.stacked(key, 100, 8);
        assert!(stacked.groups.len() <= 8 && stacked.moments.contains(&timeline.peak));
        for (point, &moment) in stacked.moments.iter().enumerate() {
            let sum: Bytes = stacked.groups.iter().map(|group| group.bytes[point]).sum();
            assert_eq!(sum, timeline.moments[moment as usize].allocated, "{}", key.name());
        }
    }
}

#[test]
fn a_timeline_has_the_figures_of_the_answer() {
    for (name, conf) in [
        ("gpt2_adamw", ""),
        ("gpt2_adamw", "expandable_segments:True"),
        ("resnet18_sgdm", "expandable_segments:True"),
        ("bert_fp16_scaler_adamw", "max_split_size_mb:64"),
    ] {
        let (job, estimate) = (job(name), on("a100-40g").allocator(settings(conf)).build());
        let answer = estimate.job(&job).expect("an answer");
        let timeline = estimate.predict(&job).expect("a prediction").timeline(SnapshotEnd::Job);
        check(&timeline);
        let peak = timeline.moments[timeline.peak as usize];
        assert_eq!(
            (peak.allocated, peak.requested),
            (answer.memory.peak.allocated, answer.memory.peak.requested)
        );
        assert_eq!(
            timeline.moments[timeline.reserved_peak as usize].reserved,
            answer.memory.peak.reserved
        );
        let roles = timeline.tree(timeline.peak, BlockKey::Role);
        for share in answer.memory.by_role.iter().filter(|share| share.blocks > 0) {
            let found = roles.children.iter().find(|node| node.name == share.role.name());
            assert_eq!(
                found.map(|node| (node.bytes, node.blocks)),
                Some((share.bytes, share.blocks))
            );
        }
        let inside = timeline.blocks.iter().filter(|block| {
            let Some(segment) = block.segment.map(|row| timeline.segments[row as usize]) else {
                return false;
            };
            segment.addr <= block.addr && block.addr.0 < segment.addr.0 + segment.size.get()
        });
        assert_eq!(
            inside.count(),
            timeline.blocks.len(),
            "{name} {conf}: blocks in their segments"
        );
        let named = |row: usize| !timeline.text(timeline.blocks[row].module).is_empty();
        // The third was recorded without Python stacks.
        let has_modules = name != "bert_fp16_scaler_adamw";
        assert_eq!(timeline.allocated_at(timeline.peak).any(named), has_modules, "{name}");
    }
}

#[test]
fn allocators_without_segments_of_their_own_have_timelines() {
    let job = job("mlp_adam");
    for kind in [AllocatorKind::Uncached, AllocatorKind::MallocAsync, AllocatorKind::BfcGrowth] {
        let allocator = AllocatorSettings { kind: Some(kind), ..AllocatorSettings::default() };
        let estimate = on("a100-40g").allocator(allocator).build();
        let timeline = estimate.predict(&job).expect("a prediction").timeline(SnapshotEnd::Job);
        let answer = estimate.job(&job).expect("an answer");
        assert_eq!(
            timeline.moments[timeline.peak as usize].allocated,
            answer.memory.peak.allocated
        );
        assert_eq!(
            timeline.moments[timeline.reserved_peak as usize].reserved,
            answer.memory.peak.reserved
        );
    }
}

#[test]
fn where_memory_runs_out_the_timeline_ends_or_goes_on() {
    let job = job("gpt2_adamw");
    let small = Estimate::builder(Device::custom(Bytes::mib(600)))
        .convolutions(Arc::new(FittedModel))
        .build();
    let answer = small.job(&job).expect("an answer");
    let oom = answer.memory.out_of_memory.expect("it does not fit");
    let stopped = small.predict(&job).expect("a prediction").timeline(SnapshotEnd::OutOfMemory);
    let whole = small.predict(&job).expect("a prediction").timeline(SnapshotEnd::Job);
    check(&stopped);
    check(&whole);
    assert_eq!(stopped.out_of_memory, whole.out_of_memory);
    assert_eq!(stopped.moments.len() as u64, oom.request);
    assert_eq!(stopped.moments.last().map(|last| last.allocated), Some(oom.allocated));
    assert_eq!(whole.moments[whole.peak as usize].allocated, answer.memory.peak.allocated);
    assert_eq!(stopped.at_failure, whole.at_failure);
}

/// The map of the device with space for all had a free piece of 106 MiB where a request for 9 MiB failed.
#[test]
fn what_an_out_of_memory_met_is_the_memory_of_the_device_that_is_too_small() {
    let job = job("big_gpt2s_adam_b6");
    let mut device = find("rtx3060-12g").expect("a known device").clone();
    device.memory = Bytes::gib(2);
    let small = Estimate::builder(device).convolutions(Arc::new(FittedModel)).build();
    let oom = small.job(&job).expect("an answer").memory.out_of_memory.expect("it does not fit");
    let timeline = small.predict(&job).expect("a prediction").timeline(SnapshotEnd::Job);
    let met = timeline.at_failure.as_ref().expect("it does not fit");
    let reserved: Bytes = met.segments.iter().map(|segment| segment.size).sum();
    let allocated: Bytes = met.blocks.iter().map(|block| block.size).sum();
    assert_eq!((reserved, allocated), (oom.reserved, oom.allocated));
    let before = timeline.moments[oom.request as usize - 1];
    assert!(before.reserved > oom.reserved, "the two devices differ");
    // No free piece holds the request.
    for segment in &met.segments {
        let end = segment.addr.0 + segment.size.get();
        let mut taken: Vec<(u64, u64)> = met
            .blocks
            .iter()
            .filter(|block| (segment.addr.0..end).contains(&block.addr.0))
            .map(|block| (block.addr.0, block.addr.0 + block.size.get()))
            .chain([(end, end)])
            .collect();
        taken.sort_unstable();
        let mut at = segment.addr.0;
        for (from, to) in taken {
            assert!(at <= from && to <= end, "blocks do not overlap");
            assert!(from - at < oom.requested.get());
            at = to;
        }
    }
}

#[test]
fn an_allocation_that_failed_in_a_snapshot_is_behind_the_same_request() {
    let job = job("gpt2_adamw");
    let small = Estimate::builder(Device::custom(Bytes::mib(600)))
        .convolutions(Arc::new(FittedModel))
        .build();
    let oom = small.job(&job).expect("an answer").memory.out_of_memory.expect("it does not fit");
    let snapshot = small
        .predict(&job)
        .expect("a prediction")
        .snapshot(SnapshotEnd::OutOfMemory)
        .expect("a snapshot");
    let recorded = Job::from_snapshot(&snapshot, Diagnostics::default());
    let timeline =
        on("a100-40g").build().predict(&recorded).expect("a prediction").timeline(SnapshotEnd::Job);
    let [failure] = &timeline.failures[..] else { panic!("{:?}", timeline.failures) };
    assert_eq!(failure.device_free, Some(oom.free));
    assert!(failure.size >= oom.requested && failure.size < oom.requested + Bytes(512));
    assert_eq!(timeline.moments[failure.after as usize].allocated, oom.allocated);
}

#[test]
fn blocks_that_rules_leave_out_are_those_that_the_answer_counts() {
    let estimate = on("a100-40g").build();
    for name in ["gpt2_adamw", "resnet18_sgdm"] {
        let job = job(name);
        let answer = estimate.job(&job).expect("an answer");
        let timeline = estimate.predict(&job).expect("a prediction").timeline(SnapshotEnd::Job);
        let mut listed = 0;
        for effect in &answer.rules {
            let of_rule = || timeline.left_out.iter().filter(|of| of.rule == effect.rule.name);
            let (count, bytes) = effect.dropped;
            assert_eq!(of_rule().count() as u64, count.min(MAX_LEFT_OUT as u64), "{name}");
            let sum: Bytes = of_rule().map(|of| of.size).sum();
            assert!(if count <= MAX_LEFT_OUT as u64 { sum == bytes } else { sum <= bytes });
            assert!(of_rule().is_sorted_by(|one, other| one.size >= other.size), "{name}");
            listed += count.min(MAX_LEFT_OUT as u64);
        }
        assert!(listed > 0 && listed == timeline.left_out.len() as u64, "{name}");
    }
}

/// Recorded with PyTorch's CUDA build, kernels stubbed.
#[test]
fn a_block_that_another_stream_uses_is_active_after_its_free() {
    for (name, waits) in [
        ("two_streams.json", true),
        ("expandable_segments.pickle", false),
        ("memory_pool.json", false),
    ] {
        let path =
            Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/gpu/history/{name}.zst"));
        let job = Job::from_path(path, &ReadOptions::default()).expect("a recording");
        let timeline =
            on("a100-40g").build().predict(&job).expect("a prediction").timeline(SnapshotEnd::Job);
        check(&timeline);
        let is_waiting = |block: &xmem::predict::TimelineBlock| {
            block.freed.is_some() && block.end != block.freed
        };
        assert_eq!(timeline.blocks.iter().any(is_waiting), waits, "{name}");
    }
}

/// 20,000 operators in each other took 1.8 GB.
#[test]
fn operators_nested_without_end_have_paths_of_bounded_length() {
    let count = 3000;
    let events: Vec<String> = (0..count)
        .map(|level| {
            let (start, duration) = (2 * level, 4 * (count - level));
            let (bytes, address) = (1 << 20, (level + 1) << 21);
            format!(
                r#"{{"ph": "X", "cat": "cpu_op", "name": "op{level}", "pid": 1, "tid": 1, "ts": {start}, "dur": {duration}}},
                {{"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "pid": 1, "tid": 1, "ts": {},
                  "args": {{"Bytes": {bytes}, "Addr": {address}, "Device Type": 0, "Device Id": -1}}}}"#,
                start + 1
            )
        })
        .collect();
    let trace = format!(r#"{{"traceEvents": [{}]}}"#, events.join(","));
    let job = Job::from_bytes(trace.as_bytes(), &ReadOptions::default()).expect("a trace");
    let timeline =
        on("a100-40g").build().predict(&job).expect("a prediction").timeline(SnapshotEnd::Job);
    assert_eq!(timeline.blocks.len(), count);
    let levels: usize = timeline.paths().iter().map(Vec::len).sum();
    assert!(levels <= 256 * 257 / 2, "{levels} levels in all paths");
    let names = |row: usize| timeline.path(timeline.blocks[row].path);
    assert_eq!(timeline.text(names(2)[2]), "op2");
    assert_eq!(names(2999), names(255));
    assert_eq!(timeline.text(timeline.blocks[2999].op), "op2999");
}

//! Recordings of GPUs, snapshots and traces that were damaged so that one part of them still agrees with itself, and
//! for which a verdict was given once: each test is named after what broke.

#![expect(clippy::disallowed_methods, reason = "the recordings of the repository are read")]

use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use xmem::analyzer::integrity::Condition;
use xmem::predict::Confidence;
use xmem::snapshot::Snapshot;
use xmem::{Answer, Bytes, Device, Estimate, IntegrityPolicy, Job, ReadOptions, Verdict};
use xmem_snapshot::{Action, Limits, TraceEntry};
use xmem_types::WithheldReason;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn inflated(path: &str) -> Vec<u8> {
    zstd::decode_all(&std::fs::read(root().join(path)).expect("a recording")[..]).expect("zstd")
}

fn trace(path: &str) -> Value {
    serde_json::from_slice(&inflated(path)).expect("JSON")
}

fn snapshot(case: &str) -> Snapshot {
    let pickle = inflated(&format!("traces/{case}/snapshot.pickle.zst"));
    xmem_snapshot::read(&pickle, &Limits::default()).expect("a snapshot").0
}

fn answer(bytes: &[u8]) -> Answer {
    let estimate = Estimate::builder(Device::custom(Bytes::gib(80))).build();
    estimate.bytes(bytes).expect("an answer")
}

fn of_trace(trace: &Value) -> Answer {
    answer(trace.to_string().as_bytes())
}

fn of_snapshot(snapshot: &Snapshot) -> Answer {
    let mut bytes = Vec::new();
    xmem::snapshot::write(snapshot, &mut bytes).expect("memory");
    answer(&bytes)
}

fn codes(answer: &Answer) -> Vec<&str> {
    answer.findings.iter().map(|finding| finding.code).collect()
}

fn assert_damaged(answer: &Answer, code: &str, what: &str) {
    let codes = codes(answer);
    assert_eq!(answer.verdict, Verdict::Withheld, "{what}: {codes:?}");
    assert_eq!(answer.integrity.condition(), Condition::Damaged, "{what}: {codes:?}");
    assert!(codes.contains(&code), "{what}: {codes:?}");
}

/// Recordings of a virtual GPU, and of PyTorch's profiler.
const OF_GPUS: [&str; 4] = [
    "traces/networks/alexnet.json.zst",
    "traces/networks/resnet32.json.zst",
    "crates/xmem/tests/gpu/mlp_adam.json.zst",
    "crates/xmem/tests/gpu/resnet18_sgdm.json.zst",
];

fn events(trace: &mut Value) -> &mut Vec<Value> {
    trace["traceEvents"].as_array_mut().expect("events")
}

fn is_of_gpu(event: &Value) -> bool {
    event["name"] == "[memory]" && event["args"]["Device Type"] == 1
}

/// Removes blocks of a MiB or more with their frees, computes running totals anew and numbers the events anew.
fn remove_large_blocks(trace: &mut Value) {
    const LARGE: i64 = 1 << 20;
    let bytes = |event: &Value| event["args"]["Bytes"].as_i64().expect("bytes");
    let events = events(trace);
    events.retain(|event| !is_of_gpu(event) || bytes(event).abs() < LARGE);
    let mut order: Vec<usize> = (0..events.len()).filter(|&at| is_of_gpu(&events[at])).collect();
    order.sort_by(|&a, &b| {
        let time = |at: usize| events[at]["ts"].as_f64().expect("a time");
        time(a).total_cmp(&time(b))
    });
    let mut total = 0;
    for at in order {
        total += bytes(&events[at]);
        events[at]["args"]["Total Allocated"] = total.into();
    }
    let number = |event: &Value| event["args"]["Ev Idx"].as_i64();
    let numbers: BTreeMap<i64, usize> =
        (0..events.len()).filter_map(|at| Some((number(&events[at])?, at))).collect();
    for (new, (_, at)) in numbers.into_iter().enumerate() {
        events[at]["args"]["Ev Idx"] = new.into();
    }
}

#[test]
fn large_blocks_of_a_gpu_that_are_removed_and_recounted_fit() {
    for path in OF_GPUS {
        let mut trace = trace(path);
        remove_large_blocks(&mut trace);
        assert_damaged(&of_trace(&trace), "missing-outputs", path);
    }
}

#[test]
fn bytes_and_totals_of_a_gpu_that_are_halved_fit() {
    for path in OF_GPUS {
        let mut trace = trace(path);
        for event in events(&mut trace).iter_mut().filter(|event| is_of_gpu(event)) {
            for key in ["Bytes", "Total Allocated"] {
                event["args"][key] = (event["args"][key].as_i64().expect("a number") / 2).into();
            }
        }
        assert_damaged(&of_trace(&trace), "impossible-block-sizes", path);
    }
}

#[test]
fn what_a_recording_of_a_virtual_gpu_says_twice_is_a_note_only() {
    type Change = fn(&mut Value);
    let changes: [(&str, Change); 4] = [
        ("counted-peaks-differ", |notes| {
            notes["virtual_gpu"]["peaks"]["allocated"] = (1_i64 << 30).into();
        }),
        ("allocator-history-differs", |notes| {
            let sizes = &mut notes["allocator_history"]["devices"][0]["sizes"];
            let sizes = sizes.as_array_mut().expect("sizes");
            for size in sizes {
                *size = (size.as_u64().expect("a size") * 2).into();
            }
        }),
        ("allocator-history-differs", |notes| {
            let history = &mut notes["allocator_history"]["devices"][0];
            let first = history["addresses"][0].as_i64().expect("a step");
            history["addresses"][0] = (first + 1).into();
        }),
        ("allocator-history-differs", |notes| {
            notes["allocator_history"]["devices"][0]["index"] = 3.into();
        }),
    ];
    for (code, change) in changes {
        let mut trace = trace("traces/networks/alexnet.json.zst");
        change(&mut trace["xmem_recording"]);
        let answer = of_trace(&trace);
        assert_damaged(&answer, code, code);
    }
}

/// An upper bound that fits was no verdict.
#[test]
fn sizes_that_were_taken_for_the_largest_possible_had_no_verdict_though_they_fit() {
    let mut trace = trace("traces/networks/alexnet.json.zst");
    let needed = of_trace(&trace).memory.peak.allocated;
    let small = Estimate::builder(Device::custom(needed - Bytes(1))).build();
    for (assumption, share, fits, small_fits) in [
        ("nonzero", 1.0, Verdict::Fits, Verdict::Withheld),
        ("unique", 1.0, Verdict::Fits, Verdict::Withheld),
        ("unique", 0.5, Verdict::Withheld, Verdict::Withheld),
        ("routing", 1.0, Verdict::Withheld, Verdict::Withheld),
    ] {
        trace["xmem_recording"]["virtual_gpu"]["assumed"] = serde_json::json!([{
            "operator": "aten::x", "assumption": assumption, "share": share, "bounded": false, "times": 3,
        }]);
        let answer = of_trace(&trace);
        assert_eq!(answer.verdict, fits, "{assumption} {share}: {:?}", codes(&answer));
        assert!(answer.memory.range.confidence <= Confidence::Likely, "{assumption} {share}");
        let bytes = trace.to_string().into_bytes();
        assert_eq!(
            small.bytes(&bytes).expect("an answer").verdict,
            small_fits,
            "{assumption} {share}"
        );
    }
}

#[test]
fn reserved_memory_that_contradicts_the_events_of_a_gpu_is_a_note_only() {
    for path in OF_GPUS {
        for (reserved, code) in [
            (0_i64, "impossible-reserved-memory"),
            ((40 << 30) + 1, "impossible-reserved-memory"),
            (40 << 30, "unexplained-segments"),
        ] {
            let mut trace = trace(path);
            let last = events(&mut trace).iter_mut().rfind(|event| is_of_gpu(event));
            last.expect("an event")["args"]["Total Reserved"] = Value::from(reserved);
            assert_damaged(&of_trace(&trace), code, path);
        }
    }
}

#[test]
fn a_trace_without_any_shapes_under_a_head_that_says_they_were_recorded_is_certain() {
    for path in ["traces/mlp_adam/trace.json.zst", OF_GPUS[0], OF_GPUS[2]] {
        let mut trace = trace(path);
        for event in events(&mut trace) {
            let Some(args) = event["args"].as_object_mut() else { continue };
            for key in ["Input Dims", "Input type", "Input Strides", "Concrete Inputs"] {
                args.remove(key);
            }
        }
        assert_damaged(&of_trace(&trace), "lost-shapes", path);
        trace["record_shapes"] = 0.into();
        let answer = of_trace(&trace);
        if path.starts_with("traces/mlp_adam") {
            assert_eq!(answer.verdict, Verdict::Fits, "{:?}", codes(&answer));
            assert_ne!(answer.memory.range.confidence, Confidence::Certain);
        }
    }
}

const CASES: [&str; 3] = ["mlp_adam", "vgg11_adagrad", "resnet18_sgdm"];

fn history(snapshot: &mut Snapshot) -> &mut Vec<TraceEntry> {
    &mut snapshot.device_traces[0]
}

fn assert_at_least(snapshot: &Snapshot, code: &str, what: &str) {
    let at_least = of_snapshot(snapshot);
    let codes = codes(&at_least);
    assert_eq!(at_least.verdict, Verdict::Withheld, "{what}: {codes:?}");
    assert_eq!(at_least.withheld, [WithheldReason::IncompleteHistory], "{what}: {codes:?}");
    assert!(at_least.is_lower_bound && codes.contains(&code), "{what}: {codes:?}");
    // What does not fit is decided.
    let small = Device::custom(at_least.memory.peak.reserved - Bytes(1));
    let job = Job::from_snapshot(snapshot, Default::default());
    let answer = Estimate::builder(small).build().job(&job).expect("an answer");
    assert_eq!(answer.verdict, Verdict::DoesNotFit, "{what}");
}

#[test]
fn a_snapshot_without_a_history_fits() {
    for case in CASES {
        let mut snapshot = snapshot(case);
        history(&mut snapshot).clear();
        assert_at_least(&snapshot, "no-history", case);
    }
}

#[test]
fn a_snapshot_of_the_newest_entries_fits() {
    for case in CASES {
        let mut snapshot = snapshot(case);
        let history = history(&mut snapshot);
        history.drain(..history.len() / 2);
        assert_at_least(&snapshot, "late-history", case);
    }
}

#[test]
fn a_snapshot_without_the_end_of_its_history_fits() {
    for case in CASES {
        let mut snapshot = snapshot(case);
        let history = history(&mut snapshot);
        history.truncate(history.len() / 2);
        assert_damaged(&of_snapshot(&snapshot), "contradicting-entries", case);
    }
}

#[test]
fn a_snapshot_with_a_history_without_large_blocks_fits() {
    for case in CASES {
        let mut snapshot = snapshot(case);
        history(&mut snapshot).retain(|entry| {
            let is_block = matches!(
                entry.action,
                Action::Alloc | Action::FreeRequested | Action::FreeCompleted
            );
            !is_block || entry.size < Bytes::mib(1)
        });
        assert_damaged(&of_snapshot(&snapshot), "contradicting-entries", case);
        let codes = of_snapshot(&snapshot);
        assert!(codes.findings.iter().any(|f| f.code == "unexplained-segments"), "{case}");
    }
}

#[test]
fn a_device_that_holds_the_replay_of_halved_requests_and_not_what_was_reserved_fits() {
    for case in CASES {
        let mut snapshot = snapshot(case);
        let intact = of_snapshot(&snapshot).memory.peak.reserved;
        let is_block = |entry: &TraceEntry| {
            matches!(entry.action, Action::Alloc | Action::FreeRequested | Action::FreeCompleted)
        };
        for entry in history(&mut snapshot).iter_mut().filter(|entry| is_block(entry)) {
            entry.size = Bytes(entry.size.get() / 2);
        }
        for block in snapshot.segments.iter_mut().flat_map(|segment| &mut segment.blocks) {
            block.requested = block.requested.map(|requested| Bytes(requested.get() / 2));
        }
        let job = Job::from_snapshot(&snapshot, Default::default());
        let device = Device::custom(intact);
        let small = device.available();
        assert!(small < intact, "the context is taken from it");
        let answer = Estimate::builder(device).build().job(&job).expect("an answer");
        assert_ne!(answer.verdict, Verdict::Fits, "{case}: {:?}", codes(&answer));
    }
}

#[test]
fn a_snapshot_that_contradicts_itself_is_called_damaged_by_a_lenient_answer() {
    let mut snapshot = snapshot("mlp_adam");
    let history = history(&mut snapshot);
    history.truncate(history.len() / 2);
    let job = Job::from_snapshot(&snapshot, Default::default());
    let device = Device::custom(Bytes::gib(80));
    let estimate = Estimate::builder(device).integrity(IntegrityPolicy::Lenient).build();
    let answer = estimate.job(&job).expect("an answer");
    assert!(
        matches!(answer.verdict, Verdict::DamagedFits | Verdict::Withheld),
        "{:?}",
        answer.verdict
    );
}

#[test]
fn intact_recordings_and_snapshots_are_intact() {
    for path in OF_GPUS {
        let answer = of_trace(&trace(path));
        assert_eq!(answer.integrity.condition(), Condition::Intact, "{path}: {:?}", codes(&answer));
    }
    let mut count = 0;
    for folder in std::fs::read_dir(root().join("traces")).expect("traces") {
        let path = folder.expect("an entry").path().join("snapshot.pickle.zst");
        let Ok(job) = Job::from_path(&path, &ReadOptions::default()) else { continue };
        let found = job.findings();
        let condition = job.profile().integrity.condition();
        assert_eq!(condition, Condition::Intact, "{}: {found:?}", path.display());
        assert!(job.profile().gpu.as_ref().is_some_and(|gpu| gpu.from_the_start), "{path:?}");
        count += 1;
    }
    assert!(count > 50, "{count}");
}

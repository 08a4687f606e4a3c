//! Estimates held against recordings of the same job.
//!
//! Folders with `cpu_trace.json.zst` and `gpu_snapshot.pickle.zst` within the directory in
//! `XMEM_PAIRS` are checked as well, if set.
#![expect(clippy::disallowed_methods, reason = "traces and recordings are files")]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use xmem::analyzer::{Phase, Role};
use xmem::convolutions::FittedModel;
use xmem::types::IterationId;
use xmem::{Estimate, Job, ReadOptions, find};
use xmem_eval::{
    CurveDistance, DifferenceKind, EventAction, Limits, RerunOptions, Snapshot, Validation,
    read_snapshot, validate,
};
use xmem_snapshot::{Action, BlockState};
use xmem_types::Bytes;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn job(name: &str) -> Job {
    let path = root().join("traces").join(name).join("trace.json.zst");
    Job::from_path(path, &ReadOptions::default()).expect("a trace")
}

fn snapshot_at(path: &Path) -> Snapshot {
    let bytes = std::fs::read(path).expect("readable");
    read_snapshot(&bytes, &Limits::default()).expect("a snapshot").0
}

fn recording() -> Snapshot {
    snapshot_at(&root().join("crates/xmem-eval/tests/data/mlp_adam.pickle.zst"))
}

fn estimate(without: &[&str]) -> Estimate {
    let device = find("rtx3060-12g").expect("known").clone();
    let rules = without.iter().map(|&rule| rule.to_owned());
    Estimate::builder(device).convolutions(Arc::new(FittedModel)).without_rules(rules).build()
}

fn judge(without: &[&str], snapshot: &Snapshot) -> Validation {
    validate(&estimate(without), &job("mlp_adam"), snapshot, &RerunOptions::default())
        .expect("comparable")
}

/// The differences explain the whole error where the recording allocates most.
fn assert_explained(judged: &Validation, what: &str) {
    let moment = judged.moment.as_ref().expect("something is allocated");
    let explained: i64 = judged.differences.iter().map(|group| group.at_peak).sum();
    assert_eq!(explained, moment.allocated.error(), "{what}");
    let by_role: i64 = judged.roles.iter().map(|row| row.bytes.error()).sum();
    assert_eq!(by_role, moment.allocated.error(), "{what}");
    let counts = judged.requests;
    let paired = counts.same + counts.moved + counts.resized;
    assert_eq!(paired + counts.extra, counts.estimated, "{what}");
    assert_eq!(paired + counts.missing, counts.recorded, "{what}");
}

#[test]
fn a_perfect_estimate_differs_nowhere() {
    let judged = judge(&[], &recording());
    assert_explained(&judged, "mlp_adam");
    assert!(judged.differences.is_empty(), "{:?}", judged.differences);
    assert_eq!((judged.requests.same, judged.requests.recorded), (156, 156));
    for peak in [judged.peaks.allocated, judged.peaks.requested, judged.peaks.reserved] {
        assert_eq!(peak.error(), 0, "{peak:?}");
    }
    assert!(judged.phases.iter().all(|phase| phase.allocated.error() == 0), "{:?}", judged.phases);
    assert_eq!(judged.curves.len(), 3, "one distance for each iteration");
    // Some blocks are freed in another order; no other difference is left.
    let apart = |c: &CurveDistance| c.points == 0 || c.allocated > 0.005 || c.reserved > 0.0;
    assert!(!judged.curves.iter().any(apart), "{:?}", judged.curves);
    assert_eq!(judged.phases.len(), 13, "initialization, and four phases in each iteration");
    assert!(judged.roles.iter().any(|row| row.role == Some(Role::OptimizerState)));
    let moment = judged.moment.expect("something is allocated");
    assert_eq!((moment.place.phase, moment.estimated_peak), (Phase::OptimizerStep, None));
    assert!(moment.site.line.is_some_and(|line| line.contains("torch/optim/adam.py")));
}

#[test]
fn the_figures_are_those_of_an_answer_and_of_the_recording() {
    let answer = estimate(&[]).job(&job("mlp_adam")).expect("an answer");
    let judged = judge(&[], &recording());
    assert_eq!(judged.peaks.allocated.estimated, answer.memory.peak.allocated);
    assert_eq!(judged.peaks.reserved.estimated, answer.memory.peak.reserved);
    // `max-allocated-bytes`, `reserved-bytes` and `requested-bytes` in traces/mlp_adam/expected.toml.
    assert_eq!(judged.peaks.allocated.recorded, Bytes(228_864_000));
    assert_eq!(judged.peaks.reserved.recorded, Bytes(262_144_000));
    assert_eq!(judged.peaks.requested.recorded, Bytes(228_861_132));
}

#[test]
fn what_a_rule_adds_is_missing_without_it() {
    let judged = judge(&["cublas-workspace"], &recording());
    assert_explained(&judged, "without the workspace");
    // One for the forward thread and one for autograd's.
    let [first, second] = &judged.differences[..] else { panic!("{:?}", judged.differences) };
    for group in [first, second] {
        assert_eq!((group.kind, group.count), (DifferenceKind::Missing, 1));
        assert_eq!((group.recorded, group.at_peak), (Some(Bytes(8_519_680)), -8_519_680));
    }
    let lines: Vec<_> = [first, second].iter().filter_map(|g| g.site.line.as_deref()).collect();
    assert_eq!(lines, ["torch/nn/modules/linear.py:134 forward"]);
    let unknown = judged.roles.iter().find(|row| row.role.is_none()).expect("a row without role");
    assert_eq!(unknown.bytes.recorded, Bytes(2 * 8_519_680));
}

#[test]
fn without_any_rule_all_of_the_error_is_explained() {
    for rule in xmem::orchestrator::rules() {
        assert_explained(&judge(&[rule.name], &recording()), rule.name);
    }
}

/// The recording from the second iteration on.
fn later_recording() -> Snapshot {
    let whole = recording();
    let begins = |scope: &&xmem_snapshot::Annotation| {
        whole.strings.resolve(scope.name) == "## iter 1 ##"
            && scope.stage == xmem_snapshot::AnnotationStage::Start
    };
    let begin = whole.annotations.iter().find(begins).and_then(|scope| scope.time).expect("times");
    let mut later = whole;
    later.device_traces[0].retain(|entry| entry.time.is_some_and(|time| time >= begin));
    later
}

#[test]
fn a_recording_that_begins_later_is_compared_from_there_on() {
    let judged = judge(&[], &later_recording());
    assert!(!judged.findings.iter().any(|finding| finding.code == "begins-elsewhere"));
    assert_explained(&judged, "from iteration 1 on");
    assert!(judged.differences.is_empty(), "{:?}", judged.differences);
    assert_eq!((judged.requests.extra, judged.requests.missing), (0, 0));
    assert!(judged.requests.outside > 0, "blocks of iteration 0");
    assert_eq!(judged.phases[0].iteration, Some(IterationId(1)));
}

#[test]
fn a_recording_that_begins_with_other_memory_than_the_estimate_is_told() {
    let judged = judge(&["cublas-workspace"], &later_recording());
    let found = judged.findings.iter().find(|finding| finding.code == "begins-elsewhere");
    let message = &found.expect("both workspaces are missing").message;
    assert!(message.contains("is compared from iteration 1 on"), "{message}");
}

#[test]
fn a_block_of_another_size_is_told_from_one_that_is_missing() {
    let mut snapshot = recording();
    // The 8 KiB biases' temporaries of the first step become 6 KiB.
    let trace = &mut snapshot.device_traces[0];
    let row = trace
        .iter()
        .position(|entry| entry.action == Action::Alloc && entry.size == Bytes(8192))
        .expect("one");
    let addr = trace[row].addr;
    let mut held = true;
    for entry in &mut trace[row..] {
        if entry.addr == addr && held && entry.size == Bytes(8192) {
            entry.size = Bytes(6144);
            held = entry.action != Action::FreeCompleted;
        }
    }
    for block in snapshot.segments.iter_mut().flat_map(|segment| &mut segment.blocks) {
        if block.address == addr && held && block.state == BlockState::ActiveAllocated {
            block.requested = Some(Bytes(6144));
        }
    }
    let judged = judge(&[], &snapshot);
    assert_explained(&judged, "resized");
    let resized: Vec<_> =
        judged.differences.iter().filter(|g| g.kind == DifferenceKind::Resized).collect();
    let [only] = resized[..] else { panic!("{:?}", judged.differences) };
    assert_eq!((only.estimated, only.recorded), (Some(Bytes(8192)), Some(Bytes(6144))));
    assert_eq!(judged.requests.resized, 1);
}

#[test]
fn another_job_is_hardly_alike() {
    let other = job("gpt2_adamw");
    let judged = validate(&estimate(&[]), &other, &recording(), &RerunOptions::default())
        .expect("comparable");
    assert!(judged.findings.iter().any(|finding| finding.code == "few-blocks-match"));
    assert_explained(&judged, "another job");
}

#[test]
fn pairs_of_trace_and_recording_are_explained() {
    let Some(folder) = std::env::var_os("XMEM_PAIRS") else { return };
    let mut folders: Vec<PathBuf> = std::fs::read_dir(folder)
        .expect("the folder is there")
        .map(|entry| entry.expect("readable").path())
        .filter(|path| path.join("gpu_snapshot.pickle.zst").is_file())
        .collect();
    folders.sort();
    for folder in folders {
        let snapshot = snapshot_at(&folder.join("gpu_snapshot.pickle.zst"));
        let trace = folder.join("cpu_trace.json.zst");
        let job = Job::from_path(trace, &ReadOptions::default()).expect("a trace");
        let judged = validate(&estimate(&[]), &job, &snapshot, &RerunOptions::default());
        assert_explained(&judged.expect("comparable"), &folder.to_string_lossy());
    }
}

#[test]
fn an_entry_that_did_not_happen_is_seen_to_be_unlike_the_recording() {
    let mut snapshot = recording();
    let trace = &mut snapshot.device_traces[0];
    let alloc = trace.iter().rposition(|entry| entry.action == Action::Alloc).expect("one");
    trace[alloc].addr.0 += 4096;
    let judged = judge(&[], &snapshot);
    assert!(!judged.rerun.is_exact());
    let first = judged.rerun.divergences.first.as_ref().expect("a difference");
    assert_eq!(first.recorded[0].kind, EventAction::Alloc);
    assert!(judged.findings.iter().any(|finding| finding.code == "recording-not-reproduced"));
}

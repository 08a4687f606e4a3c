//! Recordings that go on to the end of a script, held against the peaks of the same scripts without a recorder.

#![expect(clippy::disallowed_methods, reason = "tests read recordings")]

use std::path::{Path, PathBuf};
use xmem::analyzer::ScriptPart;
use xmem::predict::{Confidence, CoveredExtent, MomentSpan, SnapshotEnd};
use xmem::{Answer, Bytes, Estimate, Verdict, find};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../traces/whole_runs")
}

fn answer(script: &str, what_if: Option<&str>) -> Answer {
    let mut builder = Estimate::builder(find("a100-40g").expect("known").clone());
    if let Some(text) = what_if {
        builder = builder.what_if(text.parse().expect("a what-if"));
    }
    builder.build().path(folder().join(format!("{script}.json.zst"))).expect("an answer")
}

fn highest(answer: &Answer, part: ScriptPart) -> Option<Bytes> {
    let peak = answer.memory.coverage.parts.iter().find(|peak| peak.part == part);
    peak.map(|peak| peak.allocated)
}

#[test]
fn the_answer_about_three_steps_was_called_certain_where_later_ones_need_more() {
    let text = std::fs::read_to_string(folder().join("recorded.toml")).expect("readable");
    let scripts: toml::Table = text.parse().expect("TOML");
    assert!(!scripts.is_empty());
    for (script, peaks) in &scripts {
        let bytes = |key: &str| Bytes(peaks[key].as_integer().expect("bytes").unsigned_abs());
        let answer = answer(script, None);
        let peak = &answer.memory.peak;
        let recorded = (bytes("allocated"), bytes("reserved"));
        assert_eq!((peak.allocated, peak.reserved), recorded, "{script}");
        assert_eq!(answer.memory.range.confidence, Confidence::Certain, "{script}");
        assert_eq!(answer.memory.coverage.extent, CoveredExtent::Whole, "{script}");
        let last = answer.memory.per_iteration.last().expect("iterations");
        assert!(last.allocated < peak.allocated, "{script}: the peak is not a later one");
        let at = peak.at.as_ref().expect("a place");
        assert!(at.part.is_some() && at.iteration.is_none(), "{script}: {at:?}");
    }
}

#[test]
fn each_part_of_a_script_has_its_peak() {
    let answer = answer("evaluation", None);
    let counts: Vec<_> =
        answer.memory.coverage.parts.iter().map(|peak| (peak.part.name(), peak.count)).collect();
    assert_eq!(counts, [("setup", 1), ("training", 3), ("evaluation", 3), ("saving", 3)]);
    let evaluation = highest(&answer, ScriptPart::Evaluation);
    assert_eq!(evaluation, Some(answer.memory.peak.allocated));
    assert!(highest(&answer, ScriptPart::Training) < evaluation);
    assert!(highest(&answer, ScriptPart::Saving) < evaluation);
}

#[test]
fn the_timeline_has_the_parts_of_the_script_behind_the_recorded_iterations() {
    let read = xmem::ReadOptions::default();
    let job = xmem::Job::from_path(folder().join("evaluation.json.zst"), &read).expect("a job");
    let estimate = Estimate::builder(find("a100-40g").expect("known").clone()).build();
    let predicted = estimate.predict(&job).expect("predicted");
    let timeline = predicted.timeline(SnapshotEnd::Job);
    let spans = timeline.phases.iter().filter(|span| span.part.is_some());
    assert!(spans.clone().all(|span| span.iteration.is_none()));
    let names: Vec<&str> = spans.map(MomentSpan::name).collect();
    let epoch = ["training", "evaluation"];
    assert_eq!(names, [epoch, epoch, epoch].concat());
    assert!(timeline.phases.iter().any(|span| span.name() == "backward"));
    let at = timeline.phases.iter().find(|span| span.moments.contains(&timeline.peak));
    assert_eq!(at.map(MomentSpan::name), Some("evaluation"));
}

#[test]
fn a_rest_without_the_notes_of_the_iterations_was_ignored_and_the_answer_certain() {
    let packed = std::fs::read(folder().join("evaluation.json.zst")).expect("readable");
    let mut text = zstd::decode_all(packed.as_slice()).expect("zstd");
    let notes = text.windows(16).position(|bytes| bytes == b"\"xmem_recording\"").expect("notes");
    let brace = notes + text[notes..].iter().position(|&byte| byte == b'{').expect("an object");
    // A value that is no object.
    text.splice(brace..brace, *b"[7], \"other\": ");
    let estimate = Estimate::builder(find("a100-40g").expect("known").clone()).build();
    let answer = estimate.bytes(&text).expect("an answer");
    assert!(answer.memory.range.confidence < Confidence::Likely);
    assert_eq!(answer.verdict, Verdict::Withheld);
}

#[test]
fn a_what_if_about_the_recorded_iterations_leaves_out_the_rest() {
    let (whole, other) =
        (answer("evaluation", None), answer("evaluation", Some("collectives=run-ahead")));
    assert!(other.memory.peak.allocated < whole.memory.peak.allocated);
    assert_eq!(other.memory.coverage.extent, CoveredExtent::Iterations);
    assert!(other.findings.iter().any(|finding| finding.code == "rest-left-out"));
    assert!(other.memory.range.confidence < Confidence::Certain);
}

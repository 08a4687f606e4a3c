//! A run as the head of its data and its columns. `web/src/data/run.ts` reads them.

use super::columns::{ColumnHead, Columns, Encoding};
use super::fit::FitHead;
use super::offload::OffloadHead;
use super::plan::PlanHead;
use super::{PageRun, PageWhatIf};
use serde::Serialize;
use serde_json::value::RawValue;
use xmem::Bytes;
use xmem::analyzer::Role;
use xmem::predict::{MomentSpan, Timeline, TimelineBlock, TimelineFailure, TimelineSegment};
use xmem::simulator::PoolKind;

#[derive(Serialize)]
pub(super) struct RunHead<'a> {
    name: &'a str,
    answer: &'a RawValue,
    timeline: TimelineHead<'a>,
    what_ifs: Vec<WhatIfDto<'a>>,
    smallest_device_bytes: Option<u64>,
    plan: Option<PlanHead<'a>>,
    offload: Option<OffloadHead<'a>>,
    fit: Option<FitHead<'a>>,
}

/// The figures under another setting.
#[derive(Serialize)]
struct WhatIfDto<'a> {
    options: &'a str,
    verdict: &'static str,
    decision: &'static str,
    allocated_bytes: u64,
    reserved_bytes: u64,
    device_bytes: u64,
}

impl<'a> From<&'a PageWhatIf> for WhatIfDto<'a> {
    fn from(PageWhatIf { options, answer }: &'a PageWhatIf) -> Self {
        let peak = &answer.memory.peak;
        Self {
            options,
            verdict: answer.verdict.name(),
            decision: answer.decision().0.name(),
            allocated_bytes: peak.allocated.get(),
            reserved_bytes: peak.reserved.get(),
            device_bytes: peak.device.get(),
        }
    }
}

#[derive(Serialize)]
struct TimelineHead<'a> {
    texts: &'a [String],
    roles: Vec<&'static str>,
    phases: Vec<&'static str>,
    evidences: Vec<&'static str>,
    rules: Vec<&'static str>,
    /// Phase, iteration or -1, first moment, end.
    spans: Vec<(usize, i64, u32, u32)>,
    within: (u32, u32),
    peak: u32,
    reserved_peak: u32,
    out_of_memory: Option<u32>,
    left_out: Vec<LeftOutDto>,
    failures: Vec<FailureDto>,
    columns: Vec<ColumnHead>,
}

/// A recorded block that a rule left out: rows of the head's lists, and bytes.
#[derive(Serialize)]
struct LeftOutDto {
    rule: usize,
    bytes: u64,
    role: u64,
    phase: usize,
    iteration: Option<u32>,
    op: u32,
    module: u32,
    line: u32,
}

/// An allocation that failed in the recorded job.
#[derive(Serialize)]
struct FailureDto {
    /// The last moment before it.
    after: u32,
    bytes: u64,
    device_free_bytes: Option<u64>,
}

/// Names in the order in which they are met.
#[derive(Default)]
struct Met(Vec<&'static str>);

impl Met {
    fn row(&mut self, name: &'static str) -> usize {
        self.0.iter().position(|known| *known == name).unwrap_or_else(|| {
            self.0.push(name);
            self.0.len() - 1
        })
    }
}

/// The head of a run, and its columns.
pub(super) fn encode<'a>(
    run: &PageRun<'a>,
    (plan, offload, fit): (Option<PlanHead<'a>>, Option<OffloadHead<'a>>, Option<FitHead<'a>>),
) -> serde_json::Result<(RunHead<'a>, Vec<u8>)> {
    let timeline = run.timeline;
    let mut columns = Columns::default();
    let (mut phases, mut evidences, mut rules) = (Met::default(), Met::default(), Met::default());
    let spans = timeline.phases.iter().map(|span| {
        let iteration = span.iteration.map_or(-1, |id| i64::from(id.0));
        (phases.row(span.name()), iteration, span.moments.start, span.moments.end)
    });
    let spans = spans.collect();
    moments(timeline, &mut columns);
    blocks(timeline, &mut columns);
    let row = |met: &mut Met, name: &'static str| met.row(name) as u64;
    let all = &timeline.blocks;
    let phase = |block: &TimelineBlock| {
        let spans = &timeline.phases;
        let at = spans.partition_point(|span| span.moments.end <= block.start);
        let part = spans.get(at).filter(|span| span.part.is_some());
        part.map_or(block.phase.name(), MomentSpan::name)
    };
    columns.add("phase", Encoding::Plain, all.iter().map(|b| row(&mut phases, phase(b))));
    columns.add("evidence", Encoding::Plain, all.iter().map(|b| row(&mut evidences, b.evidence)));
    let rule = |block: &TimelineBlock| block.rule.map_or(0, |name| row(&mut rules, name) + 1);
    columns.add("rule", Encoding::Plain, all.iter().map(rule));
    segments(&timeline.segments, &mut columns);
    at_failure(timeline, &mut columns);
    let left_out = timeline.left_out.iter().map(|of| LeftOutDto {
        rule: rules.row(of.rule),
        bytes: of.size.get(),
        role: role_row(of.role),
        phase: phases.row(of.phase.name()),
        iteration: of.iteration.map(|id| id.0),
        op: of.op.0,
        module: of.module.0,
        line: of.line.0,
    });
    let left_out = left_out.collect();
    let failure = |of: &TimelineFailure| FailureDto {
        after: of.after,
        bytes: of.size.get(),
        device_free_bytes: of.device_free.map(Bytes::get),
    };
    let failures = timeline.failures.iter().map(failure).collect();
    let head = TimelineHead {
        texts: timeline.texts(),
        roles: Role::ALL.iter().map(|role| role.name()).collect(),
        phases: phases.0,
        evidences: evidences.0,
        rules: rules.0,
        spans,
        within: (timeline.within.start, timeline.within.end),
        peak: timeline.peak,
        reserved_peak: timeline.reserved_peak,
        out_of_memory: timeline.out_of_memory,
        left_out,
        failures,
        columns: columns.heads,
    };
    let head = RunHead {
        name: run.name,
        answer: serde_json::from_str(run.answer)?,
        timeline: head,
        what_ifs: run.what_ifs.iter().map(WhatIfDto::from).collect(),
        smallest_device_bytes: run.smallest.map(Bytes::get),
        plan,
        offload,
        fit,
    };
    Ok((head, columns.bytes))
}

fn moments(timeline: &Timeline, columns: &mut Columns) {
    let all = &timeline.moments;
    columns.add("time", Encoding::Delta, all.iter().map(|moment| moment.time.get() as u64));
    columns.add("allocated", Encoding::Delta, all.iter().map(|m| m.allocated.get()));
    let waiting = all.iter().map(|m| m.active.get().saturating_sub(m.allocated.get()));
    columns.add("waiting", Encoding::Plain, waiting);
    let rounding = all.iter().map(|m| m.allocated.get().saturating_sub(m.requested.get()));
    columns.add("rounding", Encoding::Delta, rounding);
    columns.add("reserved", Encoding::Delta, all.iter().map(|m| m.reserved.get()));
}

fn blocks(timeline: &Timeline, columns: &mut Columns) {
    let all = &timeline.blocks;
    let after = |start: u32, later: Option<u32>| later.map_or(0, |later| u64::from(later - start));
    let role = |block: &TimelineBlock| role_row(block.role);
    let mut add = |name, encoding, value: &dyn Fn(&TimelineBlock) -> u64| {
        columns.add(name, encoding, all.iter().map(value));
    };
    add("asked", Encoding::Plain, &|b| b.requested.get());
    add("rounded", Encoding::Plain, &|b| b.size.get().saturating_sub(b.requested.get()));
    add("recorded", Encoding::Plain, &|b| b.recorded.map_or(0, |bytes| bytes.get() + 1));
    add("addr", Encoding::Delta, &|b| b.addr.0);
    add("segment", Encoding::Plain, &|b| b.segment.map_or(0, |row| u64::from(row) + 1));
    add("stream", Encoding::Plain, &|b| u64::from(b.stream.0));
    add("start", Encoding::Delta, &|b| u64::from(b.start));
    add("freed", Encoding::Plain, &|b| after(b.start, b.freed));
    add("end", Encoding::Plain, &|b| after(b.start, b.end));
    add("role", Encoding::Plain, &role);
    add("iteration", Encoding::Plain, &|b| b.iteration.map_or(0, |id| u64::from(id.0) + 1));
    add("path", Encoding::Plain, &|b| u64::from(b.path.0));
    add("op", Encoding::Plain, &|b| u64::from(b.op.0));
    add("module", Encoding::Plain, &|b| u64::from(b.module.0));
    add("line", Encoding::Plain, &|b| u64::from(b.line.0));
    let paths = timeline.paths();
    let ends = paths.iter().scan(0, |end, path| {
        *end += path.len() as u64;
        Some(*end)
    });
    columns.add("path_ends", Encoding::Delta, ends);
    let texts = paths.iter().flatten().map(|text| u64::from(text.0));
    columns.add("path_texts", Encoding::Plain, texts);
}

/// The row of a role in the head.
fn role_row(of: Role) -> u64 {
    Role::ALL.iter().position(|role| *role == of).unwrap_or(Role::ALL.len() - 1) as u64
}

fn kind(segment: &TimelineSegment) -> u64 {
    u64::from(segment.pool == PoolKind::Large)
        | u64::from(segment.expandable) << 1
        | u64::from(segment.private_pool.is_some()) << 2
}

/// What the request that the device cannot serve meets; columns of no rows if all are served.
fn at_failure(timeline: &Timeline, columns: &mut Columns) {
    let memory = timeline.at_failure.as_ref();
    let (blocks, all) = memory.map_or((&[][..], &[][..]), |of| (&of.blocks, &of.segments));
    let start = |s: &TimelineSegment| u64::from(s.start);
    columns.add("failed_row", Encoding::Delta, blocks.iter().map(|held| u64::from(held.row)));
    columns.add("failed_addr", Encoding::Delta, blocks.iter().map(|held| held.addr.0));
    columns.add("failed_size", Encoding::Plain, blocks.iter().map(|held| held.size.get()));
    columns.add("failed_segment_addr", Encoding::Delta, all.iter().map(|s| s.addr.0));
    columns.add("failed_segment_size", Encoding::Plain, all.iter().map(|s| s.size.get()));
    columns.add("failed_segment_stream", Encoding::Plain, all.iter().map(|s| s.stream.0.into()));
    columns.add("failed_segment_kind", Encoding::Plain, all.iter().map(kind));
    columns.add("failed_segment_start", Encoding::Delta, all.iter().map(start));
}

fn segments(all: &[TimelineSegment], columns: &mut Columns) {
    let end = |segment: &TimelineSegment| {
        segment.end.map_or(0, |end| u64::from(end.saturating_sub(segment.start)))
    };
    columns.add("segment_addr", Encoding::Delta, all.iter().map(|s| s.addr.0));
    columns.add("segment_size", Encoding::Plain, all.iter().map(|s| s.size.get()));
    columns.add("segment_stream", Encoding::Plain, all.iter().map(|s| u64::from(s.stream.0)));
    columns.add("segment_kind", Encoding::Plain, all.iter().map(kind));
    columns.add("segment_start", Encoding::Delta, all.iter().map(|s| u64::from(s.start)));
    columns.add("segment_end", Encoding::Plain, all.iter().map(end));
}

#[cfg(test)]
mod tests {
    use super::*;
    use xmem::predict::SnapshotEnd;
    use xmem::{Device, Estimate, Job, ReadOptions};

    /// The values of a column, read as the page does.
    fn column(name: &str, heads: &serde_json::Value, mut bytes: &[u8]) -> Vec<u64> {
        let heads = heads.as_array().expect("columns");
        let length = |head: &serde_json::Value| head["bytes"].as_u64().expect("a length") as usize;
        let at = heads.iter().position(|head| head["name"] == name).expect("a column");
        bytes = &bytes[heads[..at].iter().map(length).sum()..];
        bytes = &bytes[..length(&heads[at])];
        let (mut values, mut value, mut shift, mut last) = (Vec::new(), 0_u64, 0, 0_u64);
        for byte in bytes {
            value |= u64::from(byte & 127) << shift;
            shift += 7;
            if byte & 128 == 0 {
                if heads[at]["encoding"] == "delta" {
                    last = last.wrapping_add((value >> 1) ^ (value & 1).wrapping_neg());
                    value = last;
                }
                values.push(std::mem::take(&mut value));
                shift = 0;
            }
        }
        assert_eq!(values.len() as u64, heads[at]["count"].as_u64().expect("a count"));
        values
    }

    #[test]
    fn columns_have_the_figures_of_the_answer() {
        let memory = |bytes: i64, addr, ts| {
            format!(
                r#"{{"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "pid": 1, "tid": 1, "ts": {ts},
                "args": {{"Bytes": {bytes}, "Addr": {addr}, "Device Type": 0, "Device Id": -1}}}}"#
            )
        };
        let events = [
            r#"{"ph": "X", "cat": "cpu_op", "name": "aten::mul", "pid": 1, "tid": 1, "ts": 1, "dur": 9}"#
                .to_owned(),
            memory(83_886_080, 64, 2),
            memory(5_000_000, 128, 3),
            r#"{"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 1, "tid": 1, "ts": 20, "dur": 9}"#
                .to_owned(),
            memory(-5_000_000, 128, 21),
            memory(1_000, 128, 22),
        ];
        let trace = format!(r#"{{"traceEvents": [{}]}}"#, events.join(","));
        let job = Job::from_bytes(trace.as_bytes(), &ReadOptions::default()).expect("a trace");
        let estimate = Estimate::builder(Device::custom(Bytes::gib(2))).build();
        let answer = estimate.job(&job).expect("an answer");
        let timeline = estimate.predict(&job).expect("a prediction").timeline(SnapshotEnd::Job);
        let run = PageRun {
            name: "run",
            timeline: &timeline,
            answer: "{}",
            what_ifs: &[],
            smallest: None,
            plan: None,
            offload: None,
            fit: None,
        };
        let (head, bytes) = encode(&run, (None, None, None)).expect("JSON");
        let head = serde_json::to_value(head).expect("JSON");
        let columns = |name| column(name, &head["timeline"]["columns"], &bytes);
        let highest = |name| columns(name).into_iter().max().expect("moments");
        assert_eq!(highest("allocated"), answer.memory.peak.allocated.get());
        assert_eq!(highest("reserved"), answer.memory.peak.reserved.get());
        let sizes = timeline.blocks.iter().map(|block| block.requested.get());
        assert_eq!(columns("asked"), sizes.collect::<Vec<_>>());
        let moments = timeline.moments.iter().map(|moment| moment.allocated.get());
        assert_eq!(columns("allocated"), moments.collect::<Vec<_>>());
    }
}

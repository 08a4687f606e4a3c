//! What 2, 4 and 8 times the events cost, stage by stage: of synthetic traces that grow in one
//! dimension each, then of those that are hard in one way each (`synthetic`).
//!
//! Figures are CPU time on one thread, the best of a few runs. Sorting costs n log n, and what
//! fits into a cache once does not for ever, so that a little more than 8 is to be expected; twice
//! as much is not. `XMEM_BENCH_EVENTS` is how many events the smaller trace of each hard kind has.
#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a bench takes its size from the environment and prints figures"
)]

use std::fmt::Write as _;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;
use xmem::convolutions::FittedModel;
use xmem::{Estimate, Job, ReadOptions};
use xmem_benches::clock::cpu_time;
use xmem_benches::is_wanted;
use xmem_benches::synthetic::{Corner, Training};
use xmem_report::json::{ReplayDocument, Rules};

/// Names of the columns.
const STAGES: [&str; 5] = ["read", "analyze", "lower", "estimate", "report"];
/// Events of the smaller trace of a hard kind.
const EVENTS: usize = 25_000;
/// What one trace may take, all runs together, if that is enough for three.
const TIME: Duration = Duration::from_millis(150);

fn main() {
    if !is_wanted("growth") {
        return;
    }
    let estimate = Estimate::builder(xmem::find("h200-141g").expect("a known device").clone())
        .convolutions(Arc::new(FittedModel));
    let estimate = estimate.build();
    println!("CPU time on one thread, best of some runs; estimate: lower, replay, range\n");
    println!("{}", heading("dimension"));
    type Grow = fn(usize) -> Training;
    let dimensions: [(&str, usize, Grow); 4] = [
        ("iterations", 50, |iterations| Training { iterations, ..Training::default() }),
        ("live blocks", 100, |layers| Training { layers, ..Training::default() }),
        ("depth", 500, |depth| Training { depth, ..Training::default() }),
        ("threads", 1500, |threads| Training { threads: threads as u32, ..Training::default() }),
    ];
    for (name, size, job) in dimensions {
        let base = Cost::of(&job(size).trace(), &estimate);
        println!("{}", base.milliseconds(name));
        for times in [2, 4, 8] {
            let cost = Cost::of(&job(times * size).trace(), &estimate);
            println!("{}", cost.ratios(&base));
        }
    }
    let events = std::env::var("XMEM_BENCH_EVENTS").ok().and_then(|text| text.parse().ok());
    let events = events.unwrap_or(EVENTS);
    println!("\n{}", heading("hard kind"));
    for corner in Corner::ALL {
        let base = Cost::of(&corner.trace(events), &estimate);
        println!("{}", base.milliseconds(corner.name()));
        println!("{}", Cost::of(&corner.trace(8 * events), &estimate).ratios(&base));
    }
}

/// What one trace costs.
#[derive(Clone, Copy)]
struct Cost {
    events: u64,
    stages: [Duration; STAGES.len()],
}

impl Cost {
    /// The least of some runs, stage by stage.
    fn of(trace: &[u8], estimate: &Estimate) -> Self {
        let mut best = Self::once(trace, estimate);
        let mut spent = best.total();
        let mut runs = 1;
        while runs < 3 || spent < TIME {
            let run = Self::once(trace, estimate);
            for (best, took) in best.stages.iter_mut().zip(run.stages) {
                *best = took.min(*best);
            }
            spent += run.total();
            runs += 1;
        }
        best
    }

    fn once(trace: &[u8], estimate: &Estimate) -> Self {
        let options = ReadOptions { threads: NonZeroUsize::new(1), ..ReadOptions::default() };
        let (read, parts) = cpu_time(|| xmem_trace::read_bytes(trace, &options));
        let (trace, notes) = parts.expect("a trace");
        let events = trace.event_count;
        let (analyze, job) = cpu_time(|| Job::from_trace(trace, notes));
        let (lower, _) = cpu_time(|| estimate.predict(&job).map(|p| p.prediction().block_count()));
        let (estimated, answer) = cpu_time(|| estimate.job(&job).expect("an answer"));
        let (report, _) = cpu_time(|| {
            let document = ReplayDocument::new("synthetic.json", "", &answer, Rules::Omit);
            xmem_report::json::pretty(&document)
        });
        Self { events, stages: [read, analyze, lower, estimated, report] }
    }

    /// Without the lowering, which is part of the estimate.
    fn total(&self) -> Duration {
        self.stages.iter().sum::<Duration>() - self.stages[2]
    }

    fn milliseconds(&self, name: &str) -> String {
        let mut line = format!("{name:<30} {:>9}", self.events);
        for took in self.stages.iter().chain([&self.total()]) {
            let _ = write!(line, " {:>9.2}", took.as_secs_f64() * 1e3);
        }
        line + " ms"
    }

    fn ratios(&self, base: &Self) -> String {
        let mut line = format!("{:<30} {:>9.2}", "", self.events as f64 / base.events as f64);
        let pairs = self.stages.iter().zip(&base.stages).map(|(a, b)| (*a, *b));
        for (took, before) in pairs.chain([(self.total(), base.total())]) {
            let _ = write!(line, " {:>9.2}", took.as_secs_f64() / before.as_secs_f64());
        }
        line + " times"
    }
}

fn heading(first: &str) -> String {
    let mut line = format!("{first:<30} {:>9}", "events");
    for stage in STAGES.iter().chain(&["total"]) {
        let _ = write!(line, " {stage:>9}");
    }
    line
}

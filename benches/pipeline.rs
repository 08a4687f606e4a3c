//! The stages behind the analysis, and the way from a file to an answer as a whole, over a small, a
//! middle and a large recorded trace.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;
use std::path::PathBuf;
use std::sync::Arc;
use xmem::convolutions::FittedModel;
use xmem::{Answer, Estimate, Job, ReadOptions};
use xmem_report::json::{self, ReplayDocument, Rules};
use xmem_report::text::{self, Color, Style};

/// Small, middle, large.
const TRACES: [&str; 3] = ["mlp_adam", "resnet18_sgdm", "big_gpt2s_adam_b6"];

fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../traces").join(name).join("trace.json.zst")
}

fn estimate() -> Estimate {
    Estimate::builder(xmem::find("a100-40g").expect("a known device").clone())
        .convolutions(Arc::new(FittedModel))
        .build()
}

fn job(name: &str) -> Job {
    Job::from_path(path(name), &ReadOptions::default()).expect("a trace of the repository")
}

/// Blocks into a GPU schedule.
fn lower(c: &mut Criterion) {
    let estimate = estimate();
    for name in TRACES {
        let job = job(name);
        let mut group = c.benchmark_group("lower");
        group.throughput(Throughput::Elements(job.profile().blocks.len() as u64));
        group.bench_function(name, |b| {
            b.iter(|| estimate.predict(black_box(&job)));
        });
        group.finish();
    }
}

/// A file into an answer.
fn whole(c: &mut Criterion) {
    let estimate = estimate();
    for name in TRACES {
        let (path, events) = (path(name), job(name).facts().events);
        let mut group = c.benchmark_group("estimate");
        group.sample_size(20).throughput(Throughput::Elements(events));
        group.bench_function(name, |b| {
            b.iter(|| estimate.path(black_box(&path)).expect("a trace of the repository"));
        });
        group.finish();
    }
}

/// An answer into what is printed.
fn report(c: &mut Criterion) {
    let estimate = estimate();
    for name in TRACES {
        let answer: Answer = estimate.job(&job(name)).expect("an allocator that is known");
        let mut group = c.benchmark_group("report");
        group.bench_function(format!("text/{name}"), |b| {
            let style = Style { color: Color::Plain, width: 100 };
            b.iter(|| text::answer(name, black_box(&answer), &text::Extent::FULL, &style));
        });
        group.bench_function(format!("json/{name}"), |b| {
            b.iter(|| {
                json::pretty(&ReplayDocument::new(name, "", black_box(&answer), Rules::Omit))
            });
        });
        group.finish();
    }
}

criterion_group!(benches, lower, whole, report);
criterion_main!(benches);

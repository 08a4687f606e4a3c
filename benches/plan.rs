//! Planners by the number of blocks, on lists as training has them, and steps of the local search per second.

#[path = "../crates/xmem-planner/tests/integration/lists/mod.rs"]
mod lists;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use lists::{MINIMALLOC, minimalloc, training};
use std::hint::black_box;
use std::time::Duration;
use xmem_planner::{Limits, Planner, plan};

/// The steps of a search that is measured.
const STEPS: u64 = 2000;

fn growth(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("plan");
    group.sample_size(10);
    for (name, most) in [
        ("auto", 1_000_000),
        ("bestfit", 1_000_000),
        ("skyline-multi", 100_000),
        ("greedy-by-size", 100_000),
        ("gergov", 10_000),
    ] {
        let planner: Planner = name.parse().expect("a planner");
        for blocks in [1000, 10_000, 100_000, 1_000_000] {
            if blocks > most {
                continue;
            }
            let list = training(blocks, 1);
            group.throughput(Throughput::Elements(list.len() as u64));
            group.bench_function(BenchmarkId::new(name, blocks), |bench| {
                bench.iter(|| plan(black_box(&list), planner, &Limits::default()));
            });
        }
    }
    group.finish();
}

fn search(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("search");
    group.sample_size(10).throughput(Throughput::Elements(STEPS));
    let limits = Limits { nodes: Some(STEPS), time: Duration::from_secs(600), ..Limits::default() };
    for (name, text) in MINIMALLOC {
        let list = minimalloc(text);
        group.bench_function(BenchmarkId::new("skyline-ils", name), |bench| {
            bench.iter(|| plan(black_box(&list), Planner::SkylineIls, &limits));
        });
    }
    group.finish();
}

criterion_group!(benches, growth, search);
criterion_main!(benches);

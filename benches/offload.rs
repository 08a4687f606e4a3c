//! Offloading policies on a recorded network, and their memory events in placements.

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;
use xmem::offload::{Duplex, Link, Memory, Placement, Policy, place, simulate, smallest_capacity};
use xmem::timing::TimeModel;
use xmem::{Bytes, Estimate, FittedModel, Job, Limits, ReadOptions, find};

const NETWORK: &str = "traces/networks/inception_v4.json.zst";

fn offload(c: &mut Criterion) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(NETWORK);
    let job = Job::from_path(path, &ReadOptions::default()).expect("a trace");
    let device = find("p100-16g").expect("known").clone();
    let model = TimeModel::of(&device);
    let estimate = Estimate::builder(device).convolutions(Arc::new(FittedModel)).build();
    let graph = estimate.training_step(&job, &model).expect("a step").graph;
    let link = Link {
        bandwidth: Bytes(model.pcie.get()),
        latency: model.transfer_latency,
        duplex: Duplex::Half,
    };
    let mut group = c.benchmark_group("offload");
    group.bench_function("graph", |b| {
        b.iter(|| estimate.training_step(black_box(&job), &model).expect("a step"));
    });
    for policy in Policy::ALL {
        group.bench_function(BenchmarkId::new("simulate", policy), |b| {
            b.iter(|| simulate(black_box(&graph), policy, &link, Memory::Unlimited));
        });
    }
    let run = simulate(&graph, Policy::Dymem, &link, Memory::Unlimited);
    for placement in Placement::ONLINE {
        group.bench_function(BenchmarkId::new("place", placement), |b| {
            b.iter(|| place(black_box(&run), placement, &Limits::default()).expect("placed"));
        });
    }
    group.sample_size(10);
    group.bench_function("smallest_capacity", |b| {
        b.iter(|| smallest_capacity(black_box(&graph), Policy::Dymem, &link, Placement::Gtbm));
    });
    group.finish();
}

criterion_group!(benches, offload);
criterion_main!(benches);

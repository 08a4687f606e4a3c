//! Offloading policies on a recorded network, and their memory events in placements. The floors are what no implementation
//! can do without: the lowering of the trace for a graph, a walk through the requests of the step for a simulation, and the
//! sum of live bytes after each event for a placement.

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;
use xmem::convolutions::FittedModel;
use xmem::{Bytes, Estimate, Job, ReadOptions, find};
use xmem_studies::offload::{
    Action, Duplex, Graph, Link, Memory, Moves, Placement, Policy, place, simulate,
    smallest_capacity, vdnn_dynamic,
};
use xmem_studies::offloading::TrainingStep;
use xmem_studies::planner::Limits;
use xmem_studies::timing::TimeModel;

const NETWORK: &str = "traces/networks/inception_v4.json.zst";

/// The most bytes of a step that are live, by its requests alone.
fn walk(graph: &Graph) -> Bytes {
    let (mut live, mut most) = (Bytes::ZERO, Bytes::ZERO);
    for action in graph.steps().iter().flat_map(|step| &step.actions) {
        match *action {
            Action::Alloc(block) => live += graph.block(block).size,
            Action::Free(block) => live -= graph.block(block).size,
        }
        most = most.max(live);
    }
    most
}

fn offload(c: &mut Criterion) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(NETWORK);
    let job = Job::from_path(path, &ReadOptions::default()).expect("a trace");
    let device = find("p100-16g").expect("known").clone();
    let model = TimeModel::of(&device);
    let estimate = Estimate::builder(device).convolutions(Arc::new(FittedModel)).build();
    let predicted = estimate.predict(&job).expect("a prediction");
    let prediction = predicted.prediction();
    let graph = TrainingStep::of(prediction, &model).expect("a step").graph;
    let link = Link {
        bandwidth: Bytes(model.pcie.get()),
        latency: model.transfer_latency,
        duplex: Duplex::Half,
    };
    let mut group = c.benchmark_group("offload");
    group.bench_function("floor/graph", |b| {
        b.iter(|| {
            estimate.predict(black_box(&job)).expect("a prediction").prediction().requests().len()
        });
    });
    group.bench_function("floor/simulate", |b| b.iter(|| walk(black_box(&graph))));
    group.bench_function("graph", |b| {
        b.iter(|| TrainingStep::of(black_box(prediction), &model).expect("a step"));
    });
    for policy in Policy::ALL {
        group.bench_function(BenchmarkId::new("simulate", policy), |b| {
            b.iter(|| simulate(black_box(&graph), policy, &link, Memory::Unlimited));
        });
    }
    let run = simulate(&graph, Policy::Dymem(Moves::Same), &link, Memory::Unlimited);
    group.bench_function("floor/place", |b| b.iter(|| black_box(&run).peak_live()));
    for placement in Placement::ONLINE {
        group.bench_function(BenchmarkId::new("place", placement), |b| {
            b.iter(|| place(black_box(&run), placement, &Limits::default()).expect("placed"));
        });
    }
    group.sample_size(10);
    group.bench_function("smallest_capacity", |b| {
        b.iter(|| {
            smallest_capacity(black_box(&graph), Policy::Dymem(Moves::Same), &link, Placement::Gtbm)
        });
    });
    group.bench_function("vdnn_dynamic", |b| {
        // In so little memory, workspaces are chosen pass by pass.
        let capacity = Bytes::mib(3150);
        b.iter(|| {
            vdnn_dynamic(black_box(&graph), Moves::Same, &link, Placement::BestFit, capacity)
        });
    });
    group.finish();
}

criterion_group!(benches, offload);
criterion_main!(benches);

//! Policies for today's jobs on recorded ones: what each saves and costs, and that it keeps what it promises. The figures
//! are in `offloading/today.txt`.

use expect_test::expect_file;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;
use xmem::convolutions::FittedModel;
use xmem::types::Nanos;
use xmem::{Bytes, Estimate, Job, ReadOptions, find};
use xmem_studies::offload::{
    Checkpoint, Direction, Duplex, EventKind, Graph, HostOptimizer, LayerKind, Link, Memory,
    OffloadActivations, Policy, Run, simulate,
};
use xmem_studies::offloading::TrainingStep;
use xmem_studies::timing::TimeModel;

/// Transformers, a convolutional network, and a job that adds up gradients of several batches.
const JOBS: [&str; 9] = [
    "big_gpt2s_adam_b6",
    "big_llama_bf16_adamw_b4",
    "big_opt125m_adamw_b12",
    "big_qwen2_ampbf16_adamw_b4",
    "big_resnet50_adamw_b100",
    "bert_adamw_pos0",
    "nanogpt_accumulate_fused",
    "t5_bf16_adafactor",
    "vit_b_16_adamw",
];

/// Parts of the saved tensors that may wait on the device, in percent.
const SHARES: [u64; 3] = [50, 25, 10];

fn step(job: &str) -> TrainingStep {
    let traces = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../traces");
    let path = traces.join(job).join("trace.json.zst");
    let job = Job::from_path(path, &ReadOptions::default()).expect("a trace");
    let device = find("a100-40g").expect("known").clone();
    let estimate = Estimate::builder(device).convolutions(Arc::new(FittedModel)).build();
    let predicted = estimate.predict(&job).expect("a prediction");
    let model = TimeModel::of(&estimate.target().device);
    TrainingStep::of(predicted.prediction(), &model).expect("a step")
}

fn link() -> Link {
    let model = TimeModel::of(find("a100-40g").expect("known"));
    let bandwidth = Bytes(model.pcie.get());
    Link { bandwidth, latency: model.transfer_latency, duplex: Duplex::Full }
}

fn run(graph: &Graph, policy: Policy) -> Run {
    simulate(graph, policy, &link(), Memory::Unlimited)
}

/// Every block is on the device whenever a step uses it.
fn assert_uses(graph: &Graph, run: &Run, what: &str) {
    let mut there: Vec<Vec<(Nanos, Nanos)>> = vec![Vec::new(); graph.blocks().len()];
    let mut row_of = vec![0; run.pieces.len()];
    for event in &run.events {
        let spans = &mut there[run.pieces[event.piece.index()].block.index()];
        match event.kind {
            EventKind::Alloc => {
                row_of[event.piece.index()] = spans.len();
                spans.push((event.time, Nanos::MAX));
            }
            EventKind::Free => spans[row_of[event.piece.index()]].1 = event.time,
        }
    }
    for id in graph.ids() {
        let block = graph.block(id);
        for used in block.writers.iter().chain(&block.readers).chain(&block.backward) {
            // What is freed before a step's last allocation is freed when it begins.
            let (start, _) = run.computing[used.index()];
            let is_there = |&(from, to): &(Nanos, Nanos)| from <= start && start <= to;
            assert!(there[id.index()].iter().any(is_there), "{what} {id:?} at {used:?}");
        }
    }
}

#[test]
fn policies_for_todays_jobs() {
    let mut page = format!(
        "{:<27} {:<20} {:>6} {:>6} {:>9} {:>8} {:>8} {:>9} {:>9}\n",
        "job", "policy", "budget", "times", "overlap", "to host", "live", "again", "waiting"
    );
    for job in JOBS {
        let step = step(job);
        let graph = &step.graph;
        let none = run(graph, Policy::None);
        let saved = graph.saved();
        let mut rows = vec![(Policy::None, None), (Policy::SaveOnCpu, None)];
        for share in SHARES {
            let budget = Bytes(saved.get() * share / 100);
            let offload = Policy::OffloadActivations(OffloadActivations { budget });
            rows.extend([
                (offload, Some(share)),
                (Policy::Checkpoint(Checkpoint { budget }), Some(share)),
            ]);
        }
        let bandwidth = HostOptimizer::BANDWIDTH;
        rows.push((Policy::HostOptimizer(HostOptimizer { bandwidth }), None));
        for (policy, share) in rows {
            let run = run(graph, policy);
            let what = format!("{job} {policy} {share:?}");
            assert_eq!(run.moved(Direction::ToHost), run.moved(Direction::ToDevice), "{what}");
            assert_uses(graph, &run, &what);
            if let (Policy::OffloadActivations(_), Some(waiting)) = (policy, run.waiting) {
                assert!(waiting.most <= waiting.budget, "{what}: {waiting:?}");
            }
            let mib = |bytes: Bytes| format!("{:.0}", bytes.get() as f64 / f64::from(1 << 20));
            let percent = |part: Nanos, of: Nanos| match of {
                Nanos::ZERO => String::new(),
                of => format!("{:.0} %", 100.0 * part.get() as f64 / of.get() as f64),
            };
            let _ = writeln!(
                page,
                "{job:<27} {:<20} {:>6} {:>6.2} {:>9} {:>8} {:>8} {:>9} {:>9}",
                policy.name(),
                share.map_or_else(String::new, |share| format!("{share} %")),
                run.step_time.get() as f64 / none.step_time.get() as f64,
                percent(run.overlapped(), run.copying()),
                mib(run.moved(Direction::ToHost)),
                mib(run.peak_live()),
                percent(run.recomputed, none.step_time),
                run.waiting.map_or_else(String::new, |waiting| mib(waiting.most)),
            );
        }
    }
    expect_file!["offloading/today.txt"].assert_eq(&page);
}

/// All layers of Transformers were of kinds that no policy moves: GPT-2 moved 56 of 922 MiB.
#[test]
fn the_policies_of_papers_moved_nothing_of_transformers() {
    for job in ["big_gpt2s_adam_b6", "big_llama_bf16_adamw_b4", "big_opt125m_adamw_b12"] {
        let step = step(job);
        let count = |kind| step.graph.layers().iter().filter(|layer| layer.kind == kind).count();
        for kind in [LayerKind::Attention, LayerKind::Mlp] {
            assert!(count(kind) >= 4, "{job}: {} {kind}", count(kind));
        }
        for policy in &Policy::ALL[1..6] {
            let moved = run(&step.graph, *policy).moved(Direction::ToHost);
            let is_for_convolutions = *policy == Policy::VdnnConv;
            let part = moved.get() * 100 / step.matches.kept.get();
            assert!(is_for_convolutions || part >= 25, "{job} {policy}: {part} %");
        }
    }
}

//! Requests per second of the simulator, beside the floor: the same blocks put into and taken out
//! of a plain `BTreeSet` ordered by size.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use std::collections::BTreeSet;
use std::hint::black_box;
use std::sync::Arc;
use xmem::convolutions::FittedModel;
use xmem::{Estimate, ReadOptions};
use xmem_simulator::{AllocConf, AllocatorConfig, DeviceConfig, min_capacity, replay, runs_in};
use xmem_types::{BlockId, Bytes, KIB, MIB, Request, RequestKind, StreamId, TorchVersion};

/// A small generator of its own, so that the work is the same on every machine and in every run.
struct Lcg(u64);

impl Lcg {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) % n
    }
}

/// Builds a list of requests with ascending block numbers.
#[derive(Default)]
struct Job {
    requests: Vec<Request>,
    blocks: usize,
}

impl Job {
    fn alloc(&mut self, size: u64) -> BlockId {
        let block = BlockId::new(self.blocks);
        self.blocks += 1;
        let kind = RequestKind::Alloc { size: Bytes(size), stream: StreamId(0) };
        self.requests.push(Request { block, kind });
        block
    }

    fn free(&mut self, block: BlockId) {
        self.requests.push(Request { block, kind: RequestKind::Free });
    }
}

/// The shape of training: parameters stay, each layer keeps some activations and uses some
/// temporaries, the backward pass frees them in reverse order.
fn training(requests: usize) -> Vec<Request> {
    const LAYERS: u64 = 48;
    let mut job = Job::default();
    for layer in 0..LAYERS {
        job.alloc(4 * MIB + layer * KIB);
        job.alloc(3 * KIB);
    }
    while job.requests.len() < requests {
        let mut kept = Vec::new();
        for layer in 0..LAYERS {
            for part in 0..6u64 {
                kept.push(job.alloc((part + 1) * 700 * KIB + layer * 512));
                let temporary = job.alloc((64 * KIB) << part);
                job.free(temporary);
            }
        }
        for block in kept.into_iter().rev() {
            let gradient = job.alloc(900 * KIB);
            let temporary = job.alloc(3 * MIB);
            job.free(block);
            job.free(gradient);
            job.free(temporary);
        }
    }
    job.requests
}

/// About 2 000 live blocks of random sizes, freed in random order.
fn random(requests: usize) -> Vec<Request> {
    let mut random = Lcg(7);
    let mut job = Job::default();
    let mut live = Vec::new();
    while job.requests.len() < requests {
        if random.below(4000) >= live.len() as u64 {
            let size = match random.below(10) {
                0..6 => 1 + random.below(64 * KIB),
                6..9 => 1 + random.below(4 * MIB),
                _ => 1 + random.below(40 * MIB),
            };
            live.push(job.alloc(size));
        } else {
            let row = random.below(live.len() as u64) as usize;
            job.free(live.swap_remove(row));
        }
    }
    job.requests
}

/// The floor: one ordered insertion for each allocation, one removal for each free.
fn floor(requests: &[Request]) -> usize {
    let mut sizes = vec![0; requests.iter().map(|r| r.block.index() + 1).max().unwrap_or(0)];
    let mut set = BTreeSet::new();
    for request in requests {
        match request.kind {
            RequestKind::Alloc { size, .. } => {
                sizes[request.block.index()] = size.get();
                set.insert((size.get(), request.block));
            }
            RequestKind::Free => {
                set.remove(&(sizes[request.block.index()], request.block));
            }
        }
    }
    set.len()
}

/// The requests of a recorded job: GPT-2 small, Adam, batch of 6.
fn gpt2() -> Vec<Request> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../traces/big_gpt2s_adam_b6/trace.json.zst");
    let device = xmem::find("a100-40g").expect("a known device").clone();
    let estimate = Estimate::builder(device).convolutions(Arc::new(FittedModel)).build();
    let job =
        xmem::Job::from_path(path, &ReadOptions::default()).expect("a trace of the repository");
    estimate.predict(&job).expect("an allocator that is known").prediction().requests().to_vec()
}

/// Replay, bare run and floor over the same requests.
fn beside_the_floor(c: &mut Criterion, group: &str, size: &str, requests: &[Request]) {
    let device = DeviceConfig::default();
    let allocator = AllocatorConfig::default();
    let mut group = c.benchmark_group(group);
    group.sample_size(10);
    group.throughput(Throughput::Elements(requests.len() as u64));
    group.bench_with_input(BenchmarkId::new("replay", size), requests, |b, requests| {
        b.iter(|| replay(black_box(requests), &allocator, &device).peak.allocated);
    });
    group.bench_with_input(BenchmarkId::new("runs_in", size), requests, |b, requests| {
        b.iter(|| runs_in(black_box(requests), &allocator, &device));
    });
    group.bench_with_input(BenchmarkId::new("floor", size), requests, |b, requests| {
        b.iter(|| floor(black_box(requests)));
    });
    group.finish();
}

fn recorded(c: &mut Criterion) {
    beside_the_floor(c, "simulate/gpt2", "schedule", &gpt2());
}

/// The cost per request must not grow with their number.
fn synthetic(c: &mut Criterion) {
    for (name, make) in [("training", training as fn(usize) -> _), ("random", random)] {
        for n in [10_000, 100_000, 1_000_000, 10_000_000] {
            let requests: Vec<Request> = make(n);
            beside_the_floor(c, &format!("simulate/{name}"), &n.to_string(), &requests);
        }
    }
}

/// Every option on the same requests, with and without enough memory.
fn options(c: &mut Criterion) {
    let requests = random(100_000);
    let ample = DeviceConfig::default();
    let needed = min_capacity(&requests, &AllocatorConfig::default(), &ample);
    let tight = DeviceConfig { capacity: Some(needed), ..ample };
    let mut group = c.benchmark_group("simulate/options");
    group.sample_size(10);
    group.throughput(Throughput::Elements(requests.len() as u64));
    for text in [
        "",
        "expandable_segments:True",
        "max_split_size_mb:32",
        "roundup_power2_divisions:8",
        "garbage_collection_threshold:0.8,per_process_memory_fraction:0.9",
    ] {
        let conf = AllocConf::parse(text, TorchVersion::default()).expect("a right option string");
        for (room, device) in [("ample", &ample), ("tight", &tight)] {
            let name = BenchmarkId::new(if text.is_empty() { "default" } else { text }, room);
            group.bench_with_input(name, &requests, |b, requests| {
                b.iter(|| replay(black_box(requests), &conf.config, device).peak.allocated);
            });
        }
    }
    group.finish();
}

fn capacity(c: &mut Criterion) {
    let mut group = c.benchmark_group("simulate/min_capacity");
    group.sample_size(10);
    let requests = training(100_000);
    group.throughput(Throughput::Elements(requests.len() as u64));
    let (allocator, device) = (AllocatorConfig::default(), DeviceConfig::default());
    group.bench_function("training/100000", |b| {
        b.iter(|| min_capacity(black_box(&requests), &allocator, &device));
    });
    group.finish();
}

criterion_group!(benches, recorded, synthetic, options, capacity);
criterion_main!(benches);

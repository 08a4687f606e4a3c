//! The analysis of a recorded GPT-2 training trace: pairing, operator tree, phases, roles.

use criterion::{Criterion, criterion_group, criterion_main};
use std::hint::black_box;
use std::path::Path;
use xmem_trace::ReadOptions;

fn analyze(c: &mut Criterion) {
    let traces = Path::new(env!("CARGO_MANIFEST_DIR")).join("../traces");
    for name in ["gpt2_adamw", "big_convnext_base_adam_b32"] {
        let path = traces.join(name).join("trace.json.zst");
        let (trace, _) =
            xmem_trace::read_path(&path, &ReadOptions::default()).expect("a recorded trace");
        let mut group = c.benchmark_group("analyze");
        group.throughput(criterion::Throughput::Elements(trace.event_count));
        group.bench_function(name, |b| {
            b.iter_batched(
                || trace.clone(),
                |trace| black_box(xmem_analyzer::analyze(trace)),
                criterion::BatchSize::LargeInput,
            );
        });
        group.finish();
    }
}

criterion_group!(benches, analyze);
criterion_main!(benches);

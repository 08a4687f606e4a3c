//! The prediction is what the answer was made from.

use std::path::Path;
use std::sync::Arc;
use xmem::analyzer::Role;
use xmem::convolutions::FittedModel;
use xmem::{Bytes, Device, Estimate, Job, ReadOptions};
use xmem_types::{BlockId, RequestKind};

#[test]
fn a_replay_of_the_prediction_gives_the_figures_of_the_answer() {
    let trace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../traces/mlp_adam/trace.json.zst");
    let job = Job::from_path(trace, &ReadOptions::default()).expect("a trace");
    let estimate = Estimate::builder(Device::custom(Bytes::gib(12)))
        .convolutions(Arc::new(FittedModel))
        .build();
    let answer = estimate.job(&job).expect("an answer");
    let predicted = estimate.predict(&job).expect("a prediction");
    let prediction = predicted.prediction();
    let replay =
        xmem_simulator::replay(prediction.requests(), prediction.allocator(), prediction.device());
    assert_eq!(replay.peak.allocated, answer.memory.peak.allocated);
    assert_eq!(replay.reserved_peak.reserved, answer.memory.peak.reserved);
    assert_eq!(prediction.times().len(), prediction.requests().len());

    let parameters = |id: &BlockId| prediction.block(*id).role == Role::Parameter;
    let live = replay.live_at_peak.iter();
    let bytes: Bytes = live.filter(|b| parameters(&b.block)).map(|b| b.size).sum();
    let share = answer.memory.by_role.iter().find(|share| share.role == Role::Parameter);
    assert_eq!(Some(bytes), share.map(|share| share.bytes));
    assert!(bytes > Bytes::ZERO);

    let largest = &answer.memory.largest[0];
    let same = |id: &BlockId| prediction.place(*id) == largest.origin;
    assert!((0..prediction.block_count()).map(BlockId::new).any(|id| same(&id)));

    let starts = prediction.iteration_starts();
    assert_eq!(starts.len(), answer.trace.iterations.len());
    for (iteration, &start) in starts.iter().enumerate() {
        let next = &prediction.requests()[start..];
        let first = next.iter().find(|r| matches!(r.kind, RequestKind::Alloc { .. }));
        let found = prediction.block(first.expect("an allocation").block).iteration;
        assert_eq!(found.map(xmem::types::IterationId::index), Some(iteration));
    }
}

//! The answer about a job that does not fit.

use std::path::Path;
use std::sync::Arc;
use xmem::convolutions::FittedModel;
use xmem::{Bytes, Device, Estimate, Verdict};

/// The limited replay gives cached memory back and takes other segments afterwards, so that its
/// peak reserved is that of no real run.
#[test]
fn figures_of_a_job_that_does_not_fit_came_from_the_limited_replay() {
    let trace = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../traces/big_resnet50_adamw_b100/trace.json.zst");
    let on = |capacity| {
        let device = Device::custom(capacity);
        Estimate::builder(device)
            .convolutions(Arc::new(FittedModel))
            .build()
            .path(&trace)
            .expect("a trace")
    };
    let (ample, tight) = (on(Bytes::gib(40)), on(Bytes::gib(2)));
    assert_eq!((ample.verdict, tight.verdict), (Verdict::Fits, Verdict::DoesNotFit));
    assert_eq!(tight.memory.peak, ample.memory.peak);
    let oom = tight.memory.out_of_memory.as_ref().expect("it ran out");
    assert_eq!(oom.needed, ample.memory.peak.device);
    assert_eq!(on(oom.needed).verdict, Verdict::Fits);
}

//! Averages of the weights that a job keeps beside its model.

use std::sync::Arc;
use xmem::analyzer::Role;
use xmem::convolutions::FittedModel;
use xmem::{Bytes, Estimate, find};

/// `copy.deepcopy(model)` was once taken for data on the host, as no forward uses it.
#[test]
fn a_copy_of_the_model_made_before_training_is_on_the_gpu() {
    let trace =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../../traces/diffusion_ema_adamw/trace.json.zst");
    let device = find("rtx3060-12g").expect("a known device").clone();
    let answer = Estimate::builder(device)
        .convolutions(Arc::new(FittedModel))
        .build()
        .path(trace)
        .expect("a trace");
    let bytes = |role| -> Bytes {
        answer
            .memory
            .by_role
            .iter()
            .filter(|share| share.role == role)
            .map(|share| share.bytes)
            .sum()
    };
    assert_eq!(bytes(Role::Buffer), bytes(Role::Parameter));
}

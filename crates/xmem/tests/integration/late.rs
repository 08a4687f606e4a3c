//! A recording that begins after the first iteration, judged by the whole job with PyTorch's CUDA build, kernels stubbed.
#![expect(clippy::disallowed_methods, reason = "tests read recordings")]

use std::path::Path;
use std::sync::Arc;
use xmem::convolutions::FittedModel;
use xmem::{Bytes, Estimate, find};

#[test]
fn optimizer_state_lies_among_the_cached_blocks_of_the_first_iteration() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../traces/late");
    let text = std::fs::read_to_string(folder.join("recorded.toml")).expect("readable");
    let table: toml::Table = text.parse().expect("TOML");
    let recorded = table["resnet18_sgdm"]["reserved"].as_integer().expect("bytes").unsigned_abs();
    let estimate = Estimate::builder(find("a100-40g").expect("known").clone())
        .convolutions(Arc::new(FittedModel))
        .build();
    let answer = estimate.path(folder.join("resnet18_sgdm.json.zst")).expect("a trace");
    // With the state in segments of its own, 20 MiB more.
    assert_eq!(answer.memory.peak.reserved, Bytes(recorded));
}

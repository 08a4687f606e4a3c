//! The workspaces of cuBLAS, as `CUBLAS_WORKSPACE_CONFIG` chooses them.

use std::sync::Arc;
use xmem::convolutions::FittedModel;
use xmem::orchestrator::parse_cublas_workspace_config;
use xmem::{Bytes, Estimate, find};

/// Peaks of `mlp_adam` under PyTorch 2.11's CUDA build, kernels stubbed, with the variable set.
#[test]
fn the_configured_workspaces_give_the_recorded_peaks() {
    let trace = concat!(env!("CARGO_MANIFEST_DIR"), "/../../traces/mlp_adam/trace.json.zst");
    let device = find("rtx3060-12g").expect("a known device").clone();
    for (config, allocated, reserved) in [
        (":4096:2:16:8", 228_864_000, 262_144_000),
        (":4096:8", 278_933_504, 308_281_344),
        (":16:8", 211_169_280, 239_075_328),
        (":0:0", 210_776_064, 239_075_328),
    ] {
        let size = parse_cublas_workspace_config(config).expect("it has a pair");
        let estimate = Estimate::builder(device.clone())
            .convolutions(Arc::new(FittedModel))
            .cublas_workspace(size)
            .build();
        let peak = estimate.path(trace).expect("a trace").memory.peak;
        assert_eq!(
            (peak.allocated, peak.reserved),
            (Bytes(allocated), Bytes(reserved)),
            "{config}"
        );
    }
}

//! The smallest capacity in which a job runs, against PyTorch's own allocator and its retries of
//! convolutions with smaller workspaces (CUDA build, kernels stubbed).
#![allow(clippy::disallowed_methods, reason = "a test reads the recorded traces")]

use std::path::Path;
use std::sync::Arc;
use xmem::convolutions::FittedModel;
use xmem::predict::CapacitySearch;
use xmem::{Estimate, find};

/// The error that is allowed, as a part of what was recorded.
const BOUND: f64 = 0.01;

#[test]
fn recorded_jobs_run_in_the_capacity_they_were_seen_to_need() {
    let traces = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../traces");
    let mut judged = 0;
    for entry in std::fs::read_dir(traces).expect("traces/ is there") {
        let folder = entry.expect("an entry of traces/").path();
        let Ok(text) = std::fs::read_to_string(folder.join("expected.toml")) else { continue };
        let expected: toml::Table = text.parse().expect("TOML");
        let Some(recorded) = expected.get("min-capacity") else { continue };
        let recorded = recorded["bytes"].as_integer().expect("bytes") as f64;
        let device = expected["device"]["name"].as_str().expect("a device name");
        let device = find(device).expect("a known device").clone();
        let context = device.context;
        let estimate = Estimate::builder(device)
            .convolutions(Arc::new(FittedModel))
            .capacity_search(CapacitySearch::Run)
            .build();
        let answer = estimate.path(folder.join("trace.json.zst")).expect("a trace");
        let found = answer.memory.min_capacity.expect("it was asked for") - context;
        let off = found.get() as f64 / recorded - 1.0;
        assert!(off.abs() <= BOUND, "{}: off by {:.2} %", folder.display(), 100.0 * off);
        judged += 1;
    }
    assert!(judged >= 8, "{judged} recordings are too few");
}

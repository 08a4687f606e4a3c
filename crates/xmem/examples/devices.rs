//! One trace, several devices, and the results as JSON. The trace is read and analyzed once.
//!
//! `cargo run -p xmem --example devices`
//!
//! The documents of the command line, with their schemas, are made by the crate `xmem-report`; a
//! program that needs only a few figures writes its own, as here.

#![expect(clippy::print_stdout, reason = "an example prints its result")]

use serde_json::json;
use xmem::{Estimate, Job, ReadOptions};

const TRACE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../traces/mlp_adam/trace.json.zst");

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let job = Job::from_path(TRACE, &ReadOptions::default())?;
    let mut answers = Vec::new();
    for name in ["rtx3060-12g", "a100-40g", "h100-80g"] {
        let device = xmem::find(name)?.clone();
        answers.push(Estimate::builder(device).build().job(&job)?);
    }
    for answer in &answers {
        let line = json!({
            "device": answer.device().name,
            "verdict": answer.verdict.name(),
            "peak_allocated_bytes": answer.memory.peak.allocated.get(),
            "peak_reserved_bytes": answer.memory.peak.reserved.get(),
            "headroom_bytes": answer.headroom().map(xmem::Bytes::get),
        });
        println!("{line}");
    }

    let fits = answers.iter().filter(|answer| answer.verdict == xmem::Verdict::Fits).count();
    if fits < answers.len() {
        return Err("a job this small fits on every GPU".into());
    }
    Ok(())
}

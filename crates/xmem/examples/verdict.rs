//! Does the job fit? The verdict in ten lines.
//!
//! `cargo run -p xmem --example verdict`

#![expect(clippy::print_stdout, reason = "an example prints its result")]

use xmem::{Estimate, Verdict};

const TRACE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../traces/mlp_adam/trace.json.zst");

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let device = xmem::find("rtx3060-12g")?.clone();
    let answer = Estimate::builder(device).build().path(TRACE)?;
    match answer.verdict {
        Verdict::Fits => println!("fits; nvidia-smi will show {}", answer.memory.peak.device),
        Verdict::DoesNotFit => {
            println!("does not fit; {} are missing", answer.shortfall().unwrap_or_default());
        }
        Verdict::DamagedFits | Verdict::DamagedDoesNotFit => println!("the trace is damaged"),
        Verdict::Withheld => println!("no verdict: {:?}", answer.withheld),
    }
    Ok(())
}

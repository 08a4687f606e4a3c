//! A job that does not fit: an out-of-memory is a result, not an error. The answer says where
//! memory runs out and what would be enough.
//!
//! `cargo run -p xmem --example out_of_memory`

#![expect(clippy::print_stdout, reason = "an example prints its result")]

use xmem::predict::CapacitySearch;
use xmem::{Bytes, Device, Estimate, Job, ReadOptions, Verdict};

const TRACE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../traces/mlp_adam/trace.json.zst");

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let job = Job::from_path(TRACE, &ReadOptions::default())?;
    let on = |device: Device| {
        Estimate::builder(device).capacity_search(CapacitySearch::Run).build().job(&job)
    };

    let mut small = Device::custom(Bytes::gib(1));
    small.memory = small.context + Bytes::mib(8);
    let answer = on(small.clone())?;
    let Some(failed) = &answer.memory.out_of_memory else {
        return Err("8 MiB are not enough for this job".into());
    };
    println!("tried to allocate {}, with {} free", failed.tried, failed.free);
    if let Some(op) = failed.at.as_ref().and_then(|place| place.op()) {
        println!("in {op}");
    }
    for share in answer.memory.by_role.iter().filter(|share| share.blocks > 0) {
        println!("{:>12} at the peak: {}", share.bytes.to_string(), share.role.name());
    }

    // The smallest device memory in which the job runs.
    let enough = answer.memory.min_capacity.ok_or("the search was requested")?;
    println!("{enough} are enough");
    small.memory = enough;
    if on(small)?.verdict != Verdict::Fits {
        return Err("the smallest capacity found is a capacity in which the job runs".into());
    }
    Ok(())
}

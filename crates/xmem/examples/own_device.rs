//! A device that is not in the catalog, from a description of one's own.
//!
//! `cargo run -p xmem --example own_device`

#![expect(clippy::print_stdout, reason = "an example prints its result")]

use xmem::{Bytes, Device, Estimate, Job, ReadOptions};

const TRACE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../traces/mlp_adam/trace.json.zst");

/// The form of a file for `--device-file`. Every number names its source.
const DEVICE: &str = r#"
[[device]]
name = "my-gpu-16g"
title = "NVIDIA RTX 9999"

[device.memory]
mib = 15979
source = "torch.cuda.get_device_properties on my machine, driver 580"

[device.context]
mib = 300
source = "torch.cuda.mem_get_info() right after torch.zeros(1, device='cuda')"

[device.compute-capability]
value = "8.9"
source = "torch.cuda.get_device_properties on my machine"

[device.sms]
value = 48
source = "torch.cuda.get_device_properties on my machine"

[device.max-threads-per-sm]
value = 1536
source = "torch.cuda.get_device_properties on my machine"
"#;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let job = Job::from_path(TRACE, &ReadOptions::default())?;

    let described = Device::from_toml(DEVICE)?;
    let answer = Estimate::builder(described).build().job(&job)?;
    println!("{}: {}", answer.device().title, answer.verdict.name());

    // If only the size matters, a capacity is enough.
    let custom = Device::custom(Bytes::gib(16));
    let same = Estimate::builder(custom).build().job(&job)?;
    println!("{}: {}", same.device().name, same.verdict.name());

    if answer.verdict != same.verdict {
        return Err("both devices have the memory for this job".into());
    }
    Ok(())
}

//! `xmem.tune/1`.

use serde::Serialize;
use xmem_studies::tune::{Tuned, Tuning};

/// Settings with which a recorded job needs less memory, those that need least first.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TuneDocument<'a> {
    schema: &'static str,
    /// The trace, as given on the command line.
    trace: &'a str,
    /// The device.
    device: &'a str,
    /// The memory of the device.
    device_memory_bytes: u64,
    /// The job as it is.
    base: TunedDto<'a>,
    /// The job with other settings.
    better: Vec<TunedDto<'a>>,
    /// The settings that were tried.
    tried: usize,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct TunedDto<'a> {
    /// The options of the command line.
    options: String,
    /// All options of the allocator; null for those that the job has.
    alloc_conf: Option<&'a str>,
    /// What-ifs as NAME=VALUE.
    what_ifs: Vec<String>,
    /// The least device memory with which the job runs.
    needs_bytes: u64,
    /// Peak allocated memory.
    allocated_bytes: u64,
    /// Peak reserved memory.
    reserved_bytes: u64,
    /// Whether it runs on the device.
    fits: bool,
}

impl<'a> TuneDocument<'a> {
    /// The document of what was found.
    #[must_use]
    pub fn new(trace: &'a str, device: &'a str, found: &'a Tuning) -> Self {
        Self {
            schema: "xmem.tune/1",
            trace,
            device,
            device_memory_bytes: found.room.get(),
            base: dto(&found.base),
            better: found.better.iter().map(dto).collect(),
            tried: found.tried,
        }
    }
}

fn dto(tuned: &Tuned) -> TunedDto<'_> {
    TunedDto {
        options: tuned.setting.options(),
        alloc_conf: tuned.setting.conf.as_deref(),
        what_ifs: tuned
            .setting
            .what_ifs
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect(),
        needs_bytes: tuned.needs.get(),
        allocated_bytes: tuned.allocated.get(),
        reserved_bytes: tuned.reserved.get(),
        fits: tuned.fits,
    }
}

//! The settings that a page says more about: each tried alone on the same recording, and the smallest device.

use crate::allocator::AllocatorArgs;
use crate::error::CliError;
use crate::measures::SETTING;
use xmem::orchestrator::{OptimizerImpl, ZeroGradPlace};
use xmem::predict::CapacitySearch;
use xmem::{Answer, Bytes, EstimateBuilder, Job};
use xmem_view::PageWhatIf;

/// The most requests of a recording that is tried under other settings: each of them is a replay of its own.
const MAX_REQUESTS: u64 = 200_000;

/// Answers under other settings.
#[derive(Debug, Default)]
pub(crate) struct WhatIfs {
    pub(crate) tried: Vec<PageWhatIf>,
    /// The smallest device memory in which the job runs.
    pub(crate) smallest: Option<Bytes>,
}

/// A setting: the options of the command line, and what they do to an estimate.
type Change = (&'static str, fn(EstimateBuilder) -> EstimateBuilder);

/// What a recording of a CPU can be lowered otherwise by.
const CHANGES: [Change; 4] = [
    ("--zero-grad pos0", |builder| builder.zero_grad(ZeroGradPlace::BeforeBackward)),
    ("--zero-grad pos1", |builder| builder.zero_grad(ZeroGradPlace::IterationStart)),
    ("--optimizer-impl fused", |builder| builder.optimizer(OptimizerImpl::Fused)),
    ("--optimizer-impl for-loop", |builder| builder.optimizer(OptimizerImpl::ForLoop)),
];

/// Tries each setting on a recording that `usual` is the answer about, with an allocator, by estimates that `builder` begins.
/// What cannot be estimated is left out.
pub(crate) fn of(
    job: &Job,
    usual: &Answer,
    allocator: &AllocatorArgs,
    builder: impl Fn(&AllocatorArgs) -> Result<EstimateBuilder, CliError>,
) -> Result<WhatIfs, CliError> {
    if usual.memory.allocator.requests > MAX_REQUESTS {
        return Ok(WhatIfs::default());
    }
    let conf = Some(SETTING.to_owned());
    let expandable = AllocatorArgs { alloc_conf: conf, ..allocator.clone() };
    let mut tried = Vec::new();
    let mut attempt = |options: &str, builder: EstimateBuilder| {
        if let Ok(answer) = builder.build().job(job) {
            tried.push(PageWhatIf { options: options.to_owned(), answer });
        }
    };
    if allocator.alloc_conf.is_none() {
        attempt(&format!("--alloc-conf {SETTING}"), builder(&expandable)?);
    }
    if job.profile().gpu.is_none() {
        for (options, change) in CHANGES {
            attempt(options, change(builder(allocator)?));
        }
    }
    let searched = builder(allocator)?.capacity_search(CapacitySearch::Run).build().job(job);
    let smallest = searched.ok().and_then(|answer| answer.memory.min_capacity);
    Ok(WhatIfs { tried, smallest })
}

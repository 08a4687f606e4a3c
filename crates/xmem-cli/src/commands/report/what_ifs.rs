//! The settings that a page says more about: each tried alone on the same recording, and the smallest device.

use super::args::ReportArgs;
use super::settings;
use crate::allocator::AllocatorArgs;
use crate::cudnn;
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
pub(super) struct WhatIfs {
    pub(super) tried: Vec<PageWhatIf>,
    /// The smallest device memory in which the job runs.
    pub(super) smallest: Option<Bytes>,
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

/// Tries each setting on a recording that `usual` is the answer about. What cannot be estimated is left out.
pub(super) fn of(job: &Job, usual: &Answer, args: &ReportArgs) -> Result<WhatIfs, CliError> {
    if usual.memory.allocator.requests > MAX_REQUESTS {
        return Ok(WhatIfs::default());
    }
    let convolutions = cudnn::source(&args.estimate.cudnn)?;
    let device = settings::chosen(args)?;
    let conf = Some(SETTING.to_owned());
    let expandable = AllocatorArgs { alloc_conf: conf, ..args.estimate.allocator.clone() };
    let builder = |allocator| settings::builder(args, &device, allocator, &convolutions);
    let mut tried = Vec::new();
    let mut attempt = |options: &str, builder: EstimateBuilder| {
        if let Ok(answer) = builder.build().job(job) {
            tried.push(PageWhatIf { options: options.to_owned(), answer });
        }
    };
    if args.estimate.allocator.alloc_conf.is_none() {
        attempt(&format!("--alloc-conf {SETTING}"), builder(&expandable)?);
    }
    if job.profile().gpu.is_none() {
        for (options, change) in CHANGES {
            attempt(options, change(builder(&args.estimate.allocator)?));
        }
    }
    let searched =
        builder(&args.estimate.allocator)?.capacity_search(CapacitySearch::Run).build().job(job);
    let smallest = searched.ok().and_then(|answer| answer.memory.min_capacity);
    Ok(WhatIfs { tried, smallest })
}

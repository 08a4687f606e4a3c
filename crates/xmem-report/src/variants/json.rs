//! `xmem.variants/1`: the answers for variants of a distributed job, compared.

use crate::ranks::json::{DeviceDto, RankDto};
use serde::Serialize;
use xmem::Device;
use xmem::analyzer::recording::Strategy;
use xmem_studies::ranks::RankAnswer;
use xmem_studies::variants::{FigureDifference, JobVariant, JobVariants};

/// The schema of [`VariantsDocument`].
pub(crate) const VARIANTS: &str = "xmem.variants/1";

/// The answers for variants of a distributed job, of which the same ranks were recorded: an entry after those of the
/// traces.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct VariantsDocument<'a> {
    schema: &'static str,
    /// As in xmem.replay/2.
    settings: &'a str,
    /// The device of each rank.
    device: DeviceDto<'a>,
    /// The variants, in the order of their first recording; at least two.
    variants: Vec<VariantDto<'a>>,
}

/// A variant.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct VariantDto<'a> {
    /// Its recordings, as given on the command line, in order of rank.
    traces: Vec<&'a str>,
    /// The strategies by which the job is distributed; empty if the recording does not note them.
    strategies: Vec<StrategyDto<'a>>,
    /// The number of ranks of the job.
    world_size: u32,
    /// The release of PyTorch, where the recording has it.
    torch: Option<&'a str>,
    /// The recorded ranks; the same of each variant.
    ranks: Vec<u32>,
    /// The rank that decides: the one with the worst verdict, of these the one that needs most.
    worst: RankDto<'a>,
    /// The figures of that rank less those of the first variant.
    difference: DifferenceDto,
}

/// A strategy with the options that are not PyTorch's default.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct StrategyDto<'a> {
    /// DDP, FSDP1, FSDP2, tensor parallel, pipeline, ZeroRedundancyOptimizer or DeepSpeed ZeRO.
    name: &'a str,
    /// The options that are not the default, each with its value in Python.
    options: Vec<OptionDto<'a>>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct OptionDto<'a> {
    name: &'a str,
    value: &'a str,
}

/// The figures of the worst rank less those of the first variant.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct DifferenceDto {
    allocated_bytes: i64,
    reserved_bytes: i64,
    device_bytes: i64,
}

impl<'a> VariantsDocument<'a> {
    /// The document of variants on `device`, answered with `settings` (options of the command line).
    #[must_use]
    pub fn new(settings: &'a str, device: &'a Device, variants: &'a JobVariants) -> Self {
        let variant = |variant: &'a JobVariant| {
            let FigureDifference { allocated, reserved, device } = variants.difference(variant);
            let ranks = &variant.job.ranks;
            VariantDto {
                traces: ranks.iter().map(|rank| rank.trace.as_str()).collect(),
                strategies: variant.strategies().iter().map(StrategyDto::from).collect(),
                world_size: variant.job.world_size,
                torch: variant.torch(),
                ranks: ranks.iter().map(RankAnswer::number).collect(),
                worst: RankDto::from(variant.job.worst()),
                difference: DifferenceDto {
                    allocated_bytes: allocated,
                    reserved_bytes: reserved,
                    device_bytes: device,
                },
            }
        };
        Self {
            schema: VARIANTS,
            settings,
            device: DeviceDto::from(device),
            variants: variants.variants.iter().map(variant).collect(),
        }
    }
}

impl<'a> From<&'a Strategy> for StrategyDto<'a> {
    fn from(strategy: &'a Strategy) -> Self {
        let option = |(name, value): &'a (String, String)| OptionDto { name, value };
        Self { name: &strategy.name, options: strategy.options.iter().map(option).collect() }
    }
}

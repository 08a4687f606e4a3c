//! `xmem.variants/1`: the answers for variants of a distributed job, compared.

use crate::ranks::json::{DeviceDto, RankDto};
use serde::Serialize;
use xmem::Device;
use xmem::analyzer::recording::Strategy;
use xmem_studies::ranks::RankAnswer;
use xmem_studies::variants::{FigureDifference, JobVariant, JobVariants};

/// The schema of [`VariantsDocument`].
pub(crate) const VARIANTS: &str = "xmem.variants/1";

/// Variants of a job on one device as a document of schema `xmem.variants/1`.
#[derive(Serialize)]
pub struct VariantsDocument<'a> {
    schema: &'static str,
    settings: &'a str,
    device: DeviceDto<'a>,
    variants: Vec<VariantDto<'a>>,
}

#[derive(Serialize)]
struct VariantDto<'a> {
    traces: Vec<&'a str>,
    strategies: Vec<StrategyDto<'a>>,
    world_size: u32,
    torch: Option<&'a str>,
    ranks: Vec<u32>,
    worst: RankDto<'a>,
    difference: DifferenceDto,
}

/// A strategy with the options that are not PyTorch's default.
#[derive(Serialize)]
pub(crate) struct StrategyDto<'a> {
    name: &'a str,
    options: Vec<OptionDto<'a>>,
}

#[derive(Serialize)]
struct OptionDto<'a> {
    name: &'a str,
    value: &'a str,
}

/// The figures of the worst rank less those of the first variant.
#[derive(Serialize)]
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

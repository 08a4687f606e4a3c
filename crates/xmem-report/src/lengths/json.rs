//! `xmem.lengths/1`.

use crate::findings::FindingDto;
use crate::setup::SetupDto;
use serde::Serialize;
use xmem::predict::{FitSummary, GrowthPoint, LengthRun, OrderPeaks, Quantiles};
use xmem::{Bytes, LengthsAnswer};

/// An answer about lengths that vary as a document of schema `xmem.lengths/1`.
#[derive(Serialize)]
pub struct LengthsDocument<'a> {
    schema: &'static str,
    trace: &'a str,
    verdict: &'static str,
    withheld: Vec<&'static str>,
    settings: &'a str,
    device: DeviceDto<'a>,
    varying: VaryingDto<'a>,
    recorded_lengths: &'a [Option<u64>],
    fit: FitDto<'a>,
    runs: Vec<RunDto<'a>>,
    diagnostics: Vec<FindingDto<'a>>,
}

#[derive(Serialize)]
struct DeviceDto<'a> {
    name: &'a str,
    memory_bytes: u64,
    context_bytes: u64,
}

#[derive(Serialize)]
struct VaryingDto<'a> {
    dimension: &'static str,
    extents: &'a [u64],
    exact_order: Option<&'a [u64]>,
    iterations: usize,
    orders: usize,
    first_seed: Option<u64>,
}

#[derive(Serialize)]
struct FitDto<'a> {
    lengths: &'a [u64],
    blocks: usize,
    constant: usize,
    affine: usize,
    square: usize,
    interpolated: usize,
    unmatched: usize,
    unmatched_bytes: u64,
}

#[derive(Serialize)]
struct RunDto<'a> {
    allocator: SetupDto<'a>,
    expandable_segments: bool,
    reserved_bytes: QuantilesDto,
    allocated_bytes: QuantilesDto,
    longest_only_reserved_bytes: u64,
    iterations_to_last_new_peak: QuantilesDto,
    orders_that_fit: usize,
    reserved_on_device_bytes: Option<QuantilesDto>,
    growth: Vec<GrowthDto>,
    orders: Vec<OrderDto>,
}

#[derive(Serialize)]
struct QuantilesDto {
    min: u64,
    median: u64,
    p90: u64,
    p95: u64,
    max: u64,
}

#[derive(Serialize)]
struct GrowthDto {
    iterations: usize,
    median_reserved_bytes: u64,
    max_reserved_bytes: u64,
}

#[derive(Serialize)]
struct OrderDto {
    seed: Option<u64>,
    reserved_bytes: u64,
    allocated_bytes: u64,
    iterations_to_last_new_peak: usize,
    fits: bool,
}

impl<'a> LengthsDocument<'a> {
    /// The document; `settings` are the options that the answer depends on.
    #[must_use]
    pub fn new(trace: &'a str, settings: &'a str, answer: &'a LengthsAnswer) -> Self {
        let asked = &answer.settings;
        let device = answer.device();
        Self {
            schema: "xmem.lengths/1",
            trace,
            verdict: answer.verdict.name(),
            withheld: answer.withheld.iter().map(|reason| reason.code()).collect(),
            settings,
            device: DeviceDto {
                name: &device.name,
                memory_bytes: device.memory.get(),
                context_bytes: device.context.get(),
            },
            varying: VaryingDto {
                dimension: asked.varying.dimension.name(),
                extents: &asked.varying.extents,
                exact_order: asked.exact.as_deref(),
                iterations: asked.exact.as_ref().map_or(asked.iterations, Vec::len),
                orders: answer.runs[0].orders.len(),
                first_seed: asked.exact.is_none().then_some(asked.seed),
            },
            recorded_lengths: &answer.recorded,
            fit: FitDto::from(&answer.fit),
            runs: answer.runs.iter().map(RunDto::from).collect(),
            diagnostics: answer.findings.iter().map(FindingDto::from).collect(),
        }
    }
}

impl<'a> From<&'a FitSummary> for FitDto<'a> {
    fn from(fit: &'a FitSummary) -> Self {
        Self {
            lengths: &fit.lengths,
            blocks: fit.blocks,
            constant: fit.constant,
            affine: fit.affine,
            square: fit.square,
            interpolated: fit.interpolated,
            unmatched: fit.unmatched,
            unmatched_bytes: fit.unmatched_bytes.get(),
        }
    }
}

impl<'a> From<&'a LengthRun> for RunDto<'a> {
    fn from(run: &'a LengthRun) -> Self {
        Self {
            allocator: SetupDto::from(&run.setup),
            expandable_segments: run.setup.has_expandable_segments(),
            reserved_bytes: quantiles(run.reserved, Bytes::get),
            allocated_bytes: quantiles(run.allocated, Bytes::get),
            longest_only_reserved_bytes: run.all_longest.get(),
            iterations_to_last_new_peak: quantiles(run.settled, |count| count as u64),
            orders_that_fit: run.fitting,
            reserved_on_device_bytes: run.on_device.map(|there| quantiles(there, Bytes::get)),
            growth: run.growth.iter().map(GrowthDto::from).collect(),
            orders: run.orders.iter().map(OrderDto::from).collect(),
        }
    }
}

fn quantiles<T: Copy>(of: Quantiles<T>, number: fn(T) -> u64) -> QuantilesDto {
    let Quantiles { min, median, p90, p95, max } = of;
    QuantilesDto {
        min: number(min),
        median: number(median),
        p90: number(p90),
        p95: number(p95),
        max: number(max),
    }
}

impl From<&GrowthPoint> for GrowthDto {
    fn from(point: &GrowthPoint) -> Self {
        Self {
            iterations: point.iterations,
            median_reserved_bytes: point.median.get(),
            max_reserved_bytes: point.max.get(),
        }
    }
}

impl From<&OrderPeaks> for OrderDto {
    fn from(order: &OrderPeaks) -> Self {
        Self {
            seed: order.seed,
            reserved_bytes: order.reserved.get(),
            allocated_bytes: order.allocated.get(),
            iterations_to_last_new_peak: order.settled,
            fits: order.fits,
        }
    }
}

//! `xmem.lengths/1`.

use crate::findings::FindingDto;
use crate::setup::SetupDto;
use serde::Serialize;
use xmem::predict::{FitSummary, GrowthPoint, LengthRun, OrderPeaks, Quantiles};
use xmem::{Bytes, LengthsAnswer};

/// The memory of a job whose batches have lengths, or sizes, that vary.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LengthsDocument<'a> {
    schema: &'static str,
    /// The trace, as given on the command line.
    trace: &'a str,
    /// Whether the job fits in every order that was tried, with the allocator's own options.
    #[cfg_attr(test, schemars(with = "crate::schemas::NameOf<xmem::Verdict>"))]
    verdict: &'static str,
    /// The reasons for which the verdict is withheld.
    withheld: Vec<&'static str>,
    /// The options of the command line that the answer depends on.
    settings: &'a str,
    /// The device.
    device: DeviceDto<'a>,
    /// The question.
    varying: VaryingDto<'a>,
    /// Per recorded iteration, its extent; null where shapes do not show it, or something else differs.
    recorded_lengths: &'a [Option<u64>],
    /// How the sizes of blocks follow from the length.
    fit: FitDto<'a>,
    /// With the allocator's own options first; then, for PyTorch's caching allocator, with expandable_segments the
    /// other way.
    runs: Vec<RunDto<'a>>,
    /// Odd or missing content.
    diagnostics: Vec<FindingDto<'a>>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct DeviceDto<'a> {
    /// Its name.
    name: &'a str,
    /// Its memory.
    memory_bytes: u64,
    /// Memory that the CUDA context takes.
    context_bytes: u64,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct VaryingDto<'a> {
    /// The dimension that varies: the tokens of a sequence, or the samples of a batch.
    #[cfg_attr(test, schemars(extend("enum" = ["seq", "batch"])))]
    dimension: &'static str,
    /// The extents that are drawn, ascending.
    #[cfg_attr(test, schemars(inner(range(min = 1))))]
    extents: &'a [u64],
    /// The lengths of the only run, if they were given.
    #[cfg_attr(test, schemars(inner(range(min = 1))))]
    exact_order: Option<&'a [u64]>,
    /// Iterations of a run.
    iterations: usize,
    /// Runs.
    orders: usize,
    /// The seed of the first order; null if lengths were given.
    first_seed: Option<u64>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct FitDto<'a> {
    /// The recorded lengths that sizes were fitted to, ascending.
    lengths: &'a [u64],
    /// Blocks that an iteration allocates.
    blocks: usize,
    /// Those of the same size at all lengths.
    constant: usize,
    /// Those whose size is an affine function of the length.
    affine: usize,
    /// Those whose size grows with the square of the length.
    square: usize,
    /// Those whose sizes lie on straight lines between recorded ones.
    interpolated: usize,
    /// Those that were seen at one length only; lengths that are nearest to it have them.
    unmatched: usize,
    /// The bytes of these.
    unmatched_bytes: u64,
}

/// One allocator over all orders.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct RunDto<'a> {
    allocator: SetupDto<'a>,
    /// Whether it has expandable_segments.
    expandable_segments: bool,
    reserved_bytes: QuantilesDto,
    allocated_bytes: QuantilesDto,
    /// Peak reserved if all iterations have the greatest length.
    longest_only_reserved_bytes: u64,
    iterations_to_last_new_peak: QuantilesDto,
    /// Orders that run on the device, if need be with cached memory released.
    orders_that_fit: usize,
    /// Peak reserved on the device, with cached memory released if need be, over the orders that run there; null if
    /// none does.
    reserved_on_device_bytes: Option<QuantilesDto>,
    /// Peak reserved so far, by iteration.
    growth: Vec<GrowthDto>,
    /// Each order.
    orders: Vec<OrderDto>,
}

/// A distribution over the orders, by nearest rank, in bytes or iterations.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct QuantilesDto {
    /// The least.
    min: u64,
    /// Half of the values are not above it.
    median: u64,
    /// 90 % of the values are not above it.
    p90: u64,
    /// 95 % of the values are not above it.
    p95: u64,
    /// The greatest.
    max: u64,
}

/// After some iterations.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct GrowthDto {
    /// The number of iterations.
    iterations: usize,
    /// The median over the orders.
    median_reserved_bytes: u64,
    /// The greatest.
    max_reserved_bytes: u64,
}

/// An order of lengths.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct OrderDto {
    /// Its seed; null if its lengths were given.
    seed: Option<u64>,
    /// Peak reserved, where the device has enough.
    reserved_bytes: u64,
    /// Peak allocated.
    allocated_bytes: u64,
    /// Iterations up to the last that reserved more than all before it.
    iterations_to_last_new_peak: usize,
    /// Whether it runs on the device.
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

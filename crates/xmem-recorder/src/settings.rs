//! The hook's settings: `settings.json`. Unknown facts are null.

use crate::assumptions::DevicePeaks;
use crate::graph_file;
use crate::measures::Measure;
use crate::rank::LoneRank;
use crate::request::{Float16, Request, Stacks, Timing, VaryingBatches, Weights};
use crate::snapshot;
use serde::Serialize;
use std::collections::BTreeMap;
use xmem_devices::Device;
use xmem_overlay::{Method, Overlay, Writable};
use xmem_types::Bytes;

/// The whole file.
#[derive(Debug, Serialize)]
pub(crate) struct Settings<'a> {
    format: u32,
    /// Version of this crate.
    recorder: &'static str,
    purpose: &'static str,
    steps: u32,
    /// Seconds.
    rest: Option<f64>,
    stacks: bool,
    max_memory: Option<u64>,
    engine: &'static str,
    gpus: u32,
    rank: Option<RankSettings>,
    float16: &'static str,
    snapshot: Option<String>,
    /// The archive of a graph that is to be exported.
    graph: Option<String>,
    /// Nothing else keeps writes out of the files of the user.
    refuse_writes: bool,
    /// Paths that are written to all the same.
    writable: Vec<String>,
    /// What goes to other machines is refused.
    offline: bool,
    weights: &'static str,
    assume: BTreeMap<&'static str, f64>,
    bounded: Vec<&'static str>,
    other_peaks: Option<DevicePeaks>,
    run_ahead: bool,
    run_ahead_peaks: Option<DevicePeaks>,
    vary: Option<VarySettings<'a>>,
    plan: Option<PlanSettings>,
    measures: Vec<[String; 2]>,
    device: DeviceSettings<'a>,
}

/// The process of a distributed job that runs alone.
#[derive(Debug, Serialize)]
struct RankSettings {
    rank: u32,
    world_size: u32,
    local_rank: u32,
    local_world_size: u32,
    node: u32,
    nodes: u32,
}

/// The folder of a plan to be followed.
#[derive(Debug, Serialize)]
struct PlanSettings {
    folder: String,
    debug: bool,
    memory: &'static str,
    mark: &'static str,
}

/// The batches of recorded iterations.
#[derive(Debug, Serialize)]
struct VarySettings<'a> {
    dimension: &'static str,
    extents: &'a [u64],
}

/// The GPU that the script sees, with the names of `torch.cuda.get_device_properties`.
#[derive(Debug, Serialize)]
struct DeviceSettings<'a> {
    key: &'a str,
    name: &'a str,
    capability: [u8; 2],
    total_memory: u64,
    free_memory: u64,
    multi_processor_count: u32,
    max_threads_per_multi_processor: u32,
    warp_size: u32,
    l2_cache_size: Option<u64>,
    shared_memory_per_block: Option<u64>,
}

/// Threads of a warp, the same on every CUDA device so far (CUDA C++ Programming Guide, "Compute Capabilities", table of
/// technical specifications).
const WARP_SIZE: u32 = 32;

impl<'a> Settings<'a> {
    /// The settings of a request.
    pub(crate) fn of(request: &'a Request, overlay: &Overlay) -> Self {
        Self {
            format: 1,
            recorder: env!("CARGO_PKG_VERSION"),
            purpose: request.purpose.name(),
            steps: request.steps.get(),
            rest: request.rest.map(|time| time.as_secs_f64()),
            stacks: request.stacks == Stacks::Recorded,
            max_memory: request.memory.map(Bytes::get),
            engine: request.engine.name(),
            gpus: request.gpus.get(),
            rank: request.rank.map(RankSettings::of),
            float16: match request.float16 {
                Float16::AsBfloat16 => "bfloat16",
                Float16::Kept => "kept",
            },
            snapshot: snapshot::written_to(request, overlay)
                .map(|path| path.to_string_lossy().into_owned()),
            graph: graph_file::written_to(request, overlay)
                .map(|path| path.to_string_lossy().into_owned()),
            writable: match &request.writable {
                Writable::Paths(paths) => {
                    paths.iter().map(|path| path.to_string_lossy().into_owned()).collect()
                }
                Writable::Everything => Vec::new(),
            },
            refuse_writes: matches!(overlay.method(), Method::Unavailable(_)),
            offline: *overlay.method() != Method::Off,
            weights: match request.weights {
                Weights::Present => "present",
                Weights::Absent => "absent",
            },
            assume: request.assume.highest(),
            bounded: request.assume.bounded(request.other_peaks.is_some()),
            other_peaks: request.other_peaks,
            run_ahead: request.timing == Timing::RunAhead,
            run_ahead_peaks: match request.timing {
                Timing::AtOnce(peaks) => peaks,
                Timing::RunAhead => None,
            },
            vary: request.vary.as_ref().map(VarySettings::of),
            plan: request.plan.as_ref().map(|plan| PlanSettings {
                folder: plan.path.to_string_lossy().into_owned(),
                debug: plan.debug,
                memory: plan.memory.name(),
                mark: plan.mark.name(),
            }),
            measures: request.measures.iter().map(named).collect(),
            device: DeviceSettings::of(&request.device),
        }
    }
}

/// The name of a measure, and its option.
fn named(measure: &Measure) -> [String; 2] {
    [measure.name().to_owned(), measure.option().unwrap_or_default().to_owned()]
}

impl RankSettings {
    fn of(rank: LoneRank) -> Self {
        Self {
            rank: rank.rank(),
            world_size: rank.world_size().get(),
            local_rank: rank.local_rank(),
            local_world_size: rank.local_world_size().get(),
            node: rank.node(),
            nodes: rank.nodes(),
        }
    }
}

impl<'a> VarySettings<'a> {
    fn of(vary: &'a VaryingBatches) -> Self {
        Self { dimension: vary.dimension, extents: &vary.extents }
    }
}

impl<'a> DeviceSettings<'a> {
    fn of(device: &'a Device) -> Self {
        Self {
            key: &device.name,
            name: &device.title,
            capability: [device.compute_capability.major, device.compute_capability.minor],
            total_memory: device.memory.get(),
            free_memory: device.available().get(),
            multi_processor_count: device.sms,
            max_threads_per_multi_processor: device.max_threads_per_sm,
            warp_size: WARP_SIZE,
            l2_cache_size: None,
            shared_memory_per_block: None,
        }
    }
}

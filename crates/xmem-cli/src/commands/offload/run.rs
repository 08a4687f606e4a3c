//! Runs `xmem offload`.

use super::args::{OffloadArgs, OffloadFormat};
use super::error::OffloadFailure;
use crate::commands::Outcome;
use crate::device::DeviceArgs;
use crate::error::CliError;
use crate::estimate;
use crate::exit::Exit;
use crate::global::{Global, Verbosity};
use crate::input::Kind;
use crate::overwrite::{self, Output};
use crate::progress::Progress;
use crate::reading::{is_damaged, read_options};
use crate::values::Selection;
use crate::{cudnn, device, input, output, pool, style};
use std::num::NonZeroUsize;
use std::path::Path;
use xmem::{Estimate, Job};
use xmem_report::json::{self, OffloadDocument};
use xmem_report::{csv, text};
use xmem_studies::offload::{Duplex, GradientRule, Jitter, Placement, SuperNeurons, WorkspaceRule};
use xmem_studies::offloading::{
    OffloadAnswer, OffloadError, OffloadSettings, PolicyChoice, SmallestCapacity,
};
use xmem_studies::planner::{Limits, Planner};

/// The steps that `--jitter` runs.
const JITTER_RUNS: usize = 100;

/// Runs the command.
pub(crate) fn run(args: &OffloadArgs, global: &Global) -> Outcome {
    let answer = &args.answer;
    let outputs = Output::given([
        ("--output", answer.output.as_deref()),
        ("--series", answer.series.as_deref()),
    ]);
    let inputs = [Some(args.trace.as_path()), args.device.device_file.as_deref()];
    let inputs = inputs.into_iter().chain([args.offloading.durations.as_deref()]).flatten();
    overwrite::refuse(&outputs, inputs)?;
    let settings = settings(args)?;
    let (job, found) =
        pool::run(args.reading.threads, |threads| simulate(args, &settings, threads, global))?;
    let name = input::name(&args.trace);
    let notes = job.findings();
    let style = style::of_output(answer.output.as_deref());
    let page = match (answer.format, global.verbosity()) {
        (OffloadFormat::Json, _) => json::pretty(&OffloadDocument::new(&name, &found, &notes)),
        (OffloadFormat::Csv, _) => csv::offload(&found),
        (OffloadFormat::Text, Verbosity::Quiet) => text::offload_brief(&name, &found),
        (OffloadFormat::Text, _) => text::offload(&name, &found, &notes, &style),
    };
    if let Some(path) = &answer.series {
        output::write(csv::offload_series(&found).as_bytes(), Some(path))?;
    }
    output::write(page.as_bytes(), answer.output.as_deref())?;
    Ok(if is_damaged(&job) { Exit::Withheld } else { Exit::Fits })
}

fn simulate(
    args: &OffloadArgs,
    settings: &OffloadSettings,
    threads: NonZeroUsize,
    global: &Global,
) -> Result<(Job, OffloadAnswer), CliError> {
    let device = device::choose_or_default(&DeviceArgs::from(&args.device))?;
    let estimate = Estimate::builder(device).convolutions(cudnn::source(&args.cudnn)?).build();
    let name = input::name(&args.trace);
    let progress = Progress::over([args.trace.as_path()], global.verbosity());
    let options = read_options(&args.reading, threads);
    let job = Job::observed(&args.trace, &options, &|stage| progress.stage(&name, stage))?;
    let predicted = estimate.predict(&job).map_err(|error| estimate::failure(&name, error))?;
    let prediction = predicted.prediction();
    let answer = settings
        .simulate(prediction, &estimate.target().device)
        .map_err(|source| error(&args.trace, source))?;
    drop(predicted);
    Ok((job, answer))
}

/// A simulation that cannot be made.
pub(crate) fn error(trace: &Path, source: OffloadError) -> OffloadFailure {
    OffloadFailure::Simulation { input: input::display_name(trace), source: Box::new(source) }
}

fn settings(args: &OffloadArgs) -> Result<OffloadSettings, CliError> {
    let given = &args.offloading;
    let planned = Placement::Planned(Planner::BestFit);
    let placements: Vec<Placement> = Placement::ONLINE.into_iter().chain([planned]).collect();
    let durations = match &given.durations {
        Some(path) => {
            let bytes = input::read(path, Kind::Durations, None)?;
            Some(String::from_utf8_lossy(&bytes).into_owned())
        }
        None => None,
    };
    Ok(OffloadSettings {
        policies: Selection::each(&given.policy, &PolicyChoice::ALL),
        placements: Selection::each(&given.placement, &placements),
        capacity: given.capacity,
        bandwidth: given.pcie_gbps,
        duplex: if given.duplex { Duplex::Full } else { Duplex::Half },
        order: given.order,
        durations,
        smallest: match given.min_capacity {
            true => SmallestCapacity::Find,
            false => SmallestCapacity::Skip,
        },
        moves: given.moves,
        superneurons: SuperNeurons {
            moves: given.moves,
            tensor_cache: given.tensor_cache,
            recompute: given.recompute,
        },
        budget: given.budget,
        host_bandwidth: given.host_gbps,
        workspaces: if given.paper { WorkspaceRule::Grow } else { given.workspace },
        gradients: if given.paper { GradientRule::Preallocated } else { given.gradients },
        jitter: given.jitter.map(|share| Jitter { share, runs: JITTER_RUNS, seed: 1 }),
        limits: Limits { time: given.time, ..Limits::default() },
    })
}

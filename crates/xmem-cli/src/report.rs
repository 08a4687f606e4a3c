//! `xmem report`.

use crate::Outcome;
use crate::args::{DeviceArgs, Global, KeyName, PictureArgs, ReportArgs, ReportFormat, ViewName};
use crate::error::CliError;
use crate::exit::Exit;
use crate::overwrite::{self, Output};
use crate::progress::Progress;
use crate::replay::read_options;
use crate::{allocator, cudnn, device, input, output, pool, what_if};
use std::num::NonZeroUsize;
use xmem::{Answer, BlockKey, Condition, Device, Estimate, Job, SnapshotEnd, Timeline};
use xmem_view::{Run, SvgView};

/// The device if none is named.
const DEVICE: &str = "a100-40g";

/// Runs the command.
pub(crate) fn run(args: &ReportArgs, global: &Global) -> Outcome {
    let picture = &args.picture;
    let outputs = Output::given([("--output", picture.output.as_deref())]);
    let inputs = [Some(args.trace.as_path()), args.device.device_file.as_deref()];
    overwrite::refuse(&outputs, inputs.into_iter().flatten())?;
    let estimate = estimate(args)?;
    let looked_at =
        pool::run(args.reading.threads, |threads| look(args, &estimate, threads, global))?;
    let Loaded { job, answer, timeline } = &looked_at;
    let name = input::name(&args.trace);
    let run = Run { name: &name, job, answer, timeline };
    match picture.format {
        ReportFormat::Folded => {
            let text = xmem_view::folded(&run, picture.by.map_or(BlockKey::Stack, key));
            output::write(text.as_bytes(), picture.output.as_deref())?;
        }
        ReportFormat::Perfetto => file(&xmem_view::perfetto(&run), picture)?,
        ReportFormat::Speedscope => file(&xmem_view::speedscope(&run), picture)?,
        ReportFormat::Svg => {
            let text = xmem_view::svg(&run, view(picture.view), picture.by.map(key));
            output::write(text.as_bytes(), picture.output.as_deref())?;
        }
    }
    let is_damaged = job.profile().integrity.condition() >= Condition::Damaged
        || !job.diagnostics().withheld_reasons().is_empty();
    Ok(if is_damaged { Exit::Withheld } else { Exit::Fits })
}

/// Writes the file of another program.
fn file(content: &[u8], picture: &PictureArgs) -> Result<(), CliError> {
    output::bytes(picture.output.as_deref(), |out| Ok(out.write_all(content)?))
}

/// A recording with all that is known about it.
struct Loaded {
    job: Job,
    answer: Answer,
    timeline: Timeline,
}

fn look(
    args: &ReportArgs,
    estimate: &Estimate,
    threads: NonZeroUsize,
    global: &Global,
) -> Result<Loaded, CliError> {
    let name = input::name(&args.trace);
    let progress = Progress::over([args.trace.as_path()], global.verbosity());
    let options = read_options(&args.reading, threads);
    let observer = |stage| progress.stage(&name, stage);
    let job = Job::observed(&args.trace, &options, &observer)?;
    let failed = |error| CliError::estimate(&name, error);
    let answer = estimate.job_observed(&job, &observer).map_err(failed)?;
    let timeline = estimate.timeline(&job, SnapshotEnd::Job).map_err(failed)?;
    Ok(Loaded { job, answer, timeline })
}

fn estimate(args: &ReportArgs) -> Result<Estimate, CliError> {
    let builder = Estimate::builder(chosen(&args.device)?)
        .allocator(allocator::settings(&args.allocator)?)
        .convolutions(cudnn::source(&args.cudnn)?);
    let mut builder = what_if::apply(builder, &args.what_if)?;
    if let Some(iterations) = args.picture.iterations {
        builder = builder.iterations(iterations);
    }
    let estimate = builder.build();
    estimate.check()?;
    Ok(estimate)
}

fn chosen(args: &DeviceArgs) -> Result<Device, CliError> {
    match device::choose(args) {
        Err(CliError::NoDevice) => Ok(xmem::find(DEVICE)?.clone()),
        chosen => chosen,
    }
}

fn view(name: ViewName) -> SvgView {
    match name {
        ViewName::Timeline => SvgView::Timeline,
        ViewName::Treemap => SvgView::Treemap,
        ViewName::Both => SvgView::Both,
    }
}

fn key(name: KeyName) -> BlockKey {
    match name {
        KeyName::Role => BlockKey::Role,
        KeyName::Module => BlockKey::Module,
        KeyName::Line => BlockKey::Line,
        KeyName::Op => BlockKey::Op,
        KeyName::Stack => BlockKey::Stack,
        KeyName::Size => BlockKey::Size,
    }
}

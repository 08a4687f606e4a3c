//! Runs `xmem validate`.

use super::args::ValidateArgs;
use super::error::failure;
use crate::commands::snapshot::RerunFailure;
use crate::commands::{Outcome, snapshot};
use crate::error::CliError;
use crate::exit::Exit;
use crate::format::PlainFormat;
use crate::global::{Global, Verbosity};
use crate::{allocator, device, input, output, reading, style};
use xmem::predict::AllocatorSettings;
use xmem::{Device, Estimate};
use xmem_eval::{DeviceIndex, RerunOptions, Setup, Snapshot};
use xmem_report::json::{self, ValidateDocument};
use xmem_report::{Comparison, text};

/// Runs the command.
pub(crate) fn run(args: &ValidateArgs, global: &Global) -> Outcome {
    if let Some(figure) = &args.figure {
        output::check_folder(figure)?;
    }
    let name = input::name(&args.snapshot);
    let gpu = device::choose(&args.device)?;
    let device_name = gpu.name.clone();
    let (recorded, _) = snapshot::read(&args.snapshot, args.reading.max_input)?;
    let estimate = estimate(args, gpu, &recorded)?;
    let path = &args.trace;
    let job = reading::job(path, &args.reading, global)?;
    let options =
        RerunOptions { device: DeviceIndex(args.device_index), ..RerunOptions::default() };
    let trace = input::name(path);
    let judged = xmem_eval::validate(&estimate, &job, &recorded, &options)
        .map_err(|error| failure(&trace, &name, error))?;
    let inputs = Comparison {
        trace: &trace,
        snapshot: &name,
        device: &device_name,
        tolerance: args.tolerance,
    };
    if let Some(file) = &args.figure {
        let subject = format!("{trace} on {device_name}");
        let figure = xmem_view::validation_figure(&judged, &subject);
        output::write(figure.as_bytes(), Some(file))?;
    }
    let style = style::of_output(None);
    let page = match (args.format, global.verbosity()) {
        (PlainFormat::Json, _) => json::pretty(&ValidateDocument::new(&inputs, &judged)),
        (PlainFormat::Text, Verbosity::Quiet) => text::validation_brief(&inputs, &judged, &style),
        (PlainFormat::Text, _) => text::validation(&inputs, &judged, args.top, &style),
    };
    output::write(page.as_bytes(), None)?;
    Ok(match judged.is_within(args.tolerance) {
        _ if !judged.is_judged() => Exit::Withheld,
        true => Exit::Fits,
        false => Exit::Differs,
    })
}

/// Checks everything that does not need the trace.
pub(crate) fn check(args: &ValidateArgs) -> Result<(), CliError> {
    let gpu = device::choose(&args.device)?;
    let (recorded, _) = snapshot::read(&args.snapshot, args.reading.max_input)?;
    estimate(args, gpu, &recorded).map(drop)
}

fn estimate(args: &ValidateArgs, gpu: Device, recorded: &Snapshot) -> Result<Estimate, CliError> {
    let settings = settings(args, recorded, &input::name(&args.snapshot))?;
    let estimate = args.estimate.builder(gpu)?.allocator(settings).build();
    estimate.check()?;
    Ok(estimate)
}

/// The estimate's allocator: that of the recording, unless the arguments choose another one.
fn settings(
    args: &ValidateArgs,
    recorded: &Snapshot,
    name: &str,
) -> Result<AllocatorSettings, CliError> {
    let mut settings = allocator::settings(&args.estimate.allocator)?;
    let (setup, _) =
        Setup::of(recorded, None, None).map_err(|error| RerunFailure::new(name, error.into()))?;
    settings.conf.get_or_insert(setup.text);
    settings.release.get_or_insert(setup.config.release);
    Ok(settings)
}

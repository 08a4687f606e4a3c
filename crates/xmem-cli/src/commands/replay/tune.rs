//! `--tune`: the settings with which a recorded job needs least.

use super::args::{ReplayArgs, ReplayFormat};
use super::error::ReplayFailure;
use crate::commands::Outcome;
use crate::exit::Exit;
use crate::global::{Global, Verbosity};
use crate::progress::Progress;
use crate::reading::read_options;
use crate::{allocator, cudnn, device, estimate, input, output, pool, style, what_if};
use std::path::Path;
use xmem::{Estimate, Job};
use xmem_report::json;
use xmem_report::text;
use xmem_studies::tune::tune;

/// Tries settings on one trace, and prints those that help.
pub(super) fn run(trace: &Path, args: &ReplayArgs, global: &Global) -> Outcome {
    let name = input::name(trace);
    let device = match args.devices.as_slice() {
        [] => device::choose(&args.device)?,
        [one] => xmem::find(one.trim())?.clone(),
        _ => return Err(ReplayFailure::TuneOfSeveral.into()),
    };
    let choices = args.allocator.each();
    let [choice] = choices.as_slice() else { return Err(ReplayFailure::TuneOfSeveral.into()) };
    let (settings, source) = (allocator::settings(choice)?, cudnn::source(&args.cudnn)?);
    let builder = Estimate::builder(device.clone()).convolutions(source);
    let builder = what_if::apply(builder, &args.what_if)?;
    let progress = Progress::over([trace], global.verbosity());
    let found = pool::run(args.reading.threads, |threads| {
        let read = read_options(&args.reading, threads);
        let job = Job::observed(trace, &read, &|stage| progress.stage(&name, stage))?;
        tune(&job, &settings, &builder)
    });
    drop(progress);
    let found = found.map_err(|error| estimate::failure(&name, error))?;
    let page = match args.answer.format {
        ReplayFormat::Json => json::pretty(&json::TuneDocument::new(&name, &device.name, &found)),
        ReplayFormat::Text if global.verbosity() == Verbosity::Quiet => {
            text::tune_brief(&name, &device.name, &found)
        }
        ReplayFormat::Text => text::tune(
            &name,
            &device.name,
            &found,
            &style::of_output(args.answer.output.as_deref()),
        ),
        _ => return Err(ReplayFailure::TuneOfSeveral.into()),
    };
    output::write(page.as_bytes(), args.answer.output.as_deref())?;
    let exit = if found.base.fits { Exit::Fits } else { Exit::DoesNotFit };
    Ok(if args.answer.exit_zero { exit.zero_for_verdicts() } else { exit })
}

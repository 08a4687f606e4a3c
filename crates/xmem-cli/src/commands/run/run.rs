//! Runs `xmem run`.

use super::args::RunArgs;
use super::error::RunFailure;
use super::planned::{self, Followed};
use super::present;
use crate::commands::Outcome;
use crate::commands::profile::{alone, check_command, kept_out, writable};
use crate::device;
use crate::error::CliError;
use crate::exit::Exit;
use crate::global::{Global, Verbosity};
use crate::terminal::{note, say};
use std::path::PathBuf;
use std::process::ExitStatus;
use xmem::types::printable;
use xmem_recorder::{Capacity, Float16, LoneRank, Progress, Purpose, Request, Stacks, Weights};

/// Runs the command.
pub(crate) fn run(args: &RunArgs, global: &Global) -> Outcome {
    check_command(args.virtual_gpu.as_deref().unwrap_or(device::DEFAULT), &args.command)?;
    let mut request = request(args)?;
    let verbosity = global.verbosity();
    let followed = args
        .plan
        .as_ref()
        .map(|plan| Followed::prepare(plan, args, &request, global))
        .transpose()?;
    request.plan = followed.as_ref().map(Followed::folder);
    if request.plan.is_some() {
        request.variables.push(planned::variable());
    }
    let mut show = |news: Progress<'_>| match news {
        Progress::Note(text) => note(&format!("note: {}", printable(text)), verbosity),
        Progress::Kept(kept) => note(&format!("note: {}", kept_out(kept)), verbosity),
        Progress::Measure { name, places, text } if verbosity != Verbosity::Quiet => {
            let text = printable(text);
            match places {
                0 => say(&format!("warning: {} has no effect: {text}", printable(name))),
                _ => say(&format!("xmem: {}: {text}", printable(name))),
            }
        }
        _ => {}
    };
    let status = xmem_recorder::run(&request, &mut show);
    if let Some(followed) = followed {
        followed.finish(args, verbosity)?;
    }
    Ok(Exit::OfCommand(code(status?)))
}

/// The exit code of a command, as a shell has it: 128 and the number of the signal that ended it.
fn code(status: ExitStatus) -> u8 {
    #[cfg(unix)]
    let by_signal =
        std::os::unix::process::ExitStatusExt::signal(&status).map(|signal| 128 + signal);
    #[cfg(not(unix))]
    let by_signal = None;
    let code = status.code().or(by_signal).unwrap_or(1);
    u8::try_from(code).unwrap_or(1)
}

fn request(args: &RunArgs) -> Result<Request, CliError> {
    let mut command = args.command.iter().cloned();
    let name = args.virtual_gpu.as_deref();
    let with = args.with.clone().unwrap_or_default();
    if name.is_none() && with.0.is_empty() && args.plan.is_none() {
        return Err(RunFailure::Nothing.into());
    }
    let command = (command.next().unwrap_or_default(), command.collect());
    // A job that is recorded for a plan makes the requests of the GPU on which it will run.
    let device = match name.map_or_else(present::device, |_| None) {
        Some(present) => present.clone(),
        None => xmem::find(name.unwrap_or(device::DEFAULT))?.clone(),
    };
    let rank = args.ranks.map(|of| alone(args.rank, of, args.nodes)).transpose()?;
    Ok(Request {
        purpose: if name.is_some() { Purpose::Run } else { Purpose::RunOnDevice },
        stacks: Stacks::Omitted,
        capacity: args.capacity.map_or(Capacity::OfDevice, Capacity::Of),
        gpus: rank.map_or(args.gpus, LoneRank::local_world_size),
        rank,
        float16: Float16::Kept,
        weights: if args.without_weights { Weights::Absent } else { Weights::Present },
        measures: with.measures(),
        variables: with.variables(),
        writable: writable(&args.let_write)?,
        overlay: args.overlay,
        helper: std::env::current_exe().ok(),
        ..Request::new(command, PathBuf::new(), device)
    })
}

//! `xmem profile`.

mod convolutions;
mod progress;
mod range;
mod then;

use crate::Outcome;
use crate::args::{Global, ProfileArgs, Verbosity};
use crate::error::{self, CliError};
use crate::exit::Exit;
use crate::terminal::{say, shown};
use progress::RecordingProgress;
use std::borrow::Cow;
use std::path::Path;
use then::Then;
use xmem::{Bytes, printable};
use xmem_recorder::{Destination, Engine, Float16, Recorded, Request, Stacks, Timeouts, Weights};

/// Runs the command.
pub(crate) fn run(args: &ProfileArgs, global: &Global) -> Outcome {
    let then = args.then.as_deref().map(|line| Then::parse(line, &args.output)).transpose()?;
    let name = args.device(then.as_ref().and_then(Then::device));
    let mut request = request(args, name)?;
    if request.assume.have_ranges() && request.engine != Engine::Cpu {
        request.other_peaks = range::lowest(&request, args, global)?;
    }
    let device = request.device.clone();
    let progress = RecordingProgress::new(args.steps(), global.verbosity());
    let mut recorded = xmem_recorder::record(&request, &mut |news| progress.show(news))?;
    drop(progress);
    let kept = match &recorded.cut_short {
        None => convolutions::keep(&mut recorded, &device),
        Some(_) => None,
    };
    if global.verbosity() != Verbosity::Quiet {
        say(&summary(&recorded, &device.title));
        if let Some(kept) = kept {
            say(&format!("  {kept}"));
        }
        range::advise(&recorded);
    }
    if let Some(reason) = &recorded.cut_short {
        error::print_cut_short(&recorded, reason);
        if then.is_some() {
            say("note: --then was not run because the recording is incomplete");
        }
        return Ok(Exit::CutShort);
    }
    if let Some(snapshot) =
        args.snapshot.as_ref().filter(|_| global.verbosity() != Verbosity::Quiet)
    {
        say(&format!("  memory snapshot: {} (for pytorch.org/memory_viz)", shown(snapshot)));
    }
    match then {
        Some(then) => then.run(),
        None => {
            if global.verbosity() != Verbosity::Quiet {
                let file = quoted(recorded.destination.path());
                say(&format!("next: xmem replay {file} --device {name}"));
            }
            Ok(Exit::Fits)
        }
    }
}

fn request(args: &ProfileArgs, device: &str) -> Result<Request, CliError> {
    let mut command = args.command.iter().cloned();
    Ok(Request {
        command: (command.next().unwrap_or_default(), command.collect()),
        output: args.output.clone(),
        steps: args.steps(),
        stacks: if args.no_stacks { Stacks::Omitted } else { Stacks::Recorded },
        device: xmem::find(device)?.clone(),
        gpus: args.gpus,
        engine: args.engine(),
        float16: if args.keep_float16 { Float16::Kept } else { Float16::AsBfloat16 },
        snapshot: args.snapshot.clone(),
        weights: if args.without_weights { Weights::Absent } else { Weights::Present },
        assume: args.assume(),
        other_peaks: None,
        vary: args.varying_batches(),
        timeout: args.timeout,
        memory: args.max_memory,
        timeouts: Timeouts::default(),
    })
}

fn summary(recorded: &Recorded, device: &str) -> String {
    let count = recorded.iterations;
    let iterations = if count == 1 { "iteration" } else { "iterations" };
    let mut text = format!(
        "recorded {count} {iterations} in {}: {} ({}{})",
        seconds(recorded),
        shown(recorded.destination.path()),
        recorded.size,
        before_compression(recorded.size, recorded.text),
    );
    if let Destination::Beside { existing, .. } = &recorded.destination {
        text += &format!(
            "\n  existing `{}` is kept: an incomplete recording does not replace a file",
            shown(existing)
        );
    }
    let versions = [("torch", &recorded.torch), ("Python", &recorded.python)];
    let versions: Vec<String> = versions
        .iter()
        .filter_map(|(name, version)| version.as_ref().map(|v| format!("{name} {}", printable(v))))
        .collect();
    if !versions.is_empty() {
        let gpu = match recorded.engine {
            Engine::VirtualGpu => "virtual GPU",
            Engine::Cpu | Engine::Auto => "reported GPU",
        };
        text += &format!("\n  {}; {gpu}: {device}", versions.join(", "));
    }
    if !recorded.redirected.is_empty() {
        let calls: Vec<String> = recorded
            .redirected
            .iter()
            .map(|c| format!("{} ({})", printable(&c.function), c.count))
            .collect();
        text += &format!("\n  redirected to the CPU: {}", calls.join(", "));
    }
    text
}

fn seconds(recorded: &Recorded) -> String {
    let seconds = recorded.took.as_secs_f64();
    if seconds < 10.0 { format!("{seconds:.1} s") } else { format!("{seconds:.0} s") }
}

fn before_compression(size: Bytes, text: Bytes) -> String {
    if size == text { String::new() } else { format!("; {text} before compression") }
}

/// A path, quoted for a shell.
fn quoted(path: &Path) -> String {
    let text = path.to_string_lossy();
    shlex::try_quote(&text).map_or_else(|_| text.to_string(), Cow::into_owned)
}

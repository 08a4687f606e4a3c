//! Runs `xmem profile`.

use super::args::{ProfileArgs, RankChoice};
use super::error::ProfileFailure;
use super::then::Then;
use super::{convolutions, hints, progress, range, ranks, recording, values};
use crate::commands::Outcome;
use crate::error::CliError;
use crate::exit::Exit;
use crate::global::{Global, Verbosity};
use crate::shell::quoted;
use crate::terminal::{say, shown};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use xmem::Bytes;
use xmem::types::printable;
use xmem_recorder::{
    Destination, Engine, Float16, LoneRank, Recorded, RecordedRest, Request, RestEnd, Stacks,
    Timing, Weights, Writable,
};

/// Runs the command.
pub(crate) fn run(args: &ProfileArgs, global: &Global) -> Outcome {
    let ranks = ranks::chosen(args)?;
    let is_single = ranks.len() == 1;
    let mut runs: Vec<Run> =
        ranks.into_iter().map(|rank| Run::new(args, rank, is_single)).collect();
    let then = then(args, global, &runs)?;
    let name = args.device(then.as_ref().and_then(Then::device));
    hints::before(name, &args.command)?;
    let is_quiet = global.verbosity() == Verbosity::Quiet;
    let mut peaks = BTreeMap::new();
    let mut next = 0;
    while let Some(run) = runs.get(next) {
        if let Some(rank) = run.rank.filter(|_| !is_quiet && !is_single) {
            say(&format!("xmem: rank {} of {}", rank.rank(), rank.world_size()));
        }
        let recorded = record(run, args, global, name)?;
        if let Some(reason) = &recorded.cut_short {
            recording::print_cut_short(&recorded, reason);
            match (then, args.answered()) {
                (Some(_), Some(device)) => {
                    say(&format!(
                        "note: no answer for {device}, because the recording is incomplete"
                    ));
                }
                (Some(_), None) => {
                    say("note: --then was not run because the recording is incomplete");
                }
                (None, _) => {}
            }
            return Ok(Exit::CutShort);
        }
        if let Some(snapshot) = run.snapshot.as_ref().filter(|_| !is_quiet) {
            say(&format!("  memory snapshot: {} (for pytorch.org/memory_viz)", shown(snapshot)));
        }
        if let Some(rank) = run.rank {
            peaks.insert(rank.rank(), recorded.peaks);
        }
        next += 1;
        if next == runs.len() && args.rank == RankChoice::Auto {
            let rank = ranks::between(&peaks);
            let rank =
                rank.zip(args.ranks).and_then(|(rank, of)| LoneRank::new(rank, of, args.nodes));
            runs.extend(rank.map(|rank| Run::new(args, Some(rank), is_single)));
        }
    }
    if args.rank == RankChoice::Auto {
        runs.sort_by_key(|run| run.rank.map(LoneRank::rank));
    }
    if !is_single && !is_quiet {
        ranks::comparison(&peaks).iter().for_each(|line| say(line));
        if args.rank == RankChoice::Auto {
            ranks::left_out(&peaks).iter().for_each(|line| say(line));
        }
    }
    match self::then(args, global, &runs)? {
        Some(then) => then.run(),
        None => {
            if !is_quiet {
                let files: Vec<_> =
                    runs.iter().map(|run| quoted(&run.output.to_string_lossy())).collect();
                say(&format!("next: xmem replay {} --device {name}", files.join(" ")));
            }
            Ok(Exit::Fits)
        }
    }
}

/// The command of `--then`, or the answer for `--device`, with the files of the recordings.
fn then(args: &ProfileArgs, global: &Global, runs: &[Run]) -> Result<Option<Then>, CliError> {
    let outputs: Vec<&Path> = runs.iter().map(|run| run.output.as_path()).collect();
    let Some(device) = args.answered() else {
        return args.then.as_deref().map(|line| Then::parse(line, &outputs)).transpose();
    };
    let device = xmem::find(device)?;
    let mut then = Then::parse(&format!("replay --device {}", device.name), &outputs)?;
    then.set_global(global);
    Ok(Some(then))
}

/// A recording to make.
struct Run {
    rank: Option<LoneRank>,
    output: PathBuf,
    snapshot: Option<PathBuf>,
}

impl Run {
    fn new(args: &ProfileArgs, rank: Option<LoneRank>, is_single: bool) -> Self {
        let file = |path: &PathBuf| match rank.filter(|_| !is_single) {
            Some(rank) => ranks::file_of(path, rank),
            None => path.clone(),
        };
        Self { rank, output: file(&args.output), snapshot: args.snapshot.as_ref().map(file) }
    }
}

/// Makes a recording, and prints its summary.
fn record(
    run: &Run,
    args: &ProfileArgs,
    global: &Global,
    name: &str,
) -> Result<Recorded, CliError> {
    let mut request = request(run, args, name)?;
    if request.assume.have_ranges() && request.engine != Engine::Cpu {
        request.other_peaks = range::lowest(&request, args, global)?;
    }
    if args.run_ahead && request.engine != Engine::Cpu {
        request.timing = Timing::AtOnce(range::run_ahead(&request, args, global)?);
    }
    let device = request.device.clone();
    let (recorded, engine) = progress::record(&request, args, global);
    let mut recorded = values::computed(recorded, engine, &request, args, global)?;
    let kept = match &recorded.cut_short {
        None => convolutions::keep(&mut recorded, &device),
        Some(_) => None,
    };
    if global.verbosity() != Verbosity::Quiet {
        say(&summary(&recorded, &device.title));
        if let Some(rank) = run.rank {
            let (rank, of, on, nodes) = (rank.rank(), rank.world_size(), rank.node(), rank.nodes());
            let node = if nodes > 1 { format!(" (node {on} of {nodes})") } else { String::new() };
            say(&format!(
                "  rank {rank} of {of}{node} ran alone; its collectives completed immediately"
            ));
        }
        if let Some(kept) = kept {
            say(&format!("  {kept}"));
        }
        range::advise(&recorded);
    }
    Ok(recorded)
}

fn request(run: &Run, args: &ProfileArgs, device: &str) -> Result<Request, CliError> {
    let mut command = args.command.iter().cloned();
    let command = (command.next().unwrap_or_default(), command.collect());
    Ok(Request {
        steps: args.steps(),
        rest: args.rest(),
        stacks: if args.no_stacks { Stacks::Omitted } else { Stacks::Recorded },
        gpus: run.rank.map_or(args.gpus, LoneRank::local_world_size),
        capacity: args.capacity(),
        rank: run.rank,
        engine: args.engine(),
        float16: if args.keep_float16 { Float16::Kept } else { Float16::AsBfloat16 },
        snapshot: run.snapshot.clone(),
        weights: if args.without_weights { Weights::Absent } else { Weights::Present },
        assume: args.assume(),
        vary: args.varying_batches(),
        measures: args.with().measures(),
        variables: args.with().variables(),
        writable: writable(&args.let_write)?,
        overlay: args.overlay,
        helper: std::env::current_exe().ok(),
        timeout: args.timeout,
        memory: args.max_memory,
        ..Request::new(command, run.output.clone(), xmem::find(device)?.clone())
    })
}

/// The files that the command may write to.
pub(crate) fn writable(let_write: &[PathBuf]) -> Result<Writable, ProfileFailure> {
    if let_write.iter().any(|path| path == Path::new("all")) {
        return Ok(Writable::Everything);
    }
    match let_write.iter().find(|path| !path.exists()) {
        Some(path) => Err(ProfileFailure::LetWrite { path: path.clone() }),
        None => Ok(Writable::Paths(let_write.to_vec())),
    }
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
    if let Some(rest) = &recorded.rest {
        text += &format!("\n  {}", after_the_steps(rest));
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

/// What is recorded of the script after the iterations.
fn after_the_steps(rest: &RecordedRest) -> String {
    let steps = match rest.steps {
        0 => "no step".to_owned(),
        1 => "1 step".to_owned(),
        many => format!("{many} steps"),
    };
    match &rest.end {
        RestEnd::Script => format!("then the rest of the script: {steps}, to its end"),
        RestEnd::Time => format!("then {steps}, until the time limit (--time raises it)"),
        RestEnd::Settled => format!("then {steps}, until nothing new followed"),
        RestEnd::Stopped => format!("then {steps}, until it was stopped"),
        RestEnd::Exception(place) => {
            let place = place.as_deref().map(printable).unwrap_or_default();
            format!("then {steps}, until the script failed: {place}")
        }
    }
}

fn seconds(recorded: &Recorded) -> String {
    let seconds = recorded.took.as_secs_f64();
    if seconds < 10.0 { format!("{seconds:.1} s") } else { format!("{seconds:.0} s") }
}

fn before_compression(size: Bytes, text: Bytes) -> String {
    if size == text { String::new() } else { format!("; {text} before compression") }
}

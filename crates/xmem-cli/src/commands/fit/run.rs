//! Runs `xmem fit`.

use super::args::{FitArgs, FitFormat};
use super::candidates;
use super::error::FitFailure;
use super::law;
use super::page;
use super::progress::FitProgress;
use super::recordings::{Made, Maker, NOT_APPLICABLE, Read, Recordings, all_iterations};
use super::template::{Ranks, Template};
use crate::commands::Outcome;
use crate::commands::profile::{check_command, print_cut_short, writable};
use crate::cudnn::settings_of_environment;
use crate::error::CliError;
use crate::exit::Exit;
use crate::global::{Global, Verbosity};
use crate::measures::Change;
use crate::overwrite::{self, Output};
use crate::terminal::{note, say, shown};
use crate::{config, output, style};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Instant;
use xmem::analyzer::recording::MEASURES_KEY;
use xmem::predict::{Confidence, STEADY_ITERATIONS};
use xmem::{Bytes, Device};
use xmem_gate::Site;
use xmem_recorder::{
    Capacity, CutShort, Interrupts, Measure, Recorded, Request, RestEnd, Stacks, Weights,
    available_memory, wrapper,
};
use xmem_report::{json, text};
use xmem_studies::fit::{
    FewestWith, FitAnswer, LargestWith, Proof, Range, Recorder as _, Tried, Variant, VariedOption,
    fewest, largest, measures, over_gpus,
};
use xmem_tempfiles::PrivateFolder;

/// The values of a number without `--range`.
const RANGE: Range = Range { low: 1, high: 4096 };

/// The value that is recorded first of a number that has none in the job as it is.
const FIRST: u64 = 8;

/// The GPUs of a machine that are tried at most.
const MAX_GPUS: u64 = 64;

/// The recordings that run side by side, and the memory that each may need.
const SIDE_BY_SIDE: usize = 2;
const MEMORY_OF_ONE: Bytes = Bytes::gib(4);

/// How far below what a suggestion needs it must fail: a page of the device.
const BELOW: Bytes = Bytes::mib(2);

/// Runs the command.
pub(crate) fn run(args: &FitArgs, global: &Global) -> Outcome {
    check_outputs(args)?;
    let mut template = Template::parse(&args.command)?;
    if let Some(text) = &args.set {
        template.set(text)?;
    }
    if let Some(text) = &args.ranks {
        template.set_ranks(text)?;
    }
    let devices: Vec<&Device> =
        args.device.iter().map(|name| xmem::find(name)).collect::<Result<_, _>>()?;
    check_command(&args.device[0], &template.with(template.value))?;
    let range = range(args, &template)?;
    if args.law.is_some() {
        law::check(&template, devices.len())?;
    }
    let site = if args.report.is_some() { config::site()? } else { Site::default() };
    let temporary = match &args.keep {
        Some(path) => {
            std::fs::create_dir_all(path)
                .map_err(|source| FitFailure::Keep { path: path.clone(), source })?;
            None
        }
        None => {
            let folder = PrivateFolder::new();
            Some(folder.map_err(|source| FitFailure::TemporaryFolder { source })?)
        }
    };
    let interrupts = Interrupts::watch().ok();
    let (mut answers, mut first) = (Vec::new(), None);
    for device in &devices {
        let folder = match (&args.keep, &temporary) {
            (Some(kept), _) if devices.len() > 1 => kept.join(&device.name),
            (Some(kept), _) => kept.clone(),
            (None, temporary) => {
                temporary.as_ref().expect("there is one of the two").path().join(&device.name)
            }
        };
        std::fs::create_dir_all(&folder)
            .map_err(|source| FitFailure::Keep { path: folder.clone(), source })?;
        match of_device(args, global, (&template, range), (device, interrupts.as_ref()), &folder)? {
            Ok((answer, base)) => {
                let is_last = answer.is_interrupted;
                answers.push(answer);
                first.get_or_insert(base);
                if is_last {
                    break;
                }
            }
            Err(exit) => return Ok(exit),
        }
    }
    print(args, global, &answers)?;
    if let Some(file) = &args.write {
        write_wrapper(file, &answers[0], &candidates::of(args), global)?;
    }
    if let Some(file) = &args.law {
        write_law(file, &answers[0], global)?;
    }
    if let (Some(file), Some(base)) = (&args.report, &first) {
        page::write(file, &answers[0], base, (&devices, &site.devices()), global)?;
    }
    if answers.iter().any(|answer| answer.is_interrupted) {
        return Ok(Exit::Interrupted);
    }
    let fits = answers.iter().all(FitAnswer::fits);
    Ok(if fits { Exit::Fits } else { Exit::DoesNotFit })
}

/// Refuses outputs that cannot be written, or that would replace a file of the command, before anything is recorded.
fn check_outputs(args: &FitArgs) -> Result<(), CliError> {
    let outputs = Output::given([
        ("--output", args.output.as_deref()),
        ("--write", args.write.as_deref()),
        ("--law", args.law.as_deref()),
        ("--report", args.report.as_deref()),
    ]);
    overwrite::refuse(&outputs, args.command.iter().map(Path::new))?;
    outputs.iter().try_for_each(|output| output::check_folder(output.path))?;
    Ok(())
}

fn print(args: &FitArgs, global: &Global, answers: &[FitAnswer]) -> Result<(), CliError> {
    let output = args.output.as_deref();
    let page = match args.format {
        FitFormat::Json => match answers {
            [one] => json::pretty(&json::FitDocument::new(one)),
            all => json::pretty(&all.iter().map(json::FitDocument::new).collect::<Vec<_>>()),
        },
        FitFormat::Text => {
            let is_quiet = global.verbosity() == Verbosity::Quiet;
            let style = style::of_output(output);
            let all: Vec<String> = answers
                .iter()
                .map(|answer| match is_quiet {
                    true => text::fit_brief(answer),
                    false => text::fit(answer, &style),
                })
                .collect();
            all.join("\n")
        }
    };
    output::write(page.as_bytes(), output)
}

/// Writes the file that applies what is suggested to a script.
fn write_wrapper(
    file: &Path,
    answer: &FitAnswer,
    changes: &[Change],
    global: &Global,
) -> Result<(), CliError> {
    let suggestion = answer.ladder.as_ref().and_then(|ladder| ladder.suggestion.as_ref());
    let Some(tried) = suggestion.or(answer.suggestion()) else {
        note(
            &format!("note: nothing is suggested: {} is not written", shown(file)),
            global.verbosity(),
        );
        return Ok(());
    };
    let chosen = || tried.measures.iter().map(|&at| &changes[at]);
    let setting = answer.option.as_ref().and_then(|option| option.setting.as_deref());
    let setting = setting.and_then(|setting| setting.parse().ok());
    let measures: Vec<Measure> =
        setting.into_iter().chain(chosen().filter_map(Change::measure).cloned()).collect();
    let variables: Vec<(String, String)> = chosen().flat_map(Change::variables).collect();
    output::write(wrapper(&measures, &variables).as_bytes(), Some(file))?;
    let launcher = answer
        .gpus(&tried.measures)
        .map_or_else(|| "python".to_owned(), |gpus| format!("torchrun --nproc-per-node {gpus}"));
    let how = format!("{launcher} {} in place of python", shown(file));
    note(&format!("{} applies what is suggested: {how}", shown(file)), global.verbosity());
    Ok(())
}

/// Writes the law, and says how to ask it.
fn write_law(file: &Path, answer: &FitAnswer, global: &Global) -> Result<(), CliError> {
    let Some(law) = &answer.law else {
        let text = format!("note: no law was made: {} is not written", shown(file));
        note(&text, global.verbosity());
        return Ok(());
    };
    output::write(json::line(&json::LawDocument::new(law)).as_bytes(), Some(file))?;
    let (name, last) = (&law.subject.name, law.recorded.last().copied().unwrap_or_default());
    let ask = format!("xmem check {} --at {name}={last}", shown(file));
    note(&format!("{} says what each value needs: {ask}", shown(file)), global.verbosity());
    Ok(())
}

/// The values that are allowed.
fn range(args: &FitArgs, template: &Template) -> Result<Range, FitFailure> {
    let usual = match template.ranks {
        Some(Ranks::Varied) => Range { low: 1, high: MAX_GPUS * u64::from(args.nodes.get()) },
        _ => RANGE,
    };
    let Some(given) = &args.range else { return Ok(usual) };
    match &template.name {
        Some(name) if *name == given.name => match template.value {
            Some(value) if value < given.range.low || value > given.range.high => {
                Err(FitFailure::OutOfRange { name: name.clone(), value })
            }
            _ => Ok(given.range),
        },
        _ => Err(FitFailure::NoSuchNumber { given: given.name.clone() }),
    }
}

/// The answer for a device with the recording of the job as it is, or the exit code of a recording that is incomplete.
fn of_device(
    args: &FitArgs,
    global: &Global,
    (template, range): (&Template, Range),
    (device, interrupts): (&Device, Option<&Interrupts>),
    folder: &Path,
) -> Result<Result<(FitAnswer, PathBuf), Exit>, CliError> {
    let started = Instant::now();
    let changes = candidates::of(args);
    let side_by_side = args.jobs.map_or_else(default_jobs, NonZeroUsize::get);
    let mut recordings = Recordings {
        maker: Maker {
            request: request(args, device)?,
            template,
            changes: &changes,
            device,
            folder,
            iterations: STEADY_ITERATIONS,
            whole: false,
            nodes: args.nodes,
            until: None,
        },
        side_by_side,
        time: args.time,
        fails_anyway: false,
        until: started + args.budget,
        interrupts,
        known: BTreeMap::new(),
        confirmed: BTreeMap::new(),
        places: BTreeMap::new(),
        read: BTreeMap::new(),
        cudnn: None,
        progress: FitProgress::new(global.verbosity(), side_by_side),
        count: 0,
    };
    let value = template.name.as_ref().map(|_| {
        template.value.unwrap_or_else(|| first(template, args).clamp(range.low, range.high))
    });
    if let Some(ranks) = template.ranks_with(value)
        && recordings.maker.rank(&Variant::with(value, Vec::new())).is_none()
    {
        let (ranks, nodes) = (u64::from(ranks.get()), args.nodes.get());
        return Err(FitFailure::Nodes { ranks, nodes }.into());
    }
    let base_variant = Variant::with(value, Vec::new());
    recordings.progress.begin(&[recordings.maker.in_words(&base_variant)]);
    let made = recordings.maker.make(&base_variant, Capacity::Unlimited, Some(args.time));
    let result = recordings.keep(&base_variant, &made);
    let (mut recorded, read) = match base(made, result, template)? {
        Ok(base) => base,
        Err(exit) => return Ok(Err(exit)),
    };
    recordings.maker.iterations = STEADY_ITERATIONS.min(all_iterations(&read.answer));
    recordings.maker.until = Some(recordings.until);
    if recorded.has_convolutions {
        recordings.cudnn =
            settings_of_environment().library_of_recording(recorded.cudnn.as_deref());
    }
    let end = recorded.rest.as_ref().map(|rest| &rest.end);
    recordings.fails_anyway = matches!(end, Some(RestEnd::Exception(_)));
    // If the script needs more later, all are recorded for as long.
    let is_later = read.needs_more_later;
    recordings.maker.whole = is_later;
    let Read { answer, figures, .. } = read;
    let mut found = FitAnswer::new(
        template.words(value),
        answer.device().clone(),
        answer.device().memory,
        figures,
    );
    found.option = template.name.clone().zip(value).map(|(name, first)| VariedOption {
        name,
        value: template.value.map(|_| first),
        setting: template.setting(Some(first)),
        range,
    });
    notes(&mut found, &recorded, &answer, is_later);
    if template.ranks.is_some() {
        found.notes.push(
            "rank 0 was recorded: others may need more (`xmem profile --ranks N --rank auto`)"
                .to_owned(),
        );
    }
    found.measures = changes.iter().map(candidates::described).collect();
    let search = |recordings: &mut Recordings<'_>, measures: Vec<usize>, found: &mut FitAnswer| {
        let Some(first) = value else { return };
        if template.ranks == Some(Ranks::Varied) {
            let variant = Variant::with(Some(first), measures.clone());
            let known = recordings.record(&[variant]).swap_remove(0);
            let result = fewest(recordings, &measures, range, (first, known));
            found.fewest.push(FewestWith { measures, found: result });
            return;
        }
        let known = known(recordings, &measures, first);
        let result = largest(recordings, (&measures, found.room), range, known);
        found.largest.push(LargestWith { measures, found: result });
    };
    // What is asked most comes first: the budget may end what follows.
    search(&mut recordings, Vec::new(), &mut found);
    let of_one = candidates::of_one_gpu(&changes);
    let wants_measures = !figures.fits || args.all;
    if wants_measures && of_one > 0 {
        recordings.progress.expect(of_one);
        let list = candidates::candidates(&changes[..of_one], &answer);
        found.ladder = Some(measures(&mut recordings, (value, found.room), figures, &list));
        recordings.progress.expect(0);
    }
    let has_suggestion = found.suggestion().is_some();
    if wants_measures
        && of_one < changes.len()
        && template.ranks.is_none()
        && (args.measures.is_some() || !has_suggestion && !figures.fits)
    {
        let least = found.ladder.as_ref().and_then(|ladder| ladder.smallest());
        let least = least.map_or(&[][..], |tried| &tried.measures);
        let others = candidates::combinable(&changes, &changes[of_one], least);
        let dividing: Vec<usize> = (of_one..changes.len()).collect();
        found.over_gpus = Some(over_gpus(&mut recordings, value, &dividing, &others));
    }
    prove(&mut found, &mut recordings, value);
    for measures in varied(&found) {
        search(&mut recordings, measures, &mut found);
    }
    if args.law.is_some() {
        let limit = args.range.as_ref().map(|given| given.range.high);
        law::add(&mut found, &mut recordings, (range.low, limit));
    }
    if !recordings.has_time() {
        let why = match recordings.is_interrupted() {
            true => "interrupted",
            false => "the time of --budget was up",
        };
        let text = format!("{why} after {} recordings", recordings.count);
        found.notes.push(text);
    }
    for (at, places) in &recordings.places {
        found.measures[*at].places = Some(places.clone());
    }
    found.recordings = recordings.count;
    found.took = started.elapsed();
    found.is_interrupted = recordings.is_interrupted();
    if args.keep.is_some() {
        keep_with_recording(&found, &mut recorded, global);
    }
    Ok(Ok((found, recordings.maker.trace_of(&base_variant))))
}

/// Adds what was found to the recording of the job as it is, for those who are asked about it later.
fn keep_with_recording(found: &FitAnswer, recorded: &mut Recorded, global: &Global) {
    let Some(document) = json::MeasuresDocument::new(found) else { return };
    let value = json::line(&document);
    let name = shown(recorded.destination.path());
    match xmem_recorder::add_metadata(recorded, MEASURES_KEY, value.trim_end()) {
        Ok(()) => note(
            &format!(
                "{name} has the job as it is with what was found: xmem check {name} -d {}",
                found.device.name
            ),
            global.verbosity(),
        ),
        Err(error) => say(&format!("note: what was found is not in {name}: {error}")),
    }
}

/// The recording of the job as it is, and what it says.
type Base = (Recorded, Read);

/// The recording of the job as it is; the exit code if it is incomplete.
fn base(
    made: Made,
    result: xmem_studies::fit::Recorded,
    template: &Template,
) -> Result<Result<Base, Exit>, CliError> {
    let Made { attempt, answer, .. } = made;
    let tell = |lines: &[String]| {
        if !lines.is_empty() {
            say("the script printed:");
            lines.iter().for_each(|line| say(&format!("  {line}")));
        }
    };
    let lines = attempt.last_lines();
    let recorded = match attempt.recorded {
        Ok(recorded) => recorded,
        Err(error) => {
            tell(&lines);
            return Err(error.into());
        }
    };
    if let Some(reason) = &recorded.cut_short {
        if !matches!(reason, CutShort::Interrupted) {
            tell(&lines);
        }
        print_cut_short(&recorded, reason);
        return Ok(Err(match reason {
            CutShort::Interrupted => Exit::Interrupted,
            _ => Exit::CutShort,
        }));
    }
    match (answer, result) {
        (Some(Ok(read)), Ok(_)) => Ok(Ok((recorded, read))),
        (_, Err(reason)) => Err(match (template.measure, reason.strip_prefix(NOT_APPLICABLE)) {
            (Some(_), Some(reason)) => {
                let name = template.name.clone().unwrap_or_default();
                FitFailure::NotSet { name, reason: reason.to_owned() }
            }
            _ => FitFailure::Base { reason },
        }
        .into()),
        (_, Ok(_)) => Err(FitFailure::Base { reason: "no answer".to_owned() }.into()),
    }
}

/// What to know about the figures.
fn notes(found: &mut FitAnswer, recorded: &Recorded, answer: &xmem::Answer, is_later: bool) {
    if !recorded.unbounded.is_empty() {
        let operators: Vec<&str> =
            recorded.unbounded.iter().map(|(operator, _)| operator.as_str()).collect();
        found.notes.push(format!(
            "sizes depend on values that a virtual GPU does not compute ({}): --assume says what they are",
            operators.join(", ")
        ));
    }
    if is_later {
        found.notes.push(
            "the script needs more after its first iterations: all figures are of its run as far as --time goes"
                .to_owned(),
        );
    } else if !answer.memory.coverage.extent.is_complete() && answer.memory.coverage.later_steps > 0
    {
        found.notes.push(
            "the script was not recorded to its end: what comes later is not in the figures (--time)".to_owned(),
        );
    }
    if let Some(doubt) = doubt(answer.memory.range.confidence) {
        found.notes.push(format!("{doubt}: `xmem replay` of a recording says why"));
    }
}

/// What is not certain about the job as it is.
const fn doubt(confidence: Confidence) -> Option<&'static str> {
    match confidence {
        Confidence::Certain => None,
        Confidence::Likely => Some("the figures of the job as it is are likely, not certain"),
        Confidence::Doubtful => Some("the recording of the job as it is may be incomplete"),
        Confidence::MayFail => {
            Some("as it is, the job is expected to run, and may run out of memory")
        }
        Confidence::MayFit => {
            Some("as it is, the job is expected to run out of memory, and may fit")
        }
    }
}

/// The most that what needs the least may cost in time, for its largest value to be worth the recordings.
const WORTHWHILE: f64 = 1.5;

/// The combinations whose largest values are looked for: what is suggested, and what needs the least.
fn varied(found: &FitAnswer) -> Vec<Vec<usize>> {
    let mut all = Vec::new();
    if let Some(ladder) = &found.ladder {
        let suggested = found.suggestion().or(ladder.suggestion.as_ref());
        let suggested = suggested.or_else(|| ladder.smallest());
        let is_worthwhile = |tried: &&Tried| {
            let figures = tried.recorded.as_ref().ok();
            let factor = figures.and_then(|figures| figures.time_against(&found.base));
            factor.is_none_or(|factor| factor <= WORTHWHILE)
        };
        let smallest = ladder.smallest().filter(is_worthwhile);
        for tried in suggested.into_iter().chain(smallest) {
            if !all.contains(&tried.measures) {
                all.push(tried.measures.clone());
            }
        }
    }
    all
}

/// What is known of a combination.
fn known(
    recordings: &Recordings<'_>,
    measures: &[usize],
    first: u64,
) -> BTreeMap<u64, xmem_studies::fit::Figures> {
    let variant = Variant::with(Some(first), measures.to_vec());
    let figures = recordings.known.get(&variant).and_then(|known| known.clone().ok());
    figures.into_iter().map(|figures| (first, figures)).collect()
}

/// Records what is suggested in the memory of the device, and in less than it needs.
fn prove(found: &mut FitAnswer, recordings: &mut Recordings<'_>, value: Option<u64>) {
    let Some(tried) = found.suggestion().filter(|_| recordings.has_time()) else { return };
    let Ok(figures) = &tried.recorded else { return };
    let variant = Variant::with(value, tried.measures.clone());
    let runs = recordings.confirm(&variant).unwrap_or(false);
    // NCCL's memory is not on a virtual GPU, which ends where that of the allocator does.
    let is_alone = recordings.maker.rank(&variant).is_none();
    let fails_below = is_alone.then(|| fails_below(found, recordings, &variant, figures.needs));
    found.proof = Some(Proof { runs, less: BELOW, fails_below });
}

/// Whether a variant runs out of memory with a little less than it needs.
fn fails_below(
    found: &FitAnswer,
    recordings: &mut Recordings<'_>,
    variant: &Variant,
    needs: Bytes,
) -> bool {
    // The capacity of a virtual GPU is what a process can allocate: its context has its own.
    let context = found.room.saturating_sub(found.device.available());
    let less = needs.saturating_sub(context).saturating_sub(BELOW);
    recordings.progress.begin(&["what is suggested, with less than it needs".to_owned()]);
    let below = recordings.maker.make(variant, Capacity::Of(less), Some(recordings.time));
    let fails = below.attempt.is_out_of_memory();
    recordings.progress.proven(fails);
    recordings.count += 1;
    fails
}

/// The value that is recorded first, if the command does not say one.
fn first(template: &Template, args: &FitArgs) -> u64 {
    match template.ranks {
        Some(Ranks::Varied) => u64::from(args.nodes.get()),
        _ => FIRST,
    }
}

fn default_jobs() -> usize {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let by_memory = available_memory().get() / MEMORY_OF_ONE.get();
    SIDE_BY_SIDE.min(cores).min(usize::try_from(by_memory).unwrap_or(SIDE_BY_SIDE)).max(1)
}

/// A request without command, output and changes.
fn request(args: &FitArgs, device: &Device) -> Result<Request, CliError> {
    Ok(Request {
        steps: args.steps,
        stacks: Stacks::Omitted,
        weights: if args.without_weights { Weights::Absent } else { Weights::Present },
        assume: args.assume.clone().unwrap_or_default(),
        writable: writable(&args.let_write)?,
        overlay: args.overlay,
        helper: std::env::current_exe().ok(),
        ..Request::new((OsString::new(), Vec::new()), PathBuf::new(), device.clone())
    })
}

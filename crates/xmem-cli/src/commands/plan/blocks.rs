//! The blocks of an input, which is recognized by its content.

use super::error::PlanFailure;
use crate::device::{DeviceArgs, PlanDeviceArgs};
use crate::error::CliError;
use crate::estimate::{self, EstimateArgs};
use crate::global::Global;
use crate::input::{self, Kind};
use crate::operations;
use crate::operations::OperationsFailure;
use crate::progress::Progress;
use crate::reading::{ReadingArgs, is_damaged, read_options};
use crate::{allocator, device};
use std::num::NonZeroUsize;
use std::path::Path;
use xmem::predict::{Finding, SimulationSettings};
use xmem::{Estimate, Job, PredictedJob};
use xmem_report::json::HintsScope;
use xmem_studies::planning::{
    FollowInput, Interruption, PlanBlocks, PlanListError, PlanScope, PlanningError, RecordedJob,
};

/// The blocks of an input.
pub(super) struct Loaded {
    pub(super) blocks: PlanBlocks,
    /// The requests of a recorded job, if they were asked for.
    pub(super) recorded: Option<RecordedJob>,
    pub(super) notes: Vec<Finding>,
    /// True if the events of a recording contradict each other.
    pub(super) is_damaged: bool,
}

/// The requests of an input that follows a plan.
pub(super) struct Followers {
    pub(super) input: FollowInput,
    /// True if the events of a recording contradict each other.
    pub(super) is_damaged: bool,
}

/// An input, with the options that say how it is read.
pub(crate) struct Source<'a> {
    pub(crate) path: &'a Path,
    pub(crate) device: &'a PlanDeviceArgs,
    pub(crate) estimate: &'a EstimateArgs,
    pub(crate) reading: &'a ReadingArgs,
}

/// What an input has, read once: standard input cannot be read again.
enum Content {
    Recording(Box<Job>),
    /// A list of operations, or a table of blocks.
    List(Box<Loaded>),
}

/// Reads an input.
fn read(source: &Source<'_>, threads: NonZeroUsize, global: &Global) -> Result<Content, CliError> {
    let (path, max) = (source.path, source.reading.max_input);
    let (bytes, head) = input::beginning(path, Kind::Blocks, max)?;
    let text = |bytes| input::text(bytes, path, Kind::Blocks, max);
    Ok(match Form::of(&head) {
        Form::Operations => Content::List(Box::new(operations(source, &text(bytes)?)?)),
        Form::Table => Content::List(Box::new(table(source, &text(bytes)?)?)),
        Form::Recording => {
            Content::Recording(Box::new(job(source, bytes.as_deref(), threads, global)?))
        }
    })
}

/// Reads the blocks of the input, and the requests of a recorded job, if others are to follow its plan without what `followed`
/// names.
pub(super) fn load(
    source: &Source<'_>,
    scope: PlanScope,
    followed: Option<&[Interruption]>,
    threads: NonZeroUsize,
    global: &Global,
) -> Result<Loaded, CliError> {
    let job = match read(source, threads, global)? {
        Content::List(loaded) => return Ok(*loaded),
        Content::Recording(job) => job,
    };
    let estimate = estimate(source)?;
    let predicted = predict(source, &estimate, &job)?;
    let prediction = predicted.prediction();
    let blocks = PlanBlocks::of_prediction(prediction, scope);
    let blocks = blocks.map_err(|error| cannot_plan(source, error))?;
    let lowering = prediction.diagnostics().iter().map(Finding::anywhere);
    let followed = followed.filter(|_| scope == PlanScope::Iteration);
    Ok(Loaded {
        blocks,
        recorded: followed.map(|by| RecordedJob::of_prediction(prediction, by)),
        notes: job.findings().into_iter().chain(lowering).collect(),
        is_damaged: is_damaged(&job),
    })
}

/// Reads the requests of an input that follows a plan: those of a recording, or of a list in one run.
pub(super) fn follow_input(
    source: &Source<'_>,
    scope: HintsScope,
    threads: NonZeroUsize,
    global: &Global,
) -> Result<Followers, CliError> {
    let job = match read(source, threads, global)? {
        Content::List(list) => {
            let input = FollowInput::of_blocks(&list.blocks);
            return Ok(Followers { input, is_damaged: list.is_damaged });
        }
        Content::Recording(job) => job,
    };
    let estimate = estimate(source)?;
    let predicted = predict(source, &estimate, &job)?;
    let prediction = predicted.prediction();
    let input = match scope {
        HintsScope::Iteration => FollowInput::of_prediction(prediction),
        HintsScope::All => {
            let blocks = PlanBlocks::of_prediction(prediction, PlanScope::All);
            FollowInput::of_blocks(&blocks.map_err(|error| cannot_plan(source, error))?)
        }
    };
    Ok(Followers { input, is_damaged: is_damaged(&job) })
}

/// Reads the requests of a recorded job, whose plan is to be followed; none of a list.
pub(crate) fn recorded_job(
    source: &Source<'_>,
    threads: NonZeroUsize,
    global: &Global,
) -> Result<Option<RecordedJob>, CliError> {
    let Content::Recording(job) = read(source, threads, global)? else { return Ok(None) };
    let estimate = estimate(source)?;
    let predicted = predict(source, &estimate, &job)?;
    Ok(Some(RecordedJob::of_prediction(predicted.prediction(), &[])))
}

/// Reads the requests of a job that was recorded on the CPU, as they are; none of a list, or of a GPU's recording.
pub(crate) fn recorded_on_cpu(
    source: &Source<'_>,
    threads: NonZeroUsize,
    global: &Global,
) -> Result<Option<RecordedJob>, CliError> {
    let Content::Recording(job) = read(source, threads, global)? else { return Ok(None) };
    Ok(RecordedJob::of_cpu(job.profile()))
}

fn predict<'j>(
    source: &Source<'_>,
    estimate: &Estimate,
    job: &'j Job,
) -> Result<PredictedJob<'j>, CliError> {
    let failed = |error| estimate::failure(&input::name(source.path), error);
    estimate.predict(job).map_err(failed)
}

fn cannot_plan(source: &Source<'_>, error: PlanningError) -> PlanFailure {
    PlanFailure::Planning { input: input::display_name(source.path), source: error }
}

/// The kinds of inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// A trace or a memory snapshot.
    Recording,
    /// A list of operations.
    Operations,
    /// A table of blocks.
    Table,
}

impl Form {
    /// By the first bytes. What is none of these is taken for a trace, whose reader says what is wrong with it.
    fn of(head: &[u8]) -> Self {
        // A byte order mark does not say what follows it.
        let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
        let has = |key: &str| head.windows(key.len()).any(|window| window == key.as_bytes());
        let first = head.iter().find(|byte| !byte.is_ascii_whitespace());
        match first {
            Some(b'{' | b'[') if has("\"traceEvents\"") || has("\"ph\"") => Self::Recording,
            Some(b'{' | b'[') if has("\"ops\"") || has("\"op\"") => Self::Operations,
            Some(b'{' | b'[' | 0x80..) | None => Self::Recording,
            Some(_) if has("lower") && has("upper") => Self::Table,
            Some(_) if head.contains(&b',') => Self::Table,
            Some(_) => Self::Recording,
        }
    }
}

fn operations(from: &Source<'_>, text: &[u8]) -> Result<Loaded, CliError> {
    let name = input::display_name(from.path);
    let list = operations::parse(&name, text)?;
    let allocator = allocator::settings(&from.estimate.allocator)?;
    let settings = SimulationSettings { allocator, ..SimulationSettings::default() };
    let blocks = PlanBlocks::of_operations(&list, &settings).map_err(|error| -> CliError {
        match error {
            PlanListError::Allocator(error) => operations::allocator_failure(&name, error),
            PlanListError::Step(error) => OperationsFailure::step(&name, error).into(),
            PlanListError::Planning(error) => cannot_plan(from, error).into(),
        }
    })?;
    let notes = list.notes.iter().map(Finding::anywhere).collect();
    Ok(Loaded { blocks, recorded: None, notes, is_damaged: false })
}

fn table(from: &Source<'_>, text: &[u8]) -> Result<Loaded, CliError> {
    let name = input::display_name(from.path);
    let table = xmem_studies::planner::read_csv(text)
        .map_err(|source| PlanFailure::BlockTable { input: name, source })?;
    let blocks = PlanBlocks::of_table(table);
    Ok(Loaded { blocks, recorded: None, notes: Vec::new(), is_damaged: false })
}

fn job(
    source: &Source<'_>,
    bytes: Option<&[u8]>,
    threads: NonZeroUsize,
    global: &Global,
) -> Result<Job, CliError> {
    let options = read_options(source.reading, threads);
    let progress = Progress::over([source.path], global.verbosity());
    let name = input::name(source.path);
    Ok(match bytes {
        Some(bytes) => Job::from_named_bytes(bytes, &name, &options)?,
        None => Job::observed(source.path, &options, &|stage| progress.stage(&name, stage))?,
    })
}

fn estimate(source: &Source<'_>) -> Result<Estimate, CliError> {
    let device = device::choose_or_default(&DeviceArgs::from(source.device))?;
    let estimate = source.estimate.builder(device)?.build();
    estimate.check()?;
    Ok(estimate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_input_is_recognized_by_its_content() {
        for (head, content) in [
            ("{\"schemaVersion\": 1, \"traceEvents\": [{\"ph\": \"X\"", Form::Recording),
            (" [{\"ph\": \"X\", \"name\": \"op\"}]", Form::Recording),
            ("[{\"op\":\"alloc\",\"id\":1,\"size\":4}]", Form::Operations),
            ("{\"conf\": \"\", \"ops\": []}", Form::Operations),
            ("{\"operations\": []}", Form::Recording),
            ("id,lower,upper,size\n1,0,2,4\n", Form::Table),
            ("id,size\n", Form::Table),
            ("\u{80}", Form::Recording),
            ("", Form::Recording),
            ("not a list", Form::Recording),
        ] {
            assert_eq!(Form::of(head.as_bytes()), content, "{head}");
        }
    }
}

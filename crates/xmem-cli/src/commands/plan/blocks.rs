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
use xmem::{Estimate, Job};
use xmem_report::json::HintsScope;
use xmem_studies::planner::{Limits, Planner};
use xmem_studies::planning::{
    FollowInput, Interruption, JobPlan, PlanBlocks, PlanListError, PlanScope, PlanningError,
};

/// The blocks of an input.
pub(super) struct Loaded {
    pub(super) blocks: PlanBlocks,
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

/// Reads the blocks of the input.
pub(super) fn load(
    source: &Source<'_>,
    scope: PlanScope,
    threads: NonZeroUsize,
    global: &Global,
) -> Result<Loaded, CliError> {
    let (path, max) = (source.path, source.reading.max_input);
    let (bytes, head) = input::beginning(path, Kind::Blocks, max)?;
    let text = || input::text(bytes.clone(), path, Kind::Blocks, max);
    match Content::of(&head) {
        Content::Operations => operations(source, &text()?),
        Content::Table => table(source, &text()?),
        Content::Recording => recording(source, scope, bytes.as_deref(), threads, global),
    }
}

/// Reads the requests of an input that follows a plan: those of a recording, or of a list in one run.
pub(super) fn follow_input(
    source: &Source<'_>,
    scope: HintsScope,
    threads: NonZeroUsize,
    global: &Global,
) -> Result<Followers, CliError> {
    if let (HintsScope::Iteration, Some(recorded)) = (scope, recorded(source, threads, global)?) {
        let estimate = estimate(source)?;
        let predicted = estimate.predict(&recorded);
        let predicted =
            predicted.map_err(|error| estimate::failure(&input::name(source.path), error))?;
        let input = FollowInput::of_prediction(predicted.prediction());
        return Ok(Followers { input, is_damaged: is_damaged(&recorded) });
    }
    let Loaded { blocks, is_damaged, .. } = load(source, PlanScope::All, threads, global)?;
    Ok(Followers { input: FollowInput::of_blocks(&blocks), is_damaged })
}

/// Plans a recorded job, from its beginning and iteration by iteration; none of a list.
pub(crate) fn job_plan(
    source: &Source<'_>,
    scope: PlanScope,
    (planner, interruptions, limits): (Planner, &[Interruption], &Limits),
    threads: NonZeroUsize,
    global: &Global,
) -> Result<Option<JobPlan>, CliError> {
    let job = match scope {
        PlanScope::Iteration => recorded(source, threads, global)?,
        PlanScope::All => None,
    };
    let Some(job) = job else { return Ok(None) };
    let estimate = estimate(source)?;
    let predicted = estimate.predict(&job);
    let predicted =
        predicted.map_err(|error| estimate::failure(&input::name(source.path), error))?;
    let plan = JobPlan::of_prediction(predicted.prediction(), planner, interruptions, limits);
    Ok(Some(plan.map_err(|error| cannot_plan(source, error))?))
}

/// The job of a recording; none of a list.
fn recorded(
    source: &Source<'_>,
    threads: NonZeroUsize,
    global: &Global,
) -> Result<Option<Job>, CliError> {
    let max = source.reading.max_input;
    let (bytes, head) = input::beginning(source.path, Kind::Blocks, max)?;
    match Content::of(&head) {
        Content::Operations | Content::Table => Ok(None),
        Content::Recording => job(source, bytes.as_deref(), threads, global).map(Some),
    }
}

fn cannot_plan(source: &Source<'_>, error: PlanningError) -> PlanFailure {
    PlanFailure::Planning { input: input::display_name(source.path), source: error }
}

/// The kinds of inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Content {
    /// A trace or a memory snapshot.
    Recording,
    /// A list of operations.
    Operations,
    /// A table of blocks.
    Table,
}

impl Content {
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
    Ok(Loaded { blocks, notes, is_damaged: false })
}

fn table(from: &Source<'_>, text: &[u8]) -> Result<Loaded, CliError> {
    let name = input::display_name(from.path);
    let table = xmem_studies::planner::read_csv(text)
        .map_err(|source| PlanFailure::BlockTable { input: name, source })?;
    Ok(Loaded { blocks: PlanBlocks::of_table(table), notes: Vec::new(), is_damaged: false })
}

fn recording(
    source: &Source<'_>,
    scope: PlanScope,
    bytes: Option<&[u8]>,
    threads: NonZeroUsize,
    global: &Global,
) -> Result<Loaded, CliError> {
    let name = input::name(source.path);
    let estimate = estimate(source)?;
    let job = job(source, bytes, threads, global)?;
    let predicted = estimate.predict(&job).map_err(|error| estimate::failure(&name, error))?;
    let blocks = PlanBlocks::of_prediction(predicted.prediction(), scope);
    let blocks = blocks.map_err(|error| cannot_plan(source, error))?;
    let lowering = predicted.prediction().diagnostics().iter().map(Finding::anywhere);
    let notes = job.findings().into_iter().chain(lowering).collect();
    Ok(Loaded { blocks, notes, is_damaged: is_damaged(&job) })
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
            ("{\"schemaVersion\": 1, \"traceEvents\": [{\"ph\": \"X\"", Content::Recording),
            (" [{\"ph\": \"X\", \"name\": \"op\"}]", Content::Recording),
            ("[{\"op\":\"alloc\",\"id\":1,\"size\":4}]", Content::Operations),
            ("{\"conf\": \"\", \"ops\": []}", Content::Operations),
            ("{\"operations\": []}", Content::Recording),
            ("id,lower,upper,size\n1,0,2,4\n", Content::Table),
            ("id,size\n", Content::Table),
            ("\u{80}", Content::Recording),
            ("", Content::Recording),
            ("not a list", Content::Recording),
        ] {
            assert_eq!(Content::of(head.as_bytes()), content, "{head}");
        }
    }
}

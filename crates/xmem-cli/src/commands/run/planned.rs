//! A static memory plan that a command follows: the folder that its allocator reads, plans that are made while it runs, and
//! what became of them.

use super::args::RunArgs;
use super::error::RunFailure;
use crate::allocator::AllocatorArgs;
use crate::commands::plan::{self, PlanFailure, Source};
use crate::cudnn::CudnnArgs;
use crate::device::PlanDeviceArgs;
use crate::error::CliError;
use crate::estimate::EstimateArgs;
use crate::global::{Global, Verbosity};
use crate::input::{self, Kind};
use crate::reading::ReadingArgs;
use crate::terminal::{note, say};
use crate::what_if::WhatIfArgs;
use crate::{output, pool};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use xmem::Bytes;
use xmem_planned::{Counters, FollowedPlan, FollowedRequest, Observed};
use xmem_recorder::{
    Capacity, PlanFolder, PlanMark, PlanMemory, Progress, Purpose, Request, Stacks,
};
use xmem_report::json::{
    self, HintsDocument, HintsScope, PlanRunDocument, PlanRunFigures, read_hints,
};
use xmem_studies::planner::{Limits, Planner};
use xmem_studies::planning::{
    Arena, FollowedRequests, JobPlan, JobRequest, PlanMark as studied, PlannedMemory,
};
use xmem_tempfiles::{PrivateFolder, write_private};

/// What a plan has at its beginning.
const SCHEMA: &[u8] = b"\"xmem.plan-hints/";

/// How often the folder is looked at for what the job was observed to do.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The time of a planner while the job runs.
const REPLAN_TIME: Duration = Duration::from_secs(2);

/// The last plan of each process that was planned again.
type LastPlans = BTreeMap<String, JobPlan>;

/// A plan that a command follows.
pub(super) struct Followed {
    folder: PrivateFolder,
    debug: bool,
    name: String,
    plan: JobPlan,
    planner: Option<JoinHandle<LastPlans>>,
    ends: Arc<AtomicBool>,
}

impl Followed {
    /// Makes the plan, and the folder that the allocator reads it from.
    pub(super) fn prepare(
        plan: &Path,
        args: &RunArgs,
        request: &Request,
        global: &Global,
    ) -> Result<Self, CliError> {
        let memory = if args.cpu { PlannedMemory::Cpu } else { PlannedMemory::Gpu };
        let library = match memory {
            PlannedMemory::Gpu => xmem_planned::GPU,
            PlannedMemory::Cpu => xmem_planned::CPU,
        };
        debug_assert_eq!(memory.unit(), library.unit);
        let bytes = library.bytes.ok_or(RunFailure::NoPlans)?;
        let failed = |source| RunFailure::PlanFolder { source };
        let folder = PrivateFolder::for_programs().map_err(|error| failed(error.into()))?;
        write_private(&folder.path().join(library.name), bytes).map_err(failed)?;
        let (name, plan) = match plan.to_str() {
            Some("auto") if args.cpu => {
                ("what the job does".to_owned(), JobPlan::empty(memory, Planner::Auto))
            }
            Some("auto") => {
                let trace = folder.path().join("trace.json.zst");
                record(&trace, request, global)?;
                ("the job on a virtual GPU".to_owned(), planned(&trace, args, global)?)
            }
            _ => (input::name(plan), read(plan, args, global)?),
        };
        if !plan.is_empty() {
            let path = folder.path().join("plan.txt");
            write_private(&path, text(&plan).as_bytes()).map_err(failed)?;
        }
        let ends = Arc::new(AtomicBool::new(false));
        let planner = {
            let (ends, path, plan) = (ends.clone(), folder.path().to_owned(), plan.clone());
            std::thread::spawn(move || replan(&path, &plan, &ends))
        };
        let debug = args.check_plan;
        Ok(Self { folder, debug, name, plan, planner: Some(planner), ends })
    }

    /// The folder, for the hook.
    pub(super) fn folder(&self) -> PlanFolder {
        let memory = match self.plan.memory {
            PlannedMemory::Gpu => PlanMemory::Gpu,
            PlannedMemory::Cpu => PlanMemory::Cpu,
        };
        let mark = match self.plan.mark {
            studied::Step => PlanMark::Step,
            studied::Call => PlanMark::Call,
            studied::StepOrCall => PlanMark::StepOrCall,
        };
        PlanFolder { path: self.folder.path().to_owned(), debug: self.debug, memory, mark }
    }

    /// Says what became of the plan, and writes what the arguments want.
    pub(super) fn finish(mut self, args: &RunArgs, verbosity: Verbosity) -> Result<(), CliError> {
        self.ends.store(true, Ordering::Relaxed);
        // A planner that panics has a bug, but the job has run to its end.
        let mut last = self.planner.take().and_then(|it| it.join().ok()).unwrap_or_default();
        let Some((process, counters)) = counters(self.folder.path()) else {
            note(nothing(self.plan.memory), verbosity);
            return Ok(());
        };
        let last = last.remove(&process);
        if let Some(path) = &args.export_hints {
            let plan = last.as_ref().unwrap_or(&self.plan);
            let document = HintsDocument::new(&self.name, HintsScope::Iteration, plan);
            output::write(json::pretty(&document).as_bytes(), Some(path))?;
        }
        // Where there was none at first, that is the plan that was followed.
        let plan = last.filter(|_| self.plan.is_empty()).unwrap_or_else(|| self.plan.clone());
        if let Some(report) = &args.report {
            let figures = figures(&counters, self.debug);
            let document = PlanRunDocument::run(&self.name, &plan, &figures);
            output::write(json::pretty(&document).as_bytes(), Some(report))?;
        }
        if verbosity != Verbosity::Quiet {
            summary(&plan, &counters).iter().for_each(|line| say(line));
        }
        Ok(())
    }
}

impl Drop for Followed {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
    }
}

/// What a job with a pluggable allocator needs in its environment. The default NCCL backend of PyTorch 2.15 asks the allocator
/// for a snapshot, which no pluggable one has, and the process aborts
/// (torch/csrc/distributed/c10d/nccl2/NCCLCachingAllocatorHook.cpp); with this, PyTorch takes the backend of earlier releases.
pub(super) fn variable() -> (String, String) {
    ("TORCH_DIST_USE_NCCL2".to_owned(), "0".to_owned())
}

/// What is said of a command that follows no plan.
const fn nothing(memory: PlannedMemory) -> &'static str {
    match memory {
        PlannedMemory::Gpu => "note: no process of the command allocated memory of a GPU",
        PlannedMemory::Cpu => {
            "note: no process of the command allocated memory by libc10.so of PyTorch: no plan was followed"
        }
    }
}

fn figures(counters: &Counters, debug: bool) -> PlanRunFigures {
    let count = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    PlanRunFigures {
        requests: FollowedRequests {
            requests: count(counters.requests),
            planned: count(counters.planned),
            outside: count(counters.outside),
            unknown: count(counters.unknown),
            occupied: count(counters.occupied),
            other_stream: count(counters.other_stream),
            fitted: count(counters.fitted),
        },
        no_memory: counters.no_memory,
        collisions: debug.then_some(counters.collisions),
        replans: counters.replans,
        driver_peak: Bytes(counters.driver_peak),
    }
}

fn summary(plan: &JobPlan, counters: &Counters) -> Vec<String> {
    let Counters { requests, planned, outside, fitted, replans, .. } = *counters;
    let misses = counters.misses();
    let (allocator, whose, rest) = match plan.memory {
        PlannedMemory::Gpu => {
            ("caching allocator", " at the driver", "caching allocator's segments")
        }
        PlannedMemory::Cpu => ("C library", " of tensors", "C library's blocks"),
    };
    let in_gaps = match fitted {
        0 => String::new(),
        fitted => format!(", {fitted} of them in its gaps"),
    };
    let mut lines = vec![
        format!(
            "plan: {planned} of {requests} requests at their planned address, {outside} left to the {allocator}, \
             {misses} that differ from the plan{in_gaps}"
        ),
        format!(
            "  peak{whose} {}: plan {} for what iterations make and free, {} for what lasts, and the {rest}",
            Bytes(counters.driver_peak),
            plan.bytes(Arena::Iteration),
            plan.bytes(Arena::Lasting),
        ),
    ];
    if replans > 0 {
        let times = if replans == 1 { "once".to_owned() } else { format!("{replans} times") };
        lines.push(format!("  planned again {times} while the job ran"));
    }
    if counters.collisions > 0 {
        lines.push(format!(
            "  error: {} units of {} bytes were given out twice",
            counters.collisions,
            plan.memory.unit().get()
        ));
    }
    lines
}

/// The process that made most requests, and its counters.
fn counters(folder: &Path) -> Option<(String, Counters)> {
    let read = |(name, path): (String, PathBuf)| {
        let process = name.strip_prefix("counters-")?.strip_suffix(".json")?;
        let counters: Counters = serde_json::from_slice(&std::fs::read(path).ok()?).ok()?;
        Some((process.to_owned(), counters))
    };
    files(folder).into_iter().filter_map(read).max_by_key(|(_, counters)| counters.requests)
}

fn files(folder: &Path) -> Vec<(String, PathBuf)> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| (entry.file_name().to_string_lossy().into_owned(), entry.path())).collect()
}

/// Records the command on a virtual GPU.
fn record(trace: &Path, request: &Request, global: &Global) -> Result<(), CliError> {
    let device = &request.device.name;
    note(&format!("note: the job is recorded on a virtual {device} first"), global.verbosity());
    let failed = |reason: String| RunFailure::NotRecorded { reason };
    let request = Request {
        purpose: Purpose::Record,
        output: trace.to_owned(),
        stacks: Stacks::Omitted,
        capacity: Capacity::Unlimited,
        writable: xmem_recorder::Writable::Paths(Vec::new()),
        helper: std::env::current_exe().ok(),
        printed: Some(trace.with_extension("printed")),
        ..request.clone()
    };
    let recorded = xmem_recorder::record(&request, &mut |_: Progress<'_>| {});
    let recorded = recorded.map_err(|error| failed(error.to_string()))?;
    match recorded.cut_short {
        None => Ok(()),
        Some(_) => Err(failed("its recording is incomplete".to_owned()).into()),
    }
}

/// Reads a plan, or plans a recording.
fn read(path: &Path, args: &RunArgs, global: &Global) -> Result<JobPlan, CliError> {
    let (bytes, head) = input::beginning(path, Kind::Operations, None)?;
    let is_plan = head.windows(SCHEMA.len()).any(|window| window == SCHEMA);
    if !is_plan {
        return planned(path, args, global);
    }
    let text = input::text(bytes, path, Kind::Operations, None)?;
    let (plan, _) = read_hints(&text)
        .map_err(|source| PlanFailure::Hints { input: input::display_name(path), source })?;
    let wanted = if args.cpu { PlannedMemory::Cpu } else { PlannedMemory::Gpu };
    if plan.memory != wanted {
        let memory = if args.cpu { "a GPU" } else { "the CPU" };
        return Err(RunFailure::OtherMemory { input: input::display_name(path), memory }.into());
    }
    Ok(plan)
}

/// Plans a recording.
fn planned(trace: &Path, args: &RunArgs, global: &Global) -> Result<JobPlan, CliError> {
    let device = PlanDeviceArgs { device: args.virtual_gpu.clone(), ..PlanDeviceArgs::default() };
    let estimate = EstimateArgs {
        what_if: WhatIfArgs::default(),
        cudnn: CudnnArgs::default(),
        allocator: AllocatorArgs::default(),
    };
    let reading = ReadingArgs { max_input: None, threads: None };
    let source = Source { path: trace, device: &device, estimate: &estimate, reading: &reading };
    let read = if args.cpu { plan::recorded_on_cpu } else { plan::recorded_job };
    let job = pool::run(None, |threads| read(&source, threads, global))?;
    let job = job.ok_or_else(|| RunFailure::NotAPlan { input: input::display_name(trace) })?;
    plan::plan_of_job(&job, trace, Planner::Auto, &Limits::default(), global.verbosity())
}

/// The plan as the allocator reads it.
fn text(plan: &JobPlan) -> String {
    let number = |arena| match arena {
        Arena::Iteration => 0,
        Arena::Lasting => 1,
    };
    let request = |request: &JobRequest| FollowedRequest {
        least: request.least,
        most: request.size,
        place: request.place.map(|place| (number(place.arena), place.offset)),
    };
    let followed = FollowedPlan {
        arenas: [Arena::Iteration, Arena::Lasting].map(|arena| plan.bytes(arena)),
        warm_up: plan.warm_up.iter().map(request).collect(),
        iteration: plan.iteration.iter().map(request).collect(),
    };
    followed.text()
}

/// Plans again what the job was observed to do, until the command has ended.
fn replan(folder: &Path, first: &JobPlan, ends: &AtomicBool) -> LastPlans {
    let mut done = Vec::new();
    let mut last = LastPlans::new();
    while !ends.load(Ordering::Relaxed) {
        std::thread::sleep(POLL_INTERVAL);
        for (name, path) in files(folder) {
            let Some(number) = name.strip_prefix("observed-").and_then(|n| n.strip_suffix(".txt"))
            else {
                continue;
            };
            if done.contains(&name) {
                continue;
            }
            let process = number.split('-').next().unwrap_or_default().to_owned();
            let earlier = last.get(&process).unwrap_or(first);
            if let Some(plan) = plan_of(&path, earlier) {
                let part = folder.join(format!("plan-{number}.part"));
                let whole = folder.join(format!("plan-{number}.txt"));
                let written = write_private(&part, text(&plan).as_bytes());
                if let Err(error) = written.and_then(|()| std::fs::rename(part, whole)) {
                    tracing::debug!(target: "xmem::run", %error, "a plan cannot be written");
                }
                last.insert(process, plan);
            }
            done.push(name);
        }
    }
    last
}

fn plan_of(observed: &Path, earlier: &JobPlan) -> Option<JobPlan> {
    let observed = Observed::read(&std::fs::read_to_string(observed).ok()?).ok()?;
    let limits = Limits { time: REPLAN_TIME, ..Limits::default() };
    JobPlan::of_requests(&observed.requests, &observed.starts, earlier, &limits).ok()
}

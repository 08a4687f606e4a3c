//! The result of a run: the best recording, or the reason why none was saved.

use crate::assumptions::Assumed;
use crate::error::{CommandEnd, RecordError};
use crate::export_stream::ExportError;
use crate::measures::AppliedMeasure;
use crate::message::{ExportAnnounced, Reason};
use crate::output::Output;
use crate::part::Part;
use crate::process_exports::{Export, State};
use crate::processes::Processes;
use crate::recorded::{CutShort, Recorded};
use crate::request::{Engine, Shortage};
use std::process::ExitStatus;
use std::time::Duration;
use xmem_types::Bytes;

/// The facts at the end of a run.
pub(crate) struct Evidence {
    pub(crate) status: ExitStatus,
    /// The reason why this process ended the recording, if it did.
    pub(crate) halt: Option<CommandEnd>,
    /// The peak of resident memory.
    pub(crate) peak: Bytes,
    /// The limit to the command's memory.
    pub(crate) limit: Option<Bytes>,
    /// Total memory of the host.
    pub(crate) total: Bytes,
    pub(crate) took: Duration,
    pub(crate) processes: Processes,
    pub(crate) exports: Vec<Export>,
}

/// A trace that was read.
struct Candidate {
    announced: ExportAnnounced,
    torch: Option<String>,
    python: Option<String>,
    engine: Engine,
    measures: Vec<AppliedMeasure>,
    is_whole: bool,
    part: Part,
}

impl Candidate {
    /// Orders recordings: a greater rank is a better recording.
    fn rank(&self) -> impl Ord + use<> {
        let whole = self.is_whole;
        (
            whole && self.announced.reason.is_complete(),
            whole,
            self.announced.iterations,
            self.part.text,
        )
    }
}

/// Saves the best recording.
pub(crate) fn conclude(mut evidence: Evidence, output: &Output) -> Result<Recorded, RecordError> {
    let mut best: Option<Candidate> = None;
    let mut error = None;
    for export in std::mem::take(&mut evidence.exports) {
        let is_whole = export.is_whole();
        let other_content = export.other_content();
        let Export { pid, announced, state, .. } = export;
        match state {
            State::Written(Some(part)) => {
                let process = evidence.processes.get(pid);
                let candidate = Candidate {
                    announced,
                    torch: process.and_then(|p| p.torch.clone()),
                    python: process.and_then(|p| p.python.clone()),
                    engine: process.and_then(|p| p.engine).unwrap_or(Engine::Cpu),
                    measures: process
                        .map_or_else(Vec::new, |p| p.measures.values().cloned().collect()),
                    is_whole,
                    part,
                };
                if best.as_ref().is_none_or(|best| best.rank() < candidate.rank()) {
                    best = Some(candidate);
                }
            }
            State::Failed(ExportError::Output(source)) => error = Some(output.error(source)),
            State::Failed(ExportError::Input(source)) => {
                error = error.or(Some(RecordError::Export { source }));
            }
            State::Failed(ExportError::Stalled(time)) => {
                error = error.or(Some(RecordError::Stalled { time }));
            }
            State::Failed(ExportError::NotATrace(_) | ExportError::NoEvents)
            | State::Written(None) => {
                let found = other_content.map(|found| RecordError::NotATrace { found });
                error = error.or(found);
            }
            State::Running => {}
        }
    }
    match (best, error) {
        (Some(candidate), _) => save(candidate, &evidence, output),
        (None, Some(error)) => Err(error),
        (None, None) => Err(failure(&evidence)),
    }
}

fn save(best: Candidate, evidence: &Evidence, output: &Output) -> Result<Recorded, RecordError> {
    let cut_short = cut_short(&best, evidence);
    let Candidate { announced, torch, python, engine, measures, mut part, .. } = best;
    let (size, text, facts) = (part.size, part.text, std::mem::take(&mut part.facts));
    let part_rest = part.rest.take();
    let destination = match &cut_short {
        None => output.save(part)?,
        Some(_) => output.save_beside(part)?,
    };
    let cut_short = cut_short.or((!facts.uses_gpu).then_some(CutShort::NothingOnGpu));
    Ok(Recorded {
        destination,
        iterations: announced.iterations,
        rest: part_rest,
        took: evidence.took,
        size,
        text,
        torch,
        python,
        engine,
        redirected: facts.redirected,
        has_convolutions: facts.has_convolutions,
        cudnn: facts.cudnn,
        peaks: facts.peaks,
        unbounded: unbounded(facts.assumed),
        measures,
        cut_short,
        peak: evidence.peak,
    })
}

/// Of sizes that follow from assumptions, those that nobody has bounded: the operator, and the assumption.
fn unbounded(assumed: Vec<Assumed>) -> Vec<(String, Option<String>)> {
    let unbounded = assumed.into_iter().filter(|assumed| !assumed.bounded);
    unbounded.map(|assumed| (assumed.operator, assumed.assumption)).collect()
}

/// The reason why the best recording is incomplete.
fn cut_short(best: &Candidate, evidence: &Evidence) -> Option<CutShort> {
    let announced = &best.announced;
    if !best.is_whole {
        return Some(CutShort::Truncated);
    }
    let refused = announced.needed.map(|needed| Shortage::Refused {
        needed: Bytes(needed),
        resident: evidence.peak,
        limit: evidence.limit,
    });
    let own_reason = match announced.reason {
        reason if reason.is_complete() => return None,
        Reason::Exception | Reason::Memory if refused.is_some() => {
            return refused.map(CutShort::Memory);
        }
        Reason::Exception => CutShort::Raised(announced.detail_text()),
        Reason::Memory if !announced.detail.is_null() => CutShort::Raised(announced.detail_text()),
        Reason::Signal => CutShort::Signal(announced.detail_text()),
        Reason::End | Reason::Exit => {
            let well = announced.detail.is_null() || announced.detail_text() == "0";
            match announced.iterations {
                0 if evidence.status.success() => CutShort::NothingTrained,
                1.. if evidence.status.success() && well => return None,
                _ => CutShort::Exit(evidence.status),
            }
        }
        Reason::Timeout | Reason::Memory => CutShort::LeftBehind,
        Reason::Other | Reason::Steps | Reason::Forwards | Reason::Backwards => CutShort::Unknown,
    };
    Some(match evidence.halt {
        None | Some(CommandEnd::Ended(_)) => own_reason,
        Some(CommandEnd::Timeout(limit)) => CutShort::Timeout(limit),
        Some(CommandEnd::Memory(shortage)) => CutShort::Memory(shortage),
        Some(CommandEnd::Interrupted) => CutShort::Interrupted,
    })
}

/// The error of a run without a trace.
pub(crate) fn failure(evidence: &Evidence) -> RecordError {
    let end = evidence.halt.unwrap_or(CommandEnd::Ended(evidence.status));
    let processes = &evidence.processes;
    if let Some((from, to, place)) = processes.iter().find_map(|p| p.other_user.clone()) {
        return RecordError::OtherUser { from, to, place };
    }
    if let Some(text) = processes.iter().find_map(|p| p.failed.clone()) {
        return RecordError::Failed { text };
    }
    if let Some(text) = processes.iter().find_map(|p| p.raised.clone())
        && matches!(end, CommandEnd::Ended(_))
    {
        return RecordError::Raised { text };
    }
    if processes.any_recorded() {
        let iterations = processes.iter().map(|p| p.iterations).max().unwrap_or(0);
        let (peak, total) = (evidence.peak, evidence.total);
        return RecordError::Died { end, iterations, peak, total };
    }
    if let Some(error) = refused(processes) {
        return error;
    }
    if processes.iter().next().is_none() {
        return RecordError::HookNotLoaded { end };
    }
    if let Some(path) = processes.iter().find_map(|p| p.shadowed.clone()) {
        return RecordError::Shadowed { path };
    }
    if processes.iter().all(|p| p.torch.is_none()) {
        let failure = processes.iter().find_map(|p| p.import_failure.clone());
        return RecordError::NoTorch { end, failure };
    }
    let missing = processes.iter().find_map(|process| process.missing.clone());
    RecordError::NothingRan { end, missing }
}

/// The reason for which processes with PyTorch could not be run as requested, if there is one.
pub(crate) fn refused(processes: &Processes) -> Option<RecordError> {
    if let Some((text, no_kernels)) = processes.iter().find_map(|p| p.no_virtual_gpu.clone()) {
        return Some(RecordError::NoVirtualGpu { text, no_kernels });
    }
    let text = processes.iter().find_map(|p| p.unsupported.clone())?;
    Some(RecordError::Unsupported { text })
}

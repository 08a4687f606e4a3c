//! What came of it: the best recording, or why there is none.

use crate::error::{Fate, RecordError};
use crate::export::Part;
use crate::message::{ExportAnnounced, Reason};
use crate::output::Output;
use crate::recorded::{CutShort, Recorded};
use crate::request::Shortage;
use crate::watch::{Export, Processes, State};
use std::process::ExitStatus;
use std::time::Duration;
use xmem_types::Bytes;

/// All that is known at the end.
pub(crate) struct Evidence {
    pub(crate) status: ExitStatus,
    /// Why the recording was ended from outside, if it was.
    pub(crate) halt: Option<Fate>,
    /// The most memory that was seen.
    pub(crate) peak: Bytes,
    /// Memory that the command was allowed.
    pub(crate) limit: Option<Bytes>,
    /// Memory that there is in all.
    pub(crate) total: Bytes,
    pub(crate) took: Duration,
    pub(crate) processes: Processes,
    pub(crate) exports: Vec<Export>,
}

/// A trace that was written.
struct Candidate {
    announced: ExportAnnounced,
    torch: Option<String>,
    python: Option<String>,
    is_whole: bool,
    part: Part,
}

impl Candidate {
    /// The greater the better.
    fn worth(&self) -> impl Ord + use<> {
        let whole = self.is_whole;
        (
            whole && self.announced.reason.is_complete(),
            whole,
            self.announced.iterations,
            self.part.text,
        )
    }
}

/// Puts the best recording in its place.
pub(crate) fn reach(mut evidence: Evidence, output: &Output) -> Result<Recorded, RecordError> {
    let mut best: Option<Candidate> = None;
    let mut broken = None;
    for export in std::mem::take(&mut evidence.exports) {
        let is_whole = export.is_whole();
        let Export { pid, announced, state, .. } = export;
        match state {
            State::Written(part) if part.text > Bytes::ZERO => {
                let process = evidence.processes.get(pid);
                let candidate = Candidate {
                    announced,
                    torch: process.and_then(|p| p.torch.clone()),
                    python: process.and_then(|p| p.python.clone()),
                    is_whole,
                    part,
                };
                if best.as_ref().is_none_or(|best| best.worth() < candidate.worth()) {
                    best = Some(candidate);
                }
            }
            State::Broken(error) => broken = Some(error),
            State::Written(_) | State::Running => {}
        }
    }
    match (best, broken) {
        (Some(candidate), _) => save(candidate, &evidence, output),
        (None, Some(error)) => Err(output.broken(error)),
        (None, None) => Err(why_nothing(&evidence)),
    }
}

fn save(best: Candidate, evidence: &Evidence, output: &Output) -> Result<Recorded, RecordError> {
    let cut_short = cut_short(&best, evidence);
    let Candidate { announced, torch, python, mut part, .. } = best;
    let (size, text, redirected) = (part.size, part.text, std::mem::take(&mut part.redirected));
    let place = match &cut_short {
        None => output.keep(part)?,
        Some(_) => output.keep_beside(part)?,
    };
    Ok(Recorded {
        place,
        iterations: announced.iterations,
        took: evidence.took,
        size,
        text,
        torch,
        python,
        redirected,
        cut_short,
        peak: evidence.peak,
    })
}

/// Why the best recording is not all that was asked for.
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
    let by_itself = match announced.reason {
        reason if reason.is_complete() => return None,
        Reason::Exception | Reason::Memory if refused.is_some() => {
            return refused.map(CutShort::Memory);
        }
        Reason::Exception => CutShort::Raised(announced.words()),
        Reason::Memory if !announced.detail.is_null() => CutShort::Raised(announced.words()),
        Reason::Signal => CutShort::Signal(announced.words()),
        Reason::End | Reason::Exit => {
            let well = announced.detail.is_null() || announced.words() == "0";
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
        None | Some(Fate::Ended(_)) => by_itself,
        Some(Fate::Timeout(limit)) => CutShort::Timeout(limit),
        Some(Fate::Memory(shortage)) => CutShort::Memory(shortage),
        Some(Fate::Interrupted) => CutShort::Interrupted,
    })
}

fn why_nothing(evidence: &Evidence) -> RecordError {
    let fate = evidence.halt.unwrap_or(Fate::Ended(evidence.status));
    let processes = &evidence.processes;
    if let Some(text) = processes.iter().find_map(|p| p.failed.clone()) {
        return RecordError::Failed { text };
    }
    if processes.any_recorded() {
        let iterations = processes.iter().map(|p| p.iterations).max().unwrap_or(0);
        let (peak, total) = (evidence.peak, evidence.total);
        return RecordError::Died { fate, iterations, peak, total };
    }
    if let Some(text) = processes.iter().find_map(|p| p.unsupported.clone()) {
        return RecordError::Unsupported { text };
    }
    if processes.iter().next().is_none() {
        return RecordError::NoHook { fate };
    }
    if processes.iter().all(|p| p.torch.is_none()) {
        return RecordError::NoTorch { fate };
    }
    RecordError::NothingRan { fate }
}

//! A script that goes on after what was recorded of it: an evaluation, a checkpoint, a longer sample may need more.

use super::{Assessment, Doubt, Subject};
use crate::coverage::CoveredExtent;
use crate::range::Confidence;
use xmem_analyzer::ScriptPart;
use xmem_types::Severity;

pub(super) const DOUBT: Doubt = Doubt { name: "script_goes_on", assess };

/// Steps that ask nothing new of the allocator, from which on a script is taken to go on like this.
const SETTLED: u64 = 100;

fn assess(subject: &Subject<'_>, assessment: &mut Assessment) {
    let coverage = &assessment.memory.coverage;
    // Recordings of before parts were marked, and what others recorded, do not say what the script does.
    if coverage.parts.is_empty() || !subject.has_all_iterations() {
        return;
    }
    let evaluates = coverage.has(ScriptPart::Evaluation);
    let is_settled = coverage.settled_steps >= SETTLED && evaluates;
    let how = match coverage.extent {
        CoveredExtent::Unknown | CoveredExtent::Whole => return,
        CoveredExtent::Time if is_settled => return,
        CoveredExtent::Iterations => "the script was stopped after the recorded iterations",
        CoveredExtent::Time => "the time for the script was up before its end",
        CoveredExtent::Failure => "the script failed before its end",
        CoveredExtent::Stopped => "the script was stopped before its end",
    };
    let missing = match evaluates {
        true => "what it does later is not known",
        false => "no evaluation was seen, and what it does later is not known",
    };
    assessment.notes.report("script-goes-on", Severity::Note, None, || format!("{how}: {missing}"));
    assessment.lower_to(Confidence::Likely);
}

//! A script that goes on after what was recorded of it: an evaluation, a checkpoint, a longer sample may need more.

use super::{Assessment, Doubt, Subject};
use crate::coverage::CoveredExtent;
use crate::range::Confidence;
use xmem_analyzer::recording::{LoadedBatches, UnseenEvent, UnseenKind};
use xmem_types::Severity;

pub(super) const DOUBT: Doubt = Doubt { name: "script_goes_on", assess };

fn assess(subject: &Subject<'_>, assessment: &mut Assessment) {
    let coverage = assessment.memory.coverage.clone();
    // Recordings of before parts were marked, and what others recorded, do not say what the script does.
    if coverage.parts.is_empty() || !subject.has_all_iterations() {
        return;
    }
    let LoadedBatches { unlike, left_out, .. } = coverage.batches;
    if unlike > 0 {
        assessment.notes.report("batches-left-out", Severity::Note, None, || {
            format!(
                "{left_out} batches were left out, {unlike} of them with other sizes than those before, none larger: \
                 reserved memory depends on the order of all of them (--time runs more of them)"
            )
        });
        assessment.lower_to(Confidence::Likely);
    }
    let how = match coverage.extent {
        CoveredExtent::Unknown | CoveredExtent::Whole => return,
        CoveredExtent::Settled if coverage.unseen.is_empty() => return,
        CoveredExtent::Settled => "nothing new followed, and the script was stopped before its end",
        CoveredExtent::Iterations if left_out > 0 => {
            "passes over data were cut short, and the script was stopped after the recorded iterations"
        }
        CoveredExtent::Iterations => "the script was stopped after the recorded iterations",
        CoveredExtent::Time => "the time for the script was up before its end",
        CoveredExtent::Failure => "the script failed before its end",
        CoveredExtent::Stopped => "the script was stopped before its end",
    };
    let unseen: Vec<String> = coverage.unseen.iter().map(words).collect();
    let missing = match unseen.is_empty() {
        true => "what it does later is not known".to_owned(),
        false => format!("not seen of it: {}", unseen.join(", ")),
    };
    assessment.notes.report("script-goes-on", Severity::Note, None, || format!("{how}: {missing}"));
    assessment.lower_to(Confidence::Likely);
}

/// What a script will do, and where its source says so.
fn words(event: &UnseenEvent) -> String {
    let what = match event.kind {
        UnseenKind::Evaluation => "evaluation",
        UnseenKind::Generation => "generation",
        UnseenKind::Saving => "saving",
        UnseenKind::Thawing => "training of parameters that are frozen",
        _ => event.kind.name(),
    };
    format!("{what} ({})", event.place)
}

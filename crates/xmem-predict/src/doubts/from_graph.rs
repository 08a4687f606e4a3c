//! Answers from the graph of a model: nothing was run, and the loop around the model is assumed.

use super::{Assessment, Doubt, Subject};
use crate::range::Confidence;
use xmem_types::{Severity, WithheldReason};

pub(super) const DOUBT: Doubt = Doubt { name: "from_graph", assess };

fn assess(subject: &Subject<'_>, assessment: &mut Assessment) {
    let Some(graph) = subject.profile().recording().and_then(|r| r.graph.as_ref()) else { return };
    assessment.lower_to(Confidence::Likely);
    assessment.notes.report("from-graph", Severity::Note, None, || {
        "from the graph of the model, nothing was run: the training loop, the lifetimes of its names and the form of \
         each operator are as PyTorch's eager mode has them"
            .to_owned()
    });
    if !graph.assumptions.is_empty() {
        assessment
            .notes
            .report("graph-assumptions", Severity::Note, None, || graph.assumptions.join("; "));
    }
    let list = |names: &[String]| names.iter().take(6).cloned().collect::<Vec<_>>().join(", ");
    let unknown = &graph.unknown_operators;
    if !unknown.is_empty() {
        assessment.lower_to(Confidence::Doubtful);
        assessment.notes.report("unknown-operators", Severity::Warning, None, || {
            format!(
                "operators of the graph without a definition here ({}): their results count, and a gradient for each \
                 argument; `xmem profile` records what they really allocate",
                list(unknown)
            )
        });
    }
    let functions = &graph.autograd_functions;
    if !functions.is_empty() {
        assessment.lower_to(Confidence::Doubtful);
        assessment.notes.report("autograd-functions", Severity::Warning, None, || {
            format!(
                "the model has functions with a custom backward ({}), and the graph has the operators of their \
                 forward alone: what these would keep counts, which may be more; `xmem profile` records what they \
                 really keep",
                list(functions)
            )
        });
    }
    let bounded = &graph.bounded_sizes;
    if !bounded.is_empty() {
        assessment.notes.report("bounded-sizes", Severity::Warning, None, || {
            format!(
                "sizes follow from values, and are taken for the largest possible ({}): the job needs no more than this",
                list(bounded)
            )
        });
        // It may fit with the sizes that it really has.
        if !assessment.memory.fits {
            assessment.withheld.push(WithheldReason::AssumedSizes);
        }
    }
    let different = &graph.different_sizes;
    if !different.is_empty() {
        assessment.lower_to(Confidence::Doubtful);
        assessment.notes.report("different-sizes", Severity::Warning, None, || {
            format!(
                "results of operators have other sizes than the graph says ({}): this is a defect of xmem, please report \
                 it with the graph",
                list(different)
            )
        });
    }
}

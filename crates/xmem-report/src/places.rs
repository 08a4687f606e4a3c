//! Places in the program, as text and as part of other documents.

use serde::Serialize;
use xmem::analyzer::{Phase, ScriptPart};
use xmem::predict::Place;

/// `iteration 1, backward`; `before iteration 0`.
pub(crate) fn moment(place: &Place) -> String {
    if let Some(part) = place.part {
        return format!("{}, after the recorded iterations", part.name());
    }
    match place.iteration {
        Some(id) => format!("iteration {}, {}", id.0, phase(place.phase)),
        None => "before iteration 0".to_owned(),
    }
}

/// `in iteration 1, backward`; `before iteration 0`.
pub(crate) fn place_phrase(place: &Place) -> String {
    if place.part.is_some() {
        return format!("in {}", moment(place));
    }
    match place.iteration {
        Some(_) => format!("in {}", moment(place)),
        None => moment(place),
    }
}

/// A moment of a history without iterations: `forward`, if the call stack shows it.
pub(crate) fn part(place: &Place) -> String {
    match place.phase {
        Phase::Init => "unknown phase".to_owned(),
        known => phase(known).to_owned(),
    }
}

/// `1 backward`; `init`.
pub(crate) fn short_moment(place: &Place) -> String {
    if let Some(part) = place.part {
        return part.name().to_owned();
    }
    match place.iteration {
        Some(id) => format!("{} {}", id.0, phase(place.phase)),
        None => "init".to_owned(),
    }
}

/// The name of a phase in text.
fn phase(phase: Phase) -> &'static str {
    match phase {
        Phase::Init => "initialization",
        Phase::Data => "data loading",
        Phase::Forward => "forward",
        Phase::Backward => "backward",
        Phase::ZeroGrad => "zero_grad",
        Phase::OptimizerStep => "optimizer step",
    }
}

/// The innermost operators, without the engine's wrappers: `MmBackward0 > aten::mm`.
pub(crate) fn op_path(place: &Place) -> String {
    let telling: Vec<&str> = place
        .op_path
        .iter()
        .map(String::as_str)
        .filter(|op| !op.starts_with("autograd::engine::") && !op.starts_with("ProfilerStep"))
        .collect();
    telling[telling.len().saturating_sub(3)..].join(" > ")
}

/// A place in the program.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct PlaceDto<'a> {
    /// Iteration, counted from 0; null before the first.
    iteration: Option<u32>,
    /// Phase of the iteration.
    #[cfg_attr(test, schemars(extend("enum" = ["init", "data", "forward", "backward", "zero_grad", "optimizer_step"])))]
    phase: &'static str,
    /// The part of the script, behind the recorded iterations.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(with = "String", extend("enum" = ["setup", "training", "evaluation", "generation", "saving", "loading", "capture"])))]
    part: Option<&'static str>,
    /// Innermost operator.
    op: Option<&'a str>,
    /// Operators and annotations from the outermost in.
    op_path: &'a [String],
    /// Module path, outermost first, joined by ' > '.
    module: Option<&'a str>,
    /// Python line, as file.py(line): function.
    line: Option<&'a str>,
}

impl<'a> From<&'a Place> for PlaceDto<'a> {
    fn from(place: &'a Place) -> Self {
        Self {
            iteration: place.iteration.map(|id| id.0),
            phase: place.phase.name(),
            part: place.part.map(ScriptPart::name),
            op: place.op(),
            op_path: &place.op_path,
            module: place.module.as_deref(),
            line: place.line.as_deref(),
        }
    }
}

//! The parts of a script, as the recorder marks them: what it does beside training.

use serde::Deserialize;
use xmem_types::Nanos;

/// What a script does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ScriptPart {
    /// It prepares the job.
    Setup,
    /// A model is trained.
    Training,
    /// A model that is trained is called without gradients.
    Evaluation,
    /// Tensors are written to a file.
    Saving,
    /// Tensors or states are read.
    Loading,
    /// A sequence is generated.
    Generation,
    /// A CUDA graph is captured.
    Capture,
}

impl ScriptPart {
    /// Every part, in the order of reports.
    pub const ALL: [Self; 7] = [
        Self::Setup,
        Self::Training,
        Self::Evaluation,
        Self::Generation,
        Self::Saving,
        Self::Loading,
        Self::Capture,
    ];

    /// The name in reports, and in marks (`evaluation`).
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Setup => "setup",
            Self::Training => "training",
            Self::Evaluation => "evaluation",
            Self::Saving => "saving",
            Self::Loading => "loading",
            Self::Generation => "generation",
            Self::Capture => "capture",
        }
    }

    /// The part of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|part| part.name() == name)
    }
}

/// A moment from which on a script is in a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartStart {
    /// The moment.
    pub time: Nanos,
    /// The part.
    pub part: ScriptPart,
}

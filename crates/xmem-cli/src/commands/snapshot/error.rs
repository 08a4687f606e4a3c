//! Snapshots that cannot be replayed.

use crate::error::{Explanation, Failure};
use crate::exit::Exit;
use miette::Diagnostic;
use thiserror::Error;
use xmem_eval::RerunError;

/// A snapshot that cannot be replayed.
#[derive(Debug, Error, Diagnostic)]
#[error("cannot replay `{snapshot}`")]
pub(crate) struct RerunFailure {
    pub(crate) snapshot: String,
    pub(crate) source: RerunError,
}

impl RerunFailure {
    pub(crate) fn new(snapshot: &str, source: RerunError) -> Self {
        Self { snapshot: snapshot.to_owned(), source }
    }
}

impl Failure for RerunFailure {
    fn exit(&self) -> Exit {
        match self.source {
            RerunError::Setup(_) => Exit::Usage,
            _ => Exit::Unreadable,
        }
    }

    fn error_code(&self) -> &'static str {
        match self.source {
            RerunError::Setup(_) => "XM0421",
            _ => "XM0422",
        }
    }
}

/// The explanations of the codes.
pub(crate) const EXPLAINED: &[Explanation] = &[
    Explanation {
        code: "XM0421",
        exit: Exit::Usage,
        title: "settings that do not suit the snapshot",
        cause: "The allocator or the device of the options cannot repeat the history of this snapshot.",
        example: "xmem snapshot replay snapshot.pickle --torch 1.9",
        fix: "Leave the options out, or correct the one that the message names; `xmem snapshot info FILE` shows the settings \
            of the run.",
    },
    Explanation {
        code: "XM0422",
        exit: Exit::Unreadable,
        title: "snapshot that cannot be replayed",
        cause: "The snapshot has no history of the device, or its segments contradict the history.",
        example: "xmem snapshot replay snapshot.pickle",
        fix: "Call `torch.cuda.memory._record_memory_history()` before the job, and take the snapshot before recording stops.",
    },
];

//! The time that each stage took.

use std::time::{Duration, Instant};

/// A stage of the pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Stage {
    /// The file into columns.
    Read,
    /// Columns into blocks with origin and role.
    Analyze,
    /// Blocks into a GPU schedule.
    Lower,
    /// The schedule through the allocator.
    Replay,
}

impl Stage {
    /// The name in logs and progress (`reading`).
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "reading",
            Self::Analyze => "analyzing",
            Self::Lower => "lowering",
            Self::Replay => "replaying",
        }
    }

    /// The span that logs of the stage belong to.
    fn span(self) -> tracing::Span {
        match self {
            Self::Read => tracing::debug_span!("reading"),
            Self::Analyze => tracing::debug_span!("analyzing"),
            Self::Lower => tracing::debug_span!("lowering"),
            Self::Replay => tracing::debug_span!("replaying"),
        }
    }
}

/// Wall time of the stages, in the order in which they ran.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Timings(Vec<(Stage, Duration)>);

impl Timings {
    /// Runs `work` as `stage`, in a span of that name.
    pub(crate) fn time<T>(&mut self, stage: Stage, work: impl FnOnce() -> T) -> T {
        // WebAssembly has no clock.
        let start = (!cfg!(target_family = "wasm")).then(Instant::now);
        let result = stage.span().in_scope(work);
        let took = start.map_or(Duration::ZERO, |start| start.elapsed());
        tracing::debug!("{} {:.1} ms", stage.name(), took.as_secs_f64() * 1000.0);
        self.0.push((stage, took));
        result
    }

    /// Each stage with its time.
    pub fn iter(&self) -> impl Iterator<Item = (Stage, Duration)> + '_ {
        self.0.iter().copied()
    }
}

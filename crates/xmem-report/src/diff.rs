//! Two runs side by side: text, `xmem.diff/1`, Markdown and HTML.

mod html;
pub(crate) mod json;
mod markdown;
mod text;
mod words;

pub use html::html;
pub use markdown::markdown;
pub use text::{brief, text};

use xmem_studies::difference::{ComparisonRun, Difference, GrowthLimit, PeakFigure};

/// A difference with all that is shown beside it.
#[derive(Clone, Copy, Debug)]
pub struct DifferencePage<'a> {
    /// The inputs as the user named them.
    pub names: (&'a str, &'a str),
    /// The runs.
    pub runs: (&'a ComparisonRun, &'a ComparisonRun),
    /// What they differ in.
    pub difference: &'a Difference,
    /// The number of rows to show.
    pub top: usize,
    /// The growth that is accepted, and of what.
    pub limit: Option<(GrowthLimit, PeakFigure)>,
}

impl DifferencePage<'_> {
    /// Returns whether the second run needs more than is accepted.
    #[must_use]
    pub fn is_beyond_limit(&self) -> bool {
        self.limit.is_some_and(|(limit, figure)| limit.is_exceeded_by(self.difference.peak(figure)))
    }

    /// Returns whether the figures of a run say little, as its verdict is withheld.
    #[must_use]
    pub fn is_withheld(&self) -> bool {
        self.runs.0.is_withheld() || self.runs.1.is_withheld()
    }
}

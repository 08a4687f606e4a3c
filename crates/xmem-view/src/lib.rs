//! A predicted run for people who look rather than read: files for viewers of memory, stacks and timelines.
//!
//! One module per format; each is a function from a [`Run`] to text or bytes. Left to others: where a run comes from
//! (the façade `xmem`), and where a file goes to (`xmem-cli`).
#![forbid(unsafe_code)]

mod clock;
mod evaluation;
mod folded;
mod html;
mod jsonl;
mod parquet;
mod perfetto;
mod speedscope;
mod svg;
mod table;

pub use evaluation::{PageTable, evaluation_figures, evaluation_page, validation_figure};
pub use folded::folded;
pub use html::{PageFit, PageRun, PageWhatIf, page};
pub use jsonl::jsonl;
pub use parquet::{
    EvaluatedRows, columns_of_parquet, columns_parquet, evaluation_of_parquet, evaluation_parquet,
    parquet,
};
pub use perfetto::perfetto;
pub use speedscope::speedscope;
pub use svg::{SvgView, svg};
pub use table::RunTable;

use xmem::predict::Timeline;
use xmem::{Answer, Job};

/// A run that is looked at: the job, the answer about it, and what happens event by event. The timeline is that of the
/// whole job ([`SnapshotEnd::Job`](xmem::predict::SnapshotEnd::Job)), so that its peaks are those of the answer.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    /// The name of the input.
    pub name: &'a str,
    /// What was recorded.
    pub job: &'a Job,
    /// The answer.
    pub answer: &'a Answer,
    /// What happens.
    pub timeline: &'a Timeline,
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}

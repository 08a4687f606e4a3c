//! Inputs that cannot be planned.

use crate::error::failures;
use miette::Diagnostic;
use thiserror::Error;
use xmem_report::json::HintsDocumentError;
use xmem_studies::planner::CsvError;
use xmem_studies::planning::PlanningError;

failures! {
    /// An input that cannot be planned, or a plan that cannot be written.
    #[derive(Debug, Error, Diagnostic)]
    pub(crate) enum PlanFailure {
        #[error("{input} cannot be planned")]
        Planning { input: String, source: PlanningError } => Unreadable,
        #[error("{input} is not a table of blocks")]
        #[diagnostic(help(
            "a table has a header and a row for each block: `id,lower,upper,size`, live from tick lower until \
             before tick upper"
        ))]
        BlockTable { input: String, source: CsvError } => Unreadable,
        #[error("{input} has no blocks to plan")]
        #[diagnostic(help(
            "a table needs a row for each block; of a recording, `xmem plan --scope all` plans every block"
        ))]
        NothingToPlan { input: String } => Unreadable,
        #[error("--interrupt {part} names no request of {input}")]
        #[diagnostic(help(
            "`xmem plan INPUT --format csv` lists ticks and operators; the phases of a recording are init, data, forward, backward, zero_grad and optimizer_step"
        ))]
        InterruptionOfNothing { part: String, input: String } => Usage,
        #[error("--interrupt leaves out all blocks of {input}")]
        #[diagnostic(help("leave at least one block to be planned"))]
        AllInterrupted { input: String } => Usage,
        #[error("{input} is not a plan to be followed")]
        #[diagnostic(help("`xmem plan INPUT --export-hints FILE` writes one"))]
        Hints { input: String, source: HintsDocumentError } => Unreadable,
        #[error("--interrupt START..END cannot be combined with --export-hints of a recording")]
        #[diagnostic(help("name a phase or an operator: ticks of one iteration are not those of the next"))]
        TicksOfAJob => Usage,
        #[error("no planner gave a plan")]
        #[diagnostic(help("--format text says why; use another planner, as auto, or more --time"))]
        NoPlan => Usage,
        #[error("--offsets needs --format json")]
        #[diagnostic(help("add --format json; --format csv always has the offsets of the best plan"))]
        OffsetsForm => Usage,
    }
}

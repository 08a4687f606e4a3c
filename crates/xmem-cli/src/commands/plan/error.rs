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
        Planning { input: String, source: PlanningError } => Unreadable XM0701 {
            title: "input that cannot be planned",
            cause: "The recording or the table has blocks that no plan can place, or gives no prediction.",
            example: "xmem plan damaged.json.zst",
            fix: "Check the input with `xmem inspect TRACE`; the message names the reason.",
        },
        #[error("{input} is not a table of blocks")]
        #[diagnostic(help(
            "a table has a header and a row for each block: `id,lower,upper,size`, live from tick lower until \
             before tick upper"
        ))]
        BlockTable { input: String, source: CsvError } => Unreadable XM0702 {
            title: "invalid table of blocks",
            cause: "A table of blocks is CSV with the columns id, lower, upper and size.",
            example: "xmem plan blocks.csv",
            fix: "Correct the line that the message names. `xmem plan TRACE --format csv` writes such a table.",
        },
        #[error("{input} has no blocks to plan")]
        #[diagnostic(help(
            "a table needs a row for each block; of a recording, `xmem plan --scope all` plans every block"
        ))]
        NothingToPlan { input: String } => Unreadable XM0703 {
            title: "no blocks to plan",
            cause: "The table is empty, or the recording has no block in the chosen scope.",
            example: "xmem plan empty.csv",
            fix: "Add a row for each block, or plan every block of a recording with `xmem plan TRACE --scope all`.",
        },
        #[error("--interrupt {part} names no request of {input}")]
        #[diagnostic(help(
            "`xmem plan INPUT --format csv` lists ticks and operators; the phases of a recording are init, data, forward, backward, zero_grad and optimizer_step"
        ))]
        InterruptionOfNothing { part: String, input: String } => Usage XM0704 {
            title: "interruption without requests",
            cause: "`--interrupt` names a phase, an operator or ticks in which the input has no request.",
            example: "xmem plan trace.json.zst --interrupt warmup",
            fix: "Run `xmem plan TRACE --format csv` to list ticks and operators, and name one of them.",
        },
        #[error("--interrupt leaves out all blocks of {input}")]
        #[diagnostic(help("leave at least one block to be planned"))]
        AllInterrupted { input: String } => Usage XM0705 {
            title: "interruption of all blocks",
            cause: "`--interrupt` leaves out every block, so that nothing can be planned.",
            example: "xmem plan blocks.csv --interrupt 0..1000",
            fix: "Choose a shorter part; `xmem plan INPUT --format csv` lists the ticks.",
        },
        #[error("{input} is not a plan to be followed")]
        #[diagnostic(help("`xmem plan INPUT --export-hints FILE` writes one"))]
        Hints { input: String, source: HintsDocumentError } => Unreadable XM0706 {
            title: "unusable plan",
            cause: "The file is not a plan that a job can follow, or its version is not supported.",
            example: "xmem simulate ops.json --plan notes.json",
            fix: "Write a plan with `xmem plan TRACE --export-hints plan.json`.",
        },
        #[error("--interrupt START..END cannot be combined with --export-hints of a recording")]
        #[diagnostic(help("name a phase or an operator: ticks of one iteration are not those of the next"))]
        TicksOfAJob => Usage XM0707 {
            title: "ticks in a plan for a job",
            cause:
                "Ticks of one iteration differ from those of the next, so that a plan for a job cannot leave them out.",
            example: "xmem plan trace.json.zst --interrupt 10..20 --export-hints plan.json",
            fix: "Name a phase or an operator, for example `--interrupt optimizer_step`.",
        },
        #[error("no planner gave a plan")]
        #[diagnostic(help("--format text says why; use another planner, as auto, or more --time"))]
        NoPlan => Usage XM0708 {
            title: "no plan found",
            cause: "No planner found a plan within its limits.",
            example: "xmem plan blocks.csv --planner mip --time 1s",
            fix: "Use `--planner auto`, or allow more time with `--time 60s`; `--format text` shows the reason.",
        },
        #[error("--offsets needs --format json")]
        #[diagnostic(help("add --format json; --format csv always has the offsets of the best plan"))]
        OffsetsForm => Usage XM0709 {
            title: "offsets in a format without them",
            cause: "`--offsets` adds the offset of each block to the JSON document.",
            example: "xmem plan blocks.csv --offsets",
            fix: "Add `--format json`, or use `--format csv`, which always has them.",
        },
    }
}

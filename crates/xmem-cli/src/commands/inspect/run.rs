//! Runs `xmem inspect`.

use super::args::InspectArgs;
use super::redact;
use crate::commands::Outcome;
use crate::exit::Exit;
use crate::format::PlainFormat;
use crate::global::Global;
use crate::reading::{self, read_options};
use crate::{input, output, pool, style};
use xmem_report::json::{self, InspectDocument};
use xmem_report::text;

/// Runs the command.
pub(crate) fn run(args: &InspectArgs, global: &Global) -> Outcome {
    if let Some(copy) = &args.redact {
        let threads = pool::cores();
        redact::write(&args.trace, copy, &read_options(&args.reading, threads))?;
    }
    let path = args.redact.as_ref().unwrap_or(&args.trace);
    let job = reading::job(path, &args.reading, global)?;
    let trace = input::name(path);
    let (facts, findings) = (job.facts(), job.findings());
    let page = match args.format {
        PlainFormat::Json => json::pretty(&InspectDocument::new(&trace, facts, &findings)),
        PlainFormat::Text => text::inspect(&trace, facts, &findings, &style::of_output(None)),
    };
    output::write(page.as_bytes(), None)?;
    Ok(Exit::Fits)
}

//! The answers, as they are printed.

use super::args::{EstimateGraphArgs, GraphFormat};
use super::question::Answered;
use crate::global::{Global, Verbosity};
use crate::style;
use xmem_report::json::{self, Document, Rules};
use xmem_report::lines::LineFormat;
use xmem_report::text;

/// The answers in the format that was asked for.
pub(super) fn page(answers: &[Answered], args: &EstimateGraphArgs, global: &Global) -> String {
    let style = style::of_output(args.answer.output.as_deref());
    match (args.answer.format, answers) {
        (GraphFormat::Text, [one]) if global.verbosity() == Verbosity::Quiet => {
            text::brief(&one.name, &one.answer, &style)
        }
        (GraphFormat::Text, [one]) => {
            let extent = text::Extent {
                full: args.answer.full,
                notes: args.answer.notes,
                rows: 10,
                next: Vec::new(),
            };
            text::answer(&one.name, &one.answer, &extent, &style)
        }
        (GraphFormat::Text, several) => table(several),
        (GraphFormat::Json, [one]) => json::pretty(&document(one)),
        (GraphFormat::Json, several) => {
            let documents: Vec<Document<'_>> = several.iter().map(document).collect();
            json::pretty(&documents)
        }
        (GraphFormat::Jsonl, several) => {
            several.iter().map(|a| LineFormat::Json.line(&document(a))).collect()
        }
        (GraphFormat::Csv, several) => {
            LineFormat::Csv.header()
                + &several.iter().map(|a| LineFormat::Csv.line(&document(a))).collect::<String>()
        }
    }
}

fn document(answered: &Answered) -> Document<'_> {
    Document::answer(&answered.name, "", &answered.answer, Rules::Omit)
}

/// A row for each batch size.
fn table(answers: &[Answered]) -> String {
    let mut lines = vec![format!(
        "{:>8}  {:>14}  {:>14}  {:>14}  verdict",
        "batch", "allocated", "reserved", "nvidia-smi"
    )];
    for Answered { batch, answer, .. } in answers {
        let peak = &answer.memory.peak;
        let decision = answer.decision().0.words().to_owned();
        lines.push(format!(
            "{:>8}  {:>14}  {:>14}  {:>14}  {decision}",
            batch.map_or_else(String::new, |b| b.to_string()),
            peak.allocated.to_string(),
            peak.reserved.to_string(),
            peak.device.to_string(),
        ));
    }
    lines.join("\n") + "\n"
}

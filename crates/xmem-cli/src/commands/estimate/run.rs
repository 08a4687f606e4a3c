//! Runs `xmem estimate`.

use super::args::{EstimateGraphArgs, GraphFormat};
use super::error::EstimateGraphFailure;
use super::source::Source;
use super::workload;
use crate::commands::Outcome;
use crate::error::CliError;
use crate::exit::Exit;
use crate::global::{Global, Verbosity};
use crate::input::{self, Kind};
use crate::overwrite::{self, Output};
use crate::{device, estimate, output, style};
use rayon::prelude::*;
use xmem::predict::CapacitySearch;
use xmem::{Answer, Estimate, Job, ReadOptions};
use xmem_graph::{GraphError, Workload};
use xmem_report::json::{self, Document, Rules};
use xmem_report::lines::LineFormat;
use xmem_report::text;

/// Runs the command.
pub(crate) fn run(args: &EstimateGraphArgs, global: &Global) -> Outcome {
    let outputs = Output::given([
        ("--output", args.answer.output.as_deref()),
        ("--trace", args.answer.trace.as_deref()),
    ]);
    overwrite::refuse(
        &outputs,
        [args.graph.as_path()].into_iter().chain(args.device.device_file.as_deref()),
    )?;
    if args.answer.trace.is_some() && args.job.batch.len() > 1 {
        return Err(EstimateGraphFailure::TraceOfSeveral { count: args.job.batch.len() }.into());
    }
    let name = input::name(&args.graph);
    let mut builder = args.estimate.builder(device::choose(&args.device)?)?;
    if args.answer.min_capacity {
        builder = builder.capacity_search(CapacitySearch::Run);
    }
    let estimate = builder.build();
    estimate.check()?;
    let source = read(args, &name)?;
    let workload = workload::workload(&source, &args.job, &name)?;
    let batches: Vec<Option<i64>> = match args.job.batch.as_slice() {
        [] => vec![None],
        sizes => sizes.iter().map(|n| Some(n.get().into())).collect(),
    };
    let question =
        Question { source: &source, workload: &workload, estimate: &estimate, name: &name };
    let answers: Result<Vec<Answered>, CliError> =
        batches.into_par_iter().map(|batch| question.answer(batch, args)).collect();
    let answers = answers?;
    output::write(page(&answers, args, global).as_bytes(), args.answer.output.as_deref())?;
    let exit = answers.iter().map(|a| Exit::from(a.answer.verdict)).max().unwrap_or(Exit::Fits);
    Ok(if args.answer.exit_zero { exit.zero_for_verdicts() } else { exit })
}

fn read(args: &EstimateGraphArgs, name: &str) -> Result<Source, CliError> {
    let bytes = input::read_raw(&args.graph, Kind::Graph, None)?;
    let failed = |source| EstimateGraphFailure::Graph { graph: name.to_owned(), source };
    Ok(Source::read(bytes).map_err(failed)?)
}

/// One graph and what is asked of it.
struct Question<'a> {
    source: &'a Source,
    workload: &'a Workload,
    estimate: &'a Estimate,
    name: &'a str,
}

/// The answer for one batch size.
struct Answered {
    name: String,
    batch: Option<i64>,
    answer: Answer,
}

impl Question<'_> {
    fn answer(&self, batch: Option<i64>, args: &EstimateGraphArgs) -> Result<Answered, CliError> {
        let mut workload = self.workload.clone();
        workload.batch = batch;
        let failed = |source: GraphError| {
            let graph = self.name.to_owned();
            match source {
                GraphError::Fixed { .. } | GraphError::Rebatched { .. } | GraphError::NoLoss => {
                    EstimateGraphFailure::Options { graph, source }
                }
                source => EstimateGraphFailure::Graph { graph, source },
            }
        };
        let run = self.source.act(&workload).map_err(failed)?;
        if let Some(file) = &args.answer.trace {
            output::write(run.trace.as_bytes(), Some(file))?;
        }
        let job = Job::from_named_bytes(run.trace.as_bytes(), self.name, &ReadOptions::default())?;
        drop(run);
        let predicted =
            self.estimate.predict(&job).map_err(|error| estimate::failure(self.name, error))?;
        let name = match batch {
            Some(batch) => format!("{} --batch {batch}", self.name),
            None => self.name.to_owned(),
        };
        Ok(Answered { name, batch, answer: predicted.answer() })
    }
}

fn page(answers: &[Answered], args: &EstimateGraphArgs, global: &Global) -> String {
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

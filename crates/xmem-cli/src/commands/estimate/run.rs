//! Runs `xmem estimate`.

use super::args::{EstimateGraphArgs, GraphFormat};
use super::batches::{BatchRange, Batches};
use super::error::{self, EstimateGraphFailure};
use super::{law, page};
use crate::commands::Outcome;
use crate::error::CliError;
use crate::exit::Exit;
use crate::global::{Global, Verbosity};
use crate::input::{self, Kind};
use crate::overwrite::{self, Output};
use crate::terminal::{note, shown};
use crate::{device, output};
use rayon::prelude::*;
use std::num::NonZeroU32;
use xmem::predict::CapacitySearch;
use xmem::{Answer, Estimate};
use xmem_estimate::{GraphJob, Source};
use xmem_graph::ActedRun;

/// Runs the command.
pub(crate) fn run(args: &EstimateGraphArgs, global: &Global) -> Outcome {
    let outputs = Output::given([
        ("--output", args.answer.output.as_deref()),
        ("--trace", args.answer.trace.as_deref()),
        ("--law", args.answer.law.as_deref()),
    ]);
    overwrite::refuse(
        &outputs,
        [args.graph.as_path()].into_iter().chain(args.device.device_file.as_deref()),
    )?;
    let batches = Batches::of(&args.job.batch)?;
    match &batches {
        Batches::Range(range) if args.answer.trace.is_some() => {
            return Err(
                EstimateGraphFailure::TraceOfSeveral { count: range.doublings().len() }.into()
            );
        }
        Batches::Listed(sizes) if args.answer.trace.is_some() && sizes.len() > 1 => {
            return Err(EstimateGraphFailure::TraceOfSeveral { count: sizes.len() }.into());
        }
        Batches::Range(_) => {}
        _ if args.answer.law.is_some() => return Err(EstimateGraphFailure::LawWithoutRange.into()),
        _ => {}
    }
    let name = input::name(&args.graph);
    let mut builder = args.estimate.builder(device::choose(&args.device)?)?;
    if args.answer.min_capacity {
        builder = builder.capacity_search(CapacitySearch::Run);
    }
    let estimate = builder.build();
    estimate.check()?;
    let source = read(args, &name)?;
    let question = Question { source: &source, args, estimate: &estimate, name: &name };
    let answers = match batches {
        Batches::Exported => Ok(vec![question.answer(None)?]),
        Batches::Listed(sizes) => {
            sizes.into_par_iter().map(|size| question.answer(Some(size))).collect()
        }
        Batches::Range(range) => return question.range(range, global),
    };
    let answers: Vec<Answered> = answers?;
    question.print(&page::page(&answers, args, global))?;
    let exit = answers.iter().map(|a| Exit::from(a.answer.verdict)).max().unwrap_or(Exit::Fits);
    Ok(question.exit(exit))
}

fn read(args: &EstimateGraphArgs, name: &str) -> Result<Source, CliError> {
    let bytes = input::read_raw(&args.graph, Kind::Graph, None)?;
    let failed = |source| EstimateGraphFailure::Graph { graph: name.to_owned(), source };
    Ok(Source::read(bytes).map_err(failed)?)
}

/// The answer for one batch size.
pub(super) struct Answered {
    pub(super) name: String,
    pub(super) batch: Option<NonZeroU32>,
    pub(super) answer: Answer,
}

/// A graph, and what is asked about it.
pub(super) struct Question<'a> {
    pub(super) source: &'a Source,
    pub(super) args: &'a EstimateGraphArgs,
    pub(super) estimate: &'a Estimate,
    pub(super) name: &'a str,
}

impl Question<'_> {
    fn answer(&self, batch: Option<NonZeroU32>) -> Result<Answered, CliError> {
        self.acted(batch, |job, run| {
            if let Some(file) = &self.args.answer.trace {
                output::write(run.trace.as_bytes(), Some(file))?;
            }
            let answer = job.answer(&run, self.estimate);
            let answer = answer.map_err(|error| error::failure(self.name, error))?;
            Ok(Answered { name: job.answer_name(), batch, answer })
        })
    }

    /// Acts the graph with a batch size, and gives it to `then`.
    pub(super) fn acted<T>(
        &self,
        batch: Option<NonZeroU32>,
        then: impl FnOnce(&GraphJob<'_>, ActedRun) -> Result<T, CliError>,
    ) -> Result<T, CliError> {
        let failed = |error| error::failure(self.name, error);
        let settings = self.args.job.settings(batch);
        let workload = settings.workload(self.source).map_err(failed)?;
        let job = GraphJob { source: self.source, workload: &workload, name: self.name };
        let run = job.act().map_err(failed)?;
        then(&job, run)
    }

    /// Looks for the largest batch size that fits, and writes the law.
    fn range(&self, range: BatchRange, global: &Global) -> Outcome {
        let (answers, largest) = range.search(|size| self.answer(Some(size)))?;
        let mut text = page::page(&answers, self.args, global);
        if self.args.answer.format == GraphFormat::Text {
            if global.verbosity() == Verbosity::Quiet {
                text.clear();
            }
            text += &match largest {
                Some(size) => format!("largest batch that fits: {size}\n"),
                None => format!("no batch from {} to {} fits\n", range.low, range.high),
            };
        }
        self.print(&text)?;
        if let Some(file) = &self.args.answer.law {
            let last = law::write(self, range, file)?;
            let ask = format!("xmem check {} --at batch={last}", shown(file));
            note(
                &format!("{} says what each batch size needs: {ask}", shown(file)),
                global.verbosity(),
            );
        }
        let least = answers.iter().map(|a| Exit::from(a.answer.verdict)).min();
        Ok(self.exit(least.unwrap_or(Exit::Fits)))
    }

    fn print(&self, text: &str) -> Result<(), CliError> {
        output::write(text.as_bytes(), self.args.answer.output.as_deref())
    }

    fn exit(&self, exit: Exit) -> Exit {
        if self.args.answer.exit_zero { exit.zero_for_verdicts() } else { exit }
    }
}

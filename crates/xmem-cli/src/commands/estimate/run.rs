//! Runs `xmem estimate`.

use super::args::{EstimateGraphArgs, GraphFormat};
use super::batches::{BatchRange, Batches};
use super::error::EstimateGraphFailure;
use super::question::{Answered, Question};
use super::search::{self, Searched};
use super::{law, page};
use crate::commands::Outcome;
use crate::device;
use crate::error::CliError;
use crate::exit::Exit;
use crate::global::{Global, Verbosity};
use crate::input::{self, Kind};
use crate::output;
use crate::overwrite::{self, Output};
use crate::terminal::{note, shown};
use rayon::prelude::*;
use std::num::NonZeroU32;
use xmem::Verdict;
use xmem::predict::CapacitySearch;
use xmem_estimate::Source;
use xmem_report::json;

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
    let count = batches.count();
    if args.answer.trace.is_some() && count > 1 {
        return Err(EstimateGraphFailure::TraceOfSeveral { count }.into());
    }
    if args.answer.law.is_some() && !matches!(batches, Batches::Range(_)) {
        return Err(EstimateGraphFailure::LawWithoutRange.into());
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
        Batches::Range(range) => return search_range(&question, range, global),
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

/// Looks for the largest batch size that fits, and writes the law.
fn search_range(question: &Question<'_>, range: BatchRange, global: &Global) -> Outcome {
    let law = question.args.answer.law.as_deref();
    let law =
        law.map(|file| Ok::<_, CliError>((file, law::of(question, range, global.verbosity())?)));
    let law = law.transpose()?;
    let ask = |size| question.answer(Some(size));
    let Searched { answers, largest, gaps } = match &law {
        Some((_, law)) => search::by_law(range, law, ask)?,
        None => search::largest(range, ask)?,
    };
    let mut text = page::page(&answers, question.args, global);
    if question.args.answer.format == GraphFormat::Text {
        if global.verbosity() == Verbosity::Quiet {
            text.clear();
        }
        text += &match largest {
            Some(size) => format!("largest batch that fits: {size}\n{}", without(&gaps)),
            None => {
                let is_open = answers.iter().any(|a| a.answer.verdict != Verdict::DoesNotFit);
                let fits = if is_open { "is sure to fit" } else { "fits" };
                format!("no batch from {} to {} {fits}\n", range.low, range.high)
            }
        };
    }
    question.print(&text)?;
    if let Some((file, law)) = &law {
        output::write(json::line(&json::LawDocument::new(law)).as_bytes(), Some(file))?;
        let ask = format!("xmem check {} --at batch={}", shown(file), range.high);
        note(
            &format!("{} says what each batch size needs: {ask}", shown(file)),
            global.verbosity(),
        );
    }
    let least = answers.iter().map(|a| Exit::from(a.answer.verdict)).min();
    Ok(question.exit(least.unwrap_or(Exit::Fits)))
}

/// The sizes that do not fit although a larger one does, as a line; runs of them as `3..5`.
fn without(gaps: &[NonZeroU32]) -> String {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for size in gaps.iter().map(|size| size.get()) {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == size => *last = size,
            _ => runs.push((size, size)),
        }
    }
    let run = |(first, last): &(u32, u32)| match first == last {
        true => first.to_string(),
        false => format!("{first}..{last}"),
    };
    let runs: Vec<String> = runs.iter().map(run).collect();
    match runs.is_empty() {
        true => String::new(),
        false => format!("smaller ones that do not fit: {}\n", runs.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_that_do_not_fit_are_listed_in_runs() {
        let sizes = |of: &[u32]| of.iter().filter_map(|size| NonZeroU32::new(*size)).collect();
        let line = |of: &[u32]| {
            let sizes: Vec<NonZeroU32> = sizes(of);
            without(&sizes)
        };
        assert_eq!(line(&[]), "");
        assert_eq!(line(&[3, 4, 5, 9]), "smaller ones that do not fit: 3..5, 9\n");
    }
}

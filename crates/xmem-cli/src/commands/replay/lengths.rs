//! `xmem replay --vary`: one trace, extended by iterations of other lengths.

use super::args::{ReplayArgs, ReplayFormat, VaryArgs};
use super::error::ReplayFailure;
use super::settings::Settings;
use super::trace_error::catch_panic;
use crate::error::CliError;
use crate::exit::Exit;
use crate::global::{Global, Verbosity};
use crate::progress::Progress;
use crate::reading::read_options;
use crate::traces::TraceInput;
use crate::{input, output, pool, style};
use std::num::{NonZeroU64, NonZeroUsize};
use xmem::Job;
use xmem::predict::{LengthSettings, VaryingDimension};
use xmem_report::{json, text};

/// Refuses what does not go with `--vary`.
pub(super) fn check(args: &ReplayArgs) -> Result<(), ReplayFailure> {
    let refused = [
        ("--snapshot writes the run that was recorded", args.answer.snapshot.is_some()),
        ("--min-capacity is about the run that was recorded", args.answer.min_capacity),
        ("--skip-done is for many traces", args.many.skip_done),
        (
            "its formats are text and json",
            !matches!(args.answer.format, ReplayFormat::Text | ReplayFormat::Json),
        ),
    ];
    if let Some((problem, _)) = refused.iter().find(|(_, given)| *given) {
        let advice = "remove that option, or --vary";
        return Err(ReplayFailure::Vary { problem: (*problem).to_owned(), advice });
    }
    if args.answer.iterations.is_some_and(|iterations| iterations.from().index() > 0) {
        let problem = "--iterations is the number of iterations of a run".to_owned();
        return Err(ReplayFailure::Vary {
            problem,
            advice: "give a number, for example --iterations 500",
        });
    }
    Ok(())
}

/// Answers how the peak of a trace depends on the order of lengths.
pub(super) fn run(
    varying: &VaryingDimension,
    (traces, settings): (&[TraceInput], &[Settings]),
    args: &ReplayArgs,
    global: &Global,
) -> Result<Exit, CliError> {
    let ([trace], [one]) = (traces, settings) else {
        let problem = match traces.len() {
            1 => format!("{} devices or allocators were given", settings.len()),
            count => format!("{count} traces were given"),
        };
        return Err(ReplayFailure::Vary { problem, advice: "run the command once for each" }.into());
    };
    let asked = question(varying, args);
    let options = options(&one.options, &asked, &args.vary);
    let path = trace.path();
    let name = input::name(path);
    let progress = Progress::over([path], global.verbosity());
    let result = catch_panic(&name, || {
        pool::run(args.reading.threads, |threads| {
            let observer = |stage| progress.stage(&name, stage);
            let job = Job::observed(path, &read_options(&args.reading, threads), &observer)?;
            one.estimate.predict(&job)?.lengths(&asked)
        })
    });
    drop(progress);
    let answer = match result {
        Ok(answer) => answer,
        Err(failure) => return Ok(failure.into_cli_error(&name).print()),
    };
    let style = style::of_output(args.answer.output.as_deref());
    let page = match (args.answer.format, global.verbosity()) {
        (ReplayFormat::Json, _) => {
            json::pretty(&json::LengthsDocument::new(&name, &options, &answer))
        }
        (_, Verbosity::Quiet) => text::lengths_brief(&name, &answer, &style),
        _ => text::lengths(&name, &answer, &style),
    };
    output::write(page.as_bytes(), args.answer.output.as_deref())?;
    Ok(answer.verdict.into())
}

fn question(varying: &VaryingDimension, args: &ReplayArgs) -> LengthSettings {
    let VaryArgs { vary: _, orders, seed, order } = &args.vary;
    let iterations = args.answer.iterations.map(|iterations| iterations.to().index());
    let exact: Vec<u64> = order.iter().copied().map(NonZeroU64::get).collect();
    LengthSettings {
        varying: varying.clone(),
        iterations: iterations.unwrap_or(LengthSettings::ITERATIONS),
        orders: orders.map_or(LengthSettings::ORDERS, NonZeroUsize::get),
        seed: seed.unwrap_or(0),
        exact: (!exact.is_empty()).then_some(exact),
    }
}

/// The options of the command line that the answer depends on.
fn options(others: &str, asked: &LengthSettings, args: &VaryArgs) -> String {
    let mut words = vec![others.to_owned(), format!("--vary {}", asked.varying)];
    match &asked.exact {
        Some(lengths) => {
            let lengths: Vec<String> = lengths.iter().map(u64::to_string).collect();
            words.push(format!("--order {}", lengths.join(",")));
        }
        None => {
            words.push(format!("--orders {}", asked.orders));
            words.extend(args.seed.map(|seed| format!("--seed {seed}")));
        }
    }
    words.join(" ")
}

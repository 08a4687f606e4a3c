//! Runs `xmem look`.

use super::args::LookArgs;
use super::error::LookFailure;
use crate::commands::Outcome;
use crate::exit::Exit;
use crate::global::Global;
use crate::output::OutputFailure;
use crate::predicted_run::{self, PredictedRun};
use crate::{device, input, pool, style, terminal};
use std::io::{BufWriter, IsTerminal};
use xmem::{Answer, Verdict};
use xmem_look::{Browser, Ended, Palette, Subject};
use xmem_report::text::Color;

/// What is decided, in few words.
fn verdict(answer: &Answer) -> String {
    let decision = answer.decision();
    match answer.verdict {
        Verdict::Fits | Verdict::DoesNotFit => {
            let because = answer.need.because(answer.device().memory, decision);
            decision.0.words().to_lowercase() + &because
        }
        other => other.name().replace('_', " "),
    }
}

/// Runs the command.
pub(crate) fn run(args: &LookArgs, global: &Global) -> Outcome {
    let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    if is_dumb || !std::io::stdout().is_terminal() {
        return Err(LookFailure::NoTerminal { trace: input::display_name(&args.trace) }.into());
    }
    let chosen = device::choose(&args.device)?;
    let estimate = predicted_run::estimate(chosen, &args.estimate, args.iterations)?;
    let PredictedRun { answer, timeline } = pool::run(args.reading.threads, |threads| {
        predicted_run::predict(&args.trace, None, &estimate, (&args.reading, threads), global)
    })?;
    let mut browser = Browser::new(Subject {
        name: input::name(&args.trace),
        device: answer.device().name.clone(),
        verdict: verdict(&answer),
        timeline,
    });
    let palette = match style::of_output(None).color {
        Color::Ansi => Palette::Color,
        Color::Plain => Palette::Letters,
    };
    // xmem-look escapes the text of each cell; what is between the cells is not text.
    let out = BufWriter::new(terminal::raw_stdout());
    let ended = xmem_look::browse(&mut browser, palette, out)
        .map_err(|source| OutputFailure::Stdout { source })?;
    Ok(match (ended, answer.verdict) {
        (Ended::BySignal(signal), _) if signal == signal_hook::consts::SIGINT => Exit::Interrupted,
        (Ended::BySignal(_), _) => Exit::Terminated,
        (Ended::ByKey, Verdict::Fits | Verdict::DoesNotFit) => Exit::Fits,
        (Ended::ByKey, _) => Exit::Withheld,
    })
}

//! Runs `xmem diff`.

use super::args::{DiffArgs, DiffFormat};
use super::error::DiffFailure;
use crate::commands::Outcome;
use crate::error::CliError;
use crate::exit::Exit;
use crate::global::{Global, Verbosity};
use crate::input::{self, Kind};
use crate::overwrite::{self, Output};
use crate::predicted_run::{self, PredictedRun};
use crate::traces::TracesFailure;
use crate::{device, output, pool, style};
use std::num::NonZeroUsize;
use std::path::Path;
use xmem_report::diff::{self, DifferencePage};
use xmem_report::json::{self, DifferenceDocument};
use xmem_studies::difference::{ComparisonRun, Difference};

/// The rows of a page for people, unless a number is given.
const ROWS: usize = 20;

/// Runs the command.
pub(crate) fn run(args: &DiffArgs, global: &Global) -> Outcome {
    let answer = &args.answer;
    let outputs = Output::given([("--output", answer.output.as_deref())]);
    let paths = [args.a.as_path(), args.b.as_path()];
    overwrite::refuse(&outputs, paths.into_iter().chain(args.device.device_file.as_deref()))?;
    let count = paths.iter().filter(|path| **path == Path::new("-")).count();
    if count > 1 {
        return Err(TracesFailure::StdinTwice { count }.into());
    }
    let load = |path| pool::run(args.reading.threads, |threads| load(path, args, threads, global));
    let (a, b) = (load(&args.a)?, load(&args.b)?);
    let difference = Difference::new(&a, &b, answer.by).map_err(|_| {
        let path = if a.timeline.is_none() { &args.a } else { &args.b };
        DiffFailure::KeyOfAnswer { input: input::display_name(path), key: answer.by.name() }
    })?;
    let (name_a, name_b) = (input::name(&args.a), input::name(&args.b));
    let page = DifferencePage {
        names: (&name_a, &name_b),
        runs: (&a, &b),
        difference: &difference,
        top: answer.top.unwrap_or(if answer.format == DiffFormat::Json {
            usize::MAX
        } else {
            ROWS
        }),
        limit: answer.fail_over.map(|limit| (limit, answer.figure)),
    };
    let style = style::of_output(answer.output.as_deref());
    let text = match (answer.format, global.verbosity()) {
        (DiffFormat::Json, _) => json::pretty(&DifferenceDocument::new(&page)),
        (DiffFormat::Markdown, _) => diff::markdown(&page),
        (DiffFormat::Html, _) => diff::html(&page),
        (DiffFormat::Text, Verbosity::Quiet) => diff::brief(&page),
        (DiffFormat::Text, _) => diff::text(&page, &style),
    };
    output::write(text.as_bytes(), answer.output.as_deref())?;
    Ok(match (page.is_withheld(), page.is_beyond_limit()) {
        (true, _) => Exit::Withheld,
        (false, true) => Exit::Grew,
        (false, false) => Exit::Fits,
    })
}

/// Reads an input, which is recognized by its content.
fn load(
    path: &Path,
    args: &DiffArgs,
    threads: NonZeroUsize,
    global: &Global,
) -> Result<ComparisonRun, CliError> {
    let max = args.reading.max_input;
    let (bytes, head) = input::beginning(path, Kind::Blocks, max)?;
    if !is_answer(&head) {
        let options = &args.estimate;
        let device = device::choose(&args.device)?;
        let estimate = predicted_run::estimate(device, options, args.answer.iterations)?;
        let reading = (&args.reading, threads);
        let PredictedRun { answer, timeline } =
            predicted_run::predict(path, bytes.as_deref(), &estimate, reading, global)?;
        return Ok(ComparisonRun::new(&answer, timeline));
    }
    let text = input::text(bytes, path, Kind::Answer, max)?;
    json::read_answer(&text).map_err(|source| {
        DiffFailure::Answer { input: input::display_name(path), source: Box::new(source) }.into()
    })
}

/// Returns whether an input is a document of xmem, by its first bytes: each begins with its schema.
fn is_answer(head: &[u8]) -> bool {
    let text: Vec<u8> = head.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).collect();
    let text = text.strip_prefix(b"[").unwrap_or(&text);
    text.starts_with(b"{\"schema\":\"xmem.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_recognized_by_its_schema() {
        for (head, expected) in [
            ("{\n  \"schema\": \"xmem.replay/2\",", true),
            ("[\n  {\n    \"schema\": \"xmem.replay/2\",", true),
            ("{\"schema\":\"xmem.error/1\"", true),
            ("{\"schemaVersion\": 1, \"traceEvents\": [", false),
            ("[{\"ph\": \"X\"", false),
            ("\u{80}", false),
            ("", false),
        ] {
            assert_eq!(is_answer(head.as_bytes()), expected, "{head}");
        }
    }
}

//! `xmem explain`: the cause of an error, an example and the fix.

use crate::commands::Outcome;
use crate::error::{Explanation, failures};
use crate::exit::Exit;
use crate::explanations;
use crate::values::Offered;
use crate::{output, style};
use clap::Args;
use clap::builder::PossibleValue;
use miette::Diagnostic;
use std::fmt::Write as _;
use textwrap::{Options, WordSplitter};
use thiserror::Error;

/// The number of codes that are suggested for an unknown one.
const MAX_NEAR: usize = 3;

/// The widest text.
const MAX_WIDTH: usize = 100;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  xmem explain XM0101\n  xmem explain           list all codes")]
pub(crate) struct ExplainArgs {
    /// Code of an error, as the error shows it; without a code, all are listed
    #[arg(value_name = "CODE", value_parser = Offered::new(codes), hide_possible_values = true)]
    pub(crate) code: Option<String>,
}

failures! {
    /// A code that cannot be explained.
    #[derive(Debug, Error, Diagnostic)]
    pub(crate) enum ExplainFailure {
        #[error("unknown error code `{code}`")]
        #[diagnostic(help("did you mean {near}? `xmem explain` lists all codes"))]
        Unknown { code: String, near: String } => Usage XM0003 {
            title: "unknown error code",
            cause: "No error of this version of xmem has the code.",
            example: "xmem explain 9999",
            fix: "Run `xmem explain`, which lists all codes, and use one of them.",
        },
    }
}

/// Runs the command.
pub(crate) fn run(args: &ExplainArgs) -> Outcome {
    let all = explanations();
    let text = match &args.code {
        None => all.iter().map(|found| format!("{}  {}\n", found.code, found.title)).collect(),
        Some(code) => {
            let found = all.iter().find(|found| Some(number(found.code)) == parse(code));
            text(found.ok_or_else(|| unknown(code, &all))?)
        }
    };
    output::write(text.as_bytes(), None)?;
    Ok(Exit::Fits)
}

/// The page of one error.
fn text(explanation: &Explanation) -> String {
    let Explanation { code, exit, title, cause, example, fix } = explanation;
    let width = style::of_output(None).width.min(MAX_WIDTH);
    let wrapped = |text: &str, indent: &str| {
        let options = Options::new(width).initial_indent(indent).subsequent_indent(indent);
        textwrap::fill(text, options.word_splitter(WordSplitter::NoHyphenation))
    };
    let mut page = format!("{code}: {title}\n\n{}\n", wrapped(cause, ""));
    _ = write!(page, "\nExample:\n  {example}\n\nFix:\n{}\n", wrapped(fix, "  "));
    _ = write!(page, "\nExit code: {}\n", exit.code());
    page
}

fn unknown(code: &str, all: &[&Explanation]) -> ExplainFailure {
    let mut near: Vec<&str> = all.iter().map(|found| found.code).collect();
    let asked = parse(code).unwrap_or_default();
    near.sort_by_key(|code| number(code).abs_diff(asked));
    near.truncate(MAX_NEAR);
    ExplainFailure::Unknown { code: code.to_owned(), near: near.join(", ") }
}

/// The number of a code as a user writes it: `XM0101`, `xm101` or `101`.
fn parse(code: &str) -> Option<u32> {
    let code = code.trim().to_ascii_uppercase();
    code.strip_prefix("XM").unwrap_or(&code).parse().ok()
}

fn number(code: &str) -> u32 {
    parse(code).expect("codes are XM and a number")
}

/// The codes that a shell offers.
fn codes() -> Vec<PossibleValue> {
    let all = explanations().into_iter();
    all.map(|found| PossibleValue::new(found.code).help(found.title)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_may_be_written_shorter() {
        for (text, number) in
            [("XM0101", Some(101)), ("xm101", Some(101)), ("101", Some(101)), ("E101", None)]
        {
            assert_eq!(parse(text), number, "{text}");
        }
    }

    #[test]
    fn codes_near_an_unknown_one_are_suggested() {
        let all = explanations();
        for (code, first) in [("106", "XM0105"), ("9999", "XM0918")] {
            let ExplainFailure::Unknown { near, .. } = unknown(code, &all);
            assert!(near.starts_with(first), "{code}: {near}");
        }
    }
}

//! Words that several documents share: verdicts and the confidence in them, reasons and counts.

use crate::style::{Ink, Style};
use xmem::predict::Confidence;
use xmem::{Decision, Verdict};

/// The reason for which there is no verdict, by its code.
pub(crate) fn withheld(code: Option<&str>) -> &'static str {
    match code {
        Some("damaged-trace") => "the trace is damaged",
        Some("doubtful-trace") => "the trace is doubtful",
        Some("gpu-trace") => "the trace was recorded on a GPU",
        Some("no-memory-events" | "no-events-of-device") => "the trace has no memory events",
        Some("no-operators") => "the trace has no operators",
        Some("incomplete-history") => "the history of the snapshot is not complete",
        Some("request-beyond-any-device") => "a request is larger than any device",
        Some("ran-out-of-memory") => "the recorded script ran out of memory",
        Some("not-to-the-end") => "the script was not recorded to its end",
        _ => "too much is missing from the trace",
    }
}

/// The confidence in a verdict as a word.
pub(crate) const fn confidence_in(verdict: Verdict, confidence: Confidence) -> &'static str {
    match (verdict, confidence) {
        (Verdict::Withheld, _) | (_, Confidence::Certain) => "",
        (Verdict::DamagedFits | Verdict::DamagedDoesNotFit, Confidence::Doubtful) => "",
        (_, Confidence::Likely) => "likely",
        (_, Confidence::MayFail) => "may fail",
        (_, Confidence::MayFit) => "may fit",
        (_, Confidence::Doubtful) => "doubtful",
    }
}

/// What is decided, in words.
pub(crate) fn verdict(verdict: Verdict, confidence: Confidence, style: &Style) -> String {
    let ink = match (verdict, Decision::of(verdict, confidence).0) {
        (Verdict::DamagedDoesNotFit, _) | (_, Decision::DoesNotFit) => Ink::Bad,
        (_, Decision::Fits) => Ink::Good,
        _ => Ink::Warning,
    };
    style.paint(ink, word(verdict, confidence)).into_owned()
}

/// What is decided, in words without color.
pub(crate) const fn word(verdict: Verdict, confidence: Confidence) -> &'static str {
    match verdict {
        Verdict::DamagedFits => "WOULD FIT (DAMAGED TRACE)",
        Verdict::DamagedDoesNotFit => "WOULD NOT FIT (DAMAGED TRACE)",
        Verdict::Fits | Verdict::DoesNotFit | Verdict::Withheld => {
            Decision::of(verdict, confidence).0.words()
        }
    }
}

/// `3 blocks`, `1 block`.
pub(crate) fn counted(count: usize, thing: &str) -> String {
    match count {
        1 => format!("1 {thing}"),
        n => format!("{n} {thing}s"),
    }
}

//! What a run says, and whether it may say so.

use crate::kinds::Leaves;
use crate::process::Ended;
use serde_json::Value;

/// The memory that a run may hold beside four times its input, in bytes.
const MEMORY_BESIDE: u64 = 256 << 20;

/// What came out of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Outcome {
    Fits,
    DoesNotFit,
    Withheld,
    /// A usage error or an input that cannot be read, said in a sentence.
    Refused,
    /// Neither: killed, or another exit code.
    Broken,
}

impl Outcome {
    pub(crate) const ALL: [Self; 5] =
        [Self::Fits, Self::DoesNotFit, Self::Withheld, Self::Refused, Self::Broken];

    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Fits => "fits",
            Self::DoesNotFit => "does not fit",
            Self::Withheld => "withheld",
            Self::Refused => "refused",
            Self::Broken => "broken",
        }
    }

    /// By the exit code of `xmem replay`.
    pub(crate) fn of(ended: &Ended) -> Self {
        match ended.code {
            Some(0) => Self::Fits,
            Some(1) => Self::DoesNotFit,
            Some(4) => Self::Withheld,
            Some(2 | 3) if !panicked(ended) => Self::Refused,
            _ => Self::Broken,
        }
    }
}

/// A rule that a run broke.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Finding {
    /// A damaged trace fits where the intact one does not.
    FalseFit,
    /// An intact trace gets no verdict.
    IntactWithheld,
    /// The verdict in the answer is not the one of the exit code.
    Contradiction,
    Panic,
    Hang,
    Memory,
    /// A hostile input is taken for a good one.
    Accepted,
    /// A character that a terminal obeys is shown.
    Controls,
    /// A form of the answer does not say how many warnings there are, or that the trace is damaged.
    Silent,
    /// A plan, or a run that follows one, is not right for its damaged input.
    WrongPlan,
}

impl Finding {
    pub(crate) const ALL: [Self; 10] = [
        Self::FalseFit,
        Self::IntactWithheld,
        Self::Contradiction,
        Self::Panic,
        Self::Hang,
        Self::Memory,
        Self::Accepted,
        Self::Controls,
        Self::Silent,
        Self::WrongPlan,
    ];

    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::FalseFit => "false fit",
            Self::IntactWithheld => "intact, but withheld",
            Self::Contradiction => "contradiction",
            Self::Panic => "panic",
            Self::Hang => "hang",
            Self::Memory => "memory",
            Self::Accepted => "accepted",
            Self::Controls => "control characters",
            Self::Silent => "silent form",
            Self::WrongPlan => "wrong plan",
        }
    }
}

/// The rules that every run keeps, whatever its input is.
pub(crate) fn misbehavior(ended: &Ended, input: u64) -> Vec<Finding> {
    let mut findings = Vec::new();
    if ended.hung {
        findings.push(Finding::Hang);
    } else if panicked(ended) || ended.signal.is_some() {
        findings.push(Finding::Panic);
    }
    if ended.peak_kib * 1024 > 4 * input + MEMORY_BESIDE {
        findings.push(Finding::Memory);
    }
    findings
}

/// The rules for the answer about a damaged trace where the intact one does not fit.
pub(crate) fn damaged(ended: &Ended, answer: &Answer, leaves: Leaves) -> Vec<Finding> {
    let mut findings = Vec::new();
    let outcome = Outcome::of(ended);
    if outcome == Outcome::Fits && leaves == Leaves::Damaged {
        findings.push(Finding::FalseFit);
    }
    if !answer.verdict.is_empty() && answer.outcome() != Some(outcome) {
        findings.push(Finding::Contradiction);
    }
    findings
}

fn panicked(ended: &Ended) -> bool {
    ended.code == Some(101)
        || ended.stderr.contains("panicked at")
        || ended.stderr.contains("internal error")
}

/// What the JSON answer of `xmem replay` says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) verdict: String,
    pub(crate) confidence: String,
    /// Memory that the job takes on a device without limit, in bytes.
    pub(crate) unlimited: Option<u64>,
    pub(crate) min_capacity: Option<u64>,
    /// Whether the trace is intact, doubtful or damaged.
    pub(crate) condition: String,
    /// The number of warnings that every form says.
    pub(crate) warning_count: Option<u64>,
    /// Codes of the warnings, with counts.
    pub(crate) warnings: Vec<String>,
    /// Codes of the notes.
    pub(crate) notes: Vec<String>,
}

impl Answer {
    /// Reads an answer; one that is none is empty.
    pub(crate) fn read(stdout: &str) -> Self {
        let Ok(answer) = serde_json::from_str::<Value>(stdout) else { return Self::default() };
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let with = |notes: bool| {
            let all = answer["diagnostics"].as_array().into_iter().flatten();
            all.filter(|diagnostic| (diagnostic["severity"] == "note") == notes)
                .map(|diagnostic| format!("{}:{}", text(&diagnostic["code"]), diagnostic["count"]))
                .collect()
        };
        Self {
            verdict: text(&answer["verdict"]),
            confidence: text(&answer["range"]["confidence"]),
            unlimited: answer["unlimited"]["device_bytes"].as_u64(),
            min_capacity: answer["min_capacity_bytes"].as_u64(),
            condition: text(&answer["integrity"]["condition"]),
            warning_count: answer["warnings"].as_u64(),
            warnings: with(false),
            notes: with(true),
        }
    }

    fn outcome(&self) -> Option<Outcome> {
        match self.verdict.as_str() {
            "fits" => Some(Outcome::Fits),
            "does_not_fit" => Some(Outcome::DoesNotFit),
            "withheld" => Some(Outcome::Withheld),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(code: i32, stderr: &str) -> Ended {
        Ended { code: Some(code), stderr: stderr.to_owned(), ..Ended::default() }
    }

    #[test]
    fn only_damage_may_not_fit() {
        let fits = Answer { verdict: "fits".to_owned(), ..Answer::default() };
        let judged = |code, leaves| damaged(&ended(code, ""), &fits, leaves);
        assert_eq!(judged(0, Leaves::Damaged), [Finding::FalseFit]);
        assert_eq!(judged(0, Leaves::AnotherJob("…")), []);
        assert_eq!(judged(1, Leaves::Damaged), [Finding::Contradiction]);
        assert_eq!(damaged(&ended(3, ""), &Answer::default(), Leaves::Damaged), []);
    }

    #[test]
    fn panics_hangs_and_memory_are_findings() {
        assert_eq!(misbehavior(&ended(3, "not a trace"), 0), []);
        assert_eq!(misbehavior(&ended(101, ""), 0), [Finding::Panic]);
        assert_eq!(misbehavior(&ended(3, "internal error: …"), 0), [Finding::Panic]);
        let hung = Ended { hung: true, signal: Some(9), ..Ended::default() };
        assert_eq!(misbehavior(&hung, 0), [Finding::Hang]);
        let large = Ended { peak_kib: 300 << 10, ..ended(0, "") };
        assert_eq!(misbehavior(&large, 0), [Finding::Memory]);
        assert_eq!(misbehavior(&large, 20 << 20), []);
    }
}

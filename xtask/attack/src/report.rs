//! What came out: a line for each run, counts for each kind, and the findings.

use crate::judge::{Answer, Finding, Outcome};
use crate::kinds;
use crate::process::Ended;
use crate::recording::Input;
use std::collections::BTreeMap;
use std::fmt;

/// One run.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) kind: String,
    strength: String,
    trace: String,
    capacity: u64,
    code: Option<i32>,
    outcome: Outcome,
    millis: u64,
    peak_kib: u64,
    answer: Answer,
    findings: Vec<Finding>,
    /// The first line on standard error.
    said: String,
}

impl Row {
    pub(crate) fn new(
        kind: &str,
        strength: &str,
        trace: &str,
        capacity: u64,
        ended: &Ended,
        answer: Answer,
        findings: Vec<Finding>,
    ) -> Self {
        Self {
            kind: kind.to_owned(),
            strength: strength.to_owned(),
            trace: trace.to_owned(),
            capacity,
            code: ended.code,
            outcome: Outcome::of(ended),
            millis: ended.millis,
            peak_kib: ended.peak_kib,
            answer,
            findings,
            said: ended.stderr.lines().next().unwrap_or_default().trim().to_owned(),
        }
    }

    fn line(&self) -> String {
        let number =
            |number: Option<u64>| number.map_or("-".to_owned(), |number| number.to_string());
        let findings: Vec<&str> = self.findings.iter().map(|finding| finding.word()).collect();
        let fields = [
            self.kind.clone(),
            self.strength.clone(),
            self.trace.clone(),
            self.code.map_or("-".to_owned(), |code| code.to_string()),
            self.outcome.word().to_owned(),
            findings.join(", "),
            self.capacity.to_string(),
            number(self.answer.unlimited),
            self.answer.confidence.clone(),
            self.millis.to_string(),
            self.peak_kib.to_string(),
            self.answer.warnings.join(" "),
            self.answer.notes.join(" "),
            self.said.clone(),
        ];
        fields.map(|field| field.replace(['\t', '\n', '\r'], " ")).join("\t")
    }
}

const HEADER: &str = "kind\tstrength\ttrace\texit\toutcome\tfindings\tcapacity\tneeded\tconfidence\tms\t\
    peak_kib\twarnings\tnotes\tstderr";

/// All runs.
#[derive(Debug, Default)]
pub(crate) struct Report {
    rows: Vec<Row>,
    /// Variants that are the same as the intact trace, because it has nothing of what is damaged.
    pub(crate) nothing_to_damage: usize,
}

impl Report {
    pub(crate) fn add(&mut self, row: Row) {
        self.rows.push(row);
    }

    /// Adds the runs of damaged inputs; none where there was nothing to damage.
    pub(crate) fn add_damaged(&mut self, rows: Vec<Option<Row>>) {
        for row in rows {
            match row {
                Some(row) => self.add(row),
                None => self.nothing_to_damage += 1,
            }
        }
    }

    /// The number of rules that were broken.
    pub(crate) fn findings(&self) -> usize {
        self.rows.iter().map(|row| row.findings.len()).sum()
    }

    /// Tab-separated, with a header.
    pub(crate) fn lines(&self) -> String {
        let lines: Vec<String> = self.rows.iter().map(Row::line).collect();
        format!("{HEADER}\n{}\n", lines.join("\n"))
    }

    /// How often each kind came to each outcome and finding: kinds of damage in their order, behind them what
    /// else was run.
    fn counts(&self, rows: impl Fn(&Row) -> bool) -> Vec<(&str, Counts)> {
        let mut counts: BTreeMap<&str, Counts> = BTreeMap::new();
        for row in self.rows.iter().filter(|row| rows(row)) {
            let counts = counts.entry(&row.kind).or_default();
            *counts.outcomes.entry(row.outcome).or_default() += 1;
            for finding in &row.findings {
                *counts.findings.entry(*finding).or_default() += 1;
            }
        }
        let kinds: Vec<&str> =
            Input::ALL.into_iter().flat_map(kinds::lines_of).map(|(name, _)| name).collect();
        let place = |name: &str| kinds.iter().position(|kind| *kind == name);
        let mut counts: Vec<(&str, Counts)> = counts.into_iter().collect();
        counts.sort_by_key(|(name, _)| place(name).unwrap_or(usize::MAX));
        counts
    }
}

impl Report {
    /// The counts of damaged recordings of one sort as a table for the documentation; none if none was damaged.
    pub(crate) fn table(&self, input: Input) -> Option<String> {
        let mut text = String::from(
            "| kind | damage | runs | does not fit | withheld | refused | fits |\n\
             |---|---|--:|--:|--:|--:|--:|\n",
        );
        let counts = self.counts(|row| Input::of(&row.trace) == input);
        let kinds = kinds::lines_of(input);
        let mut sums = [0; 4];
        for (name, counts) in counts {
            let Some((kind, what)) = kinds.iter().find(|(kind, _)| *kind == name) else {
                continue;
            };
            let of = |outcome| counts.outcomes.get(&outcome).copied().unwrap_or(0);
            let columns =
                [Outcome::DoesNotFit, Outcome::Withheld, Outcome::Refused, Outcome::Fits].map(of);
            let runs: usize = counts.outcomes.values().sum();
            for (sum, column) in sums.iter_mut().zip(columns) {
                *sum += column;
            }
            let [does_not_fit, withheld, refused, fits] = columns;
            text.push_str(&format!(
                "| `{kind}` | {what} | {runs} | {does_not_fit} | {withheld} | {refused} | {fits} |\n",
            ));
        }
        let [does_not_fit, withheld, refused, fits] = sums;
        let runs: usize = sums.iter().sum();
        text.push_str(&format!(
            "| all | | {runs} | {does_not_fit} | {withheld} | {refused} | {fits} |\n"
        ));
        (runs > 0).then_some(text)
    }
}

#[derive(Clone, Debug, Default)]
struct Counts {
    outcomes: BTreeMap<Outcome, usize>,
    findings: BTreeMap<Finding, usize>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<34}", "kind")?;
        for outcome in Outcome::ALL {
            write!(f, "{:>14}", outcome.word())?;
        }
        writeln!(f, "  findings")?;
        for (kind, counts) in self.counts(|_| true) {
            write!(f, "{kind:<34}")?;
            for outcome in Outcome::ALL {
                write!(f, "{:>14}", counts.outcomes.get(&outcome).copied().unwrap_or(0))?;
            }
            let findings: Vec<String> = counts
                .findings
                .iter()
                .map(|(finding, count)| format!("{count} {}", finding.word()))
                .collect();
            writeln!(f, "  {}", findings.join(", "))?;
        }
        for row in self.rows.iter().filter(|row| !row.findings.is_empty()) {
            writeln!(f, "finding: {}", row.line().replace('\t', " | "))?;
        }
        let total = |finding: Finding| {
            self.rows.iter().filter(|row| row.findings.contains(&finding)).count()
        };
        let totals: Vec<String> = Finding::ALL
            .iter()
            .map(|finding| format!("{} {}", total(*finding), finding.word()))
            .collect();
        writeln!(f, "{} runs: {}", self.rows.len(), totals.join(", "))?;
        if self.nothing_to_damage > 0 {
            writeln!(f, "{} variants with nothing to damage", self.nothing_to_damage)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(kind: &str, code: i32, findings: Vec<Finding>) -> Row {
        let ended = Ended { code: Some(code), ..Ended::default() };
        Row::new(kind, "1", "t", 5, &ended, Answer::default(), findings)
    }

    #[test]
    fn counts_stand_in_the_order_of_the_kinds() {
        let mut report = Report::default();
        report.add(row("intact", 0, Vec::new()));
        report.add(row("ts-equal", 4, Vec::new()));
        report.add(row("dur-missing", 0, vec![Finding::FalseFit]));
        report.add(row("dur-missing", 1, Vec::new()));
        let table = report.table(Input::HostTrace).expect("rows");
        assert_eq!(report.table(Input::Snapshot), None);
        let lines: Vec<&str> = table.lines().skip(2).collect();
        assert_eq!(
            lines,
            [
                "| `dur-missing` | `dur` removed | 2 | 1 | 0 | 0 | 1 |",
                "| `ts-equal` | `ts` is the time of the first event | 1 | 0 | 1 | 0 | 0 |",
                "| all | | 3 | 1 | 1 | 0 | 1 |"
            ]
        );
        assert_eq!(report.findings(), 1);
        assert_eq!(report.lines().lines().count(), 5);
    }
}

//! Figures as they were published, and results beside them: tables with tabs between their columns.

use super::data;
use crate::error::CorpusError;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;
use xmem_task::Error;

/// What one process measures: a script at a commit, on a device, with a set of packages.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Run {
    pub(super) group: String,
    pub(super) device: String,
    pub(super) commit: String,
    /// The name of the set, or `-` for the environment as it is.
    pub(super) packages: String,
}

/// A figure that was measured on a GPU.
#[derive(Clone, Debug)]
pub(super) struct Figure {
    pub(super) run: Run,
    /// Tells apart the figures of a run.
    pub(super) key: String,
    /// As it was published.
    pub(super) text: String,
    /// The unit, such as `MiB`.
    pub(super) unit: String,
    pub(super) value: f64,
}

impl Figure {
    /// Whether a result is the same in all digits that were published.
    pub(super) fn equals(&self, result: f64) -> bool {
        let decimals = self.text.split_once('.').map_or(0, |(_, decimals)| decimals.len());
        // The published digits are those of a number with 24 bits at the least.
        let digit = 10f64.powi(-i32::try_from(decimals).unwrap_or(0)) / 2.0;
        (result - self.value).abs() <= digit.max(self.value.abs() / f64::from(1 << 24))
    }

    /// The share by which a result is above the figure; 0 where the digits that were published do not tell.
    pub(super) fn error(&self, result: f64) -> f64 {
        if self.equals(result) { 0.0 } else { (result - self.value) / self.value.abs() }
    }
}

/// Reads a table of figures.
pub(super) fn read(path: &Path) -> Result<Vec<Figure>, Error> {
    let text = std::fs::read_to_string(path).map_err(Error::file(path))?;
    parse(&text).map_err(|what| CorpusError::Unusable { path: path.to_owned(), what }.into())
}

fn parse(text: &str) -> Result<Vec<Figure>, String> {
    let unit = text.lines().next().and_then(|head| head.rsplit('\t').next()).unwrap_or_default();
    let figure = |(at, line): (usize, &str)| {
        let wrong = || format!("line {}: no figure with six columns", at + 1);
        let columns: Vec<&str> = line.split('\t').collect();
        let [commit, device, packages, group, key, text] = columns[..] else {
            return Err(wrong());
        };
        let [commit, device, packages, group] =
            [commit, device, packages, group].map(str::to_owned);
        let value = text.parse().map_err(|_| wrong())?;
        let run = Run { group, device, commit, packages };
        let [key, text, unit] = [key, text, unit].map(str::to_owned);
        Ok(Figure { run, key, text, unit, value })
    };
    text.lines().enumerate().skip(1).map(figure).collect()
}

/// What runs gave, by run and key, in the unit of the figures.
#[derive(Debug, Default)]
pub(super) struct Results(BTreeMap<Run, BTreeMap<String, f64>>);

impl Results {
    /// The results of a source; none if none were kept.
    pub(super) fn read(source: &str) -> Result<Self, Error> {
        let path = Self::path(source);
        if !path.is_file() {
            return Ok(Self::default());
        }
        let mut results = Self::default();
        for figure in read(&path)? {
            results.0.entry(figure.run).or_default().insert(figure.key, figure.value);
        }
        Ok(results)
    }

    fn path(source: &str) -> std::path::PathBuf {
        data(&format!("{source}.results.tsv"))
    }

    /// Puts the results of a run in the place of earlier ones.
    pub(super) fn replace(&mut self, run: &Run, results: BTreeMap<String, f64>) {
        self.0.insert(run.clone(), results);
    }

    /// Drops results that belong to none of the figures.
    pub(super) fn keep_only(&mut self, figures: &[Figure]) {
        let mut known: BTreeMap<&Run, BTreeSet<&str>> = BTreeMap::new();
        for figure in figures {
            known.entry(&figure.run).or_default().insert(&figure.key);
        }
        for (run, results) in &mut self.0 {
            results.retain(|key, _| known.get(run).is_some_and(|keys| keys.contains(key.as_str())));
        }
    }

    /// Keeps them.
    pub(super) fn write(&self, source: &str) -> Result<(), Error> {
        let mut text = "commit\tdevice\tpackages\tgroup\tkey\tresult\n".to_owned();
        for (run, results) in &self.0 {
            let Run { group, device, commit, packages } = run;
            for (key, value) in results {
                _ = writeln!(text, "{commit}\t{device}\t{packages}\t{group}\t{key}\t{value}");
            }
        }
        let path = Self::path(source);
        std::fs::write(&path, text).map_err(Error::file(path))
    }

    /// What a figure's run gave for it.
    pub(super) fn of(&self, figure: &Figure) -> Option<f64> {
        self.0.get(&figure.run)?.get(&figure.key).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(text: &str) -> Figure {
        let line = format!("head\nabc\ta100-80g\t-\trope\tx=1\t{text}\n");
        parse(&line).expect("a figure").remove(0)
    }

    #[test]
    fn figures_are_equal_in_the_digits_that_were_published() {
        assert!(figure("26.24").equals(26.2422));
        assert!(!figure("26.24").equals(26.2462));
        assert!(figure("5").equals(5.4) && !figure("5").equals(5.6));
        assert!(figure("12288.0166015625").equals(12288.0166015625));
        assert!(!figure("12288.0166015625").equals(12288.018));
        assert!((figure("50.0").error(51.0) - 0.02).abs() < 1e-12);
        assert_eq!(figure("1.1").error(1.0703125), 0.0);
    }

    #[test]
    fn a_line_without_six_columns_is_named() {
        let error = parse("head\na\tb\tc\n").expect_err("three columns");
        assert_eq!(error, "line 2: no figure with six columns");
    }
}

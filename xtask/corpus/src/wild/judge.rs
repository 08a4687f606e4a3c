//! What the predictions come to, and the bounds that they must keep to.

use super::catalogue::Run;
use super::facts::{Fact, Peaks};
use super::fetch::Source;
use crate::torch::Engine;
use std::fmt;

/// Bounds of the predictions from recordings on the CPU.
mod bounds {
    /// Median of the absolute errors of peak reserved, in per cent.
    pub(super) const RESERVED_MEDIAN: f64 = 0.5;
    /// The error that a good prediction may have where its range does not hold the truth, in per cent.
    pub(super) const GOOD: f64 = 3.0;
    /// Share of the predictions that must be good, in per cent: 23 of 25.
    pub(super) const GOOD_SHARE: f64 = 92.0;
}

/// What xmem says about a run.
#[derive(Clone, Debug)]
pub(super) struct Prediction {
    pub(super) peaks: Peaks,
    /// Of peak reserved.
    pub(super) range: Range,
    /// `range.confidence` of `xmem.replay`: of the verdict.
    pub(super) confidence: String,
    /// Too much was missing from the trace for a verdict.
    pub(super) withheld: bool,
}

/// The bounds of a figure, in bytes; equal where no uncertainty changes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) low: u64,
    pub(super) high: u64,
}

impl Range {
    pub(super) const fn holds(self, bytes: u64) -> bool {
        self.low <= bytes && bytes <= self.high
    }
}

/// A run, its truth and the predictions.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) name: String,
    /// The script with its source, and an address of both if there is one.
    pub(super) script: String,
    pub(super) link: Option<String>,
    pub(super) truth: Peaks,
    /// Memory is missing from the truth: the run is shown and not judged.
    pub(super) is_lower_bound: bool,
    pub(super) cpu: Option<Prediction>,
    pub(super) virtual_gpu: Option<Prediction>,
}

impl Row {
    pub(super) fn new(run: &Run, source: &Source, fact: Fact) -> Self {
        let host = source.address.strip_prefix("https://github.com/");
        let script = match host {
            Some(repository) => format!("{repository}: {}", run.script),
            None => format!("{} {}: {}", source.address, source.version, run.script),
        };
        let link =
            host.map(|_| format!("{}/blob/{}/{}", source.address, source.version, run.script));
        let is_lower_bound = fact.is_lower_bound();
        let truth = Peaks { allocated: fact.allocated_bytes, reserved: fact.reserved_bytes };
        Self {
            name: run.name.clone(),
            script,
            link,
            truth,
            is_lower_bound,
            cpu: None,
            virtual_gpu: None,
        }
    }

    pub(super) fn add(&mut self, engine: Engine, prediction: Prediction) {
        match engine {
            Engine::Cpu => self.cpu = Some(prediction),
            Engine::VirtualGpu => self.virtual_gpu = Some(prediction),
        }
    }
}

impl Prediction {
    /// Signed errors of peak allocated and reserved, in per cent of the truth.
    pub(super) fn errors(&self, truth: Peaks) -> [f64; 2] {
        let error = |own: u64, truth: u64| 100.0 * (own as f64 - truth as f64) / truth as f64;
        [error(self.peaks.allocated, truth.allocated), error(self.peaks.reserved, truth.reserved)]
    }

    fn is_close(&self, truth: Peaks) -> bool {
        self.errors(truth)[1].abs() <= bounds::GOOD
    }

    fn is_good(&self, truth: Peaks) -> bool {
        !self.withheld && (self.is_close(truth) || self.range.holds(truth.reserved))
    }

    /// Off, without a doubt that says so.
    fn is_falsely_certain(&self, truth: Peaks) -> bool {
        self.confidence == "certain" && !self.is_good(truth)
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let engines = [("cpu", &self.cpu), ("virtual GPU", &self.virtual_gpu)];
        let said = engines.iter().filter_map(|(name, prediction)| {
            let prediction = prediction.as_ref()?;
            let [allocated, reserved] = prediction.errors(self.truth);
            let doubt = if prediction.is_good(self.truth) { "" } else { " (off)" };
            Some(format!("{name}: allocated {allocated:+.2} %, reserved {reserved:+.2} %{doubt}"))
        });
        f.write_str(&said.collect::<Vec<_>>().join("; "))
    }
}

/// What the predictions of one engine come to.
#[derive(Clone, Debug)]
struct Errors {
    engine: &'static str,
    runs: usize,
    /// Medians and worst of the absolute errors of peak allocated and reserved, in per cent.
    medians: [f64; 2],
    worst: [f64; 2],
    /// Runs within 3 %, those whose range holds the truth, and those of which either is true.
    close: usize,
    held: usize,
    good: usize,
    falsely_certain: Vec<String>,
}

impl Errors {
    fn of(
        engine: &'static str,
        rows: &[Row],
        of: impl Fn(&Row) -> Option<&Prediction>,
    ) -> Option<Self> {
        let judged: Vec<(&Row, &Prediction)> = rows
            .iter()
            .filter(|row| !row.is_lower_bound)
            .filter_map(|row| Some((row, of(row)?)))
            .collect();
        let sorted = |which: usize| {
            let mut list: Vec<f64> =
                judged.iter().map(|(row, it)| it.errors(row.truth)[which].abs()).collect();
            list.sort_by(f64::total_cmp);
            list
        };
        let [allocated, reserved] = [sorted(0), sorted(1)];
        let count = |is: &dyn Fn(&Prediction, Peaks) -> bool| {
            judged.iter().filter(|(row, it)| is(it, row.truth)).count()
        };
        Some(Self {
            engine,
            runs: judged.len(),
            medians: [*middle(&allocated)?, *middle(&reserved)?],
            worst: [*allocated.last()?, *reserved.last()?],
            close: count(&Prediction::is_close),
            held: count(&|it, truth| it.range.holds(truth.reserved)),
            good: count(&Prediction::is_good),
            falsely_certain: judged
                .iter()
                .filter(|(row, it)| it.is_falsely_certain(row.truth))
                .map(|(row, _)| row.name.clone())
                .collect(),
        })
    }
}

/// The middle element, or the higher of the two.
fn middle(sorted: &[f64]) -> Option<&f64> {
    sorted.get(sorted.len() / 2)
}

impl fmt::Display for Errors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { engine, runs, medians, worst, close, held, good, falsely_certain } = self;
        writeln!(
            f,
            "- {engine}, {runs} runs: peak reserved median |error| {:.2} %, worst {:.2} %; peak allocated \
             median |error| {:.2} %, worst {:.2} %",
            medians[1], worst[1], medians[0], worst[0]
        )?;
        writeln!(
            f,
            "- {engine}: peak reserved within {} % in {close}, inside the range in {held}, either in {good}",
            bounds::GOOD
        )?;
        if falsely_certain.is_empty() {
            return Ok(());
        }
        writeln!(f, "- {engine}: off without a doubt: {}", falsely_certain.join(", "))
    }
}

/// What the predictions come to.
#[derive(Clone, Debug)]
pub(super) struct Summary {
    cpu: Option<Errors>,
    virtual_gpu: Option<Errors>,
}

impl Summary {
    pub(super) fn of(rows: &[Row]) -> Self {
        Self {
            cpu: Errors::of("CPU", rows, |row| row.cpu.as_ref()),
            virtual_gpu: Errors::of("virtual GPU", rows, |row| row.virtual_gpu.as_ref()),
        }
    }

    /// The bounds that are broken.
    pub(super) fn broken(&self) -> Vec<String> {
        let Some(cpu) = &self.cpu else { return Vec::new() };
        let mut broken = Vec::new();
        if cpu.medians[1] > bounds::RESERVED_MEDIAN {
            let [found, bound] = [cpu.medians[1], bounds::RESERVED_MEDIAN];
            broken.push(format!("median of peak reserved: {found:.2} %, may be {bound} %"));
        }
        let share = 100.0 * cpu.good as f64 / cpu.runs as f64;
        if share < bounds::GOOD_SHARE {
            let (good, runs) = (cpu.good, cpu.runs);
            broken.push(format!(
                "{good} of {runs} are within {} % or inside their range, must be {} %",
                bounds::GOOD,
                bounds::GOOD_SHARE
            ));
        }
        if !cpu.falsely_certain.is_empty() {
            broken.push(format!("off without a doubt: {}", cpu.falsely_certain.join(", ")));
        }
        broken
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        [&self.cpu, &self.virtual_gpu].into_iter().flatten().try_for_each(|it| it.fmt(f))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run of 1000 bytes, predicted at so many with this range.
    fn row(own: u64, range: [u64; 2], confidence: &str) -> Row {
        let peaks = |bytes| Peaks { allocated: bytes, reserved: bytes };
        Row {
            name: format!("of-{own}"),
            script: String::new(),
            link: None,
            truth: peaks(1000),
            is_lower_bound: false,
            cpu: Some(Prediction {
                peaks: peaks(own),
                range: Range { low: range[0], high: range[1] },
                confidence: confidence.to_owned(),
                withheld: false,
            }),
            virtual_gpu: None,
        }
    }

    fn broken(rows: &[Row]) -> Vec<String> {
        Summary::of(rows).broken()
    }

    #[test]
    fn each_bound_can_be_broken() {
        let exact = || row(1000, [1000, 1000], "certain");
        assert_eq!(broken(&[exact(), exact(), exact()]), [""; 0]);
        let far = || row(900, [900, 900], "doubtful");
        assert_eq!(
            broken(&[far()]),
            [
                "median of peak reserved: 10.00 %, may be 0.5 %",
                "0 of 1 are within 3 % or inside their range, must be 92 %"
            ]
        );
        let mut rows: Vec<Row> = std::iter::repeat_with(exact).take(24).collect();
        rows.push(row(900, [900, 950], "certain"));
        assert_eq!(broken(&rows), ["off without a doubt: of-900"]);
    }

    #[test]
    fn a_range_that_holds_the_truth_is_a_stated_doubt() {
        let rows = [
            row(1000, [1000, 1000], "certain"),
            row(1000, [1000, 1000], "certain"),
            row(900, [890, 1010], "certain"),
        ];
        assert_eq!(broken(&rows), [""; 0]);
    }

    #[test]
    fn a_truth_that_lacks_memory_is_not_judged() {
        let mut far = row(2000, [2000, 2000], "certain");
        far.is_lower_bound = true;
        assert_eq!(broken(&[row(1000, [1000, 1000], "certain"), far]), [""; 0]);
    }

    #[test]
    fn a_withheld_verdict_is_not_good() {
        let mut none = row(1000, [1000, 1000], "certain");
        none.cpu.as_mut().expect("a prediction").withheld = true;
        assert!(broken(&[none])[0].starts_with("0 of 1"));
    }
}

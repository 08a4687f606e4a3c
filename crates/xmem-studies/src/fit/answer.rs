//! What was found, as a value.

use super::{Fewest, Figures, Ladder, Largest, Range};
use crate::law::LawTable;
use std::collections::BTreeMap;
use std::time::Duration;
use xmem_devices::Device;
use xmem_types::Bytes;

/// What makes a job fit on one device.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FitAnswer {
    /// The command as it is, in the words of a shell.
    pub command: String,
    /// The device.
    pub device: Device,
    /// The memory of the device.
    pub room: Bytes,
    /// The option of the command that is varied; none if there is none.
    pub option: Option<VariedOption>,
    /// The job as it is, or with the first value that was recorded.
    pub base: Figures,
    /// The changes that come into question.
    pub measures: Vec<Measure>,
    /// What they do; none if nothing was tried.
    pub ladder: Option<Ladder>,
    /// The largest values: of the job as it is, and with changes.
    pub largest: Vec<LargestWith>,
    /// The fewest processes, where their number is varied: of the job as it is, and with changes.
    pub fewest: Vec<FewestWith>,
    /// The recordings of the suggestion in the memory of the device; none if there is none.
    pub proof: Option<Proof>,
    /// The memory as a function of the option; none if that was not asked for.
    pub law: Option<LawTable>,
    /// Whether the user stopped the search.
    pub is_interrupted: bool,
    /// What to know about the figures.
    pub notes: Vec<String>,
    /// The recordings that were made.
    pub recordings: usize,
    /// The time that everything took.
    pub took: Duration,
}

/// The option of a command that is varied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VariedOption {
    /// Its name, as in the placeholder.
    pub name: String,
    /// Its value in the job as it is; none if the command does not say.
    pub value: Option<u64>,
    /// The measure that sets the value of the job as it is, where the command has no option for it (`batch-size=8`).
    pub setting: Option<String>,
    /// The values that are allowed.
    pub range: Range,
}

/// A change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Measure {
    /// The name, as on the command line.
    pub name: String,
    /// What it does, in a few words.
    pub title: String,
    /// What it changes in the numbers that the job computes: `nothing`, `rounding` or `training`.
    pub changes: &'static str,
    /// The code that a person would write.
    pub code: String,
    /// The places that it was applied to in the recorded job; none if it was not.
    pub places: Option<String>,
}

/// The largest value with some changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LargestWith {
    /// The changes, by their places in the list.
    pub measures: Vec<usize>,
    /// What was found.
    pub found: Largest,
}

/// The fewest processes with some changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FewestWith {
    /// The changes, by their places in the list.
    pub measures: Vec<usize>,
    /// What was found.
    pub found: Fewest,
}

/// A suggestion that was recorded in the memory of the device, and in less than it needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Proof {
    /// Whether it ran in the memory of the device.
    pub runs: bool,
    /// How much less than it needs was tried.
    pub less: Bytes,
    /// Whether it ran out of memory there.
    pub fails_below: bool,
}

impl FitAnswer {
    /// An answer to which the rest is added.
    #[must_use]
    pub fn new(command: String, device: Device, room: Bytes, base: Figures) -> Self {
        Self {
            command,
            device,
            room,
            option: None,
            base,
            measures: Vec::new(),
            ladder: None,
            largest: Vec::new(),
            fewest: Vec::new(),
            proof: None,
            law: None,
            is_interrupted: false,
            notes: Vec::new(),
            recordings: 0,
            took: Duration::ZERO,
        }
    }

    /// The names of changes, as the command line takes them (`fused,checkpointing=2`).
    #[must_use]
    pub fn names(&self, measures: &[usize]) -> String {
        let names: Vec<&str> = measures.iter().map(|&at| self.measures[at].name.as_str()).collect();
        names.join(",")
    }

    /// The command that runs the job with some changes.
    #[must_use]
    pub fn run_command(&self, measures: &[usize]) -> String {
        let setting = self.option.as_ref().and_then(|option| option.setting.as_deref());
        let names = self.names(measures);
        let with: Vec<&str> = setting.into_iter().chain([names.as_str()]).collect();
        format!("xmem run --with {} -- {}", with.join(","), self.command)
    }

    /// Whether the job fits as it is.
    #[must_use]
    pub const fn fits(&self) -> bool {
        self.base.fits
    }

    /// Every value of the option that was recorded without changes, with what it needs.
    #[must_use]
    pub fn curve(&self) -> BTreeMap<u64, Bytes> {
        let largest = self.largest.iter().filter(|largest| largest.measures.is_empty());
        let fewest = self.fewest.iter().filter(|fewest| fewest.measures.is_empty());
        let points =
            largest.map(|with| &with.found.points).chain(fewest.map(|with| &with.found.points));
        points.flatten().map(|(value, figures)| (*value, figures.needs)).collect()
    }
}

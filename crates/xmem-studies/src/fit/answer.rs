//! What was found, as a value.

use super::{Fewest, Figures, Ladder, Largest, OverGpus, Range, Tried};
use crate::law::LawTable;
use std::collections::BTreeMap;
use std::num::NonZeroU32;
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
    /// The job divided over several GPUs; none if that was not tried.
    pub over_gpus: Option<OverGpus>,
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
    /// The GPUs that it divides the job over; none if it runs on one.
    pub gpus: Option<NonZeroU32>,
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
    /// Whether it ran out of memory there; none for a job of several processes, which need memory outside PyTorch's allocator,
    /// too.
    pub fails_below: Option<bool>,
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
            over_gpus: None,
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

    /// The GPUs that some changes divide the job over; none if it runs on one.
    #[must_use]
    pub fn gpus(&self, measures: &[usize]) -> Option<NonZeroU32> {
        measures.iter().find_map(|&at| self.measures[at].gpus)
    }

    /// What makes the job fit: on one GPU, or else divided over several. None if it fits as it is, or if nothing does.
    #[must_use]
    pub fn suggestion(&self) -> Option<&Tried> {
        let of_one = self.ladder.as_ref().and_then(|ladder| ladder.suggestion.as_ref());
        let of_several = || self.over_gpus.as_ref().and_then(|over| over.fits.as_ref());
        of_one.or_else(of_several).filter(|_| !self.base.fits)
    }

    /// The command that runs the job with some changes.
    #[must_use]
    pub fn run_command(&self, measures: &[usize]) -> String {
        let setting = self.option.as_ref().and_then(|option| option.setting.as_deref());
        let names = self.names(measures);
        let with: Vec<&str> = setting.into_iter().chain([names.as_str()]).collect();
        let command = match self.gpus(measures) {
            Some(gpus) => launched(&self.command, gpus),
            None => self.command.clone(),
        };
        format!("xmem run --with {} -- {command}", with.join(","))
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

/// A command that a launcher starts once for each GPU of a machine.
fn launched(command: &str, gpus: NonZeroU32) -> String {
    let (program, arguments) = command.split_once(' ').unwrap_or((command, ""));
    let (folder, name) = match program.rsplit_once('/') {
        Some((_, name)) => (true, name),
        None => (false, program),
    };
    let version = name.strip_prefix("python");
    let is_python = version.is_some_and(|v| v.chars().all(|c| c.is_ascii_digit() || c == '.'));
    // The launcher of the same environment.
    let launcher = match is_python && folder {
        true => format!("{program} -m torch.distributed.run"),
        false => "torchrun".to_owned(),
    };
    // What follows is the script, or `-m` and a module, which the launcher takes as Python does.
    let is_script = !arguments.starts_with('-') || arguments.starts_with("-m ");
    match is_python && is_script && !arguments.is_empty() {
        true => format!("{launcher} --nproc-per-node {gpus} {arguments}"),
        false => format!("{launcher} --nproc-per-node {gpus} --no-python {command}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_launcher_starts_the_command_for_each_gpu() {
        let four = NonZeroU32::new(4).expect("not zero");
        for (command, expected) in [
            ("python train.py -b 8", "torchrun --nproc-per-node 4 train.py -b 8"),
            ("python3.12 -m pkg -b 8", "torchrun --nproc-per-node 4 -m pkg -b 8"),
            (
                "/v/bin/python train.py",
                "/v/bin/python -m torch.distributed.run --nproc-per-node 4 train.py",
            ),
            ("python -u train.py", "torchrun --nproc-per-node 4 --no-python python -u train.py"),
            ("train 8", "torchrun --nproc-per-node 4 --no-python train 8"),
        ] {
            assert_eq!(launched(command, four), expected);
        }
    }
}

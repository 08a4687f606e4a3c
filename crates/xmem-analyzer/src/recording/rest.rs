//! What the recorder keeps of a script after the iterations that the profiler recorded (`xmem_rest`): the history of the
//! allocator, in which intervals that repeat are reduced to what stays of them.

use super::allocator::{DeviceDto, DeviceHistory};
use super::unseen::{UnseenDto, UnseenEvent, event};
use super::virtual_gpu::Limits;
use crate::script_part::ScriptPart;
use serde::Deserialize;
use xmem_types::{Bytes, Diagnostics, Nanos, Severity};

/// The top-level key of a trace.
pub(crate) const KEY: &str = "xmem_rest";

const SCHEMA: &str = "xmem.rest.1";

/// A bound for what a recording may say, so that no sum overflows.
const MAX_BYTES: u64 = 1 << 50;

/// The rest of a script.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ScriptRest {
    /// Why the recording ended.
    pub end: RestEnd,
    /// The exception, signal or exit code (`OutOfMemoryError at train.py:12`).
    pub end_detail: Option<String>,
    /// Steps of optimizers in it.
    pub steps: u64,
    /// Intervals between steps and calls of models that are like others, and of which only what stays was kept.
    pub reduced: u64,
    /// Steps at the end since anything new was asked of the allocator.
    pub settled_steps: u64,
    /// Different intervals of training, and all of them.
    pub training_kinds: (u64, u64),
    /// Batches up to its end.
    pub batches: LoadedBatches,
    /// What the source of the script says that it will do, and was not seen up to the end.
    pub unseen: Vec<UnseenEvent>,
    /// Peaks of allocated and of reserved memory that PyTorch counted up to the end.
    pub counted_peaks: Option<(Bytes, Bytes)>,
    /// The most that the program took from the device outside PyTorch's allocator.
    pub outside: Bytes,
    /// The peak of pinned memory up to the end, in bytes.
    pub(super) pinned: Option<u64>,
    /// What a virtual GPU did not know up to the end.
    pub(super) limits: Option<Limits>,
    /// One history for each device that was used.
    pub(crate) devices: Vec<RestOfDevice>,
    /// Lines of the program (`train.py(12): forward`), which histories name by their numbers from one.
    pub(crate) places: Vec<String>,
}

/// The batches of a script's loaders.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct LoadedBatches {
    /// The number of those that were left out, as all of them would have taken too long.
    pub left_out: u64,
    /// Those of them with tensors of sizes that the script did not have otherwise.
    pub unlike: u64,
    /// Lengths of the sequences in batches of training, ascending, each with the number of batches, also of those that were
    /// left out as far as they were looked at.
    pub lengths: Vec<(u64, u64)>,
}

/// Why the recording of the rest of a script ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RestEnd {
    /// The script ended.
    End,
    /// It called `sys.exit`.
    Exit,
    /// An exception ended it.
    Exception,
    /// It had too little memory.
    Memory,
    /// A signal ended it.
    Signal,
    /// The time limit of the command was reached.
    Timeout,
    /// The time for the rest was up.
    Time,
    /// Nothing new followed for long.
    Settled,
}

impl RestEnd {
    /// The name in machine-readable output (`time`).
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::End => "end",
            Self::Exit => "exit",
            Self::Exception => "exception",
            Self::Memory => "memory",
            Self::Signal => "signal",
            Self::Timeout => "timeout",
            Self::Time => "time",
            Self::Settled => "settled",
        }
    }

    /// Returns whether the script ran to its end.
    #[must_use]
    pub const fn is_of_script(self) -> bool {
        matches!(self, Self::End | Self::Exit)
    }
}

/// The history of a device's allocator in the rest of a script. Lines of its entries are numbers of places.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RestOfDevice {
    pub(crate) history: DeviceHistory,
    /// Parts of the script in order: each with the time since the beginning of the rest, and with its first entry.
    pub(crate) parts: Vec<(ScriptPart, Nanos, usize)>,
}

#[derive(Deserialize)]
struct RestDto {
    schema: String,
    ended: EndedDto,
    steps: u64,
    reduced: u64,
    settled: u64,
    #[serde(default)]
    kinds: (u64, u64),
    #[serde(default)]
    batches: LoadedBatches,
    #[serde(default)]
    unseen: Vec<UnseenDto>,
    limits: Option<Limits>,
    peaks: PeaksDto,
    pinned: Option<u64>,
    outside: u64,
    places: Vec<String>,
    devices: Vec<RestDeviceDto>,
}

#[derive(Deserialize)]
struct EndedDto {
    reason: RestEnd,
    detail: Option<String>,
}

#[derive(Deserialize)]
struct PeaksDto {
    #[serde(default)]
    allocated: u64,
    #[serde(default)]
    reserved: u64,
}

#[derive(Deserialize)]
struct RestDeviceDto {
    #[serde(flatten)]
    history: DeviceDto,
    /// Part, microseconds since the beginning, first entry.
    parts: Vec<(ScriptPart, i64, usize)>,
    /// Runs of numbers of places of the allocations.
    places: Vec<(u32, u64)>,
}

/// The rest of a script; none if it has another form.
pub(crate) fn read(raw: &str, notes: &mut Diagnostics) -> Option<ScriptRest> {
    let rest = serde_json::from_str(raw).ok().and_then(RestDto::rest);
    if rest.is_none() {
        notes.report("recording-rest", Severity::Warning, None, || {
            format!(
                "`{KEY}` has an unexpected form: the answer is about the iterations that the profiler recorded"
            )
        });
    }
    rest
}

impl RestDto {
    fn rest(self) -> Option<ScriptRest> {
        if self.schema != SCHEMA {
            return None;
        }
        let known = |peak: u64| (1..MAX_BYTES).contains(&peak);
        let PeaksDto { allocated, reserved } = self.peaks;
        Some(ScriptRest {
            end: self.ended.reason,
            end_detail: self.ended.detail,
            steps: self.steps,
            reduced: self.reduced,
            settled_steps: self.settled,
            training_kinds: self.kinds,
            batches: self.batches,
            unseen: self.unseen.into_iter().map(event).collect(),
            limits: self.limits,
            pinned: self.pinned,
            counted_peaks: (known(allocated) && known(reserved))
                .then_some((Bytes(allocated), Bytes(reserved))),
            outside: Bytes(self.outside.min(MAX_BYTES)),
            devices: self.devices.into_iter().map(RestDeviceDto::rest).collect::<Option<_>>()?,
            places: self.places,
        })
    }
}

impl RestDeviceDto {
    fn rest(self) -> Option<RestOfDevice> {
        let history = self.history.with_lines(self.places).history()?;
        let parts = self.parts.into_iter();
        let parts = parts.map(|(part, start, entry)| {
            let start = Nanos(start.checked_mul(1000).filter(|start| *start >= 0)?);
            (entry <= history.entries.len()).then_some((part, start, entry))
        });
        let parts: Vec<_> = parts.collect::<Option<_>>()?;
        let is_ordered =
            parts.windows(2).all(|pair| pair[0].1 <= pair[1].1 && pair[0].2 <= pair[1].2);
        is_ordered.then_some(RestOfDevice { history, parts })
    }
}

//! What the hook keeps of the script after the recorded iterations, which is added to the trace: of its file, numbers and
//! known words alone are taken.

use crate::assumptions::Assumed;
use crate::hook_file;
use crate::recorded::RestEnd;
use serde::{Deserialize, Serialize};
use std::fs::File;

/// The top-level key of a trace.
const KEY: &str = "xmem_rest";

const SCHEMA: &str = "xmem.rest.1";

/// Bytes of the longest line of a program, with the names of its file and function.
const MAX_PLACE: usize = 1000;

/// The rest of a script.
#[derive(Deserialize, Serialize)]
pub(crate) struct Rest {
    schema: String,
    ended: Ended,
    seconds: f64,
    steps: u64,
    reduced: u64,
    settled: u64,
    /// Different intervals of training, and all of them.
    kinds: (u64, u64),
    batches: Batches,
    /// What the source says that the script will do, and was not seen, with the line that does it.
    unseen: Vec<(Unseen, String)>,
    limits: Limits,
    peaks: Peaks,
    /// The peak of pinned memory, in bytes.
    pinned: Option<u64>,
    outside: u64,
    /// Lines of the program, with the base names of its files.
    places: Vec<String>,
    devices: Vec<Device>,
}

#[derive(Deserialize, Serialize)]
struct Ended {
    reason: Reason,
    detail: Option<String>,
}

/// Why it ended.
#[derive(Clone, Copy, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
enum Reason {
    End,
    Exit,
    Exception,
    Memory,
    Signal,
    Timeout,
    Time,
    Settled,
}

/// Batches that were left out, those of them with sizes that the script did not have, and how many have which length.
#[derive(Deserialize, Serialize)]
struct Batches {
    left_out: u64,
    unlike: u64,
    lengths: Vec<(u64, u64)>,
}

/// What the script will do.
#[derive(Clone, Copy, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
enum Unseen {
    Evaluation,
    Generation,
    Saving,
    Thawing,
}

/// What a virtual GPU did not know up to the end.
#[derive(Deserialize, Serialize)]
struct Limits {
    reads: Vec<Read>,
    assumed: Vec<Assumed>,
    log: Vec<Logged>,
}

#[derive(Deserialize, Serialize)]
struct Read {
    purpose: String,
    place: String,
    times: u64,
}

#[derive(Deserialize, Serialize)]
struct Logged {
    kind: String,
    text: String,
}

/// What the script does.
#[derive(Clone, Copy, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
enum Part {
    Setup,
    Training,
    Evaluation,
    Saving,
    Loading,
    Generation,
    Capture,
}

/// The peaks up to the end, in bytes.
#[derive(Default, Deserialize, Serialize)]
#[serde(default)]
struct Peaks {
    allocated: u64,
    reserved: u64,
    active: u64,
    requested: u64,
}

/// The history of a device's allocator.
#[derive(Deserialize, Serialize)]
struct Device {
    index: i16,
    actions: String,
    addresses: Vec<i64>,
    sizes: Vec<u64>,
    streams: Vec<(String, u64)>,
    pools: Vec<(u64, i64, u64, (u64, u64))>,
    places: Vec<(u32, u64)>,
    parts: Vec<(Part, u64, u64)>,
}

/// The rest in a file of the hook; none if the file has another form.
pub(crate) fn read(file: File) -> Option<Rest> {
    let rest: Rest = hook_file::read(file)?;
    let is_plain = |text: &str| text.chars().all(|c| c.is_ascii_alphanumeric());
    let devices_are_plain = rest.devices.iter().all(|device| {
        is_plain(&device.actions) && device.streams.iter().all(|(stream, _)| is_plain(stream))
    });
    let places = rest.places.iter();
    let places = places.chain(rest.unseen.iter().map(|(_, place)| place));
    let mut places = places.chain(rest.limits.reads.iter().map(|read| &read.place));
    let places_are_short = places.all(|place| place.len() <= MAX_PLACE && !place.starts_with('/'));
    (rest.schema == SCHEMA && devices_are_plain && places_are_short).then_some(rest)
}

impl Rest {
    /// The key with the value, to be written behind the brace with which a trace begins.
    pub(crate) fn metadata(&self) -> Option<String> {
        hook_file::metadata(KEY, self)
    }

    /// Steps of optimizers in it.
    pub(crate) fn steps(&self) -> u64 {
        self.steps
    }

    /// Sizes up to its end that follow from assumptions.
    pub(crate) fn into_assumed(self) -> Vec<Assumed> {
        self.limits.assumed
    }

    /// How it ended.
    pub(crate) fn ended(&self) -> RestEnd {
        match self.ended.reason {
            Reason::End | Reason::Exit => RestEnd::Script,
            Reason::Exception | Reason::Memory => RestEnd::Exception(self.ended.detail.clone()),
            Reason::Time => RestEnd::Time,
            Reason::Settled => RestEnd::Settled,
            Reason::Signal | Reason::Timeout => RestEnd::Stopped,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Option<String> {
        read(hook_file::with_text(text))?.metadata()
    }

    #[test]
    fn known_words_and_numbers_are_taken_and_nothing_else() {
        let text = |part: &str, actions: &str| {
            format!(
                r#"{{"schema": "xmem.rest.1", "ended": {{"reason": "end", "detail": null}}, "seconds": 1.5, "steps": 9,
                "reduced": 7, "settled": 5, "kinds": [2, 9], "batches": {{"left_out": 3, "unlike": 0, "lengths": [[7, 2]]}},
                "unseen": [["saving", "train.py(7)"]], "limits": {{"reads": [], "assumed": [], "log": []}}, "peaks": {{"allocated": 512}}, "pinned": null, "outside": 0,
                "places": ["train.py(7): evaluate"], "user": "name",
                "devices": [{{"index": 0, "actions": "{actions}", "addresses": [1, 0], "sizes": [512],
                "streams": [["0x0", 1]], "pools": [], "places": [[1, 1]], "parts": [["{part}", 5, 0]],
                "host": "name"}}]}}"#
            )
        };
        let good = text("evaluation", "aF");
        let written = of(&good).expect("a rest");
        assert!(written.starts_with("\n\"xmem_rest\": {\"schema\":\"xmem.rest.1\","), "{written}");
        assert!(written.contains(r#""parts":[["evaluation",5,0]]"#), "{written}");
        assert!(!written.contains("name"), "{written}");
        for bad in [
            text("secret", "aF"),
            text("saving", "a F"),
            good.replace("0x0", "/home/me"),
            good.replace("rest.1", "rest.2"),
            good.replace("train.py", "/home/me/train.py"),
            String::new(),
        ] {
            assert_eq!(of(&bad), None, "{bad}");
        }
    }
}

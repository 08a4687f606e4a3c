//! The checks, with what an intact recording may show.

use super::Condition;

/// A property of recordings that damage breaks.
#[derive(Debug)]
#[non_exhaustive]
pub struct Check {
    /// The name, also of the diagnostic (`missing-events`).
    pub name: &'static str,
    /// What the findings mean, as a sentence without a period.
    pub meaning: &'static str,
    /// How much an intact recording may show.
    pub bounds: Bounds,
    /// Why it may show that much, and where this was measured.
    pub evidence: &'static str,
}

/// The most that an intact recording shows of a disagreement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bounds {
    /// Nothing.
    None,
    /// A share of what was checked, in thousandths.
    PerMille {
        /// What intact recordings show.
        usual: u64,
        /// What no intact recording shows.
        most: u64,
    },
}

impl Bounds {
    /// The judgment of a recording in which `affected` of `checked` disagree.
    #[must_use]
    pub fn judge(self, affected: u64, checked: u64) -> Condition {
        let (usual, most) = match self {
            Self::None => (0, 0),
            Self::PerMille { usual, most } => (usual, most),
        };
        // Of a few events, a share says little.
        let checked = u128::from(checked.max(100));
        let within = |share: u64| u128::from(affected) * 1000 <= u128::from(share) * checked;
        if within(usual) {
            Condition::Intact
        } else if within(most) {
            Condition::Doubtful
        } else {
            Condition::Damaged
        }
    }
}

const fn per_mille(usual: u64, most: u64) -> Bounds {
    Bounds::PerMille { usual, most }
}

const EXACT: &str = "zero in every recording of PyTorch 2.0 to 2.15, by both ways of recording";

const EXACT_GPU: &str = "zero in recordings of PyTorch 1.9 to 2.12 on GPUs and on virtual ones";

const EXACT_SNAPSHOT: &str =
    "zero in snapshots of PyTorch 2.0 to 2.12 that were taken while the history was recorded";

macro_rules! checks {
    ($($id:ident: $name:literal, $bounds:expr, $evidence:expr, $meaning:literal;)*) => {
        $(pub(super) static $id: Check = Check {
            name: $name,
            meaning: $meaning,
            bounds: $bounds,
            evidence: $evidence,
        };)*

        /// All checks, in the order of reports.
        pub static CHECKS: &[&Check] = &[$(&$id),*];
    };
}

checks! {
    SEAL: "broken-seal", Bounds::None, "the length and a checksum of the text, written by the recorder",
        "the recording was changed after it was written";
    TRUNCATED: "cut-off", Bounds::None, EXACT,
        "the file ends before its event list does";
    DROPPED: "dropped-events", Bounds::None, EXACT,
        "events could not be read and were left out";
    REPAIRED: "repaired-events", Bounds::None,
        "names of Python calls and annotations, which PyTorch 2.0 to 2.6 do not escape, are not counted",
        "operators or memory events that were not valid JSON were repaired";
    MISSING: "missing-events", Bounds::None, EXACT,
        "the numbers of the events (`Ev Idx`) have gaps: events are missing from the trace";
    DISORDERED: "disordered-events", Bounds::None, EXACT,
        "events are not in the order of their numbers (`Ev Idx`)";
    TIME_ORDER: "disordered-times", Bounds::None, EXACT,
        "events begin before those that the profiler recorded earlier";
    SIMULTANEOUS: "simultaneous-events", per_mille(200, 400),
        "at most 118 of 1,000 up to PyTorch 2.3, whose times are whole microseconds; zero since 2.4",
        "memory events have the same time as the one before";
    DURATIONS: "missing-durations", Bounds::None, EXACT,
        "the duration of events is missing, negative or not a number";
    ZERO_DURATIONS: "zero-durations", per_mille(0, 5),
        "zero in every recording since PyTorch 2.4; before, times are whole microseconds",
        "operators have a duration of zero";
    THREADS: "scattered-threads", Bounds::None,
        "PyTorch records the operators and the memory of one thread",
        "operators and memory events are scattered over threads";
    NAMES: "missing-names", Bounds::None, EXACT,
        "operators have no name";
    MODULES: "misnamed-modules", Bounds::None, EXACT,
        "calls of modules do not have the names of their modules";
    VOCABULARY: "unknown-operators", per_mille(800, 900), "at most 590 of 1,000",
        "operators do not have the names of PyTorch's operators";
    UNLIKE_SHAPES: "unlike-shapes", per_mille(0, 60),
        "zero in every recording, also of detectors and mixtures of experts; with batches of several sizes \
         at least 200 of 1,000, which is not counted",
        "a few operators have other shapes than in the iteration before";
    UNLIKE_CALLS: "unlike-calls", per_mille(20, 100),
        "at most 12 of 1,000: modules at the end of the loop",
        "other modules run in one iteration than in the next";
    UNEQUAL_STEPS: "unequal-steps", per_mille(0, 1000),
        "zero in every recording in which optimizers take turns within an iteration; a doubt, never damage",
        "iterations have different numbers of optimizer steps: the loop may be longer than what was recorded, \
         which more --steps show";
    NOTES: "missing-notes", Bounds::None, "every recording of `xmem profile` has its notes",
        "there are marks of `xmem profile` but not its notes: the beginning of the file is missing";
    END: "missing-end", Bounds::None, EXACT,
        "the trace lacks the events that the profiler writes at its end";
    UNLIKE: "unlike-iterations", per_mille(15, 15),
        "at most 9 of 1,000: operators at the end of the loop",
        "operators that run in one iteration are missing in the next, while others have their shapes";
    OPTIMIZER: "missing-annotations", Bounds::None, EXACT,
        "the Python stack shows steps of an optimizer of PyTorch that are not annotated";
    NESTING: "broken-nesting", Bounds::None, EXACT,
        "operators end after the operator that they run in";
    OUTSIDE: "allocations-outside-operators", per_mille(160, 250),
        "at most 148 of 1,000: a checkpoint that is loaded",
        "memory is allocated while no operator runs";
    TOTALS: "running-total-differs", Bounds::None, EXACT,
        "the recorded `Total Allocated` does not follow from the memory events: some of them are missing \
         or changed";
    ADDRESSES: "missing-addresses", Bounds::None, EXACT,
        "memory events have no address";
    UNMATCHED: "free-without-allocation", Bounds::None, EXACT,
        "memory is freed whose allocation is not in the trace";
    LIVE_ADDRESS: "allocation-at-live-address", Bounds::None, EXACT,
        "memory is allocated at an address that is in use: a free is missing or an address is wrong";
    FREED_SIZE: "free-size-differs", Bounds::None, EXACT,
        "memory is freed with another size than it was allocated with";
    ZERO_BYTES: "zero-byte-event", Bounds::None, EXACT,
        "memory events have no size";
    OUTPUTS: "missing-outputs", Bounds::None, EXACT,
        "operators did not allocate the output that their input shapes require: allocations are missing, \
         or shapes or sizes are wrong";
    SHAPES: "missing-shapes", per_mille(10, 20), "zero in every recording",
        "input shapes are missing on operators that have them elsewhere in the trace";
    ARGUMENTS: "contradictory-arguments", Bounds::None, EXACT,
        "shapes, types, strides and values of operators' inputs do not belong together";
    INCOMPATIBLE: "incompatible-shapes", Bounds::None, EXACT,
        "the shapes of operators' inputs cannot stand together";
    IMPOSSIBLE_SHAPES: "impossible-shapes", Bounds::None, EXACT,
        "input shapes are negative or beyond the memory of any machine";
    EMPTY_SHAPES: "empty-shapes", per_mille(20, 50), "at most 16 of 1,000",
        "input tensors have no elements";
    LOST_SHAPES: "lost-shapes", Bounds::None, EXACT,
        "the trace says that input shapes were recorded, but operators on tensors have no shapes";
    BLOCK_SIZES: "impossible-block-sizes", Bounds::None, EXACT_GPU,
        "blocks of the GPU do not have sizes that PyTorch's allocator makes (multiples of 512 bytes)";
    RESERVED: "impossible-reserved-memory", Bounds::None, EXACT_GPU,
        "reserved memory is missing, is less than what is allocated, or is not made of segments (multiples of 2 MiB)";
    SEGMENTS: "unexplained-segments", Bounds::None, EXACT_GPU,
        "memory is reserved that no allocation needs: allocations are missing or have other sizes";
    PEAKS: "counted-peaks-differ", Bounds::None, "zero in every recording of `xmem profile --virtual-gpu`",
        "the peaks that PyTorch counted are not those of the memory events: events are missing or changed";
    HISTORY: "allocator-history-differs", Bounds::None,
        "zero in every recording of `xmem profile --virtual-gpu`",
        "the history of the allocator in the recording does not agree with the memory events";
    LOST_HISTORY: "lost-history", Bounds::None, "zero in every recording of `xmem profile --virtual-gpu`",
        "the history of the allocator is missing, and the recorder does not say why";
    UNREACHED: "reserved-not-reached", Bounds::None,
        "zero in recordings whose streams, pools and options are known; counted only where the verdict depends on it",
        "more was reserved in the recording than in its replay, and the device holds only the replay: allocations or \
         streams are missing";
    CONTRADICTING: "contradicting-entries", Bounds::None, EXACT_SNAPSHOT,
        "entries of the history contradict the segments of the snapshot";
    IMPOSSIBLE_SNAPSHOT: "impossible-snapshot", Bounds::None, EXACT_SNAPSHOT,
        "segments or entries of the snapshot are such as no allocator has";
    SEGMENT_SUMS: "segment-sums-differ", Bounds::None, EXACT_SNAPSHOT,
        "the sizes of segments are not the sums of their blocks";
    FOREIGN: "other-devices", Bounds::None, EXACT,
        "memory events are of a device that is neither the host nor a GPU of NVIDIA or AMD";
    BACKWARD: "backward-without-forward", per_mille(40, 80),
        "at most 33 of 1,000: nodes of operators whose sequence number another operator reuses",
        "backward nodes have no forward operator";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_inclusive_and_do_not_overflow() {
        use Condition::{Damaged, Doubtful, Intact};
        for (bounds, affected, checked, expected) in [
            (Bounds::None, 0, 0, Intact),
            (Bounds::None, 1, u64::MAX, Damaged),
            (per_mille(10, 20), 1, 1, Intact),
            (per_mille(10, 20), 2, 2, Doubtful),
            (per_mille(10, 20), 1, 100, Intact),
            (per_mille(10, 20), 2, 199, Doubtful),
            (per_mille(10, 20), 2, 100, Doubtful),
            (per_mille(10, 20), 3, 100, Damaged),
            (per_mille(10, 20), u64::MAX, 100, Damaged),
            (per_mille(500, 600), u64::MAX / 2, u64::MAX, Intact),
        ] {
            assert_eq!(
                bounds.judge(affected, checked),
                expected,
                "{bounds:?} {affected}/{checked}"
            );
        }
    }

    #[test]
    fn names_are_distinct() {
        let mut names: Vec<_> = CHECKS.iter().map(|check| check.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), CHECKS.len());
    }
}

//! What the events say about whether the file is whole, beyond what the columns keep.

use xmem_types::Sealed;

/// Counts over the events of a file, for judging its integrity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Evidence {
    /// What the seal of the recording says.
    pub sealed: Sealed,
    /// `Ev Idx` of operators and annotations.
    pub ops: IndexRun,
    /// `Ev Idx` of memory events.
    pub memory: IndexRun,
    /// `Ev Idx` of Python calls.
    pub python: IndexRun,
    /// Operators, annotations and Python calls whose `dur` is missing or not a number.
    pub without_duration: u64,
    /// Those whose `dur` is negative.
    pub negative_durations: u64,
    /// Memory events without `Total Allocated`.
    pub without_total: u64,
    /// Python calls that have the number of a module (`Python module id`) but not its name.
    pub misnamed_modules: u64,
    /// Events, header keys and text behind the list that were dropped because they could not be read.
    pub dropped: u64,
    /// Operators, memory events and links that were not JSON and were repaired. Names of Python calls and
    /// annotations are not escaped by every PyTorch release, and do not count.
    pub repaired: u64,
    /// True if the file ends before its event list does.
    pub truncated: bool,
}

/// The numbers that events of one kind have. PyTorch numbers all events of a recording without gaps:
/// operators and annotations first, then memory events, then Python calls
/// (torch/csrc/autograd/profiler_kineto.cpp, `AddTensorboardFields`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct IndexRun {
    /// Events with a number.
    pub numbered: u64,
    /// Events without one.
    pub unnumbered: u64,
    /// Events whose number is not greater than that of the one before.
    pub disordered: u64,
    /// The lowest number and the highest, if there are any.
    pub bounds: Option<(u64, u64)>,
    /// The first number in the file and the last, if there are any.
    ends: Option<(u64, u64)>,
}

impl IndexRun {
    pub(crate) fn push(&mut self, index: Option<u64>) {
        match index {
            None => self.unnumbered += 1,
            Some(index) => self.append(&Self {
                numbered: 1,
                bounds: Some((index, index)),
                ends: Some((index, index)),
                ..Self::default()
            }),
        }
    }

    /// Adds the events of a later part of the file.
    pub(crate) fn append(&mut self, later: &Self) {
        self.numbered += later.numbered;
        self.unnumbered += later.unnumbered;
        self.disordered += later.disordered;
        let (Some(bounds), Some(ends)) = (later.bounds, later.ends) else { return };
        self.bounds = Some(self.bounds.map_or(bounds, |b| (b.0.min(bounds.0), b.1.max(bounds.1))));
        self.disordered += u64::from(self.ends.is_some_and(|known| known.1 >= ends.0));
        self.ends = Some((self.ends.map_or(ends.0, |known| known.0), ends.1));
    }
}

impl Evidence {
    /// Adds the events of a later part of the file.
    pub(crate) fn append(&mut self, later: &Self) {
        self.ops.append(&later.ops);
        self.memory.append(&later.memory);
        self.python.append(&later.python);
        self.without_duration += later.without_duration;
        self.negative_durations += later.negative_durations;
        self.without_total += later.without_total;
        self.misnamed_modules += later.misnamed_modules;
        self.dropped += later.dropped;
        self.repaired += later.repaired;
        self.truncated |= later.truncated;
    }

    /// Numbers below the highest that no event has. Zero where events
    /// have none.
    #[must_use]
    pub fn missing(&self) -> u64 {
        let runs = [&self.ops, &self.memory, &self.python];
        let bounds = runs.iter().filter_map(|run| run.bounds);
        let Some(highest) = bounds.map(|(_, high)| high).max() else { return 0 };
        let numbered: u64 = runs.iter().map(|run| run.numbered).sum();
        // The first event has number 0.
        highest.saturating_add(1).saturating_sub(numbered)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(indices: &[u64]) -> IndexRun {
        let mut run = IndexRun::default();
        indices.iter().for_each(|&index| run.push(Some(index)));
        run
    }

    #[test]
    fn a_run_is_the_same_however_it_was_cut() {
        let numbers = [3, 4, 9, 9, 2, 7];
        for cut in 0..=numbers.len() {
            let mut whole = run(&numbers[..cut]);
            whole.append(&run(&numbers[cut..]));
            assert_eq!(whole, run(&numbers), "cut at {cut}");
            assert_eq!((whole.numbered, whole.disordered, whole.bounds), (6, 2, Some((2, 9))));
        }
    }

    #[test]
    fn missing_numbers_are_counted_over_all_kinds_of_events() {
        for (ops, memory, python, missing) in [
            (&[0, 1, 2][..], &[3, 4][..], &[5][..], 0),
            (&[0, 2], &[3, 4], &[], 1),
            (&[0, 1], &[4, 5], &[], 2),
            (&[2, 3], &[4], &[], 2),
            (&[], &[], &[], 0),
            (&[0, u64::MAX], &[], &[], u64::MAX - 2),
        ] {
            let evidence = Evidence {
                ops: run(ops),
                memory: run(memory),
                python: run(python),
                ..Evidence::default()
            };
            assert_eq!(evidence.missing(), missing, "{ops:?} {memory:?} {python:?}");
        }
    }
}

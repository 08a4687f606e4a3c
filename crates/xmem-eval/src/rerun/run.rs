//! One way through all steps, and the figures on both sides.

use super::compare::{Difference, Naming, Sides};
use super::driver::Driver;
use super::first::{FirstDivergence, RecordedSteps};
use super::place::{MemoryPlace, Names, SegmentNumbers};
use super::result::{Counts, Divergences, Figures, Pair, StartFacts};
use super::{Addresses, RerunOptions};
use crate::recording::{
    DeviceAnswer, HistoryStep, Levels, Recording, Reservations, Reuse, Start, StepKind,
};
use crate::setup::Setup;
use xmem_simulator::{
    AddressOrder, Completion, Control, DeviceConfig, EventAction, FrameworkAllocator, RequestIndex,
    SeedError,
};
use xmem_snapshot::Action;
use xmem_types::Bytes;

/// All that a run needs.
pub(super) struct Run<'r, 's> {
    pub(super) recording: Recording<'s>,
    pub(super) setup: &'r Setup,
    pub(super) options: &'r RerunOptions,
    pub(super) start: Start,
    pub(super) steps: Vec<HistoryStep>,
    pub(super) levels: Levels,
}

/// A run that came to its end.
pub(super) struct Done {
    pub(super) driver: Driver,
    pub(super) naming: Naming,
    pub(super) divergences: Divergences,
}

/// The highest number of times the start is refined. Each time costs a run.
const MAX_REFINEMENTS: usize = 64;

impl Run<'_, '_> {
    /// Uses later parts of the recording for what is not known about its start: where the
    /// simulator puts a block into free memory that may have been smaller, and PyTorch did not,
    /// there it was smaller.
    pub(super) fn refine_start(&mut self) -> Result<(), SeedError> {
        if self.start.uncertainty.open_ended == 0 || self.options.addresses != Addresses::Recorded {
            return Ok(());
        }
        let mut furthest = 0;
        for _ in 0..MAX_REFINEMENTS {
            let Some((at, sides, difference)) = self.first_difference()? else { break };
            let before = self.start.clone();
            let first = self.look_closely(at, sides, difference)?;
            if at < furthest || !self.narrow_by(&first) {
                break;
            }
            // What does not help is no better than what was assumed.
            if self.first_difference()?.is_some_and(|(next, ..)| next <= at) {
                self.start = before;
                break;
            }
            furthest = at;
        }
        Ok(())
    }

    /// Takes from a free block of the start what made it fit in `first`, if it may be taken.
    fn narrow_by(&mut self, first: &FirstDivergence) -> bool {
        let taken = first.simulated.iter().find(|action| action.kind == EventAction::Alloc);
        let (Some(taken), Some(request)) = (taken, first.request) else { return false };
        let MemoryPlace::Address(addr) = taken.place else { return false };
        let config = &self.setup.config;
        let found = first.candidates.iter().find(|candidate| candidate.place == taken.place);
        let Some(found) = found else { return false };
        let less = found.size.saturating_sub(request.rounded) + config.min_block_size;
        self.start.narrow(self.recording.to_simulated(addr), less, config)
    }

    /// The first step in which the simulator does something else.
    fn first_difference(&self) -> Result<Option<(usize, Sides, Difference)>, SeedError> {
        let (mut driver, mut naming) = (self.driver()?, self.naming());
        for (at, step) in self.steps.iter().enumerate() {
            let sides = self.step(at, step, &mut driver, &mut naming);
            if let Some(difference) = sides.difference() {
                return Ok(Some((at, sides, difference)));
            }
        }
        Ok(None)
    }

    /// All steps, compared one by one.
    pub(super) fn to_the_end(&self) -> Result<Done, SeedError> {
        let mut driver = self.driver()?;
        let mut naming = self.naming();
        let mut divergences = Divergences::default();
        let mut first: Option<(usize, Sides, Difference)> = None;
        for (at, step) in self.steps.iter().enumerate() {
            let sides = self.step(at, step, &mut driver, &mut naming);
            if let Some(difference) = sides.difference() {
                divergences.by_difference[difference as usize] += 1;
                first.get_or_insert((at, sides, difference));
            }
        }
        if let Some((at, sides, difference)) = first {
            divergences.first = Some(Box::new(self.look_closely(at, sides, difference)?));
        }
        Ok(Done { driver, naming, divergences })
    }

    /// Goes up to the step before `at` again, to see what was there.
    fn look_closely(
        &self,
        at: usize,
        sides: Sides,
        difference: Difference,
    ) -> Result<FirstDivergence, SeedError> {
        let mut driver = self.driver()?;
        let mut naming = self.naming();
        for (before, step) in self.steps[..at].iter().enumerate() {
            self.step(before, step, &mut driver, &mut naming);
        }
        let state = driver.allocator.state();
        let recorded = RecordedSteps {
            recording: &self.recording,
            steps: &self.steps,
            config: &self.setup.config,
        };
        Ok(FirstDivergence::of(recorded, at, sides, difference, &state, &naming))
    }

    pub(super) fn step(
        &self,
        at: usize,
        step: &HistoryStep,
        driver: &mut Driver,
        naming: &mut Naming,
    ) -> Sides {
        let is_refused = match step.kind {
            StepKind::Free { .. } | StepKind::Complete { .. } => {
                driver.step(at, step, None);
                return Sides::default();
            }
            StepKind::Alloc { device, .. } => device == DeviceAnswer::Refused,
            StepKind::Failed { .. } => true,
            StepKind::EmptyCache => false,
        };
        let completed = || {
            let entries = self.recording.trace()[step.entries.clone()].iter();
            entries.filter(|entry| entry.action == Action::FreeCompleted).map(|entry| entry.addr)
        };
        if !is_refused || completed().next().is_none() {
            return self.compare(at, step, driver, naming);
        }
        // Frees complete at the beginning of an allocation if the device is done by then
        // (`process_events`), or after it refused (`synchronize_and_free_events`). The entries look
        // the same; it is the one that leads to what was recorded.
        let (mut early, mut early_naming) = (driver.clone(), naming.clone());
        let late = self.compare(at, step, driver, naming);
        driver.complete(completed());
        if late.difference().is_none() {
            return late;
        }
        early.complete(completed());
        let sides = self.compare(at, step, &mut early, &mut early_naming);
        if sides.difference().is_none() {
            (*driver, *naming) = (early, early_naming);
            return sides;
        }
        late
    }

    fn compare(
        &self,
        at: usize,
        step: &HistoryStep,
        driver: &mut Driver,
        naming: &mut Naming,
    ) -> Sides {
        let limit = match self.options.capacity {
            None => self.levels.limit_during(step),
            Some(_) => None,
        };
        let events = driver.step(at, step, limit);
        naming.sides(&self.recording, step, &events)
    }

    pub(super) fn driver(&self) -> Result<Driver, SeedError> {
        let config = &self.setup.config;
        let reservations = Reservations::of(&self.recording, config, &self.start.segments);
        let device = DeviceConfig {
            capacity: self.options.capacity,
            taken: Bytes::ZERO,
            reported_total: self.options.capacity.or_else(|| reservations.total(config)),
            address_total: None,
            address_order: match self.options.addresses {
                Addresses::Recorded => AddressOrder::Recorded,
                Addresses::Order(order) => order,
            },
            completion: Completion::AtSynchronization,
        };
        let mut driver = Driver::new(&self.recording, config, &device, &self.start, &reservations)?;
        if let Some(fraction) = self.options.memory_fraction {
            let fraction = Control::MemoryFraction(fraction);
            let done = driver.allocator.control(RequestIndex::default(), fraction);
            done.expect("the caching allocator has a memory fraction");
        }
        Ok(driver)
    }

    pub(super) fn naming(&self) -> Naming {
        let names = || match self.options.addresses {
            Addresses::Recorded => Names::Addresses(self.recording.shift),
            Addresses::Order(_) => Names::Segments(SegmentNumbers::new(&self.start.segments)),
        };
        Naming { recorded: names(), simulated: names() }
    }

    pub(super) fn start_facts(&self) -> StartFacts {
        let held = self.start.held();
        StartFacts {
            segments: self.start.segments.len() as u64,
            reserved: self.start.reserved(),
            blocks: held.count,
            allocated: held.bytes,
            uncertainty: self.start.uncertainty,
        }
    }

    pub(super) fn counts(&self) -> Counts {
        let mut counts =
            Counts { entries: self.recording.trace().len() as u64, ..Counts::default() };
        for step in &self.steps {
            match step.kind {
                StepKind::Alloc { device, .. } => {
                    counts.allocations += 1;
                    counts.refusals += u64::from(device == DeviceAnswer::Refused);
                }
                StepKind::Failed { .. } => counts.failures += 1,
                StepKind::Free { reuse, .. } => {
                    counts.frees += 1;
                    counts.shared_frees += u64::from(reuse == Reuse::Later);
                }
                StepKind::EmptyCache => counts.empty_caches += 1,
                StepKind::Complete { .. } => {}
            }
        }
        for entry in self.recording.trace() {
            match entry.action {
                Action::SegmentAlloc | Action::SegmentMap => counts.device_allocs += 1,
                Action::SegmentFree | Action::SegmentUnmap => counts.device_frees += 1,
                _ => {}
            }
        }
        counts
    }

    pub(super) fn figures(&self, driver: &Driver) -> Figures {
        let stats = driver.allocator.stats();
        let reserved = stats.reserved_bytes.all;
        let allocated = stats.allocated_bytes.all;
        let held = self.recording.segments().map(|segment| segment.allocated).sum();
        Figures {
            reserved_peak: Pair { recorded: self.levels.peak(), simulated: reserved.peak },
            reserved_end: Pair {
                recorded: self.recording.reserved_at_end(),
                simulated: reserved.current,
            },
            allocated_end: Pair { recorded: held, simulated: allocated.current },
            allocated_peak: allocated.peak,
        }
    }
}

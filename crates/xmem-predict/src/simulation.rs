//! A plain list of operations through an allocator, step by step: no trace, no schedule.
//!
//! The way of `xmem simulate`; `xmem_report::json::read_operations` reads such lists.

use crate::allocator::{
    AllocatorError, AllocatorSettings, AllocatorSetup, JobEnvironment, WITHOUT_FRACTION,
};
use crate::finding::Finding;
use std::fmt;
use xmem_devices::Device;
use xmem_simulator::{
    AddressOrder, AllocFailure, ChosenAllocator, Completion, DeviceConfig, Event, Framework,
    FrameworkAllocator, Misuse, Operation, Outcome, SegmentState, Session, Stats,
};
use xmem_types::{Addr, Bytes, Diagnostics};

/// The total that a device reports if no other is given: `totalGlobalMem` of the A100 with
/// 40 GB that the recorded sequences come from.
pub const DEFAULT_TOTAL: Bytes = Bytes(42_297_786_368);

/// The operations of a program on its allocator, with the environment that it ran in.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OperationList {
    /// The operations, in order.
    pub operations: Vec<Operation>,
    /// The PyTorch release, and variables of the environment.
    pub environment: JobEnvironment,
    /// The memory that the device has for the allocator.
    pub capacity: Option<Bytes>,
    /// The total that the device reports.
    pub total: Option<Bytes>,
    /// The order in which new segments get their addresses.
    pub address_order: Option<AddressOrder>,
    /// When work on other streams is done.
    pub completion: Completion,
    /// The oddities of the list.
    pub notes: Diagnostics,
}

/// The caller's settings, which overrule those of the list.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SimulationSettings {
    /// The allocator and its options.
    pub allocator: AllocatorSettings,
    /// The memory that the device has for the allocator; by default its total.
    pub capacity: Option<Bytes>,
    /// The total that the device reports; by default [`DEFAULT_TOTAL`].
    pub total: Option<Bytes>,
}

/// An allocator that carries out operations one by one.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use xmem_predict::{OperationList, SimulationSettings};
/// use xmem_simulator::Operation;
/// use xmem_types::{BlockId, Bytes, StreamId};
///
/// let alloc = |id, size| Operation::Alloc { block: BlockId(id), size, stream: StreamId(0) };
/// let operations =
///     vec![alloc(0, Bytes::mib(5)), Operation::Free(BlockId(0)), alloc(1, Bytes::mib(30))];
/// let list = OperationList { operations, ..OperationList::default() };
/// let mut simulation = SimulationSettings::default().start(&list)?;
/// for operation in &list.operations {
///     simulation.step(operation)?;
/// }
/// assert_eq!(simulation.summary().peak_allocated, Bytes::mib(30));
/// assert_eq!(simulation.summary().peak_reserved, Bytes::mib(50));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Simulation {
    setup: AllocatorSetup,
    findings: Vec<Finding>,
    device: DeviceConfig,
    session: Session<ChosenAllocator<Vec<Event>>>,
    /// The address that offsets count from.
    base: Option<Addr>,
    summary: SimulationSummary,
}

/// Bytes from the lowest segment that there was when there first was one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Offset(pub i64);

/// The result of an operation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SimulationStep {
    /// Its place in the list, from 0.
    pub index: usize,
    /// The outcome.
    pub outcome: StepOutcome,
    /// The allocator's stats afterwards.
    pub stats: MemoryStats,
}

/// The outcome of an operation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum StepOutcome {
    /// Nothing, as it is not an allocation.
    Done,
    /// A block; none for zero bytes.
    Allocated(Option<Offset>),
    /// An allocation that failed.
    Failed(FailedAllocation),
}

/// An allocation that failed: `torch.OutOfMemoryError`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FailedAllocation {
    /// Its place in the list, from 0.
    pub index: usize,
    /// The allocation.
    pub operation: Operation,
    /// The segment requested from the device.
    pub tried: Bytes,
    /// Bytes of blocks handed out.
    pub allocated: Bytes,
    /// Bytes of segments.
    pub reserved: Bytes,
    /// The free memory of the device.
    pub device_free: Option<Bytes>,
    /// The largest block that was cached nevertheless.
    pub largest_cached: Bytes,
}

/// The stats of `torch.cuda.memory_stats` that most depends on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryStats {
    /// Bytes of segments.
    pub reserved: Bytes,
    /// Bytes of blocks handed out.
    pub allocated: Bytes,
    /// The same with blocks that wait for other streams.
    pub active: Bytes,
    /// Bytes that the program requested.
    pub requested: Bytes,
    /// Bytes of free blocks in segments that are partly in use.
    pub inactive_split: Bytes,
    /// The highest reserved bytes, since peaks were last reset.
    pub peak_reserved: Bytes,
    /// The highest allocated bytes, since peaks were last reset.
    pub peak_allocated: Bytes,
    /// Segments.
    pub segments: u64,
    /// Allocations retried after cached memory was released.
    pub retries: u64,
    /// Allocations that failed.
    pub ooms: u64,
    /// The free memory of the device; none if it has no limit.
    pub device_free: Option<Bytes>,
}

/// The totals of a simulation so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SimulationSummary {
    /// Operations.
    pub operations: u64,
    /// Allocations among them.
    pub allocations: u64,
    /// Frees among them.
    pub frees: u64,
    /// The highest allocated bytes, whether or not peaks were reset.
    pub peak_allocated: Bytes,
    /// The highest reserved bytes, whether or not peaks were reset.
    pub peak_reserved: Bytes,
    /// Allocations that failed, for lack of memory or because their size is absurd.
    pub failures: u64,
    /// The first of them.
    pub first_failure: Option<FailedAllocation>,
    /// The stats now.
    pub now: MemoryStats,
    /// The largest free block now.
    pub largest_free: Bytes,
}

/// An operation of a list that no program could carry out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepError {
    /// Its place in the list, from 0.
    pub index: usize,
    /// The operation.
    pub operation: Operation,
    /// The reason.
    pub misuse: Misuse,
}

impl fmt::Display for StepError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "operation {} cannot be carried out: {}", self.index, self.misuse)
    }
}

impl std::error::Error for StepError {}

impl SimulationSettings {
    /// Checks the settings as far as possible before any list is read.
    ///
    /// # Errors
    /// As [`AllocatorSettings::check`].
    pub fn check(&self) -> Result<(), AllocatorError> {
        self.allocator.check(&Device::custom(DEFAULT_TOTAL))
    }

    /// Starts the simulation that carries out a list's operations. Addresses ascend unless the
    /// settings or the list say otherwise, as they do in recordings.
    ///
    /// # Errors
    /// If the allocator cannot be simulated: see [`AllocatorSettings::resolve`].
    pub fn start(&self, list: &OperationList) -> Result<Simulation, AllocatorError> {
        let total = self.total.or(list.total).unwrap_or(DEFAULT_TOTAL);
        let capacity = self.capacity.or(list.capacity).unwrap_or(total);
        let order = self.allocator.address_order.or(list.address_order);
        let allocator = AllocatorSettings {
            address_order: order.or(Some(AddressOrder::Ascending)),
            ..self.allocator.clone()
        };
        let setup = allocator.resolve(&list.environment, &Device::custom(total))?;
        let device = DeviceConfig {
            capacity: Some(capacity),
            taken: Bytes::ZERO,
            reported_total: Some(total),
            address_total: None,
            address_order: setup.address_order,
            completion: list.completion,
        };
        let framework = setup.choice.over(xmem_simulator::Device::new(&device), Vec::new());
        let sets_fraction = |op: &Operation| matches!(op, Operation::MemoryFraction(_));
        let has_fraction = list.operations.iter().any(sets_fraction);
        let notes = list.notes.iter().chain(setup.notes.iter());
        let notes = notes.filter(|note| !(has_fraction && note.code == WITHOUT_FRACTION));
        let findings = notes.map(Finding::anywhere);
        Ok(Simulation {
            findings: findings.collect(),
            setup,
            device,
            session: Session::new(framework),
            base: None,
            summary: SimulationSummary::default(),
        })
    }
}

impl Simulation {
    /// The allocator that is simulated.
    #[must_use]
    pub fn setup(&self) -> &AllocatorSetup {
        &self.setup
    }

    /// The oddities of the list, and notes on the allocator.
    #[must_use]
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// The device below it.
    #[must_use]
    pub fn device(&self) -> &DeviceConfig {
        &self.device
    }

    /// Carries out the next operation.
    ///
    /// # Errors
    /// If it makes no sense at this point; then nothing has changed.
    pub fn step(&mut self, operation: &Operation) -> Result<SimulationStep, StepError> {
        let index = self.summary.operations as usize;
        let done = self.session.apply(operation).map_err(|misuse| StepError {
            index,
            operation: *operation,
            misuse,
        })?;
        let block = match done {
            Outcome::Block(handle) => Some(self.session.allocator().block(handle).addr),
            Outcome::Nothing | Outcome::Failed(_) => None,
        };
        self.settle_base(block);
        let outcome = match done {
            Outcome::Block(_) => StepOutcome::Allocated(block.map(|addr| self.offset(addr))),
            Outcome::Nothing => match operation {
                Operation::Alloc { .. } => StepOutcome::Allocated(None),
                _ => StepOutcome::Done,
            },
            Outcome::Failed(failure) => {
                StepOutcome::Failed(self.failure(index, *operation, failure))
            }
        };
        let stats = self.stats();
        self.note(operation, &outcome, stats);
        Ok(SimulationStep { index, outcome, stats })
    }

    /// The events of the allocator since they were last cleared.
    #[must_use]
    pub fn events(&self) -> &[Event] {
        self.session.allocator().observer()
    }

    /// Forgets the events so far.
    pub fn clear_events(&mut self) {
        self.session.allocator_mut().observer_mut().clear();
    }

    /// Every segment as it is now, by address. Empty for allocators without a layout.
    #[must_use]
    pub fn segments(&self) -> Vec<SegmentState> {
        self.session.allocator().state()
    }

    /// An address as an offset.
    #[must_use]
    pub fn offset(&self, addr: Addr) -> Offset {
        let base = self.base.unwrap_or_default();
        Offset(addr.0.cast_signed().wrapping_sub(base.0.cast_signed()))
    }

    /// The totals so far.
    #[must_use]
    pub fn summary(&self) -> SimulationSummary {
        let largest_free = self.session.allocator().largest_free();
        SimulationSummary { largest_free, ..self.summary }
    }

    /// Addresses count from the lowest segment when there first is one, or from the first block
    /// where there are no segments.
    fn settle_base(&mut self, block: Option<Addr>) {
        if self.base.is_none() {
            self.base = self.segments().first().map(|segment| segment.addr).or(block);
        }
    }

    fn failure(
        &self,
        index: usize,
        operation: Operation,
        failure: AllocFailure,
    ) -> FailedAllocation {
        let allocator = self.session.allocator();
        let asked = match operation {
            Operation::Alloc { size, .. } => size,
            _ => Bytes::ZERO,
        };
        FailedAllocation {
            index,
            operation,
            tried: match failure {
                AllocFailure::OutOfMemory(out) => out.tried,
                AllocFailure::TooLarge => asked,
            },
            allocated: allocator.allocated(),
            reserved: allocator.reserved(),
            device_free: allocator.device().free_bytes(),
            largest_cached: allocator.largest_free(),
        }
    }

    fn stats(&self) -> MemoryStats {
        let allocator = self.session.allocator();
        let Stats {
            reserved_bytes,
            allocated_bytes,
            active_bytes,
            requested_bytes,
            inactive_split_bytes,
            segment,
            num_alloc_retries,
            num_ooms,
            ..
        } = allocator.stats();
        MemoryStats {
            reserved: reserved_bytes.all.current,
            allocated: allocated_bytes.all.current,
            active: active_bytes.all.current,
            requested: requested_bytes.all.current,
            inactive_split: inactive_split_bytes.all.current,
            peak_reserved: reserved_bytes.all.peak,
            peak_allocated: allocated_bytes.all.peak,
            segments: segment.all.current,
            retries: num_alloc_retries,
            ooms: num_ooms,
            device_free: allocator.device().free_bytes(),
        }
    }

    fn note(&mut self, operation: &Operation, outcome: &StepOutcome, stats: MemoryStats) {
        let summary = &mut self.summary;
        summary.operations += 1;
        match operation {
            Operation::Alloc { .. } => summary.allocations += 1,
            Operation::Free(_) => summary.frees += 1,
            _ => {}
        }
        // Peaks are reset to what there is at that moment, so that none is lost between steps.
        summary.peak_allocated = summary.peak_allocated.max(stats.peak_allocated);
        summary.peak_reserved = summary.peak_reserved.max(stats.peak_reserved);
        if let StepOutcome::Failed(failure) = outcome {
            summary.failures += 1;
            summary.first_failure.get_or_insert(*failure);
        }
        summary.now = stats;
    }
}

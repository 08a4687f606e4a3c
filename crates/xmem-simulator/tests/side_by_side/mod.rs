//! The simulator and the slow model, step by step through the same program: whatever one of them
//! shows, the other must show too. Property tests and the fuzz target share this.

mod laws;
mod shown;
mod steps;

pub(crate) use steps::{PoolKeyword, Step};

use crate::model::{Model, Outcome};
use xmem_simulator::{
    AllocFailure, AllocatorConfig, CachingAllocator, Device, DeviceConfig, Event, EventAction,
    FrameworkAllocator, Operation, Session,
};

/// Both, having done the same.
pub(crate) struct SideBySide {
    simulator: Session<CachingAllocator<Vec<Event>>>,
    model: Model,
    next_block: u32,
}

/// Runs a program and frees everything at its end.
///
/// # Errors
/// With the first difference, or the first law broken.
pub(crate) fn run(
    steps: &[Step],
    config: &AllocatorConfig,
    device: &DeviceConfig,
) -> Result<(), String> {
    let mut both = SideBySide::new(config, device);
    let mut program = String::new();
    let mut carry_out = |both: &mut SideBySide, operation: Operation| {
        program += &format!("\n{operation:?}");
        both.apply(&operation).map_err(|what| format!("{what}\nafter{program}"))
    };
    for step in steps {
        if let Some(operation) = step.operation(&both.model, &mut both.next_block) {
            carry_out(&mut both, operation)?;
        }
        if both.model_gave_up() {
            return Ok(());
        }
    }
    for operation in both.the_end() {
        carry_out(&mut both, operation)?;
        if both.model_gave_up() {
            return Ok(());
        }
    }
    laws::nothing_left(both.simulator.allocator())
}

impl SideBySide {
    pub(crate) fn new(config: &AllocatorConfig, device: &DeviceConfig) -> Self {
        let simulator = CachingAllocator::new(config, Device::new(device), Vec::new());
        Self {
            simulator: Session::new(simulator),
            model: Model::new(config, device),
            next_block: 0,
        }
    }

    /// Does the same on both sides and compares all that they show.
    pub(crate) fn apply(&mut self, operation: &Operation) -> Result<(), String> {
        let told = self.model.events.len();
        let want = self.model.apply(operation);
        let done = self.simulator.apply(operation);
        if self.model_gave_up() {
            return laws::hold(self.simulator.allocator());
        }
        let got = match done {
            Ok(xmem_simulator::Outcome::Block(handle)) => {
                Outcome::Block(self.simulator.allocator().block(handle).addr.0)
            }
            Ok(xmem_simulator::Outcome::Nothing) => Outcome::Nothing,
            Ok(xmem_simulator::Outcome::Failed(AllocFailure::TooLarge)) => Outcome::TooLarge,
            Ok(xmem_simulator::Outcome::Failed(AllocFailure::OutOfMemory(full))) => {
                Outcome::Full { rounded: full.rounded.get(), tried: full.tried.get() }
            }
            Err(_) => Outcome::Refused,
        };
        equal("outcome", &got, &want)?;
        let events = std::mem::take(self.simulator.allocator_mut().observer_mut());
        equal(
            "events",
            &in_normal_order(events),
            &in_normal_order(self.model.events[told..].to_vec()),
        )?;
        let allocator = self.simulator.allocator();
        if let (
            Ok(xmem_simulator::Outcome::Block(handle)),
            Operation::Alloc { block, stream, .. },
        ) = (done, operation)
        {
            let view = allocator.block(handle);
            let got = (view.addr.0, view.size.get(), view.requested.get());
            equal("block", &Some(got), &self.model.find(*block))?;
            equal("stream", &view.stream, stream)?;
        }
        shown::compare(allocator, &self.model)?;
        laws::hold(allocator)
    }

    /// Returns whether nothing is known any more of what PyTorch does.
    fn model_gave_up(&self) -> bool {
        self.model.undefined || self.model.beyond_the_simulator
    }

    /// Leaves every scope, frees everything and gives it back.
    fn the_end(&self) -> Vec<Operation> {
        let mut rest = self.model.clone();
        let mut operations = steps::the_end(&rest);
        for operation in &operations {
            rest.apply(operation);
        }
        operations.extend(rest.used_pools().into_iter().map(Operation::ReleasePool));
        operations.push(Operation::EmptyCache);
        operations
    }
}

pub(crate) fn equal<T: PartialEq + std::fmt::Debug>(
    what: &str,
    simulator: &T,
    model: &T,
) -> Result<(), String> {
    if simulator == model {
        return Ok(());
    }
    Err(format!("{what}\n  simulator {simulator:?}\n  model     {model:?}"))
}

/// In which order frees complete that complete together is nowhere specified.
fn in_normal_order(mut events: Vec<Event>) -> Vec<Event> {
    let completes = |event: &Event| event.action == EventAction::FreeCompleted;
    for run in events.chunk_by_mut(|a, b| completes(a) && completes(b)) {
        run.sort_by_key(|event| event.addr);
    }
    events
}

//! The requests that a job is predicted to make to the GPU's allocator, in order, with the
//! allocator and the device that serve them.

use crate::allocator::AllocatorSetup;
use crate::place::{Locator, Place};
use crate::sections::Sections;
use std::ops::Range;
use xmem_analyzer::{Phase, Profile, Role};
use xmem_devices::Device;
use xmem_orchestrator::{RuleEffect, Schedule};
use xmem_simulator::{AllocatorChoice, DeviceConfig};
use xmem_types::{BlockId, Bytes, Diagnostics, IterationId, Nanos, OpId, Request, Workload};

/// All requests of a job, with the allocator and the device that are to serve them. It can be
/// replayed, compared with a recording, or written down as a snapshot.
#[derive(Clone, Debug)]
pub struct Prediction<'j> {
    pub(crate) locator: Locator<'j>,
    pub(crate) schedule: Schedule,
    pub(crate) setup: AllocatorSetup,
    pub(crate) device: DeviceConfig,
    /// The device with the least memory that it may leave to the allocator, and with the most.
    pub(crate) extremes: [DeviceConfig; 2],
    pub(crate) sections: Sections,
    pub(crate) iteration_starts: Vec<usize>,
    diagnostics: Diagnostics,
}

/// The description of a block of a [`Prediction`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PredictedBlock {
    /// Bytes that the program requests.
    pub size: Bytes,
    /// The role.
    pub role: Role,
    /// The evidence for the role; empty where a rule added the block.
    pub evidence: &'static str,
    /// The rule that added, resized or retimed it.
    pub rule: Option<&'static str>,
    /// Iteration of its allocation; none before the first.
    pub iteration: Option<IterationId>,
    /// Phase of its allocation.
    pub phase: Phase,
}

impl<'j> Prediction<'j> {
    /// The prediction for the `schedule` that `profile` was lowered to, on a `device` with the
    /// allocator of `setup`. `lowering` are the oddities that were met on the way.
    #[must_use]
    pub fn new(
        profile: &'j Profile,
        (schedule, lowering): (Schedule, Diagnostics),
        setup: AllocatorSetup,
        device: &Device,
    ) -> Self {
        let iteration_starts = schedule.iteration_starts(profile);
        let with = |memory, taken| DeviceConfig {
            capacity: Some(memory),
            taken,
            address_order: setup.address_order,
            ..DeviceConfig::default()
        };
        let (least_context, most_context) = device.context_bounds();
        let extremes = [
            with(device.memory, most_context),
            with(device.memory + device.tolerance.memory_more, least_context),
        ];
        let device = with(device.memory, device.context);
        let mut diagnostics = setup.notes.clone();
        diagnostics.extend(lowering);
        Self {
            locator: Locator::new(profile),
            sections: Sections::new(
                &iteration_starts,
                schedule.rest_start(profile).unwrap_or(schedule.requests.len()),
            ),
            iteration_starts,
            schedule,
            setup,
            device,
            extremes,
            diagnostics,
        }
    }

    /// The recorded job.
    #[must_use]
    pub fn profile(&self) -> &'j Profile {
        self.locator.profile
    }

    /// What the job was lowered to.
    #[must_use]
    pub fn schedule(&self) -> &Schedule {
        &self.schedule
    }

    /// The requests, in program order. Blocks are numbered without gaps, from 0.
    #[must_use]
    pub fn requests(&self) -> &[Request] {
        &self.schedule.requests
    }

    /// The requests with the sizes that some of them fall back on where memory is short.
    #[must_use]
    pub fn workload(&self) -> Workload<'_> {
        self.schedule.workload(self.schedule.requests.len())
    }

    /// Per request, the time in the CPU trace that it stands for. Never decreasing.
    #[must_use]
    pub fn times(&self) -> &[Nanos] {
        &self.schedule.times
    }

    /// The first request of each iteration.
    #[must_use]
    pub fn iteration_starts(&self) -> &[usize] {
        &self.iteration_starts
    }

    /// The requests of some iterations; what comes before the first belongs to it, and what comes
    /// after the last to all of them together.
    #[must_use]
    pub fn requests_of(&self, iterations: &Range<IterationId>) -> Range<usize> {
        let count = self.iteration_starts.len();
        if iterations.start.index() == 0 && iterations.end.index() == count {
            return 0..self.schedule.requests.len();
        }
        self.sections.of_iterations(iterations.start, iterations.end)
    }

    /// Returns whether more memory may have been needed before the recording began: the peaks are the least that the job
    /// needs.
    #[must_use]
    pub fn is_lower_bound(&self) -> bool {
        self.profile().gpu.as_ref().is_some_and(|gpu| !gpu.from_the_start)
    }

    /// The effect of each rule of the lowering, in the order of the rules.
    #[must_use]
    pub fn rule_effects(&self) -> &[RuleEffect] {
        &self.schedule.effects
    }

    /// The number of blocks that are requested.
    #[must_use]
    pub fn block_count(&self) -> usize {
        self.schedule.blocks.len()
    }

    /// The description of a block.
    ///
    /// # Panics
    /// If no request mentions it.
    #[must_use]
    pub fn block(&self, id: BlockId) -> PredictedBlock {
        let block = self.schedule.block(id);
        let profile = self.locator.profile;
        let recorded = block.origin.recorded().map(|id| profile.block(id));
        let place = block.origin.place(profile);
        PredictedBlock {
            size: block.size,
            role: block.role,
            evidence: recorded.map_or("", |block| block.evidence.0),
            rule: block.rule.map(|rule| rule.name),
            iteration: place.iteration,
            phase: place.phase,
        }
    }

    /// The place at which a block is allocated, in words.
    ///
    /// # Panics
    /// If no request mentions it.
    #[must_use]
    pub fn place(&self, id: BlockId) -> Place {
        self.locator.of_block(self.schedule.block(id))
    }

    /// The innermost operator at the allocation of a block, by a number of its own; none where it is not known.
    ///
    /// # Panics
    /// If no request mentions the block.
    #[must_use]
    pub fn operator(&self, id: BlockId) -> Option<OpId> {
        self.schedule.place(self.locator.profile, id).op
    }

    /// The name of that operator; empty where it is not known.
    ///
    /// # Panics
    /// If no request mentions the block.
    #[must_use]
    pub fn operator_name(&self, id: BlockId) -> &'j str {
        self.operator(id).map_or("", |op| self.locator.profile.op_name(op))
    }

    /// The allocator with the decisions that led to it.
    #[must_use]
    pub fn setup(&self) -> &AllocatorSetup {
        &self.setup
    }

    /// The allocator.
    #[must_use]
    pub fn allocator(&self) -> &AllocatorChoice {
        &self.setup.choice
    }

    /// The device below it.
    #[must_use]
    pub fn device(&self) -> &DeviceConfig {
        &self.device
    }

    /// The oddities of the allocator's settings and of the lowering.
    #[must_use]
    pub fn diagnostics(&self) -> &Diagnostics {
        &self.diagnostics
    }
}

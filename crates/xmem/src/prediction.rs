//! The door to what lies behind an answer: every request that the job is predicted to make to the
//! allocator, in order, and what each block is.

use crate::allocator::{AllocatorError, AllocatorSetup};
use crate::answer::Place;
use crate::estimate::{Estimate, Plan};
use crate::job::Job;
use crate::outcome::iteration_starts;
use crate::places::Places;
use xmem_analyzer::{Phase, Role};
use xmem_orchestrator::Schedule;
use xmem_simulator::{AllocatorChoice, DeviceConfig};
use xmem_types::{BlockId, Bytes, Diagnostics, IterationId, Nanos, Request, Workload};

/// What a job is predicted to ask of the GPU's allocator, all of it, whatever iterations the
/// estimate is about. It can be replayed, compared with a recording, or written down.
#[derive(Clone, Debug)]
pub struct Prediction<'j> {
    pub(crate) places: Places<'j>,
    pub(crate) schedule: Schedule,
    notes: Diagnostics,
    iteration_starts: Vec<usize>,
    pub(crate) setup: AllocatorSetup,
    pub(crate) device: DeviceConfig,
}

/// What a block of a [`Prediction`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PredictedBlock {
    /// Bytes that the program asks for.
    pub size: Bytes,
    /// What it is.
    pub role: Role,
    /// Why it is taken to be that; empty where a rule added it.
    pub evidence: &'static str,
    /// The rule that added, resized or retimed it.
    pub rule: Option<&'static str>,
    /// Iteration of its allocation; none before the first.
    pub iteration: Option<IterationId>,
    /// Phase of its allocation.
    pub phase: Phase,
}

impl Estimate {
    /// What `job` will ask of the allocator.
    ///
    /// # Errors
    /// If the allocator's settings do not go with the job's PyTorch release.
    pub fn predict<'j>(&self, job: &'j Job) -> Result<Prediction<'j>, AllocatorError> {
        let Plan { target, setup, device } = self.plan(job)?;
        let profile = job.profile();
        let (schedule, lowering) = xmem_orchestrator::schedule(profile, &target);
        let mut notes = setup.notes.clone();
        notes.extend(lowering);
        Ok(Prediction {
            places: Places { profile },
            iteration_starts: iteration_starts(profile, &schedule),
            schedule,
            notes,
            setup,
            device,
        })
    }
}

impl Prediction<'_> {
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

    /// How many blocks are requested.
    #[must_use]
    pub fn block_count(&self) -> usize {
        self.schedule.blocks.len()
    }

    /// What a block is.
    ///
    /// # Panics
    /// If no request mentions it.
    #[must_use]
    pub fn block(&self, id: BlockId) -> PredictedBlock {
        let block = self.schedule.block(id);
        let origin = block.origin.map(|id| self.places.profile.block(id));
        PredictedBlock {
            size: block.size,
            role: block.role,
            evidence: origin.map_or("", |origin| origin.evidence.0),
            rule: block.rule,
            iteration: block.iteration,
            phase: block.phase,
        }
    }

    /// Where a block is allocated, in words.
    ///
    /// # Panics
    /// If no request mentions it.
    #[must_use]
    pub fn place(&self, id: BlockId) -> Place {
        self.places.of_block(self.schedule.block(id))
    }

    /// The allocator that the estimate is for.
    #[must_use]
    pub fn allocator(&self) -> &AllocatorChoice {
        &self.setup.choice
    }

    /// The device below it.
    #[must_use]
    pub fn device(&self) -> &DeviceConfig {
        &self.device
    }

    /// What was odd while the requests were derived from the trace.
    #[must_use]
    pub fn diagnostics(&self) -> &Diagnostics {
        &self.notes
    }
}

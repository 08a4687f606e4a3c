//! `xmem.plan-hints/2`: a plan as an allocator can follow it, which is also read.

use serde::{Deserialize, Serialize};
use thiserror::Error;
use xmem::Bytes;
use xmem_studies::planner::ParsePlannerError;
use xmem_studies::planning::{
    Arena, Interruption, JobPlace, JobPlan, JobRequest, ParseInterruptionError, PlanMark,
    PlannedMemory,
};

const HINTS: &str = "xmem.plan-hints/2";

/// A static memory plan as an allocator can follow it: all requests in their order, those that are planned with an address.
#[derive(Deserialize, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct HintsDocument {
    schema: String,
    /// The input that was planned.
    input: String,
    /// The blocks: those that one iteration makes and frees, or all.
    #[cfg_attr(test, schemars(extend("enum" = ["iteration", "all"])))]
    scope: String,
    /// The memory that is planned: sizes are rounded to 512 bytes on a GPU, to 64 bytes on the CPU.
    #[serde(default = "gpu")]
    #[cfg_attr(test, schemars(extend("enum" = ["gpu", "cpu"])))]
    memory: String,
    /// The planner, which plans again where a run differs.
    planner: String,
    /// The memory for what iterations make and free.
    peak_bytes: u64,
    /// The memory for what the job keeps.
    lasting_bytes: u64,
    /// The parts of a run whose requests are not planned: START..END (ticks), phases, names of operators.
    #[serde(default)]
    interrupted_by: Vec<String>,
    /// What separates two iterations: the step of the optimizer has returned; a call of the model begins, in a job that only
    /// infers; one or the other; null if there is one iteration alone.
    #[cfg_attr(test, schemars(extend("enum" = ["optimizer_step", "call", "step_or_call", null])))]
    mark: Option<String>,
    /// The requests up to the first mark.
    warm_up: Vec<RequestDto>,
    /// The requests between two marks.
    iteration: Vec<RequestDto>,
}

/// An allocation.
#[derive(Deserialize, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct RequestDto {
    /// Its place among the allocations of its part, from 0.
    ordinal: usize,
    /// The module that makes it, as a path; null where unknown.
    module: Option<String>,
    /// The operator that makes it; empty where unknown.
    op: String,
    /// Its place among the allocations of that operator in that module, from 0.
    nth: usize,
    /// The fewest bytes, rounded, for which the address is good.
    least_bytes: u64,
    /// The most bytes, rounded, for which it is good.
    size_bytes: u64,
    /// The memory that it is in; null if it is not planned.
    #[cfg_attr(test, schemars(extend("enum" = ["iteration", "lasting", null])))]
    arena: Option<String>,
    /// The address, from the beginning of that memory; null if it is not planned.
    offset_bytes: Option<u64>,
}

/// The blocks that a plan to be followed is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HintsScope {
    /// Those of one iteration.
    Iteration,
    /// All of the input.
    All,
}

/// Text that is not a plan to be followed.
#[derive(Debug, Error)]
pub enum HintsDocumentError {
    /// It is not such a document.
    #[error("not a document of schema {HINTS}")]
    Json(#[from] serde_json::Error),
    /// It is another document.
    #[error("its schema is `{0}` instead of {HINTS}: export it again")]
    Schema(String),
    /// The planner is not known.
    #[error(transparent)]
    Planner(#[from] ParsePlannerError),
    /// An interruption is none.
    #[error(transparent)]
    Interruption(#[from] ParseInterruptionError),
    /// The scope is not known.
    #[error("its scope is `{0}`, not iteration or all")]
    Scope(String),
    /// The memory is not known.
    #[error("its memory is `{0}`, not gpu or cpu")]
    Memory(String),
    /// The end of iterations is not known.
    #[error("its mark is `{0}`, not optimizer_step, call or step_or_call")]
    Mark(String),
    /// Its peak is not that of its requests.
    #[error("its peak is {stated}, but its requests need {needed}")]
    Peak {
        /// The peak in the document.
        stated: Bytes,
        /// The end of the highest request.
        needed: Bytes,
    },
    /// The requests are not in order.
    #[error("request {at} is out of order: expected ordinal {at}")]
    Order {
        /// Its place.
        at: usize,
    },
    /// A request has half of an address.
    #[error("request {0} has an arena without an offset, or an unknown arena")]
    Place(usize),
    /// A request is good for no size.
    #[error("request {0} is good for no size: its fewest bytes are more than its most")]
    Sizes(usize),
    /// An address is beyond any memory.
    #[error("request {0} ends beyond 2^63 bytes")]
    TooLarge(usize),
}

impl HintsDocument {
    /// The document of a plan of `input`.
    #[must_use]
    pub fn new(input: &str, scope: HintsScope, plan: &JobPlan) -> Self {
        Self {
            schema: HINTS.to_owned(),
            input: input.to_owned(),
            scope: match scope {
                HintsScope::Iteration => "iteration".to_owned(),
                HintsScope::All => "all".to_owned(),
            },
            memory: match plan.memory {
                PlannedMemory::Gpu => gpu(),
                PlannedMemory::Cpu => "cpu".to_owned(),
            },
            planner: plan.planner.name().to_owned(),
            peak_bytes: plan.bytes(Arena::Iteration).get(),
            lasting_bytes: plan.bytes(Arena::Lasting).get(),
            interrupted_by: plan.interruptions.iter().map(ToString::to_string).collect(),
            mark: (scope == HintsScope::Iteration).then(|| mark(plan.mark).to_owned()),
            warm_up: dtos(&plan.warm_up),
            iteration: dtos(&plan.iteration),
        }
    }
}

fn gpu() -> String {
    "gpu".to_owned()
}

const fn mark(mark: PlanMark) -> &'static str {
    match mark {
        PlanMark::Step => "optimizer_step",
        PlanMark::Call => "call",
        PlanMark::StepOrCall => "step_or_call",
    }
}

fn dtos(requests: &[JobRequest]) -> Vec<RequestDto> {
    let dto = |(ordinal, request): (usize, &JobRequest)| RequestDto {
        ordinal,
        module: request.module.clone(),
        op: request.operator.clone(),
        nth: request.nth,
        least_bytes: request.least.get(),
        size_bytes: request.size.get(),
        arena: request.place.map(|place| match place.arena {
            Arena::Iteration => "iteration".to_owned(),
            Arena::Lasting => "lasting".to_owned(),
        }),
        offset_bytes: request.place.map(|place| place.offset.get()),
    };
    requests.iter().enumerate().map(dto).collect()
}

/// Reads a document of schema `xmem.plan-hints/2`.
///
/// # Errors
/// If the text is not such a document, or its planner is not known.
pub fn read_hints(text: &[u8]) -> Result<(JobPlan, HintsScope), HintsDocumentError> {
    let read: HintsDocument = serde_json::from_slice(text)?;
    if read.schema != HINTS {
        return Err(HintsDocumentError::Schema(read.schema));
    }
    let scope = match read.scope.as_str() {
        "iteration" => HintsScope::Iteration,
        "all" => HintsScope::All,
        _ => return Err(HintsDocumentError::Scope(read.scope)),
    };
    let interruptions = read.interrupted_by.iter().map(|part| part.parse());
    let plan = JobPlan {
        memory: match read.memory.as_str() {
            "gpu" => PlannedMemory::Gpu,
            "cpu" => PlannedMemory::Cpu,
            _ => return Err(HintsDocumentError::Memory(read.memory)),
        },
        mark: match read.mark {
            Some(text) => [PlanMark::Step, PlanMark::Call, PlanMark::StepOrCall]
                .into_iter()
                .find(|&known| mark(known) == text)
                .ok_or(HintsDocumentError::Mark(text))?,
            None => PlanMark::Step,
        },
        planner: read.planner.parse()?,
        interruptions: interruptions.collect::<Result<Vec<Interruption>, _>>()?,
        warm_up: requests(read.warm_up)?,
        iteration: requests(read.iteration)?,
    };
    for (arena, stated) in
        [(Arena::Iteration, read.peak_bytes), (Arena::Lasting, read.lasting_bytes)]
    {
        let (stated, needed) = (Bytes(stated), plan.bytes(arena));
        if stated != needed {
            return Err(HintsDocumentError::Peak { stated, needed });
        }
    }
    Ok((plan, scope))
}

fn requests(read: Vec<RequestDto>) -> Result<Vec<JobRequest>, HintsDocumentError> {
    let request = |(at, request): (usize, RequestDto)| {
        if request.ordinal != at {
            return Err(HintsDocumentError::Order { at });
        }
        if request.least_bytes > request.size_bytes {
            return Err(HintsDocumentError::Sizes(at));
        }
        let place = match (request.arena.as_deref(), request.offset_bytes) {
            (None, None) => None,
            (Some("iteration"), Some(offset)) => Some((Arena::Iteration, offset)),
            (Some("lasting"), Some(offset)) => Some((Arena::Lasting, offset)),
            _ => return Err(HintsDocumentError::Place(at)),
        };
        let end = place.unwrap_or((Arena::Iteration, 0)).1.checked_add(request.size_bytes);
        if end.is_none_or(|end| end > i64::MAX as u64) {
            return Err(HintsDocumentError::TooLarge(at));
        }
        Ok(JobRequest {
            size: Bytes(request.size_bytes),
            least: Bytes(request.least_bytes),
            place: place.map(|(arena, offset)| JobPlace { arena, offset: Bytes(offset) }),
            module: request.module,
            operator: request.op,
            nth: request.nth,
        })
    };
    read.into_iter().enumerate().map(request).collect()
}

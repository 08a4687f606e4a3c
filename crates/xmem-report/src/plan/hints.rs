//! `xmem.plan-hints/1`: a plan as an allocator can follow it, which is also read.

use serde::{Deserialize, Serialize};
use thiserror::Error;
use xmem::Bytes;
use xmem_studies::planner::ParsePlannerError;
use xmem_studies::planning::{Interruption, KeptPlan, KeptRequest, ParseInterruptionError};

const HINTS: &str = "xmem.plan-hints/1";

/// A static memory plan as an allocator can follow it: an address for each request by its ordinal.
#[derive(Deserialize, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct HintsDocument {
    schema: String,
    /// The input that was planned.
    input: String,
    /// The blocks: those that one iteration makes and frees, or all.
    #[cfg_attr(test, schemars(extend("enum" = ["iteration", "all"])))]
    scope: String,
    /// The planner, which plans again where a run differs.
    planner: String,
    /// The memory that the plan needs.
    peak_bytes: u64,
    /// The parts of a run whose requests are not in the plan and are not counted: START..END (ticks), phases, names of
    /// operators.
    #[serde(default)]
    interrupted_by: Vec<String>,
    /// The allocations, in order.
    requests: Vec<RequestDto>,
}

/// An allocation.
#[derive(Deserialize, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct RequestDto {
    /// Its place among the allocations, from 0.
    ordinal: usize,
    /// The most bytes for which the address is good: the size of the block, rounded.
    size_bytes: u64,
    /// The address, from the beginning of the plan's memory.
    offset_bytes: u64,
    /// The first tick at which the block is live; a tick is an allocation or a free.
    start: u32,
    /// The first tick at which it is no longer live.
    end: u32,
}

/// The blocks that a plan to be followed is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HintsScope {
    /// Those of one iteration.
    Iteration,
    /// All of the input.
    All,
}

/// Text that is no plan to be followed.
#[derive(Debug, Error)]
pub enum HintsDocumentError {
    /// It is not such a document.
    #[error("not a document of schema {HINTS}")]
    Json(#[from] serde_json::Error),
    /// It is another document.
    #[error("its schema is `{0}`, not {HINTS}")]
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
    /// Its peak is not that of its requests.
    #[error("its peak is {stated}, but its requests need {needed}")]
    Peak {
        /// The peak in the document.
        stated: Bytes,
        /// The end of the highest request.
        needed: Bytes,
    },
    /// The requests are not in order.
    #[error("request {0} is not the one with this ordinal")]
    Order(usize),
    /// An address is beyond any memory.
    #[error("request {0} ends beyond 2^63 bytes")]
    TooLarge(usize),
}

impl HintsDocument {
    /// The document of a plan of `input`.
    #[must_use]
    pub fn new(input: &str, scope: HintsScope, plan: &KeptPlan) -> Self {
        let request = |(ordinal, request): (usize, &KeptRequest)| RequestDto {
            ordinal,
            size_bytes: request.size.get(),
            offset_bytes: request.offset.get(),
            start: request.start,
            end: request.end,
        };
        Self {
            schema: HINTS.to_owned(),
            input: input.to_owned(),
            scope: match scope {
                HintsScope::Iteration => "iteration".to_owned(),
                HintsScope::All => "all".to_owned(),
            },
            planner: plan.planner.name().to_owned(),
            peak_bytes: plan.peak().get(),
            interrupted_by: plan.interruptions.iter().map(ToString::to_string).collect(),
            requests: plan.requests.iter().enumerate().map(request).collect(),
        }
    }
}

/// Reads a document of schema `xmem.plan-hints/1`.
///
/// # Errors
/// If the text is not such a document, or its planner is not known.
pub fn read_hints(text: &[u8]) -> Result<(KeptPlan, HintsScope), HintsDocumentError> {
    let read: HintsDocument = serde_json::from_slice(text)?;
    if read.schema != HINTS {
        return Err(HintsDocumentError::Schema(read.schema));
    }
    let ordered = read.requests.iter().enumerate();
    if let Some((at, _)) = ordered.into_iter().find(|(at, request)| request.ordinal != *at) {
        return Err(HintsDocumentError::Order(at));
    }
    let is_too_large = |request: &RequestDto| {
        let end = request.offset_bytes.checked_add(request.size_bytes);
        end.is_none_or(|end| end > i64::MAX as u64)
    };
    if let Some(at) = read.requests.iter().position(is_too_large) {
        return Err(HintsDocumentError::TooLarge(at));
    }
    let request = |request: &RequestDto| KeptRequest {
        size: Bytes(request.size_bytes),
        offset: Bytes(request.offset_bytes),
        start: request.start,
        end: request.end,
    };
    let scope = match read.scope.as_str() {
        "iteration" => HintsScope::Iteration,
        "all" => HintsScope::All,
        _ => return Err(HintsDocumentError::Scope(read.scope)),
    };
    let interruptions = read.interrupted_by.iter().map(|part| part.parse());
    let plan = KeptPlan {
        planner: read.planner.parse()?,
        interruptions: interruptions.collect::<Result<Vec<Interruption>, _>>()?,
        requests: read.requests.iter().map(request).collect(),
    };
    let (stated, needed) = (Bytes(read.peak_bytes), plan.peak());
    if stated != needed {
        return Err(HintsDocumentError::Peak { stated, needed });
    }
    Ok((plan, scope))
}

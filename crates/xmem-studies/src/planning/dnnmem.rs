//! The estimate of DNNMem: the tensors of one pass over the graph, each allocated and released by the policy of its category,
//! through an allocator with coalescing.
//!
//! Gao et al., "Estimating GPU Memory Consumption of Deep Learning Models", ESEC/FSE 2020, sections 4.2 to 4.5: `ALLOC_ON_START`
//! or `ALLOC_ON_DEMAND`, `RELEASE_ON_EXIT` or `RELEASE_ON_DEATH`. The published system counts no state of an optimizer.

use super::breakdown::{DnnMemCategory, MemoryClasses};
use super::iteration::Life;
use crate::block_size::rounded;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::str::FromStr;
use thiserror::Error;
use xmem_simulator::{AllocatorChoice, BfcConfig, DeviceConfig, RequestIndex, outline};
use xmem_types::{BlockId, Bytes, Request, RequestKind, StreamId, Workload};

/// When the tensors of a category are allocated and released.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DnnMemPolicy {
    /// Allocated before the first operator (`ALLOC_ON_START`), not by the operator that makes them (`ALLOC_ON_DEMAND`).
    pub on_start: bool,
    /// Released at the end of the job (`RELEASE_ON_EXIT`), not after their last use (`RELEASE_ON_DEATH`).
    pub on_exit: bool,
}

/// The policies of all categories: weights live from start to exit, all else from demand to death, unless said otherwise.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DnnMemPolicies(BTreeMap<DnnMemCategory, DnnMemPolicy>);

/// The estimate, as peaks of one pass: context included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DnnMemEstimate {
    /// With the allocator of the job.
    pub with_job_allocator: Bytes,
    /// With TensorFlow's best fit with coalescing, which grows.
    pub with_bfc: Bytes,
    /// The first of these by class, without the context.
    pub classes: MemoryClasses,
}

/// A tensor of the pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DnnMemTensor {
    category: DnnMemCategory,
    size: Bytes,
    /// Requests of the pass before and after which it lives; none at its ends.
    born: Option<usize>,
    died: Option<usize>,
}

impl DnnMemTensor {
    /// The tensors that are live in a window, but those of categories that DNNMem does not have.
    pub(super) fn of_window(
        lives: &[Life],
        window: &Range<usize>,
        category: impl Fn(&Life) -> DnnMemCategory,
    ) -> Vec<Self> {
        let tensor = |life: &Life| Self {
            category: category(life),
            size: life.requested,
            born: (life.born >= window.start).then_some(life.born),
            died: life.died.filter(|died| *died < window.end),
        };
        let live = lives.iter().filter(|life| life.overlaps(window) && life.requested.get() > 0);
        live.map(tensor).filter(|tensor| tensor.category.is_of_dnnmem()).collect()
    }
}

impl DnnMemPolicies {
    /// The policy of a category.
    #[must_use]
    pub fn of(&self, category: DnnMemCategory) -> DnnMemPolicy {
        let usual = match category {
            DnnMemCategory::Weights => DnnMemPolicy { on_start: true, on_exit: true },
            _ => DnnMemPolicy::default(),
        };
        self.0.get(&category).copied().unwrap_or(usual)
    }

    /// The policies with those of another list in place of their own.
    #[must_use]
    pub fn with(mut self, others: impl IntoIterator<Item = Self>) -> Self {
        self.0.extend(others.into_iter().flat_map(|other| other.0));
        self
    }

    /// The requests of the pass.
    fn requests(&self, tensors: &[DnnMemTensor]) -> Vec<Request> {
        let mut events: Vec<(usize, Request)> = Vec::new();
        for (id, tensor) in tensors.iter().enumerate() {
            let (policy, block) = (self.of(tensor.category), BlockId(id as u32));
            let alloc = RequestKind::Alloc { size: tensor.size, stream: StreamId(0) };
            // Requests of the pass come after the start.
            let born = tensor.born.filter(|_| !policy.on_start).map_or(0, |at| at + 1);
            events.push((born, Request { block, kind: alloc }));
            if let Some(died) = tensor.died.filter(|_| !policy.on_exit) {
                events.push((died + 1, Request { block, kind: RequestKind::Free }));
            }
        }
        events.sort_by_key(|(at, _)| *at);
        events.into_iter().map(|(_, request)| request).collect()
    }

    /// The estimate of a pass; `context` is what others than the allocator take.
    pub(super) fn estimate(
        &self,
        tensors: &[DnnMemTensor],
        job: &AllocatorChoice,
        context: Bytes,
    ) -> DnnMemEstimate {
        let requests = self.requests(tensors);
        let device = DeviceConfig::default().without_limit();
        let reserved = |choice: &AllocatorChoice| {
            outline(Workload::from(&requests), choice, &device, RequestIndex(0)).reserved + context
        };
        let bfc = BfcConfig { allow_growth: true, ..BfcConfig::default() };
        let with_job_allocator = reserved(job);
        DnnMemEstimate {
            with_job_allocator,
            with_bfc: reserved(&AllocatorChoice::Bfc(bfc)),
            classes: classes(&requests, with_job_allocator.saturating_sub(context)),
        }
    }
}

/// The classes of reserved memory where the most bytes of blocks are live.
fn classes(requests: &[Request], reserved: Bytes) -> MemoryClasses {
    let mut sizes = BTreeMap::new();
    let (mut live, mut load) = (Bytes::ZERO, Bytes::ZERO);
    let (mut live_at_peak, mut peak) = (Bytes::ZERO, Bytes::ZERO);
    for request in requests {
        match request.kind {
            RequestKind::Alloc { size, .. } => {
                sizes.insert(request.block, size);
                live += size;
                load += rounded(size);
                if load > peak {
                    (live_at_peak, peak) = (live, load);
                }
            }
            _ => {
                let size = sizes.remove(&request.block).unwrap_or_default();
                live = live.saturating_sub(size);
                load = load.saturating_sub(rounded(size));
            }
        }
    }
    MemoryClasses {
        live: live_at_peak,
        rounding: peak - live_at_peak,
        reservation: reserved.saturating_sub(peak),
    }
}

/// A policy that is none.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "expected CATEGORY=start|demand[:exit|death], for example weights=demand:exit; categories are {}",
    categories()
)]
pub struct ParseDnnMemPolicyError;

fn categories() -> String {
    let names = DnnMemCategory::ALL.into_iter().filter(|category| category.is_of_tensors());
    names.map(DnnMemCategory::name).collect::<Vec<_>>().join(", ")
}

/// Parses the policy of one category.
impl FromStr for DnnMemPolicies {
    type Err = ParseDnnMemPolicyError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (name, policy) = text.split_once('=').ok_or(ParseDnnMemPolicyError)?;
        let mut known = DnnMemCategory::ALL.into_iter().filter(|known| known.is_of_tensors());
        let category = known.find(|known| known.name() == name).ok_or(ParseDnnMemPolicyError)?;
        let (born, died) = policy.split_once(':').unwrap_or((policy, ""));
        let usual = Self::default().of(category);
        let on_start = match born {
            "start" => true,
            "demand" => false,
            _ => return Err(ParseDnnMemPolicyError),
        };
        let on_exit = match died {
            "exit" => true,
            "death" => false,
            "" => usual.on_exit,
            _ => return Err(ParseDnnMemPolicyError),
        };
        Ok(Self([(category, DnnMemPolicy { on_start, on_exit })].into()))
    }
}

impl fmt::Display for DnnMemPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let born = if self.on_start { "start" } else { "demand" };
        let died = if self.on_exit { "exit" } else { "death" };
        write!(f, "{born}:{died}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn tensor(
        category: DnnMemCategory,
        mib: u64,
        born: Option<usize>,
        died: Option<usize>,
    ) -> DnnMemTensor {
        DnnMemTensor { category, size: Bytes(mib * MIB), born, died }
    }

    #[test]
    fn policies_say_when_tensors_are_there() {
        use DnnMemCategory::{ForwardOutput, WeightGradients, Weights};
        let tensors = [
            tensor(Weights, 40, None, None),
            tensor(ForwardOutput, 60, Some(0), Some(1)),
            tensor(WeightGradients, 40, Some(2), Some(3)),
        ];
        let cases = [
            (&[][..], 100),
            (&["weight_gradients=start"], 140),
            (&["forward_output=demand:exit"], 140),
            (&["weight_gradients=demand:exit"], 100),
        ];
        for (policies, peak) in cases {
            let parsed = policies.iter().map(|text| text.parse().expect("a policy"));
            let policies = DnnMemPolicies::default().with(parsed);
            let estimate =
                policies.estimate(&tensors, &AllocatorChoice::default(), Bytes::mib(300));
            assert_eq!(estimate.with_job_allocator, Bytes::mib(peak + 300), "{policies:?}");
            let MemoryClasses { live, rounding, reservation } = estimate.classes;
            assert_eq!((live, rounding), (Bytes::mib(peak), Bytes::ZERO), "{policies:?}");
            assert_eq!(reservation, Bytes::ZERO, "{policies:?}");
        }
    }

    #[test]
    fn policies_are_read() {
        let policy: DnnMemPolicies = "weights=demand".parse().expect("a policy");
        assert_eq!(policy.of(DnnMemCategory::Weights).to_string(), "demand:exit");
        assert_eq!(policy.of(DnnMemCategory::Input).to_string(), "demand:death");
        for wrong in ["weights", "weights=", "weight=start", "weights=start:never", "context=start"]
        {
            assert_eq!(wrong.parse::<DnnMemPolicies>(), Err(ParseDnnMemPolicyError), "{wrong}");
        }
    }
}

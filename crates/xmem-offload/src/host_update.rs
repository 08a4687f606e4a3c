//! The step of the optimizer on the host: gradients come, parameters go back.

use crate::graph::{BlockRole, Graph, GraphStep, StepId, Work};
use xmem_types::{BlockId, Bytes, Nanos};

/// The step of the optimizer on the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HostUpdate {
    /// The gradients, in the order in which they are made.
    pub(crate) gradients: Vec<HostGradient>,
    /// The step of the graph with which the host begins.
    pub(crate) begins: StepId,
    /// The bytes of the optimizer's state that are on the host for the whole step.
    pub(crate) state: Bytes,
}

/// A gradient that is copied to the host, and its parameter, of the same size, that comes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HostGradient {
    pub(crate) block: BlockId,
    /// The step after which it is complete.
    pub(crate) ready: StepId,
    /// The time of the parameter's step on the host.
    pub(crate) time: Nanos,
}

impl HostUpdate {
    /// The optimizer of a step, with the bytes that the host reads and writes in a second; none if it has no gradients or
    /// no optimizer.
    pub(crate) fn new(graph: &Graph, bandwidth: Bytes) -> Option<Self> {
        let is_optimizer = |row: &usize| graph.steps()[*row].work == Work::Optimizer;
        let begins = StepId::new((0..graph.steps().len()).find(is_optimizer)?);
        let is_there = |id: BlockId| {
            let lifetime = graph.lifetime(id);
            lifetime.alloc < begins && lifetime.free.is_none_or(|free| free >= begins)
        };
        let of = |role| {
            let blocks = graph.ids().filter(move |&id| graph.block(id).role == role);
            blocks.filter(|&id| graph.block(id).size > Bytes::ZERO)
        };
        let state: Bytes = of(BlockRole::OptimizerState).map(|id| graph.block(id).size).sum();
        let gradients: Vec<BlockId> = of(BlockRole::Gradient).filter(|&id| is_there(id)).collect();
        let trained: u64 = gradients.iter().map(|&id| graph.block(id).size.get()).sum();
        let mut gradients: Vec<HostGradient> = gradients
            .into_iter()
            .map(|block| {
                let size = graph.block(block).size.get();
                let ready = ready(graph, graph.lifetime(block).alloc, begins);
                HostGradient { block, ready, time: time(size, trained, state, bandwidth) }
            })
            .collect();
        gradients.sort_by_key(|gradient| (gradient.ready, gradient.block));
        (!gradients.is_empty()).then_some(Self { gradients, begins, state })
    }
}

/// The time of a parameter's step, which memory limits: it reads parameter, gradient and state, and writes parameter and
/// state.
fn time(size: u64, trained: u64, state: Bytes, bandwidth: Bytes) -> Nanos {
    let state = u128::from(state.get()) * u128::from(size) / u128::from(trained.max(1));
    let bytes = 3 * u128::from(size) + 2 * state;
    let nanos = (bytes * 1_000_000_000).div_ceil(u128::from(bandwidth.get().max(1)));
    Nanos(i64::try_from(nanos).unwrap_or(i64::MAX / 4).min(i64::MAX / 4))
}

/// The step after which a gradient is complete: the one that makes it; the last backward pass before the optimizer if there
/// are several, or it was there before.
fn ready(graph: &Graph, alloc: StepId, begins: StepId) -> StepId {
    let steps = &graph.steps()[..begins.index()];
    let is_backward = |step: &GraphStep| matches!(step.work, Work::Backward(_));
    let is_forward = |step: &GraphStep| matches!(step.work, Work::Forward(_));
    let last = steps.iter().rposition(is_backward).map_or(begins, StepId::new);
    let was_there = !steps[..=alloc.index()].iter().any(is_backward);
    let is_added_to = steps[alloc.index()..].iter().any(is_forward);
    if was_there || is_added_to { last.max(alloc) } else { alloc }
}

impl Graph {
    /// The same step without the optimizer's state, and without the time and the memory of its step.
    pub(crate) fn without_optimizer(&self) -> Self {
        let is_optimizer = |step: StepId| self.steps()[step.index()].work == Work::Optimizer;
        let is_of_step = |id: BlockId| {
            let lifetime = self.lifetime(id);
            is_optimizer(lifetime.alloc) && lifetime.free.is_some_and(is_optimizer)
        };
        let graph = self.resized(|id, block| match block.role {
            BlockRole::OptimizerState => Bytes::ZERO,
            BlockRole::Data | BlockRole::Workspace if is_of_step(id) => Bytes::ZERO,
            _ => block.size,
        });
        let duration = |step: StepId| match is_optimizer(step) {
            true => Nanos::ZERO,
            false => self.steps()[step.index()].duration,
        };
        graph.with_durations(duration).expect("no duration became negative")
    }
}

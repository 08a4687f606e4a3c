//! The start of forward: the first call of a module, or the first operator that a backward
//! node belongs to; where no module calls were recorded, the first layer, too, as frozen layers
//! have no backward nodes.

use crate::autograd::Autograd;
use crate::marks::TransferKind;
use crate::python::{ModuleCall, PythonCalls};
use crate::recording::Model;
use crate::timeline::{MarkKind, Timeline, span_around};
use crate::transfers::Transfer;
use rustc_hash::FxHashSet;
use xmem_trace::Trace;
use xmem_types::{Nanos, Sym};

/// Operators that take a weight: nothing but a model runs them.
const LAYERS: &[&str] =
    &["aten::linear", "aten::embedding", "aten::conv1d", "aten::conv2d", "aten::conv3d"];

/// Moments at which forward runs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Forwards {
    /// Outermost module calls of the training thread, by time.
    pub(crate) modules: Vec<ModuleCall>,
    /// Starts of outermost operators that made a backward node or are layers, by time, without
    /// repetition.
    linked: Vec<Nanos>,
    /// Names of those operators.
    names: FxHashSet<Sym>,
}

impl Forwards {
    pub(crate) fn find(
        trace: &Trace,
        calls: &PythonCalls,
        autograd: &Autograd,
        timeline: &Timeline,
        transfers: &[Transfer],
        models: &[Model],
    ) -> Self {
        let mut modules = calls.module_calls(&trace.python);
        modules.retain(|c| c.thread == timeline.thread);
        let is_model = |call: &ModuleCall| is_of(models, trace.strings.resolve(call.name));
        after_the_batch(&mut modules, timeline, transfers, is_model);
        let ops = &trace.ops;
        let starts: Vec<Nanos> = timeline.outer.iter().map(|o| ops.start[o.index()]).collect();
        let mut rows: Vec<usize> = autograd
            .pairs()
            .filter(|(_, forward)| ops.thread[forward.index()] == timeline.thread)
            .filter_map(|(_, forward)| {
                starts.partition_point(|s| *s <= ops.start[forward.index()]).checked_sub(1)
            })
            .collect();
        rows.sort_unstable();
        rows.dedup();
        let names = rows.iter().map(|&at| ops.name[timeline.outer[at].index()]).collect();
        if modules.is_empty() {
            let layer = |&at: &usize| {
                let i = timeline.outer[at].index();
                ops.thread[i] == timeline.thread
                    && LAYERS.contains(&trace.strings.resolve(ops.name[i]))
            };
            let runs = timeline.marks.iter().filter(|m| m.kind == MarkKind::Other);
            rows.extend(runs.flat_map(|m| m.first..m.last).filter(layer));
            rows.sort_unstable();
            rows.dedup();
        }
        let linked = rows.iter().map(|&at| starts[at]).collect();
        Self { modules, linked, names }
    }

    /// The first sign of forward in `[from, to)`.
    pub(crate) fn first_in(&self, from: Nanos, to: Nanos) -> Option<Nanos> {
        let module = self.modules.partition_point(|c| c.start < from);
        let linked = self.linked.partition_point(|s| *s < from);
        let module = self.modules.get(module).map(|c| c.start);
        let linked = self.linked.get(linked).copied();
        module.into_iter().chain(linked).min().filter(|t| *t < to)
    }

    /// Returns whether an operator of this name made a backward node anywhere in the trace.
    pub(crate) fn has_name(&self, name: Sym) -> bool {
        self.names.contains(&name)
    }

    /// The number of different operators that make backward nodes.
    pub(crate) fn distinct_names(&self) -> usize {
        self.names.len()
    }
}

/// Returns whether a module's name in the trace (`Net_0`) has the class of a model that the recording lists.
/// Containers do not count: transforms are put into them as well.
fn is_of(models: &[Model], name: &str) -> bool {
    let class = name.rsplit_once('_').map_or(name, |(class, _)| class);
    let classes = models.iter().map(|m| m.class.rsplit_once('.').map_or(&*m.class, |(_, c)| c));
    class != "Sequential" && classes.into_iter().any(|own| own == class)
}

/// A module that runs before the first thing is on the GPU, between two backward passes or steps,
/// prepares data (torchvision's transforms are modules), unless it is a model: that one computes with data that
/// have been on the GPU since before.
fn after_the_batch(
    modules: &mut Vec<ModuleCall>,
    timeline: &Timeline,
    transfers: &[Transfer],
    is_model: impl Fn(&ModuleCall) -> bool,
) {
    let turns: Vec<Nanos> = timeline
        .marks
        .iter()
        .filter(|m| matches!(m.kind, MarkKind::Backward | MarkKind::Step))
        .map(|m| m.start)
        .collect();
    let arrivals: Vec<Nanos> =
        transfers.iter().filter(|t| t.kind != TransferKind::ToHost).map(|t| t.time).collect();
    if turns.is_empty() || arrivals.is_empty() {
        return;
    }
    modules.retain_mut(|call| {
        let turn = span_around(&turns, call.start);
        let first = arrivals.get(arrivals.partition_point(|a| *a < turn.start));
        match first.filter(|a| **a < turn.end && **a > call.start) {
            Some(&first) if first < call.end => {
                call.start = first;
                true
            }
            found => found.is_none() || is_model(call),
        }
    });
}

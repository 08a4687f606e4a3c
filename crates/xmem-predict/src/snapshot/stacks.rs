//! The purpose of requests, as call stacks, which PyTorch's viewers show of an entry:
//! `filename:line:name`, innermost first.

use xmem_analyzer::{Phase, Profile, Role};
use xmem_orchestrator::{Schedule, ScheduledBlock};
use xmem_snapshot::{FrameId, Snapshot, StackId, predicted};
use xmem_types::{IterationId, OpId, RequestKind, Sym};

/// Between the levels of a module path.
const LEVEL: &str = " > ";

/// Makes the stacks of a schedule's requests, which are made in order.
pub(super) struct Stacks<'a> {
    profile: &'a Profile,
    schedule: &'a Schedule,
    /// The stack of each block's allocation; the empty stack before.
    allocated: Vec<StackId>,
    /// The stack in the making.
    frames: Vec<FrameId>,
}

impl<'a> Stacks<'a> {
    pub(super) fn new(profile: &'a Profile, schedule: &'a Schedule) -> Self {
        let allocated = vec![StackId::EMPTY; schedule.blocks.len()];
        Self { profile, schedule, allocated, frames: Vec::new() }
    }

    /// The stack of request `row`.
    pub(super) fn of_request(&mut self, row: usize, snapshot: &mut Snapshot) -> StackId {
        let request = &self.schedule.requests[row];
        let block = self.schedule.block(request.block);
        let index = request.block.index();
        let stack = match request.kind {
            RequestKind::Alloc { .. } => {
                self.push_allocation(block, snapshot);
                self.finish(snapshot)
            }
            RequestKind::Free => {
                self.push_free(row, block, snapshot);
                self.frames.extend_from_slice(snapshot.frames.stack(self.allocated[index]));
                return self.finish(snapshot);
            }
        };
        self.allocated[index] = stack;
        stack
    }

    fn finish(&mut self, snapshot: &mut Snapshot) -> StackId {
        let stack = snapshot.stack(&self.frames);
        self.frames.clear();
        stack
    }

    fn push_allocation(&mut self, block: &ScheduledBlock, snapshot: &mut Snapshot) {
        let place = block.origin.place(self.profile);
        let path = self.path(place.op);
        let inner = path.iter().take_while(|&&op| !self.profile.is_annotation(op)).count();
        let (inner, outer) = path.split_at(inner);
        self.push_ops(inner, snapshot);
        self.push_line(place.line, snapshot);
        self.push_modules(place.module, snapshot);
        self.push_ops(outer, snapshot);
        self.push_moment(place.phase, place.iteration, snapshot);
        if let Some(rule) = block.rule {
            self.push_own(&rule_label(rule.name), snapshot);
        }
        self.push_own(&role_label(block.role), snapshot);
    }

    /// The place of a free, as far as it is still that of the trace; the viewer shows it for what
    /// it frees as well, so the place of the allocation has to follow.
    fn push_free(&mut self, row: usize, block: &ScheduledBlock, snapshot: &mut Snapshot) {
        let time = self.schedule.times[row];
        let origin = block.origin.recorded().map(|id| self.profile.block(id));
        let unmoved = origin.filter(|origin| origin.free_time == Some(time));
        let path = self.path(unmoved.and_then(|origin| origin.freed_in));
        self.push_ops(&path, snapshot);
        if let Some(span) = self.profile.phase_at(time) {
            self.push_moment(span.phase, span.iteration, snapshot);
        }
        self.push_own("frees what was allocated in:", snapshot);
    }

    /// An operator and all around it, innermost first.
    fn path(&self, op: Option<OpId>) -> Vec<OpId> {
        op.map(|op| self.profile.tree.path(op).collect()).unwrap_or_default()
    }

    fn push_ops(&mut self, ops: &[OpId], snapshot: &mut Snapshot) {
        for &op in ops {
            let kind = if self.profile.is_annotation(op) { "annotation" } else { "operator" };
            self.frames.push(snapshot.frame(self.profile.op_name(op), kind, 0));
        }
    }

    fn push_line(&mut self, line: Sym, snapshot: &mut Snapshot) {
        if line != Sym::EMPTY {
            let (file, line, function) = python_frame(self.profile.text(line));
            self.frames.push(snapshot.frame(function, file, line));
        }
    }

    /// A frame for each level of a module path, named with the path up to it.
    fn push_modules(&mut self, module: Sym, snapshot: &mut Snapshot) {
        let mut path = self.profile.text(module);
        while !path.is_empty() {
            let (outer, own) = path.rsplit_once(LEVEL).unwrap_or(("", path));
            self.frames.push(snapshot.frame(path, &format!("nn.Module: {own}"), 0));
            path = outer;
        }
    }

    fn push_moment(
        &mut self,
        phase: Phase,
        iteration: Option<IterationId>,
        snapshot: &mut Snapshot,
    ) {
        self.push_own(&phase_label(phase), snapshot);
        if let Some(iteration) = iteration {
            self.push_own(&iteration_label(iteration), snapshot);
        }
    }

    fn push_own(&mut self, text: &str, snapshot: &mut Snapshot) {
        self.frames.push(snapshot.frame(text, predicted::FILE, 0));
    }
}

fn role_label(role: Role) -> String {
    format!("{}{}", predicted::ROLE, role.name())
}

fn rule_label(rule: &str) -> String {
    format!("rule: {rule}")
}

fn phase_label(phase: Phase) -> String {
    format!("{}{}", predicted::PHASE, phase.name())
}

/// Also the name of its annotation.
pub(super) fn iteration_label(iteration: IterationId) -> String {
    format!("{}{}", predicted::ITERATION, iteration.0)
}

/// File, line and function of a Python call as the profiler names it: `train.py(12): forward`. What
/// is named otherwise is all function.
fn python_frame(text: &str) -> (&str, u32, &str) {
    let parts = || {
        let (place, function) = text.split_once("): ")?;
        let (file, line) = place.rsplit_once('(')?;
        Some((file, line.parse().ok()?, function))
    };
    parts().unwrap_or(("python", 0, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_as_the_profiler_names_it_is_a_frame() {
        for (text, frame) in [
            ("train.py(12): forward", ("train.py", 12, "forward")),
            ("a (1)/b.py(3): <lambda>", ("a (1)/b.py", 3, "<lambda>")),
            ("x.py(4): f(): g", ("x.py", 4, "f(): g")),
            ("<built-in method relu>", ("python", 0, "<built-in method relu>")),
            ("x.py(a): f", ("python", 0, "x.py(a): f")),
        ] {
            assert_eq!(python_frame(text), frame, "{text}");
        }
    }

    /// `_frame_filter` in torch/cuda/_memory_viz.py, `frameFilter` in MemoryViz.js.
    #[test]
    fn no_label_is_one_that_viewers_hide() {
        const HIDDEN: [&str; 8] = [
            "unwind::unwind",
            "CapturedTraceback::gather",
            "gather_with_cpp",
            "_start",
            "__libc_start_main",
            "PyEval_",
            "PyObject_",
            "PyFunction_",
        ];
        let phases = [
            Phase::Init,
            Phase::Data,
            Phase::Forward,
            Phase::Backward,
            Phase::ZeroGrad,
            Phase::OptimizerStep,
        ];
        let rules = xmem_orchestrator::rules().iter().map(|rule| rule_label(rule.name));
        let labels = Role::ALL.into_iter().map(role_label).chain(rules);
        let labels: Vec<String> = labels.chain(phases.into_iter().map(phase_label)).collect();
        assert!(labels.len() > 30);
        for label in labels {
            assert!(!HIDDEN.iter().any(|word| label.contains(word)), "{label}");
        }
    }
}

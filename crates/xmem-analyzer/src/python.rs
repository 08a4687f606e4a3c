//! The Python stack: module path, source line and surroundings of each block, and the calls of
//! the model.

use crate::autograd::Autograd;
use crate::lifetime::{Lifetime, Origin};
use crate::line_names::LineNames;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use xmem_trace::{PythonTable, Trace};
use xmem_types::{BlockId, Interner, Nanos, OpId, Sym, ThreadIdx};

pub(crate) const MODULE: &str = "nn.Module: ";

/// The innermost call around an allocation that shows the purpose of the memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Context {
    /// No such call.
    #[default]
    None,
    /// The constructor of a module.
    ModuleInit,
    /// The constructor of an optimizer.
    OptimizerInit,
    /// `Module._apply`: the model is moved or converted.
    ModuleApply,
}

/// The kind of tensor that a module is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Registered {
    /// `Module.register_parameter`, also behind `self.x = nn.Parameter(…)`.
    Parameter,
    /// `Module.register_buffer`, also behind `self.x = nn.Buffer(…)`.
    Buffer,
}

/// A call of a module (`nn.Module.__call__`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ModuleCall {
    /// The start.
    pub start: Nanos,
    /// The end.
    pub end: Nanos,
    /// The class with its number (`Linear_3`).
    pub name: Sym,
    /// The thread.
    pub thread: ThreadIdx,
}

/// Every call of a module, by thread and start, outer ones first.
pub(crate) fn module_calls(python: &PythonTable, strings: &Interner) -> Vec<ModuleCall> {
    let mut short: FxHashMap<Sym, Option<Sym>> = FxHashMap::default();
    let mut calls: Vec<(usize, ModuleCall)> = Vec::new();
    for row in 0..python.len() {
        let name = *short.entry(python.name[row]).or_insert_with_key(|name| {
            strings.resolve(*name).strip_prefix(MODULE).and_then(|short| strings.get(short))
        });
        let Some(name) = name else { continue };
        let (start, thread) = (python.start[row], python.thread[row]);
        calls.push((row, ModuleCall { start, end: start + python.duration[row], name, thread }));
    }
    calls.sort_unstable_by_key(|(row, call)| (call.thread, call.start, Reverse(call.end), *row));
    calls.into_iter().map(|(_, call)| call).collect()
}

/// The meaning of a Python call's name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Call {
    /// Of no interest.
    #[default]
    Plain,
    /// A source line worth showing; a constructor or not.
    Line,
    Init,
    /// `nn.Module: …`, with its short name.
    Module(Sym),
    /// `Module.__init__`, `__setattr__`: the caller's `self` is a module.
    OfModule,
    /// `Module.register_parameter` and `register_buffer`: so is it here.
    Registers(Registered),
    /// `Optimizer.__init__`: the caller's `self` is an optimizer.
    OfOptimizer,
    /// `Module._apply`.
    Apply,
    /// `model.zero_grad()` (and an optimizer's, which is annotated as well).
    ZeroGrad,
    /// A method named `step` outside of torch's schedulers and profiler.
    Step,
}

/// The Python calls, sorted for sweeps.
pub(crate) struct PythonCalls {
    /// Rows by thread and time, outer calls first.
    order: Vec<u32>,
    /// Per symbol.
    calls: Vec<Call>,
    /// Per row: whether it constructs a module or an optimizer.
    context: Vec<Context>,
}

impl PythonCalls {
    pub(crate) fn build(python: &PythonTable, strings: &mut Interner) -> Self {
        let mut order: Vec<u32> = (0..python.len() as u32).collect();
        order.sort_unstable_by_key(|&r| {
            let i = r as usize;
            (python.thread[i], python.start[i], Reverse(python.duration[i]), r)
        });
        let calls = classify(python, strings);
        let context = contexts(python, &order, &calls);
        Self { order, calls, context }
    }

    /// Rows by thread and start, outer calls first.
    pub(crate) fn order(&self) -> &[u32] {
        &self.order
    }

    /// Outermost module calls by time.
    pub(crate) fn module_calls(&self, python: &PythonTable) -> Vec<ModuleCall> {
        let mut found: Vec<ModuleCall> = Vec::new();
        for &row in &self.order {
            let i = row as usize;
            let Call::Module(name) = self.calls[python.name[i].index()] else { continue };
            let (start, thread) = (python.start[i], python.thread[i]);
            if found.last().is_some_and(|l| l.thread == thread && l.end > start) {
                continue;
            }
            found.push(ModuleCall { start, end: start + python.duration[i], name, thread });
        }
        found.sort_by_key(|c| c.start);
        found
    }

    /// The times at which a thread gives modules their parameters and buffers, in order.
    pub(crate) fn registrations(
        &self,
        python: &PythonTable,
        thread: ThreadIdx,
    ) -> Vec<(Nanos, Registered)> {
        let rows = self.order.iter().map(|&r| r as usize).filter(|&i| python.thread[i] == thread);
        rows.filter_map(|i| match self.calls[python.name[i].index()] {
            Call::Registers(what) => Some((python.start[i], what)),
            _ => None,
        })
        .collect()
    }

    /// Time spans of calls of `zero_grad` methods, then of `step` methods; inner ones included.
    pub(crate) fn method_calls(&self, python: &PythonTable) -> [Vec<(Nanos, Nanos)>; 2] {
        let mut found = [Vec::new(), Vec::new()];
        for &row in &self.order {
            let i = row as usize;
            let list = match self.calls[python.name[i].index()] {
                Call::ZeroGrad => &mut found[0],
                Call::Step => &mut found[1],
                _ => continue,
            };
            list.push((python.start[i], python.start[i] + python.duration[i]));
        }
        found
    }
}

fn classify(python: &PythonTable, strings: &mut Interner) -> Vec<Call> {
    let mut calls = vec![Call::Plain; strings.len()];
    let mut seen = vec![false; strings.len()];
    for &name in &python.name {
        if std::mem::replace(&mut seen[name.index()], true) {
            continue;
        }
        let text = strings.resolve(name);
        calls[name.index()] = if let Some(short) = text.strip_prefix(MODULE) {
            let short = short.to_owned();
            Call::Module(strings.intern(&short))
        } else {
            call(text)
        };
    }
    calls
}

fn call(text: &str) -> Call {
    let Some((file, method)) = text.rsplit_once("): ") else { return Call::Plain };
    let in_torch = |path: &str| file.starts_with(path) || file.contains(&format!("/{path}"));
    // The recorder's own: its `step` is not an optimizer's.
    if in_torch("torch/xmem_recorder.py(") {
        return Call::Plain;
    }
    if in_torch("torch/nn/modules/module.py(") {
        return match method {
            "__init__" | "__setattr__" | "register_module" | "add_module" => Call::OfModule,
            "register_parameter" => Call::Registers(Registered::Parameter),
            "register_buffer" => Call::Registers(Registered::Buffer),
            "_apply" => Call::Apply,
            "zero_grad" => Call::ZeroGrad,
            _ => Call::Plain,
        };
    }
    if in_torch("torch/optim/optimizer.py(") {
        return match method {
            "__init__" => Call::OfOptimizer,
            "zero_grad" => Call::ZeroGrad,
            _ => Call::Plain,
        };
    }
    match method {
        "__init__" => Call::Init,
        "zero_grad" => Call::ZeroGrad,
        "step" if !in_torch("torch/optim/") && !in_torch("torch/profiler/") => Call::Step,
        _ if is_user_file(file) => Call::Line,
        _ => Call::Plain,
    }
}

/// Returns whether a call is in the user's code or in a library's, rather than in torch or in Python's
/// own.
fn is_user_file(file: &str) -> bool {
    const STANDARD: [&str; 10] = [
        "contextlib.py(",
        "functools.py(",
        "typing.py(",
        "typing_extensions.py(",
        "threading.py(",
        "inspect.py(",
        "warnings.py(",
        "copy.py(",
        "abc.py(",
        "enum.py(",
    ];
    file.contains(".py(")
        && !file.starts_with("torch/")
        && !file.contains("/torch/")
        && !STANDARD.iter().any(|s| file.starts_with(s) || file.contains(&format!("/{s}")))
}

/// Finds constructors: an `__init__` that calls `Module.__init__` or sets an attribute of a module
/// is a module's; one that calls `Optimizer.__init__` is an optimizer's.
fn contexts(python: &PythonTable, order: &[u32], calls: &[Call]) -> Vec<Context> {
    let mut context = vec![Context::None; python.len()];
    let mut open: Vec<(Nanos, u32)> = Vec::new();
    let mut thread = None;
    for &row in order {
        let i = row as usize;
        let start = python.start[i];
        if thread != Some(python.thread[i]) {
            thread = Some(python.thread[i]);
            open.clear();
        }
        while open.last().is_some_and(|&(end, _)| end <= start) {
            open.pop();
        }
        let call = calls[python.name[i].index()];
        let of_caller = match call {
            Call::OfModule | Call::Registers(_) => Context::ModuleInit,
            Call::OfOptimizer => Context::OptimizerInit,
            _ => Context::None,
        };
        if call == Call::Apply {
            context[i] = Context::ModuleApply;
        }
        if let Some(&(_, caller)) = open.last()
            && of_caller != Context::None
            && calls[python.name[caller as usize].index()] == Call::Init
        {
            context[caller as usize] = of_caller;
        }
        open.push((start + python.duration[i], row));
    }
    context
}

/// The part of a block that the Python stack shows.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Frame {
    /// Module path.
    pub(crate) module: Sym,
    /// Source line.
    pub(crate) line: Sym,
    pub(crate) context: Context,
}

/// A call that has not returned, with what it says about what happens in it.
#[derive(Clone, Copy, Default)]
struct OpenCall {
    end: Nanos,
    module: Option<ModuleRow>,
    line: Sym,
    /// The place of the call of `line` among the open ones.
    user: usize,
    /// The line at which it is; 0 where that is not known.
    at: u32,
    context: Context,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Moment {
    /// The innermost function of the user's is at this line.
    Line(u32),
    Block(BlockId),
    Node(OpId),
}

/// The frame of every block, with `lines` as `xmem profile` found them. Blocks of backward take module and line from the
/// forward operator that made the node.
pub(crate) fn frames(
    lifetimes: &[Lifetime],
    origins: &[Origin],
    calls: &PythonCalls,
    lines: &[(Nanos, u32)],
    trace: &mut Trace,
    autograd: &Autograd,
) -> Vec<Frame> {
    if trace.python.is_empty() {
        return vec![Frame::default(); lifetimes.len()];
    }
    // Moments to look up: each block's allocation, and each forward operator that made a node.
    let mut pairs: Vec<(OpId, OpId)> = autograd.pairs().collect();
    pairs.sort_unstable();
    let mut moments: Vec<(ThreadIdx, Nanos, Moment)> =
        Vec::with_capacity(lines.len() + lifetimes.len() + pairs.len());
    // Lines are those of the thread that was recorded.
    let thread = trace.python.thread[calls.order[0] as usize];
    moments.extend(lines.iter().map(|&(time, line)| (thread, time, Moment::Line(line))));
    for (i, l) in lifetimes.iter().enumerate() {
        moments.push((l.thread, l.alloc_time, Moment::Block(BlockId::new(i))));
    }
    for &(node, op) in &pairs {
        let i = op.index();
        moments.push((trace.ops.thread[i], trace.ops.start[i], Moment::Node(node)));
    }
    // At one time, lines come first.
    moments.sort_by_key(|m| (m.0, m.1, !matches!(m.2, Moment::Line(_))));
    let mut of_node: FxHashMap<OpId, Frame> = FxHashMap::default();
    let mut of_block: Vec<Frame> = vec![Frame::default(); lifetimes.len()];
    let Trace { python, strings, .. } = trace;
    walk(calls, python, &moments, strings, |moment, frame| match moment {
        Moment::Block(b) => of_block[b.index()] = frame,
        Moment::Node(n) => {
            of_node.insert(n, frame);
        }
        Moment::Line(_) => {}
    });
    for (origin, frame) in origins.iter().zip(&mut of_block) {
        // A node that forward has no part in (AccumulateGrad) runs within none that has.
        let node = origin.op.and_then(|op| autograd.node_of(op)).and_then(|n| of_node.get(&n));
        let Some(source) = node else { continue };
        frame.module = source.module;
        if source.line != Sym::EMPTY {
            frame.line = source.line;
        }
    }
    of_block
}

/// Calls `found` for each moment (sorted by thread and time) with the frame it lies in.
fn walk(
    calls: &PythonCalls,
    python: &PythonTable,
    moments: &[(ThreadIdx, Nanos, Moment)],
    strings: &mut Interner,
    mut found: impl FnMut(Moment, Frame),
) {
    let mut next = 0;
    let mut open: Vec<OpenCall> = Vec::new();
    let mut thread = None;
    let mut modules = ModulePaths::default();
    let mut names = LineNames::default();
    for &(on, time, moment) in moments {
        if thread != Some(on) {
            thread = Some(on);
            open.clear();
            next = calls.order.partition_point(|&r| python.thread[r as usize] < on);
        }
        while let Some(&row) = calls.order.get(next) {
            let i = row as usize;
            // What is called at a line begins at the time of the line.
            let is_later = match moment {
                Moment::Line(_) => python.start[i] >= time,
                Moment::Block(_) | Moment::Node(_) => python.start[i] > time,
            };
            if python.thread[i] != on || is_later {
                break;
            }
            next += 1;
            let start = python.start[i];
            while open.last().is_some_and(|call| call.end <= start) {
                open.pop();
            }
            let end = start + python.duration[i];
            if end < time {
                continue;
            }
            let above = open.last().copied().unwrap_or_default();
            let mut call = OpenCall { end, ..above };
            if calls.context[i] != Context::None {
                call.context = calls.context[i];
            }
            match calls.calls[python.name[i].index()] {
                Call::Module(short) => call.module = Some(modules.inner(above.module, short)),
                Call::Line => (call.line, call.user, call.at) = (python.name[i], open.len(), 0),
                Call::Init | Call::Step | Call::ZeroGrad
                    if is_user_file(strings.resolve(python.name[i])) =>
                {
                    (call.line, call.user, call.at) = (python.name[i], open.len(), 0);
                }
                _ => {}
            }
            open.push(call);
        }
        while open.last().is_some_and(|call| call.end < time) {
            open.pop();
        }
        let OpenCall { module, mut line, user, context, .. } =
            open.last().copied().unwrap_or_default();
        if line != Sym::EMPTY {
            match moment {
                Moment::Line(at) => open[user].at = at,
                _ if open[user].at > 0 => line = names.at(line, open[user].at, strings),
                _ => {}
            }
        }
        if matches!(moment, Moment::Line(_)) {
            continue;
        }
        let module = module.map_or(Sym::EMPTY, |row| modules.path(row, strings));
        found(moment, Frame { module, line, context });
    }
}

/// A module in the place from which it is called.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct ModuleRow(u32);

/// Modules as a tree. Paths are written only where something happens in them, and shortened where
/// they are deeper than anyone reads, so that they never take the square of the depth.
#[derive(Default)]
struct ModulePaths {
    rows: Vec<CalledModule>,
    by_place: FxHashMap<(Option<ModuleRow>, Sym), ModuleRow>,
}

struct CalledModule {
    name: Sym,
    depth: u32,
    /// The module that is named before it in its path.
    before: Option<ModuleRow>,
    path: Option<Sym>,
}

impl ModulePaths {
    /// The depth beyond which modules are named by the path down to it and their own name.
    const MAX_NAMED_DEPTH: u32 = 64;

    fn inner(&mut self, above: Option<ModuleRow>, name: Sym) -> ModuleRow {
        *self.by_place.entry((above, name)).or_insert_with(|| {
            let outer = above.map(|row| &self.rows[row.0 as usize]);
            let depth = outer.map_or(0, |module| module.depth + 1);
            let deeper = outer.filter(|module| module.depth > Self::MAX_NAMED_DEPTH);
            let before = deeper.map_or(above, |module| module.before);
            self.rows.push(CalledModule { name, depth, before, path: None });
            ModuleRow(self.rows.len() as u32 - 1)
        })
    }

    fn path(&mut self, row: ModuleRow, strings: &mut Interner) -> Sym {
        let module = &self.rows[row.0 as usize];
        if let Some(path) = module.path {
            return path;
        }
        let before = std::iter::successors(module.before, |row| self.rows[row.0 as usize].before);
        let mut names: Vec<&str> =
            before.map(|row| strings.resolve(self.rows[row.0 as usize].name)).collect();
        names.reverse();
        if module.depth > Self::MAX_NAMED_DEPTH + 1 {
            names.push("…");
        }
        names.push(strings.resolve(module.name));
        let path = strings.intern(&names.join(" > "));
        self.rows[row.0 as usize].path = Some(path);
        path
    }
}

//! Which operator, module and Python line each block comes from.

use crate::autograd::Autograd;
use crate::optree::{OpTree, Sweep};
use crate::profile::Block;
use rustc_hash::FxHashMap;
use xmem_trace::{MemoryTable, PythonTable, Trace};
use xmem_types::{BlockId, Interner, Nanos, OpId, Sym, ThreadIdx};

const MODULE: &str = "nn.Module: ";

/// Sets `op` and `freed_in` of every block.
pub(crate) fn attribute_ops(
    blocks: &mut [Block],
    rows: &[u32],
    memory: &MemoryTable,
    trace: &Trace,
    tree: &OpTree,
) {
    let mut by_thread: FxHashMap<ThreadIdx, Vec<u32>> = FxHashMap::default();
    for (tick, &row) in rows.iter().enumerate() {
        by_thread.entry(memory.thread[row as usize]).or_default().push(tick as u32);
    }
    let mut innermost: Vec<Option<OpId>> = vec![None; rows.len()];
    for (thread, ticks) in by_thread {
        let mut sweep = Sweep::new(&trace.ops, tree, thread);
        for tick in ticks {
            let row = rows[tick as usize] as usize;
            innermost[tick as usize] = sweep.innermost(memory.time[row]);
        }
    }
    for block in blocks {
        block.op = innermost[block.alloc.0 as usize];
        block.freed_in = block.free.and_then(|t| innermost[t.0 as usize]);
    }
}

/// What the Python stack says at one moment.
#[derive(Clone, Copy, Default)]
struct Frame {
    module: Sym,
    line: Sym,
}

/// Sets `module` and `line` of every block from the Python calls; blocks of backward take both
/// from the forward operator that made the node.
pub(crate) fn attribute_python(
    blocks: &mut [Block],
    trace: &mut Trace,
    tree: &OpTree,
    autograd: &Autograd,
) {
    if trace.python.is_empty() {
        return;
    }
    // Moments to look up: each block's allocation, and each forward operator that made a node.
    let forward: Vec<(OpId, OpId)> = {
        let mut pairs: Vec<_> = autograd.pairs().collect();
        pairs.sort_unstable();
        pairs
    };
    let mut moments: Vec<(ThreadIdx, Nanos, Moment)> =
        Vec::with_capacity(blocks.len() + forward.len());
    for (i, b) in blocks.iter().enumerate() {
        moments.push((b.thread, b.alloc_time, Moment::Block(BlockId::new(i))));
    }
    for &(node, op) in &forward {
        let i = op.index();
        moments.push((trace.ops.thread[i], trace.ops.start[i], Moment::Node(node)));
    }
    moments.sort_unstable_by_key(|m| (m.0, m.1));
    let frames = Frames::new(&trace.python, &mut trace.strings);
    let mut of_node: FxHashMap<OpId, Frame> = FxHashMap::default();
    let mut of_block: Vec<Frame> = vec![Frame::default(); blocks.len()];
    frames.walk(&moments, &mut trace.strings, |moment, frame| match moment {
        Moment::Block(b) => of_block[b.index()] = frame,
        Moment::Node(n) => {
            of_node.insert(n, frame);
        }
    });
    for (block, frame) in blocks.iter_mut().zip(of_block) {
        let node = block.op.and_then(|op| tree.path(op).find_map(|o| of_node.get(&o)));
        let source = node.copied().unwrap_or(frame);
        block.module = source.module;
        block.line = if source.line == Sym::EMPTY { frame.line } else { source.line };
    }
}

#[derive(Clone, Copy)]
enum Moment {
    Block(BlockId),
    Node(OpId),
}

/// Python calls sorted for a sweep, with what each name is.
struct Frames<'a> {
    python: &'a PythonTable,
    order: Vec<u32>,
    /// Per symbol: the module's short name, if the call is a module's.
    module: FxHashMap<Sym, Sym>,
    /// Per symbol: whether it is a source line worth showing.
    source: FxHashMap<Sym, bool>,
}

impl<'a> Frames<'a> {
    fn new(python: &'a PythonTable, strings: &mut Interner) -> Self {
        let mut order: Vec<u32> = (0..python.len() as u32).collect();
        order.sort_unstable_by_key(|&r| {
            let i = r as usize;
            (python.thread[i], python.start[i], std::cmp::Reverse(python.duration[i]), r)
        });
        let mut module = FxHashMap::default();
        let mut source = FxHashMap::default();
        for &name in &python.name {
            if source.contains_key(&name) {
                continue;
            }
            let text = strings.resolve(name);
            source.insert(name, is_user_line(text));
            if let Some(short) = text.strip_prefix(MODULE) {
                let short = short.to_owned();
                module.insert(name, strings.intern(&short));
            }
        }
        Self { python, order, module, source }
    }

    /// Calls `found` for each moment (sorted by thread and time) with the frame it lies in.
    fn walk(
        &self,
        moments: &[(ThreadIdx, Nanos, Moment)],
        strings: &mut Interner,
        mut found: impl FnMut(Moment, Frame),
    ) {
        let mut next = 0;
        let mut open: Vec<(Nanos, Frame)> = Vec::new();
        let mut thread = None;
        let mut joined: FxHashMap<(Sym, Sym), Sym> = FxHashMap::default();
        for &(on, time, moment) in moments {
            if thread != Some(on) {
                thread = Some(on);
                open.clear();
                next = self.order.partition_point(|&r| self.python.thread[r as usize] < on);
            }
            while let Some(&row) = self.order.get(next) {
                let i = row as usize;
                if self.python.thread[i] != on || self.python.start[i] > time {
                    break;
                }
                next += 1;
                let start = self.python.start[i];
                while open.last().is_some_and(|&(end, _)| end <= start) {
                    open.pop();
                }
                let end = start + self.python.duration[i];
                if end < time {
                    continue;
                }
                let above = open.last().map_or(Frame::default(), |&(_, f)| f);
                let name = self.python.name[i];
                let mut frame = above;
                if let Some(&short) = self.module.get(&name) {
                    frame.module = *joined.entry((above.module, short)).or_insert_with(|| {
                        if above.module == Sym::EMPTY {
                            return short;
                        }
                        let path = format!(
                            "{} > {}",
                            strings.resolve(above.module),
                            strings.resolve(short)
                        );
                        strings.intern(&path)
                    });
                } else if self.source[&name] {
                    frame.line = name;
                }
                open.push((end, frame));
            }
            while open.last().is_some_and(|&(end, _)| end < time) {
                open.pop();
            }
            found(moment, open.last().map_or(Frame::default(), |&(_, f)| f));
        }
    }
}

/// Whether a Python call is a line to show a user: a source line outside of torch itself.
fn is_user_line(name: &str) -> bool {
    name.contains(".py(")
        && !name.starts_with("torch/")
        && !name.contains("/torch/")
        && !name.starts_with("contextlib.py")
}

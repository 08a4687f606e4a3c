//! The lines of the program that run operators. A trace has the line of each function's `def` alone: the lines of the calls
//! in it come from `xmem profile`, as numbers.

use crate::autograd::Autograd;
use crate::block::Block;
use crate::integrity::is_coarse;
use crate::line_names::LineNames;
use serde::Deserialize;
use xmem_trace::Trace;
use xmem_types::{Diagnostics, Nanos, OpId, Severity, Sym};

/// The top-level key of a trace under which `xmem profile` keeps the lines.
pub(crate) const KEY: &str = "xmem_lines";

const SCHEMA: &str = "xmem.lines.1";

#[derive(Deserialize)]
struct LinesDto {
    schema: String,
    /// Times since the Unix epoch in ns, each as the difference to the one before.
    starts: Vec<i64>,
    lines: Vec<u32>,
}

/// Times, in order, from which on the innermost function of the user's is at a line: there it calls a function or an
/// operator.
pub(crate) fn read(raw: &str, trace: &Trace, notes: &mut Diagnostics) -> Vec<(Nanos, u32)> {
    let dto = serde_json::from_str::<LinesDto>(raw).ok();
    let dto = dto.filter(|dto| dto.schema == SCHEMA && dto.starts.len() == dto.lines.len());
    let Some(dto) = dto else {
        notes.report("recording-lines", Severity::Warning, None, || {
            format!("`{KEY}` has an unexpected form: lines are those of the functions")
        });
        return Vec::new();
    };
    // Older releases of PyTorch write whole microseconds.
    let is_coarse = is_coarse(&trace.ops);
    let mut time = -trace.header.base_time.unwrap_or_default().get();
    let mut lines = Vec::with_capacity(dto.lines.len());
    for (step, line) in dto.starts.into_iter().zip(dto.lines) {
        time = time.saturating_add(step);
        lines.push((Nanos(if is_coarse { time.div_euclid(1000) * 1000 } else { time }), line));
    }
    lines.sort_by_key(|&(time, _)| time);
    lines
}

/// Gives blocks the lines that the history of an allocator has for their rows. Blocks of backward have those of the forward
/// operators, as far as these allocated anything.
pub(crate) fn of_history(
    lines: &[(usize, u32)],
    blocks: &mut [Block],
    trace: &mut Trace,
    autograd: &Autograd,
) {
    let mut names = LineNames::default();
    let mut known = vec![false; blocks.len()];
    let is_backward = |block: &Block| block.op.is_some_and(|op| autograd.node_of(op).is_some());
    for &(row, line) in lines {
        let block = &mut blocks[row];
        if block.line != Sym::EMPTY && !is_backward(block) {
            block.line = names.at(block.line, line, &mut trace.strings);
            known[row] = true;
        }
    }
    let of_op = |op: OpId, blocks: &[Block]| {
        let at = op.index();
        let (thread, start) = (trace.ops.thread[at], trace.ops.start[at]);
        let end = start + trace.ops.duration[at];
        let first = blocks.partition_point(|block| block.alloc_time < start);
        let inside = blocks[first..].iter().zip(&known[first..]);
        let mut inside = inside.take_while(|(block, _)| block.alloc_time <= end);
        inside.find(|(block, known)| **known && block.thread == thread).map(|(block, _)| block.line)
    };
    for row in 0..blocks.len() {
        let node = blocks[row].op.and_then(|op| autograd.node_of(op));
        let forward = node.and_then(|node| autograd.forward_of(node));
        if let Some(line) = forward.and_then(|op| of_op(op, blocks)) {
            blocks[row].line = line;
        }
    }
}

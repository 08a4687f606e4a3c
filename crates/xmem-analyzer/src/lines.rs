//! The lines of the program that run operators. A trace has the line of each function's `def` alone: the lines of the calls
//! in it come from `xmem profile`, as numbers.

use crate::autograd::Autograd;
use crate::block::Block;
use rustc_hash::FxHashMap;
use serde::Deserialize;
use xmem_trace::Trace;
use xmem_types::{Diagnostics, Interner, Nanos, OpId, Severity, Sym};

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
    let is_coarse = trace.python.start.iter().all(|start| start.get() % 1000 == 0);
    let mut time = -trace.header.base_time.unwrap_or_default().get();
    let mut lines = Vec::with_capacity(dto.lines.len());
    for (step, line) in dto.starts.into_iter().zip(dto.lines) {
        time = time.saturating_add(step);
        lines.push((Nanos(if is_coarse { time.div_euclid(1000) * 1000 } else { time }), line));
    }
    lines.sort_by_key(|&(time, _)| time);
    lines
}

/// Names of calls (`train.py(12): forward`) at other lines than that of the `def`.
#[derive(Default)]
pub(crate) struct LineNames {
    known: FxHashMap<(Sym, u32), Sym>,
}

impl LineNames {
    /// The call `name` at a line.
    pub(crate) fn at(&mut self, name: Sym, line: u32, strings: &mut Interner) -> Sym {
        if let Some(&known) = self.known.get(&(name, line)) {
            return known;
        }
        let text = with_line(strings.resolve(name), line);
        let sym = text.map_or(name, |text| strings.intern(&text));
        self.known.insert((name, line), sym);
        sym
    }
}

fn with_line(name: &str, line: u32) -> Option<String> {
    let (place, function) = name.split_once("): ")?;
    let (file, _) = place.rsplit_once('(')?;
    Some(format!("{file}({line}): {function}"))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_number_of_a_call_changes() {
        for (name, expected) in [
            ("train.py(12): forward", Some("train.py(7): forward")),
            ("a (1)/b.py(3): <lambda>", Some("a (1)/b.py(7): <lambda>")),
            ("x.py(4): f(): g", Some("x.py(7): f(): g")),
            ("<built-in method relu>", None),
        ] {
            assert_eq!(with_line(name, 7).as_deref(), expected, "{name}");
        }
    }
}

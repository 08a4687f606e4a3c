//! Folded stacks: what is allocated at the peak, one line per stack with its bytes, as Brendan Gregg's
//! `flamegraph.pl`, inferno and speedscope read them.

use crate::Run;
use std::fmt::Write;
use xmem::predict::{BlockKey, TreeNode};

/// The name of a part without one.
const UNKNOWN: &str = "[unknown]";

/// The memory at the peak of allocated bytes, by `key`: `outer;inner bytes`, largest first. The bytes add up to the
/// peak.
#[must_use]
pub fn folded(run: &Run<'_>, key: BlockKey) -> String {
    let timeline = run.timeline;
    let mut text = String::new();
    let root = timeline.tree(timeline.peak, key);
    for child in &root.children {
        write(child, "", &mut text, &|row| timeline.blocks[row as usize].size.get());
    }
    text
}

fn write(node: &TreeNode, outer: &str, text: &mut String, size: &impl Fn(u32) -> u64) {
    let name = if node.name.is_empty() { UNKNOWN.to_owned() } else { frame(&node.name) };
    let path = if outer.is_empty() { name } else { format!("{outer};{name}") };
    let own: u64 = node.own.iter().map(|&row| size(row)).sum();
    if own > 0 {
        let _ = writeln!(text, "{path} {own}");
    }
    for child in &node.children {
        write(child, &path, text, size);
    }
}

/// A name as a frame: semicolons separate frames, and lines end stacks.
fn frame(name: &str) -> String {
    name.chars().map(|c| if c == ';' || c.is_control() { ',' } else { c }).collect()
}

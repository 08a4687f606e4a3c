//! Interruptions of a plan: the requests that are left out of it, by the words of a user.

use super::allocators::AllocatorRun;
use super::blocks::{BlockFacts, PlanBlocks};
use std::fmt;
use std::ops::Range;
use std::str::FromStr;
use thiserror::Error;
use xmem_analyzer::Phase;
use xmem_planner::interrupt;
use xmem_types::Bytes;

/// The requests that are left out of a plan, because they change from run to run: those between `interrupt` and
/// `resume` of Sekiyama et al., named from outside of the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Interruption {
    /// Those at these ticks of the blocks' list.
    Ticks(Range<u32>),
    /// Those of a phase of an iteration.
    Phase(Phase),
    /// Those of the innermost operators with this name, in which `*` stands for any characters.
    Operator(String),
}

/// Text that is no interruption.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ParseInterruptionError {
    /// It is empty.
    #[error(
        "expected START..END (ticks), a phase (forward, backward, …) or the name of an operator"
    )]
    Empty,
    /// The range has no tick.
    #[error("`{0}` has no tick: the end is the first tick after the range, for example 10..20")]
    NoTick(String),
}

/// The blocks that are left out of a plan.
#[derive(Clone, Debug)]
pub struct InterruptedRun {
    /// The interruptions.
    pub by: Vec<Interruption>,
    /// The number of blocks.
    pub blocks: usize,
    /// The most bytes of them that are live at once.
    pub live: Bytes,
    /// What the allocator of the job reserves for them alone.
    pub reserved: Bytes,
    /// All blocks: their number.
    pub all_blocks: usize,
    /// All blocks: the most bytes that are live at once.
    pub all_live: Bytes,
    /// All blocks: what the allocator of the job reserves.
    pub all_reserved: Bytes,
}

/// The blocks of an input in two parts.
pub(super) struct Parts {
    pub(super) planned: PlanBlocks,
    pub(super) left_out: Vec<bool>,
}

impl Interruption {
    /// All phases that can be named.
    const PHASES: [Phase; 6] = [
        Phase::Init,
        Phase::Data,
        Phase::Forward,
        Phase::Backward,
        Phase::ZeroGrad,
        Phase::OptimizerStep,
    ];

    fn has(&self, start: u32, facts: &BlockFacts) -> bool {
        match self {
            Self::Ticks(ticks) => ticks.contains(&start),
            Self::Phase(phase) => facts.phase == Some(*phase),
            Self::Operator(pattern) => matches(pattern, &facts.op),
        }
    }

    /// True if it names a block by its phase or operator.
    pub(super) fn names(&self, facts: &BlockFacts) -> bool {
        match self {
            Self::Ticks(_) => false,
            Self::Phase(_) | Self::Operator(_) => self.has(0, facts),
        }
    }

    /// True if it names a request of these blocks.
    #[must_use]
    pub fn names_some(&self, blocks: &PlanBlocks) -> bool {
        let mut all = blocks.list.blocks().iter().zip(&blocks.facts);
        all.any(|(block, facts)| self.has(block.start, facts))
    }
}

impl fmt::Display for Interruption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ticks(ticks) => write!(f, "{}..{}", ticks.start, ticks.end),
            Self::Phase(phase) => f.write_str(phase.name()),
            Self::Operator(pattern) => f.write_str(pattern),
        }
    }
}

impl FromStr for Interruption {
    type Err = ParseInterruptionError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.trim().is_empty() {
            return Err(ParseInterruptionError::Empty);
        }
        let ticks = text.split_once("..").map(|(start, end)| (start.parse(), end.parse()));
        if let Some((Ok(start), Ok(end))) = ticks {
            let ticks: Range<u32> = start..end;
            return match ticks.is_empty() {
                true => Err(ParseInterruptionError::NoTick(text.to_owned())),
                false => Ok(Self::Ticks(ticks)),
            };
        }
        let phase = Self::PHASES.into_iter().find(|phase| phase.name() == text);
        Ok(phase.map_or_else(|| Self::Operator(text.to_owned()), Self::Phase))
    }
}

/// True if `name` is the pattern, in which `*` stands for any characters.
fn matches(pattern: &str, name: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(mut name) = name.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let last = parts.pop().expect("a split has a part");
    for part in parts {
        let Some(at) = name.find(part) else { return false };
        name = &name[at + part.len()..];
    }
    name.ends_with(last)
}

impl Parts {
    /// The blocks without those that an interruption names.
    pub(super) fn new(blocks: &PlanBlocks, by: &[Interruption]) -> Self {
        let mut ticks: Vec<Range<u32>> = Vec::new();
        for (block, facts) in blocks.list.blocks().iter().zip(&blocks.facts) {
            // Blocks that begin at the same tick are those of a table, which has neither phases nor operators.
            if by.iter().any(|by| by.has(block.start, facts)) {
                ticks.push(block.start..block.start + 1);
            }
        }
        let parts = interrupt(&blocks.list, &ticks);
        let mut left_out = vec![false; blocks.list.len()];
        parts.unplanned_ids.iter().for_each(|&id| left_out[id] = true);
        let facts = parts.planned_ids.iter().map(|&id| blocks.facts[id].clone()).collect();
        Self { planned: PlanBlocks { list: parts.planned, facts, ..blocks.clone() }, left_out }
    }
}

impl InterruptedRun {
    /// The blocks to be planned, and what is left out of the plan.
    pub(super) fn new(blocks: &PlanBlocks, by: &[Interruption]) -> (PlanBlocks, Self) {
        let Parts { planned, left_out } = Parts::new(blocks, by);
        let rest = blocks.only(|id| left_out[id]);
        let run = Self {
            by: by.to_vec(),
            blocks: rest.list.len(),
            live: rest.list.lower_bound(),
            reserved: AllocatorRun::of_job(&rest).reserved,
            all_blocks: blocks.list.len(),
            all_live: blocks.list.lower_bound(),
            all_reserved: AllocatorRun::of_job(blocks).reserved,
        };
        (planned, run)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interruptions_are_ticks_phases_or_operators() {
        let operator = |name: &str| Interruption::Operator(name.to_owned());
        for (text, expected) in [
            ("0..7", Interruption::Ticks(0..7)),
            ("forward", Interruption::Phase(Phase::Forward)),
            ("optimizer_step", Interruption::Phase(Phase::OptimizerStep)),
            ("aten::mm", operator("aten::mm")),
            ("a..b", operator("a..b")),
            ("-1..2", operator("-1..2")),
        ] {
            assert_eq!(text.parse(), Ok(expected.clone()));
            assert_eq!(expected.to_string(), text);
        }
        for text in ["", "7..7", "9..2"] {
            assert!(text.parse::<Interruption>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_star_stands_for_any_characters() {
        for (pattern, name, expected) in [
            ("aten::mm", "aten::mm", true),
            ("aten::mm", "aten::mm_", false),
            ("aten::*", "aten::mm", true),
            ("*dropout*", "aten::native_dropout_backward", true),
            ("*dropout", "aten::native_dropout_backward", false),
            ("a*b*c", "abbc", true),
            ("a*b*c", "acb", false),
            ("ab*ba", "aba", false),
            ("*", "", true),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }
}

//! The role of each block, with the evidence that decided it.

use crate::autograd::EVALUATE;
use crate::profile::{Block, Evidence, Phase, Profile, Role};
use rustc_hash::FxHashMap;
use xmem_types::{Bytes, Diagnostics, Nanos};

/// Assigns phase, iteration and role to every block.
pub(crate) fn assign(profile: &mut Profile, _notes: &mut Diagnostics) {
    let mut blocks = std::mem::take(&mut profile.blocks);
    for block in &mut blocks {
        if let Some(span) = profile.phase_at(block.alloc_time) {
            block.phase = span.phase;
            block.iteration = span.iteration;
        }
    }
    let last_use = last_step_end(profile);
    let mut gradient_sizes: FxHashMap<Bytes, u32> = FxHashMap::default();
    for block in &mut blocks {
        let role = match block.phase {
            Phase::Backward => backward(profile, block),
            Phase::OptimizerStep => step(profile, block),
            Phase::Forward => forward(profile, block),
            _ => continue,
        };
        (block.role, block.evidence) = role;
        if block.role == Role::Gradient && block.iteration.is_some_and(|i| i.index() == 0) {
            *gradient_sizes.entry(block.size).or_default() += 1;
        }
    }
    let from = profile.iterations.first().map_or(Nanos::MAX, |i| i.start);
    for block in &mut blocks {
        if !matches!(block.phase, Phase::Init | Phase::Data | Phase::ZeroGrad) {
            continue;
        }
        let lasts = block.free_time.is_none_or(|f| f >= last_use);
        (block.role, block.evidence) = if block.phase == Phase::Init && lasts {
            match gradient_sizes.get_mut(&block.size).filter(|n| **n > 0) {
                Some(left) => {
                    *left -= 1;
                    (
                        Role::Parameter,
                        Evidence(
                            "made before the first iteration, never freed, and a gradient of its size exists",
                        ),
                    )
                }
                None => (
                    Role::Buffer,
                    Evidence(
                        "made before the first iteration and never freed; no gradient of its size",
                    ),
                ),
            }
        } else if block.alloc_time < from && block.free_time.is_none_or(|f| f > from)
            || block.phase == Phase::Data
        {
            (Role::Input, Evidence("made before forward, alive during it"))
        } else {
            (Role::Temporary, Evidence("freed before the first iteration"))
        };
    }
    profile.blocks = blocks;
}

fn last_step_end(profile: &Profile) -> Nanos {
    let step = profile.phases.iter().rev().find(|p| p.phase == Phase::OptimizerStep);
    let backward = profile.phases.iter().rev().find(|p| p.phase == Phase::Backward);
    step.or(backward).or(profile.phases.last()).map_or(Nanos::MAX, |p| p.end)
}

fn backward(profile: &Profile, block: &Block) -> (Role, Evidence) {
    let end = profile.phase_at(block.alloc_time).map_or(Nanos::MAX, |p| p.end);
    let in_node = block
        .op
        .is_some_and(|op| profile.tree.path(op).any(|o| profile.op_name(o).starts_with(EVALUATE)));
    if in_node && block.free_time.is_none_or(|f| f >= end) {
        return (Role::Gradient, Evidence("made by a backward node and kept beyond backward"));
    }
    (Role::Temporary, Evidence("made and freed within backward"))
}

fn step(profile: &Profile, block: &Block) -> (Role, Evidence) {
    let end = profile.phase_at(block.alloc_time).map_or(Nanos::MAX, |p| p.end);
    if block.free_time.is_none_or(|f| f >= end) {
        return (Role::OptimizerState, Evidence("made in the optimizer's step and kept beyond it"));
    }
    (Role::Temporary, Evidence("made and freed within the optimizer's step"))
}

fn forward(profile: &Profile, block: &Block) -> (Role, Evidence) {
    let freed = block.free_time.and_then(|f| profile.phase_at(f)).map(|p| p.phase);
    let end = profile.phase_at(block.alloc_time).map_or(Nanos::MAX, |p| p.end);
    if block.free_time.is_some_and(|f| f < end) {
        return (Role::Temporary, Evidence("made and freed within forward"));
    }
    match freed {
        Some(Phase::Backward) => {
            (Role::Activation, Evidence("made in forward and freed in backward"))
        }
        _ => (Role::Activation, Evidence("made in forward and alive at its end")),
    }
}

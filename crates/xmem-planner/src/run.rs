//! The one way to a plan: every planner's offsets pass the same check.

use crate::budget::{Budget, Limits};
use crate::check::check;
use crate::instance::Instance;
use crate::list::BlockList;
use crate::plan::{Plan, Planned, Proof};
use crate::planner::Planner;
#[cfg(feature = "mip")]
use crate::planners::mip;
use crate::planners::{
    Placed, auto, bestfit, breadth, bump, exact, flow, gergov, greedy, ils, multi,
};
use crate::refused::Refused;
use std::time::Instant;
use xmem_types::Bytes;

/// A plan of `list`, checked.
///
/// # Errors
/// If the planner gives none.
pub fn plan(list: &BlockList, planner: Planner, limits: &Limits) -> Result<Planned, Refused> {
    let began = Instant::now();
    let instance = list.instance();
    let mut budget = Budget::new(limits);
    let Placed { offsets, searched } = match planner {
        Planner::Bump => bump::place(instance),
        Planner::GreedyBySize { fit, order } => {
            greedy::place(instance, fit, order, &budget).ok_or(Refused::NotFound { planner })?
        }
        Planner::GreedyByBreadth => {
            if !breadth::applies(instance) {
                return Err(Refused::NoOperators { planner });
            }
            breadth::place(instance, &budget).ok_or(Refused::NotFound { planner })?
        }
        Planner::MincostFlow => {
            short(planner, instance, flow::MAX_BLOCKS)?;
            flow::place(instance, &mut budget).ok_or(Refused::NotFound { planner })?
        }
        Planner::Gergov => {
            short(planner, instance, gergov::MAX_BLOCKS)?;
            gergov::place(instance, &budget).ok_or(Refused::NotFound { planner })?
        }
        Planner::BestFit => bestfit::place(instance),
        Planner::SkylineMulti => multi::place(instance, limits.seed, &mut budget),
        Planner::SkylineIls => ils::place(instance, limits.seed, &mut budget),
        #[cfg(feature = "mip")]
        Planner::Mip => {
            short(planner, instance, mip::MAX_BLOCKS)?;
            mip::place(instance, limits.seed, &budget)
        }
        Planner::Exact => {
            short(planner, instance, exact::MAX_BLOCKS)?;
            exact::place(instance, limits.seed, &mut budget)
        }
        Planner::Auto => auto::place(instance, limits.seed, &mut budget),
    };
    let offsets = instance.listed(&offsets).into_iter().map(Bytes).collect();
    let plan = Plan::new(list, offsets);
    check(list, &plan).map_err(|violation| Refused::Wrong { planner, violation })?;
    let lower_bound = list.lower_bound();
    let proof = if plan.peak() == lower_bound {
        Some(Proof::LowerBound)
    } else {
        searched.then_some(Proof::Search)
    };
    Ok(Planned { planner, plan, lower_bound, proof, nodes: budget.taken(), time: began.elapsed() })
}

fn short(planner: Planner, instance: &Instance, most: usize) -> Result<(), Refused> {
    let blocks = instance.blocks.len();
    if blocks > most { Err(Refused::TooManyBlocks { planner, most, blocks }) } else { Ok(()) }
}

//! The planners by name.

use crate::planners::{Fit, GreedyOrder};
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// A planner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Planner {
    /// No reuse until nothing is live.
    Bump,
    /// One block after the other, at a place that is free while it lives.
    GreedyBySize {
        /// The place.
        fit: Fit,
        /// The blocks that come first.
        order: GreedyOrder,
    },
    /// One operator after the other. It needs the operators of the blocks.
    GreedyByBreadth,
    /// Shared objects, by the cheapest assignment of blocks to earlier blocks.
    MincostFlow,
    /// Gergov's algorithm: within three times the lower bound.
    Gergov,
    /// Best fit on the skyline (Sekiyama et al.): where memory is lowest, the block that lives longest.
    BestFit,
    /// The best of 40 orders on the skyline.
    SkylineMulti,
    /// Local search for the best order on the skyline.
    SkylineIls,
    /// A mixed integer program.
    #[cfg(feature = "mip")]
    Mip,
    /// Complete searches within capacities.
    Exact,
    /// One planner after the other, until a plan is known to be optimal or the time is over.
    Auto,
}

/// A name that no planner has.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{0}` is not a planner")]
pub struct ParsePlannerError(String);

/// All planners by name. The name of a variant of `greedy-by-size` leaves out what is its default.
const NAMES: &[(&str, Planner)] = &[
    ("bump", Planner::Bump),
    ("greedy-by-size", greedy(Fit::Best, GreedyOrder::Size)),
    ("greedy-by-size:size-birth", greedy(Fit::Best, GreedyOrder::SizeBirth)),
    ("greedy-by-size:area", greedy(Fit::Best, GreedyOrder::Area)),
    ("greedy-by-size:longest", greedy(Fit::Best, GreedyOrder::Longest)),
    ("greedy-by-size:birth", greedy(Fit::Best, GreedyOrder::Birth)),
    ("greedy-by-size:contention", greedy(Fit::Best, GreedyOrder::Contention)),
    ("greedy-by-size:first", greedy(Fit::First, GreedyOrder::Size)),
    ("greedy-by-size:first:size-birth", greedy(Fit::First, GreedyOrder::SizeBirth)),
    ("greedy-by-size:first:area", greedy(Fit::First, GreedyOrder::Area)),
    ("greedy-by-size:first:longest", greedy(Fit::First, GreedyOrder::Longest)),
    ("greedy-by-size:first:birth", greedy(Fit::First, GreedyOrder::Birth)),
    ("greedy-by-size:first:contention", greedy(Fit::First, GreedyOrder::Contention)),
    ("greedy-by-breadth", Planner::GreedyByBreadth),
    ("mincost-flow", Planner::MincostFlow),
    ("gergov", Planner::Gergov),
    ("bestfit", Planner::BestFit),
    ("skyline-multi", Planner::SkylineMulti),
    ("skyline-ils", Planner::SkylineIls),
    #[cfg(feature = "mip")]
    ("mip", Planner::Mip),
    ("exact", Planner::Exact),
    ("auto", Planner::Auto),
];

const fn greedy(fit: Fit, order: GreedyOrder) -> Planner {
    Planner::GreedyBySize { fit, order }
}

impl Planner {
    /// Those that are worth a look side by side: one of each kind, and of `greedy-by-size` the usual variants.
    pub const ALL: &'static [Self] = &[
        Self::Bump,
        greedy(Fit::Best, GreedyOrder::Size),
        greedy(Fit::First, GreedyOrder::Size),
        greedy(Fit::Best, GreedyOrder::SizeBirth),
        Self::GreedyByBreadth,
        Self::MincostFlow,
        Self::Gergov,
        Self::BestFit,
        Self::SkylineMulti,
        Self::SkylineIls,
        #[cfg(feature = "mip")]
        Self::Mip,
        Self::Exact,
        Self::Auto,
    ];

    /// The name of the planner on the command line: variants of `greedy-by-size` say their fit and their order
    /// after colons, as `greedy-by-size:first:area`.
    #[must_use]
    pub fn name(self) -> &'static str {
        let named = NAMES.iter().find(|&&(_, planner)| planner == self);
        named.expect("each planner has a name").0
    }

    /// The names of all planners, with all variants.
    pub fn names() -> impl Iterator<Item = &'static str> {
        NAMES.iter().map(|&(name, _)| name)
    }
}

impl fmt::Display for Planner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Planner {
    type Err = ParsePlannerError;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        // `best` and `size` may be said.
        let said: Vec<&str> = name.split(':').collect();
        let short = match said[..] {
            ["greedy-by-size", "best"] | ["greedy-by-size", "best", "size"] => "greedy-by-size",
            ["greedy-by-size", "size"] => "greedy-by-size",
            ["greedy-by-size", "first", "size"] => "greedy-by-size:first",
            ["greedy-by-size", "best", _] => &name.replacen(":best", "", 1),
            _ => name,
        };
        let named = NAMES.iter().find(|&&(name, _)| name == short);
        named.map(|&(_, planner)| planner).ok_or_else(|| ParsePlannerError(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_planners_are_the_same() {
        for &(name, planner) in NAMES {
            assert_eq!((planner.to_string(), name.parse()), (name.to_owned(), Ok(planner)));
        }
        for planner in Planner::ALL {
            assert_eq!(planner.name().parse(), Ok(*planner));
        }
    }

    #[test]
    fn defaults_may_be_said() {
        for (said, name) in [
            ("greedy-by-size:best", "greedy-by-size"),
            ("greedy-by-size:size", "greedy-by-size"),
            ("greedy-by-size:best:size", "greedy-by-size"),
            ("greedy-by-size:first:size", "greedy-by-size:first"),
            ("greedy-by-size:best:area", "greedy-by-size:area"),
        ] {
            assert_eq!(said.parse::<Planner>().map(Planner::name), Ok(name), "{said}");
        }
        for unknown in ["greedy", "greedy-by-size:", "greedy-by-size:area:first", "bestfit:best"] {
            assert_eq!(unknown.parse::<Planner>(), Err(ParsePlannerError(unknown.to_owned())));
        }
    }
}

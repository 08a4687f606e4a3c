//! Training on several processes, as far as operators and annotations show it.

use crate::spans::Iteration;
use rustc_hash::FxHashSet;
use std::collections::BTreeSet;
use xmem_trace::Trace;
use xmem_types::{Interner, Sym};

/// The first part of the annotations of FSDP2 (torch/distributed/fsdp/_fully_shard).
pub(crate) const FSDP: &str = "FSDP::";

/// The first parts of the names of collectives (torch/csrc/distributed/c10d/Ops.cpp, Functional.cpp).
const COLLECTIVES: [&str; 2] = ["c10d::", "_c10d_functional::"];

/// The first parts of the names of work that communication libraries do, on threads of their own or, as gloo's sends
/// and receives, until something waits for it (torch/csrc/distributed/c10d/ProcessGroupGloo.cpp, `SendWork`).
const WORK: [&str; 4] = ["gloo:", "nccl:", "mpi:", "ucc:"];

/// Returns whether a span is work of a communication library, by its name.
pub(crate) fn is_work(name: &str) -> bool {
    WORK.iter().any(|prefix| name.starts_with(prefix))
}

/// The names among `strings` that are such work.
pub(crate) fn work(strings: &Interner) -> FxHashSet<Sym> {
    strings.iter().filter(|(_, name)| is_work(name)).map(|(name, _)| name).collect()
}

/// What a job shares among its processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Distributed {
    /// Something that only its collectives show.
    Other,
    /// Each process has the whole model: `DistributedDataParallel`.
    Replicated,
    /// Each process has a shard of it: FSDP.
    Sharded,
}

impl Distributed {
    /// The name that the job's author knows.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Other => "collectives",
            Self::Replicated => "DistributedDataParallel",
            Self::Sharded => "FSDP",
        }
    }

    fn of_name(name: &str) -> Option<Self> {
        match name {
            "DistributedDataParallel.forward" => Some(Self::Replicated),
            "FullyShardedDataParallel.forward" => Some(Self::Sharded),
            _ if name.starts_with(FSDP) => Some(Self::Sharded),
            _ if COLLECTIVES.iter().any(|prefix| name.starts_with(prefix)) => Some(Self::Other),
            _ => None,
        }
    }
}

/// The kinds of collectives that a recording has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Collectives {
    /// Any in which all ranks take part, other than exchanges of each with each.
    pub among_all: bool,
    /// Sums over all ranks, which each rank gets.
    pub all_reduce: bool,
    /// Exchanges of each rank with each other.
    pub all_to_all: bool,
    /// Sends and receives.
    pub point_to_point: bool,
}

impl Collectives {
    /// Collectives among all ranks, and these kinds.
    #[must_use]
    pub const fn of(all_reduce: bool, all_to_all: bool) -> Self {
        Self { among_all: true, all_reduce, all_to_all, point_to_point: false }
    }

    /// By the names of operators (torch/csrc/distributed/c10d/Ops.cpp, Functional.cpp).
    pub(crate) fn find(trace: &Trace) -> Self {
        let names: BTreeSet<_> = trace.ops.name.iter().copied().collect();
        let mut found = Self::default();
        for name in names {
            let name = trace.strings.resolve(name);
            let Some(rest) = COLLECTIVES.iter().find_map(|prefix| name.strip_prefix(prefix)) else {
                continue;
            };
            let rest = rest.replace('_', "");
            let is_any = |names: &[&str]| names.iter().any(|name| rest.starts_with(name));
            match () {
                () if is_any(&["send", "recv"]) => found.point_to_point = true,
                () if is_any(&["alltoall"]) => found.all_to_all = true,
                () if is_any(&["barrier", "monitored", "wait"]) => {}
                () => {
                    found.among_all = true;
                    found.all_reduce |= is_any(&["allreduce"]);
                }
            }
        }
        found
    }
}

/// What a job shares among its processes; none if it shows no sign of others. Collectives count if there is one in each
/// iteration: before training, they only bring processes together.
pub(crate) fn find(trace: &Trace, iterations: &[Iteration]) -> Option<Distributed> {
    let ops = &trace.ops;
    let of_row = |row: usize| Distributed::of_name(trace.strings.resolve(ops.name[row]));
    let is_iterated = |iteration: &Iteration| {
        let within = |row: &usize| (iteration.start..iteration.end).contains(&ops.start[*row]);
        (0..ops.len()).filter(within).any(|row| of_row(row).is_some())
    };
    let names: BTreeSet<_> = ops.name.iter().copied().collect();
    let resolved = names.into_iter().map(|name| trace.strings.resolve(name));
    let found = resolved.filter_map(Distributed::of_name).max()?;
    (found > Distributed::Other || iterations.iter().all(is_iterated)).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::Distributed;

    #[test]
    fn names_of_operators_and_annotations_tell() {
        for (name, expected) in [
            ("aten::all", None),
            ("c10d::allreduce_", Some(Distributed::Other)),
            ("DistributedDataParallel.forward", Some(Distributed::Replicated)),
            ("FullyShardedDataParallel.forward", Some(Distributed::Sharded)),
            ("FSDP::all_gather (0)", Some(Distributed::Sharded)),
        ] {
            assert_eq!(Distributed::of_name(name), expected, "{name}");
        }
    }
}

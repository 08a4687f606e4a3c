//! Durations of collectives, by the formulas of rings.

use crate::model::{TimeModel, over};
use xmem_types::{Bytes, Nanos};

/// An operation among ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Collective {
    /// All have the sum of all. Bytes of the tensor.
    AllReduce,
    /// All have the parts of all. Bytes of all parts together.
    AllGather,
    /// Each has its part of the sum. Bytes of all parts together.
    ReduceScatter,
    /// All have the tensor of one, or one has the sum of all. Bytes of the tensor.
    BroadcastOrReduce,
    /// Each has a part from each. Bytes that a rank has for all, its own part included.
    AllToAll,
    /// A send, or a receive. Bytes of the tensor.
    PointToPoint,
}

/// The ranks of a collective.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group {
    /// Ranks, at least 1.
    pub ranks: u32,
    /// Those of them that share a machine, at least 1; `ranks` on a single machine. Of a point-to-point operation
    /// between machines, 1.
    pub ranks_of_a_machine: u32,
}

impl Group {
    fn machines(self) -> u32 {
        self.ranks.div_ceil(self.ranks_of_a_machine.max(1)).max(1)
    }
}

/// Latency of NCCL's rings with the protocol Simple, ns (`baseLat`, src/graph/tuning.cc).
const BASE: i64 = 8_400;
/// Latency of a step over NVLink, PCI Express and the network, ns (`hwLat`, there).
const STEPS: [i64; 3] = [3_400, 5_700, 14_000];

impl TimeModel {
    /// The duration of a collective of `bytes` (which bytes: [`Collective`]) among `group`; zero for one rank.
    ///
    /// A ring of n ranks passes 2(n-1)/n of the bytes through each of them for an all-reduce, (n-1)/n for all-gather,
    /// reduce-scatter and all-to-all, all of them for the others, over its narrowest link: NVLink, or PCI Express
    /// without it, within a machine, and between machines the network adapters of the machine's ranks together, as
    /// NCCL lays a ring through each. Of an all-to-all between machines, only what leaves the machine takes the
    /// network, through the own adapter. Latencies are those of NCCL's own model, with as many steps as it counts
    /// (`ncclTopoTuneModel`, src/graph/tuning.cc).
    #[must_use]
    pub fn collective_duration(&self, kind: Collective, bytes: Bytes, group: Group) -> Nanos {
        let ranks = group.ranks.max(1);
        let machines = group.machines();
        if ranks == 1 {
            return Nanos::ZERO;
        }
        let local = self.nvlink.unwrap_or(self.pcie);
        let step = if self.nvlink.is_some() { STEPS[0] } else { STEPS[1] };
        let (n, bytes) = (f64::from(ranks), bytes.get() as f64);
        let others = (n - 1.0) / n;
        let passed = match kind {
            Collective::AllReduce => 2.0 * others * bytes,
            Collective::AllGather | Collective::ReduceScatter | Collective::AllToAll => {
                others * bytes
            }
            Collective::BroadcastOrReduce | Collective::PointToPoint => bytes,
        };
        let moved = match (kind, machines) {
            (_, 1) => over(passed, local),
            (Collective::PointToPoint, _) => over(passed, self.network),
            (Collective::AllToAll, _) => {
                let away = bytes * (n - f64::from(group.ranks_of_a_machine)) / n;
                over(away, self.network).max(over(passed - away, local))
            }
            _ => {
                let adapters = f64::from(group.ranks_of_a_machine.max(1));
                over(passed, local).max(over(passed / adapters, self.network))
            }
        };
        let rounds = i64::from(if kind == Collective::AllReduce { 2 } else { 1 });
        let (all, remote) = match kind {
            Collective::PointToPoint => (1, i64::from(machines > 1)),
            _ => (rounds * (i64::from(ranks) - 1), rounds * i64::from(machines)),
        };
        let remote = if machines > 1 { remote.min(all) } else { 0 };
        Nanos(BASE + (all - remote) * step + remote * STEPS[2]) + moved
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use xmem_devices::{Bandwidth, find};

    #[test]
    fn collectives_follow_the_formulas_of_rings() {
        // NVLink 240 GB/s, PCI Express 24 GB/s, network 25 GB/s for each GPU.
        let mut with = TimeModel::of(find("a100-40g").expect("built in"));
        with.pcie = Bandwidth::gb_per_second(24);
        let without = TimeModel { nvlink: None, ..with.clone() };
        let gb = 1_000_000_000;
        use Collective::{
            AllGather, AllReduce, AllToAll, BroadcastOrReduce, PointToPoint, ReduceScatter,
        };
        for (model, kind, (ranks, of_a_machine), bytes, expected) in [
            (&with, AllReduce, (1, 1), gb, 0),
            // 2 × 7/8 × 1 GB / 240 GB/s, and 14 steps.
            (&with, AllReduce, (8, 8), gb, 7_291_667 + 8_400 + 14 * 3_400),
            (&with, AllGather, (8, 8), gb, 3_645_833 + 8_400 + 7 * 3_400),
            (&with, ReduceScatter, (2, 2), gb, 2_083_333 + 8_400 + 3_400),
            (&with, BroadcastOrReduce, (4, 4), gb, 4_166_667 + 8_400 + 3 * 3_400),
            (&with, PointToPoint, (2, 2), gb, 4_166_667 + 8_400 + 3_400),
            (&without, AllGather, (8, 8), gb, 36_458_333 + 8_400 + 7 * 5_700),
            // Two machines: 15/16 GB over eight adapters of 25 GB/s, which is less than NVLink has.
            (&with, AllGather, (16, 8), gb, 4_687_500 + 8_400 + 13 * 3_400 + 2 * 14_000),
            (&with, AllReduce, (16, 8), gb, 9_375_000 + 8_400 + 26 * 3_400 + 4 * 14_000),
            // A replica on each of four machines: one adapter.
            (&with, AllReduce, (4, 1), gb, 60_000_000 + 8_400 + 6 * 14_000),
            (&with, PointToPoint, (2, 1), gb, 40_000_000 + 8_400 + 14_000),
            // Half of an all-to-all leaves the machine.
            (&with, AllToAll, (16, 8), gb, 20_000_000 + 8_400 + 13 * 3_400 + 2 * 14_000),
            (&with, AllToAll, (8, 8), gb, 3_645_833 + 8_400 + 7 * 3_400),
            (&with, AllReduce, (8, 8), 0, 8_400 + 14 * 3_400),
        ] {
            let group = Group { ranks, ranks_of_a_machine: of_a_machine };
            let duration = model.collective_duration(kind, Bytes(bytes), group);
            assert_eq!(duration, Nanos(expected), "{kind:?} {group:?}");
        }
    }
}

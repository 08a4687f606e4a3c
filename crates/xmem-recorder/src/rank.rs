//! One process of a distributed job, which is recorded without the others.

use std::num::NonZeroU32;

/// A process among those of its job. It alone runs: its collectives are complete at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoneRank {
    rank: u32,
    world_size: NonZeroU32,
    local_world_size: NonZeroU32,
}

impl LoneRank {
    /// The process with this number, from 0, among `world_size` on `nodes` machines with as many processes each;
    /// none if there is no such process.
    #[must_use]
    pub fn new(rank: u32, world_size: NonZeroU32, nodes: NonZeroU32) -> Option<Self> {
        let local_world_size = NonZeroU32::new(world_size.get() / nodes)?;
        let is_even = world_size.get() % nodes == 0;
        (is_even && rank < world_size.get()).then_some(Self { rank, world_size, local_world_size })
    }

    /// The number of the process, from 0.
    #[must_use]
    pub const fn rank(self) -> u32 {
        self.rank
    }

    /// The number of processes of the job.
    #[must_use]
    pub const fn world_size(self) -> NonZeroU32 {
        self.world_size
    }

    /// The number of processes, and of GPUs, of a machine.
    #[must_use]
    pub const fn local_world_size(self) -> NonZeroU32 {
        self.local_world_size
    }

    /// The number of the process on its machine, from 0.
    #[must_use]
    pub const fn local_rank(self) -> u32 {
        self.rank % self.local_world_size.get()
    }

    /// The number of its machine, from 0.
    #[must_use]
    pub const fn node(self) -> u32 {
        self.rank / self.local_world_size.get()
    }

    /// The number of machines.
    #[must_use]
    pub const fn nodes(self) -> u32 {
        self.world_size.get() / self.local_world_size.get()
    }

    /// The variables by which a launcher tells a process its place (torch/distributed/run.py, "Environment
    /// Variables"). Nobody is at the address.
    #[cfg(unix)]
    pub(crate) fn variables(self) -> [(&'static str, String); 9] {
        [
            ("RANK", self.rank.to_string()),
            ("WORLD_SIZE", self.world_size.to_string()),
            ("LOCAL_RANK", self.local_rank().to_string()),
            ("LOCAL_WORLD_SIZE", self.local_world_size.to_string()),
            ("GROUP_RANK", self.node().to_string()),
            ("GROUP_WORLD_SIZE", self.nodes().to_string()),
            ("NODE_RANK", self.node().to_string()),
            ("MASTER_ADDR", "127.0.0.1".to_owned()),
            ("MASTER_PORT", "29500".to_owned()),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::LoneRank;
    use std::num::NonZeroU32;

    #[test]
    fn a_rank_has_a_place_on_its_node() {
        for (rank, world, nodes, expected) in [
            (0, 8, 1, Some((0, 0, 8))),
            (7, 8, 1, Some((7, 0, 8))),
            (7, 8, 2, Some((3, 1, 4))),
            (63, 64, 8, Some((7, 7, 8))),
            (0, 1, 1, Some((0, 0, 1))),
            (8, 8, 1, None),
            (0, 8, 3, None),
            (0, 2, 4, None),
        ] {
            let count = |number| NonZeroU32::new(number).expect("not zero");
            let found = LoneRank::new(rank, count(world), count(nodes));
            let place = found.map(|it| (it.local_rank(), it.node(), it.local_world_size().get()));
            assert_eq!(place, expected, "rank {rank} of {world} on {nodes}");
            assert!(
                found.is_none_or(|it| it.nodes() == nodes),
                "rank {rank} of {world} on {nodes}"
            );
        }
    }
}

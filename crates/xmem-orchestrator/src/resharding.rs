//! Another number of ranks for a recorded job whose parameters are sharded (a what-if).
//!
//! A rank's own work stays as it is: its batch, its activations, the order of its requests. What FSDP divides
//! changes in size: shards of parameters, of gradients and of optimizer state, the buffers in which they are
//! gathered and reduced, and the temporaries of the optimizer's step. Their sizes follow from the shapes that the
//! recorder noted, by the rules by which FSDP cuts tensors (torch/distributed/fsdp/_fully_shard/_fsdp_param.py,
//! `FSDPParam._init_sharded_param`; torch/distributed/fsdp/_flat_param.py, `FlatParamHandle._get_shard`), so that a
//! block is known by its size, its role and its place: a [`Resharding`] has a table of sizes for each number of ranks.

use crate::block_size::rounded;
use crate::schedule::{Schedule, ScheduledBlock};
use std::collections::BTreeMap;
use thiserror::Error;
use xmem_analyzer::recording::{ParameterGroup, Rank, Sharding, SharingKind};
use xmem_analyzer::{Phase, Profile, Role};
use xmem_types::{Bytes, RequestKind, StreamId};

/// The bound of a size, in bytes: a recording may say anything about shapes.
const MAX_BYTES: u64 = 1 << 50;

/// A job that is replayed as one of another number of ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resharding {
    /// The recorded rank, in the job of the other size.
    rank: Rank,
    /// Ranks as recorded.
    recorded: u32,
    /// Sizes of what stays with a rank: shards, and what the optimizer makes of them.
    kept: Sizes,
    /// Sizes of what is sent: shards, whole parameters, and all of a group together.
    sent: Sizes,
    /// Bytes of all shards of a rank as recorded, and now: for what the optimizer keeps in another form.
    shards: (u64, u64),
}

/// A reason why a recording cannot be replayed with another number of ranks.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ReshardingError {
    /// It is of one process.
    #[error(
        "the recording is of one process, not of a rank of a distributed job: `xmem profile --ranks {to}` records \
         one"
    )]
    OneProcess {
        /// The number of ranks that was asked for.
        to: u32,
    },
    /// It does not say how parameters are divided.
    #[error(
        "the recording does not say how FSDP or DDP divides the parameters: record again with `xmem profile --ranks \
         {to}`"
    )]
    Unknown {
        /// The number of ranks that was asked for.
        to: u32,
    },
    /// The optimizer has a plan of its own.
    #[error(
        "ZeroRedundancyOptimizer gives whole parameters to ranks, in an order that is unknown for another number of ranks: \
         record again with `xmem profile --ranks {to}`"
    )]
    PartitionedState {
        /// The number of ranks that was asked for.
        to: u32,
    },
    /// The recorded rank is not one of so few.
    #[error("rank {rank} was recorded, but a job of {to} ranks has ranks 0 to {}", to.saturating_sub(1))]
    NoSuchRank {
        /// The recorded rank.
        rank: u32,
        /// The number of ranks that was asked for.
        to: u32,
    },
    /// Groups of ranks would not be whole.
    #[error(
        "{from} recorded ranks shard parameters in groups of {group}; with {to} ranks a group would not be a whole \
         number of ranks: choose a multiple of {}", from / group
    )]
    NotWhole {
        /// The number of recorded ranks.
        from: u32,
        /// The number of ranks of a group.
        group: u32,
        /// The number of ranks that was asked for.
        to: u32,
    },
}

/// A number of elements as recorded and with the other number of ranks.
type Both = (u64, u64);

/// Sizes as recorded, each with what it becomes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Sizes {
    requested: BTreeMap<Bytes, Bytes>,
    /// Recordings of a GPU without the allocator's history have the sizes of blocks.
    rounded: BTreeMap<Bytes, Bytes>,
}

impl Sizes {
    /// Adds elements of so many bytes. Of several meanings of a size, the first one holds.
    fn add(&mut self, (recorded, now): Both, bytes: u64) {
        let size = |elements: u64| Bytes(elements.saturating_mul(bytes).min(MAX_BYTES));
        let (recorded, now) = (size(recorded), size(now));
        self.requested.entry(recorded).or_insert(now);
        self.rounded.entry(rounded(recorded)).or_insert_with(|| rounded(now));
    }

    fn get(&self, size: Bytes) -> Option<Bytes> {
        self.requested.get(&size).or_else(|| self.rounded.get(&size)).copied()
    }
}

impl Resharding {
    /// The job of `profile` with `to` ranks.
    ///
    /// # Errors
    /// If the recording does not show what becomes of its memory.
    pub fn of(profile: &Profile, to: u32) -> Result<Self, ReshardingError> {
        let rank = profile.rank().ok_or(ReshardingError::OneProcess { to })?;
        let sharding = profile.recording().and_then(|recording| recording.sharding.as_ref());
        Self::new(rank, sharding.ok_or(ReshardingError::Unknown { to })?, to)
    }

    fn new(rank: Rank, sharding: &Sharding, to: u32) -> Result<Self, ReshardingError> {
        if sharding.partitions_state {
            return Err(ReshardingError::PartitionedState { to });
        }
        if rank.rank >= to {
            return Err(ReshardingError::NoSuchRank { rank: rank.rank, to });
        }
        let from = rank.world_size;
        let mut resharding = Self {
            recorded: from,
            kept: Sizes::default(),
            sent: Sizes::default(),
            shards: (0, 0),
            rank,
        };
        let groups: Result<Vec<(&ParameterGroup, u32)>, ReshardingError> =
            sharding.groups.iter().map(|group| Ok((group, ranks_of(group, from, to)?))).collect();
        let groups = groups?;
        resharding.add(&groups);
        let grown = groups.iter().map(|(group, ranks)| (group.ranks, *ranks));
        let grown = grown.filter(|(before, now)| before != now).collect();
        resharding.rank = resharding.rank.of_world_size(to, &grown);
        Ok(resharding)
    }

    /// The recorded rank as one of the job that is replayed.
    #[must_use]
    pub fn rank(&self) -> &Rank {
        &self.rank
    }

    /// The number of ranks of the recorded job.
    #[must_use]
    pub const fn recorded(&self) -> u32 {
        self.recorded
    }

    /// All groups, each with its number of ranks now.
    fn add(&mut self, groups: &[(&ParameterGroup, u32)]) {
        for &(group, ranks) in groups {
            let all = both(group, ranks, |ranks| {
                let padded = group.parameters.iter().map(|parameter| parameter.padded(ranks));
                padded.fold(0, u64::saturating_add)
            });
            self.shards.0 = self.shards.0.saturating_add(all.0);
            self.shards.1 = self.shards.1.saturating_add(all.1);
            for &bytes in &group.element_sizes {
                self.sent.add(all, bytes);
                self.sent.add(whole(all, group, ranks), bytes);
            }
        }
        let parameters = || {
            groups.iter().flat_map(|&(group, ranks)| {
                let sizes =
                    move |parameter| group.element_sizes.iter().map(move |&b| (parameter, b));
                let each = group.parameters.iter().flat_map(sizes);
                each.map(move |(parameter, bytes)| (group, ranks, *parameter, bytes))
            })
        };
        // Whole parameters before shards: FSDP gathers into the former, and seldom copies a single shard.
        for (group, ranks, parameter, bytes) in parameters() {
            let shard = both(group, ranks, |ranks| parameter.padded(ranks));
            self.sent.add(whole(shard, group, ranks), bytes);
        }
        for (group, ranks, parameter, bytes) in parameters() {
            let shard = both(group, ranks, |ranks| parameter.padded(ranks));
            // Groups of a mesh have the rank's number modulo theirs, where the mesh is in order.
            let own = both(group, ranks, |ranks| parameter.own(self.rank.rank % ranks, ranks));
            self.sent.add(shard, bytes);
            self.kept.add(own, bytes);
            self.kept.add(shard, bytes);
        }
    }

    /// Gives the blocks of a schedule their sizes with the other number of ranks.
    pub(crate) fn apply(&self, schedule: &mut Schedule, profile: &Profile) {
        let mut freed = vec![false; schedule.blocks.len()];
        let mut on_side_stream = vec![false; schedule.blocks.len()];
        for request in &schedule.requests {
            let row = request.block.index();
            match request.kind {
                RequestKind::Free => freed[row] = true,
                RequestKind::Alloc { stream, .. } => on_side_stream[row] = stream != StreamId(0),
            }
        }
        for (row, block) in schedule.blocks.iter_mut().enumerate() {
            let size = match share(block, profile, !freed[row], on_side_stream[row]) {
                Some(Share::Kept) => {
                    self.kept.get(block.size).or_else(|| self.in_another_form(block))
                }
                Some(Share::Sent) => self.sent.get(block.size),
                None => None,
            };
            block.size = size.unwrap_or(block.size);
        }
        for request in &mut schedule.requests {
            if let RequestKind::Alloc { size, .. } = &mut request.kind {
                *size = schedule.blocks[request.block.index()].size;
            }
        }
    }

    /// The size of optimizer state that has not the size of a shard (quantized state, parts of a flat parameter): it
    /// shrinks or grows as all shards together do.
    fn in_another_form(&self, block: &ScheduledBlock) -> Option<Bytes> {
        let (recorded, now) = self.shards;
        let is_large = block.size > Bytes(512) && recorded > 0;
        (is_large && block.role == Role::OptimizerState).then(|| {
            let size = u128::from(block.size.get()) * u128::from(now) / u128::from(recorded);
            Bytes(u64::try_from(size).unwrap_or(u64::MAX))
        })
    }
}

/// The number of ranks that share a group's parameters in a job of `to` ranks. Where there are replicas (HSDP, DDP),
/// their number grows.
fn ranks_of(group: &ParameterGroup, from: u32, to: u32) -> Result<u32, ReshardingError> {
    if group.kind == SharingKind::Replicated || group.replicas > 1 {
        return Ok(group.ranks);
    }
    let product = u64::from(group.ranks) * u64::from(to);
    let error = ReshardingError::NotWhole { from, group: group.ranks, to };
    let (from, remainder) = (u64::from(from), product % u64::from(from));
    match u32::try_from(product / from) {
        Ok(ranks) if remainder == 0 && ranks > 0 => Ok(ranks),
        _ => Err(error),
    }
}

/// A number of elements that depends on the number of ranks.
fn both(group: &ParameterGroup, ranks: u32, elements: impl Fn(u32) -> u64) -> Both {
    (elements(group.ranks), elements(ranks))
}

/// The shards of all ranks together.
fn whole(shard: Both, group: &ParameterGroup, ranks: u32) -> Both {
    let of_all = |shard: u64, ranks: u32| shard.saturating_mul(u64::from(ranks));
    (of_all(shard.0, group.ranks), of_all(shard.1, ranks))
}

/// What a block has to do with the division of parameters.
enum Share {
    /// It is a shard of the rank, or made of one.
    Kept,
    /// It is sent to other ranks or comes from them.
    Sent,
}

fn share(
    block: &ScheduledBlock,
    profile: &Profile,
    is_kept: bool,
    on_side_stream: bool,
) -> Option<Share> {
    if matches!(block.role, Role::Buffer | Role::Input | Role::Workspace) {
        return None;
    }
    let place = block.origin.place(profile);
    if is_of_fsdp(block, profile) || on_side_stream {
        return Some(Share::Sent);
    }
    match place.phase {
        Phase::OptimizerStep => Some(Share::Kept),
        Phase::Init => (is_kept || block.role == Role::OptimizerState).then_some(Share::Kept),
        _ => match block.role {
            Role::OptimizerState => Some(Share::Kept),
            Role::Gradient => Some(Share::Sent),
            _ => None,
        },
    }
}

/// Returns whether FSDP made a block: PyTorch annotates what it does.
fn is_of_fsdp(block: &ScheduledBlock, profile: &Profile) -> bool {
    const NAMES: [&str; 3] = ["FSDP::", "fsdp::", "FullyShardedDataParallel."];
    let Some(recorded) = block.origin.recorded() else { return false };
    profile
        .op_path(profile.block(recorded))
        .any(|op| NAMES.iter().any(|name| profile.op_name(op).starts_with(name)))
}

#[cfg(test)]
mod tests {
    use super::{Resharding, ReshardingError, Sizes};
    use xmem_analyzer::recording::{DividedExtent, ParameterGroup, Rank, Sharding, SharingKind};
    use xmem_types::Bytes;

    fn group(ranks: u32, parameters: &[(u64, u64)]) -> ParameterGroup {
        let cut = |&(extent, rest): &(u64, u64)| DividedExtent { extent, rest };
        ParameterGroup {
            kind: SharingKind::FullyShard,
            ranks,
            replicas: 1,
            parameters: parameters.iter().map(cut).collect(),
            element_sizes: vec![4],
            has_original_parameters: false,
        }
    }

    fn of(rank: Rank, groups: Vec<ParameterGroup>, to: u32) -> Result<Resharding, ReshardingError> {
        Resharding::new(rank, &Sharding { groups, partitions_state: false }, to)
    }

    fn becomes(sizes: &Sizes, elements: u64) -> Option<u64> {
        sizes.get(Bytes(elements * 4)).map(|size| size.get() / 4)
    }

    #[test]
    fn each_size_has_its_meaning() {
        // Rank 3 of 4 has 200 of 1001 rows without padding, and one of 8 has 126.
        let groups = vec![group(4, &[(1001, 10), (64, 1)])];
        let made = of(Rank::of(3, 4), groups, 8).expect("valid");
        assert_eq!(becomes(&made.kept, 2510), Some(1260), "with padding");
        assert_eq!(becomes(&made.kept, 2480), Some(1260), "without padding");
        assert_eq!(becomes(&made.kept, 16), Some(8));
        assert_eq!(becomes(&made.kept, 10_040), None, "a whole parameter is not kept");
        assert_eq!(becomes(&made.sent, 10_040), Some(10_080), "a whole parameter");
        assert_eq!(becomes(&made.sent, 2526), Some(1268), "all shards");
        assert_eq!(becomes(&made.sent, 10_104), Some(10_144), "all whole parameters");
    }

    #[test]
    fn a_gathered_parameter_is_told_from_a_shard_of_the_same_size() {
        let groups = vec![group(4, &[(1024, 64), (256, 64)])];
        let made = of(Rank::of(0, 4), groups, 8).expect("valid");
        assert_eq!(becomes(&made.sent, 256 * 64), Some(256 * 64));
        assert_eq!(becomes(&made.kept, 256 * 64), Some(128 * 64));
    }

    #[test]
    fn a_size_in_bytes_goes_before_one_in_blocks() {
        // The small shard takes a block of the larger one's size.
        let groups = vec![group(4, &[(128, 1), (512, 1)])];
        let made = of(Rank::of(0, 4), groups, 8).expect("valid");
        assert_eq!(becomes(&made.kept, 32), Some(16));
        assert_eq!(becomes(&made.kept, 128), Some(64));
    }

    #[test]
    fn no_size_overflows() {
        let groups = vec![group(1 << 20, &[(1, 1 << 48); 3])];
        let made = of(Rank::of(0, 1 << 20), groups, u32::MAX - (1 << 20) + 1).expect("valid");
        assert_eq!(made.kept.get(Bytes(1 << 50)), Some(Bytes(1 << 50)));
    }

    #[test]
    fn replicas_grow_and_shards_stay() {
        let replicated = ParameterGroup { replicas: 2, ..group(4, &[(64, 64)]) };
        let mut rank = Rank::of(0, 8);
        rank.groups = vec![8, 4, 2];
        let made = of(rank, vec![replicated], 16).expect("valid");
        assert_eq!(becomes(&made.kept, 16 * 64), Some(16 * 64));
        assert_eq!(made.rank().groups, [16, 4, 2]);
    }

    #[test]
    fn what_cannot_be_is_refused_with_the_reason() {
        let groups = || vec![group(4, &[(64, 64)])];
        for (made, expected) in [
            (of(Rank::of(7, 8), groups(), 4), ReshardingError::NoSuchRank { rank: 7, to: 4 }),
            (
                of(Rank::of(0, 8), groups(), 3),
                ReshardingError::NotWhole { from: 8, group: 4, to: 3 },
            ),
            (
                Resharding::new(
                    Rank::of(0, 8),
                    &Sharding { groups: groups(), partitions_state: true },
                    16,
                ),
                ReshardingError::PartitionedState { to: 16 },
            ),
        ] {
            assert_eq!(made, Err(expected));
        }
    }
}

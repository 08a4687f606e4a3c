//! How the parameters of a distributed job are divided among its ranks, by the notes of `xmem profile`.

use serde::Deserialize;

/// Bounds for what a recording may say, so that no product overflows: elements, and ranks.
const MAX_ELEMENTS: u64 = 1 << 48;
const MAX_RANKS: u32 = 1 << 20;

/// The parameters that ranks share, group by group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sharding {
    /// Parameters that are gathered together, or that all ranks have.
    pub groups: Vec<ParameterGroup>,
    /// True if an optimizer divides its state among the ranks by a plan of its own (`ZeroRedundancyOptimizer`).
    pub partitions_state: bool,
}

/// Parameters that are gathered and reduced together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParameterGroup {
    /// The way in which ranks share them.
    pub kind: SharingKind,
    /// The number of ranks that each have a shard.
    pub ranks: u32,
    /// The number of copies of all shards.
    pub replicas: u32,
    /// The parameters, in order.
    pub parameters: Vec<DividedExtent>,
    /// Bytes of an element of the types in which they are kept, gathered and reduced.
    pub element_sizes: Vec<u64>,
    /// True if the optimizer has the original parameters rather than flat ones (`use_orig_params`).
    pub has_original_parameters: bool,
}

/// The way in which ranks share parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SharingKind {
    /// `fully_shard`: each parameter is cut along one dimension.
    FullyShard,
    /// `FullyShardedDataParallel`: the parameters of a module are one flat parameter, which is cut.
    Flat,
    /// `DistributedDataParallel`: each rank has all of them.
    Replicated,
}

/// A tensor that is cut along one dimension into pieces for the ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DividedExtent {
    /// The extent of that dimension.
    pub extent: u64,
    /// The product of the other extents.
    pub rest: u64,
}

impl DividedExtent {
    /// Elements of a shard with its padding: all are as large as the first, by the rule of `torch.chunk`.
    #[must_use]
    pub fn padded(self, ranks: u32) -> u64 {
        self.extent.div_ceil(u64::from(ranks.max(1))) * self.rest
    }

    /// Elements of the shard of a rank without padding.
    #[must_use]
    pub fn own(self, rank: u32, ranks: u32) -> u64 {
        let rows = self.extent.div_ceil(u64::from(ranks.max(1)));
        let before = rows.saturating_mul(u64::from(rank));
        self.extent.saturating_sub(before).min(rows) * self.rest
    }
}

#[derive(Deserialize)]
pub(super) struct ShardingDto {
    groups: Vec<GroupDto>,
    #[serde(default)]
    partitioned_state: bool,
}

#[derive(Deserialize)]
struct GroupDto {
    kind: SharingKind,
    ranks: u32,
    replicas: u32,
    #[serde(default)]
    parameters: Vec<(u64, u64)>,
    #[serde(default)]
    element_sizes: Vec<u64>,
    #[serde(default)]
    original_parameters: bool,
}

impl ShardingDto {
    /// The groups; none if one of them cannot be.
    pub(super) fn read(self) -> Option<Sharding> {
        let groups: Option<Vec<ParameterGroup>> =
            self.groups.into_iter().map(GroupDto::read).collect();
        Some(Sharding { groups: groups?, partitions_state: self.partitioned_state })
    }
}

impl GroupDto {
    fn read(self) -> Option<ParameterGroup> {
        let is_count = |ranks: u32| (1..=MAX_RANKS).contains(&ranks);
        let is_size = |size: &u64| (1..=16).contains(size);
        let is_extent = |&(extent, rest): &(u64, u64)| {
            extent.checked_mul(rest).is_some_and(|elements| elements <= MAX_ELEMENTS)
        };
        let is_valid = is_count(self.ranks)
            && is_count(self.replicas)
            && self.element_sizes.iter().all(is_size)
            && self.parameters.iter().all(is_extent);
        is_valid.then(|| ParameterGroup {
            kind: self.kind,
            ranks: self.ranks,
            replicas: self.replicas,
            parameters: self
                .parameters
                .into_iter()
                .map(|(extent, rest)| DividedExtent { extent, rest })
                .collect(),
            element_sizes: self.element_sizes,
            has_original_parameters: self.original_parameters,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{DividedExtent, ShardingDto, SharingKind};
    use serde_json::{Value, json};

    #[test]
    fn shards_are_cut_as_chunks_are() {
        let rows = |extent, ranks: u32| -> Vec<u64> {
            let parameter = DividedExtent { extent, rest: 3 };
            (0..ranks).map(|rank| parameter.own(rank, ranks) / 3).collect()
        };
        assert_eq!(rows(10, 4), [3, 3, 3, 1]);
        assert_eq!(rows(8, 4), [2, 2, 2, 2]);
        // `torch.chunk` gives two chunks; FSDP has empty ones for the other ranks.
        assert_eq!(rows(2, 4), [1, 1, 0, 0]);
        assert_eq!(rows(5, 4), [2, 2, 1, 0]);
        assert_eq!(DividedExtent { extent: 10, rest: 3 }.padded(4), 9);
    }

    fn read(value: Value) -> Option<super::Sharding> {
        serde_json::from_value::<ShardingDto>(value).ok()?.read()
    }

    #[test]
    fn groups_that_cannot_be_are_not_taken() {
        let group = json!({"kind": "fully_shard", "ranks": 8, "replicas": 1, "parameters": [[512, 4]],
            "element_sizes": [2, 4]});
        let known = read(json!({"groups": [group]})).expect("a valid group");
        assert_eq!(known.groups[0].kind, SharingKind::FullyShard);
        assert_eq!(known.groups[0].parameters[0].padded(known.groups[0].ranks), 256);
        for (key, value) in [
            ("ranks", json!(0)),
            ("replicas", json!(1 << 21)),
            ("parameters", json!([[1_u64 << 40, 1_u64 << 40]])),
            ("element_sizes", json!([0])),
            ("kind", json!("other")),
        ] {
            let mut changed = group.clone();
            changed[key] = value;
            assert_eq!(read(json!({"groups": [changed]})), None, "{key}");
        }
    }
}

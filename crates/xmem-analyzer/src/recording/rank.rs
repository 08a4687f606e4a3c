//! The place of the recorded process among those of its job: from the notes of `xmem profile`, else from those of
//! torch's profiler.

use super::Recording;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeSet;
use xmem_trace::Trace;
use xmem_types::printable;

/// The top-level key of a trace under which torch's profiler notes process groups (torch/profiler/profiler.py,
/// `_get_distributed_info`).
const KEY: &str = "distributedInfo";

/// The number of GPUs that a machine has at least, unless a recording says otherwise.
const USUAL_GPUS: u32 = 8;

/// A process among those of its job.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rank {
    /// Its number, from 0.
    pub rank: u32,
    /// The number of processes of the job; more than one.
    pub world_size: u32,
    /// The number of machines, where the recording says so.
    pub nodes: Option<u32>,
    /// The backend of the default process group (`nccl`), as the script requested it.
    pub backend: Option<String>,
    /// The release of NCCL.
    pub nccl: Option<(u32, u32, u32)>,
    /// The numbers of ranks of the process groups whose backend is NCCL and of which this rank is one.
    pub groups: Vec<u32>,
    /// The numbers of ranks of the communicators of NCCL that were made; none where that was not recorded. A process
    /// group makes one with its first collective.
    pub communicators: Option<Vec<u32>>,
}

/// `distributed` of the recorder and `distributedInfo` of torch's profiler.
#[derive(Deserialize)]
struct RankDto {
    rank: u32,
    world_size: u32,
    nodes: Option<u32>,
    backend: Option<String>,
    nccl_version: Option<String>,
    groups: Option<Vec<u32>>,
    communicators: Option<Vec<u32>>,
    /// A list of groups; older releases of PyTorch write an object.
    #[serde(default)]
    pg_config: Value,
}

impl Rank {
    /// A rank of which only its number and that of all ranks are known.
    #[must_use]
    pub fn of(rank: u32, world_size: u32) -> Self {
        Self {
            rank,
            world_size,
            nodes: None,
            backend: None,
            nccl: None,
            groups: Vec::new(),
            communicators: None,
        }
    }

    /// The same rank of a job of another number of ranks, with as many on each machine (up to eight where there is
    /// one machine); `groups` are the numbers of
    /// ranks of groups that grow, each with the other one.
    #[must_use]
    pub fn of_world_size(self, world_size: u32, groups: &BTreeSet<(u32, u32)>) -> Self {
        let recorded = self.world_size;
        let nodes = self.nodes.map(|nodes| {
            let local = recorded.div_ceil(nodes);
            let local = if nodes == 1 { local.max(USUAL_GPUS) } else { local };
            world_size.div_ceil(local)
        });
        let grown = |ranks: u32| match groups.iter().find(|(before, _)| *before == ranks) {
            Some((_, after)) => *after,
            None if ranks == recorded => world_size,
            None => ranks,
        };
        let all = |sizes: Vec<u32>| sizes.into_iter().map(grown).collect();
        Self {
            world_size,
            nodes,
            groups: all(self.groups),
            communicators: self.communicators.map(all),
            ..self
        }
    }

    /// The rank that was recorded; none for a job of one process.
    pub(crate) fn find(trace: &Trace, recording: Option<&Recording>) -> Option<Self> {
        let noted = recording.and_then(|recording| recording.rank.clone());
        noted.or_else(|| {
            let (_, raw) = trace.header.extra.iter().find(|(key, _)| key == KEY)?;
            Self::read(serde_json::from_str(raw).ok()?)
        })
    }

    /// Reads either form; none if it is not the rank of a job of several processes.
    pub(crate) fn read(value: Value) -> Option<Self> {
        let dto: RankDto = serde_json::from_value(value).ok()?;
        let is_valid = dto.world_size > 1 && dto.rank < dto.world_size;
        is_valid.then(|| Self {
            rank: dto.rank,
            world_size: dto.world_size,
            nodes: dto.nodes.filter(|nodes| (1..=dto.world_size).contains(nodes)),
            backend: dto.backend.map(|name| printable(&name).into_owned()),
            nccl: dto.nccl_version.as_deref().and_then(release),
            groups: dto.groups.unwrap_or_else(|| groups(&dto.pg_config)),
            communicators: dto.communicators,
        })
    }
}

/// The sizes of the groups of NCCL.
fn groups(config: &Value) -> Vec<u32> {
    let size = |group: &Value| {
        let is_nccl = group.get("backend_config")?.as_str()?.contains("nccl");
        let size = group.get("pg_size")?.as_u64()?;
        is_nccl.then_some(u32::try_from(size).ok()?)
    };
    config.as_array().into_iter().flatten().filter_map(size).collect()
}

/// `2.28.9`.
fn release(text: &str) -> Option<(u32, u32, u32)> {
    let mut parts = text.split('.').map(|part| part.parse().ok());
    Some((parts.next()??, parts.next()??, parts.next().flatten().unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::Rank;
    use serde_json::json;

    #[test]
    fn both_forms_are_read() {
        let of_torch = Rank::read(json!({
            "backend": "nccl", "rank": 1, "world_size": 8, "pg_count": 3, "nccl_version": "2.28.9",
            "pg_config": [
                {"pg_name": "0", "backend_config": "cuda:nccl", "pg_size": 8, "ranks": [0, 1]},
                {"pg_name": "1", "backend_config": "cpu:gloo", "pg_size": 8},
                {"pg_name": "2", "backend_config": "cpu:gloo,cuda:nccl", "pg_size": 2},
            ],
        }));
        let of_torch = of_torch.expect("a rank");
        assert_eq!((of_torch.rank, of_torch.world_size), (1, 8));
        assert_eq!(of_torch.groups, [8, 2]);
        assert_eq!((of_torch.communicators, of_torch.nccl), (None, Some((2, 28, 9))));
        let of_recorder = Rank::read(json!({
            "rank": 7, "world_size": 8, "nodes": 2, "backend": "nccl", "nccl_version": "2.28",
            "groups": [8], "communicators": [8, 4],
        }));
        let of_recorder = of_recorder.expect("a rank");
        assert_eq!((of_recorder.nodes, of_recorder.nccl), (Some(2), Some((2, 28, 0))));
        assert_eq!(of_recorder.communicators, Some(vec![8, 4]));
    }

    #[test]
    fn a_rank_of_a_larger_job_has_as_many_neighbors_on_its_machine() {
        let rank = Rank {
            nodes: Some(2),
            groups: vec![16, 4, 2],
            communicators: Some(vec![16, 2]),
            ..Rank::of(3, 16)
        };
        let larger = rank.clone().of_world_size(32, &[(4, 8)].into());
        assert_eq!((larger.rank, larger.world_size, larger.nodes), (3, 32, Some(4)));
        assert_eq!((larger.groups, larger.communicators), (vec![32, 8, 2], Some(vec![32, 2])));
        assert_eq!(rank.of_world_size(4, &[(4, 1)].into()).nodes, Some(1));
        for (recorded, ranks, nodes) in [(4, 8, 1), (4, 16, 2), (16, 32, 2)] {
            let rank = Rank { nodes: Some(1), ..Rank::of(0, recorded) };
            assert_eq!(rank.of_world_size(ranks, &[].into()).nodes, Some(nodes), "{ranks} ranks");
        }
    }

    #[test]
    fn what_is_no_rank_of_several_processes_is_none() {
        for value in [
            json!({"rank": 0, "world_size": 1}),
            json!({"rank": 8, "world_size": 8}),
            json!({"rank": -1, "world_size": 8}),
            json!({"world_size": 8}),
            json!([]),
        ] {
            assert_eq!(Rank::read(value.clone()), None, "{value}");
        }
        let strange = json!({"rank": 0, "world_size": 2, "nodes": 3, "pg_config": {"0": []}});
        let strange = Rank::read(strange).expect("a rank");
        assert_eq!((strange.nodes, strange.groups), (None, Vec::new()));
    }
}

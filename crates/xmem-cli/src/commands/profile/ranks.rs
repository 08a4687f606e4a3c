//! `--ranks`: processes of a distributed job that are recorded one after another, each alone.

use super::args::{ProfileArgs, RankChoice};
use super::error::ProfileFailure;
use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use xmem::Bytes;
use xmem_recorder::{DevicePeaks, LoneRank};

/// The most GPUs of a node that a virtual GPU has.
const MAX_GPUS: u32 = 64;

/// The recordings to make: the chosen ranks, or none for a command whose processes all run. Others may follow
/// ([`between`]).
pub(super) fn chosen(args: &ProfileArgs) -> Result<Vec<Option<LoneRank>>, ProfileFailure> {
    let Some(world_size) = args.ranks else { return Ok(vec![None]) };
    let n = world_size.get();
    let ranks: Vec<u32> = match &args.rank {
        RankChoice::All => (0..n).collect(),
        RankChoice::Auto if n == 1 => vec![0],
        RankChoice::Auto => vec![0, n - 1],
        RankChoice::These(ranks) => ranks.clone(),
    };
    ranks.into_iter().map(|rank| alone(rank, world_size, args.nodes).map(Some)).collect()
}

/// One process of a job of `world_size` on `nodes`; an error if the job has no such rank, or a node too many GPUs.
pub(crate) fn alone(
    rank: u32,
    world_size: NonZeroU32,
    nodes: NonZeroU32,
) -> Result<LoneRank, ProfileFailure> {
    let wrong = |problem: String, advice| Err(ProfileFailure::Ranks { problem, advice });
    let n = world_size.get();
    if n % nodes != 0 {
        return wrong(
            format!("{n} ranks cannot be spread evenly over {nodes} nodes"),
            "--ranks counts the processes of all nodes",
        );
    }
    if n / nodes > MAX_GPUS {
        return wrong(
            format!(
                "{n} ranks on {nodes} {} are more than {MAX_GPUS} GPUs per node",
                plural(nodes.get(), "node", "nodes")
            ),
            "--nodes M gives each node N/M GPUs",
        );
    }
    LoneRank::new(rank, world_size, nodes).ok_or_else(|| ProfileFailure::Ranks {
        problem: format!("there is no rank {rank} among {n}"),
        advice: "ranks are counted from 0",
    })
}

/// The file of a rank, if there are several: `trace.rank3.json.zst` for `trace.json.zst`.
pub(super) fn file_of(path: &Path, rank: LoneRank) -> PathBuf {
    const ENDS: [&str; 6] = [".json.zst", ".json.gz", ".json", ".pickle", ".zst", ".gz"];
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let end = ENDS.into_iter().find(|end| name.ends_with(end)).unwrap_or_default();
    let stem = &name[..name.len() - end.len()];
    path.with_file_name(format!("{stem}.rank{}{end}", rank.rank()))
}

/// A rank in the middle of two that differ, of which none between is recorded; peaks that are not known differ. None if
/// there is no such rank.
pub(super) fn between(recorded: &BTreeMap<u32, Option<DevicePeaks>>) -> Option<u32> {
    let pairs = recorded.iter().zip(recorded.iter().skip(1));
    pairs
        .filter(|((rank, peaks), (next, others))| {
            **next - **rank > 1 && (peaks.is_none() || peaks != others)
        })
        .map(|((rank, _), (next, _))| rank + (next - rank) / 2)
        .next()
}

/// A line about the ranks that are left out.
pub(super) fn left_out(recorded: &BTreeMap<u32, Option<DevicePeaks>>) -> Option<String> {
    let last = *recorded.last_key_value()?.0;
    let rest: Vec<u32> = (0..last).filter(|rank| !recorded.contains_key(rank)).collect();
    (!rest.is_empty()).then(|| {
        format!(
            "not recorded, as the ranks around are equal: {} {}",
            plural(rest.len() as u32, "rank", "ranks"),
            listed(&rest)
        )
    })
}

/// A line about each group of ranks with the same peaks, the highest reserved memory first.
pub(super) fn comparison(peaks: &BTreeMap<u32, Option<DevicePeaks>>) -> Vec<String> {
    let mut groups: Vec<(DevicePeaks, Vec<u32>)> = Vec::new();
    for (&rank, &peaks) in peaks {
        let Some(peaks) = peaks else { continue };
        match groups.iter_mut().find(|(of, _)| *of == peaks) {
            Some((_, ranks)) => ranks.push(rank),
            None => groups.push((peaks, vec![rank])),
        }
    }
    groups.sort_by_key(|(peaks, ranks)| {
        (std::cmp::Reverse((peaks.reserved, peaks.allocated)), ranks[0])
    });
    let line = |(peaks, ranks): (DevicePeaks, Vec<u32>)| {
        format!(
            "{} {}{}: peak allocated {}, reserved {}",
            plural(ranks.len() as u32, "rank", "ranks"),
            listed(&ranks),
            if ranks.len() > 1 { " equal" } else { "" },
            Bytes(peaks.allocated),
            Bytes(peaks.reserved)
        )
    };
    groups.into_iter().map(line).collect()
}

fn plural(count: u32, one: &'static str, more: &'static str) -> &'static str {
    NonZeroU32::new(count).filter(|count| *count == NonZeroU32::MIN).map_or(more, |_| one)
}

/// `0, 2–4, 7`: sorted numbers, in a row by their ends.
fn listed(ranks: &[u32]) -> String {
    let mut rows: Vec<(u32, u32)> = Vec::new();
    for &rank in ranks {
        match rows.last_mut() {
            Some((_, last)) if *last + 1 == rank => *last = rank,
            _ => rows.push((rank, rank)),
        }
    }
    let row = |(first, last): (u32, u32)| match last - first {
        0 => first.to_string(),
        1 => format!("{first}, {last}"),
        _ => format!("{first}–{last}"),
    };
    rows.into_iter().map(row).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rank(rank: u32) -> LoneRank {
        let eight = NonZeroU32::new(8).expect("not zero");
        LoneRank::new(rank, eight, NonZeroU32::MIN).expect("a rank of eight")
    }

    #[test]
    fn a_rank_stands_before_the_ends_of_a_file_name() {
        for (name, expected) in [
            ("trace.json.zst", "trace.rank3.json.zst"),
            ("runs/a.json", "runs/a.rank3.json"),
            ("a.b.json.gz", "a.b.rank3.json.gz"),
            ("a.zst", "a.rank3.zst"),
            ("a.trace", "a.trace.rank3"),
            ("memory.pickle", "memory.rank3.pickle"),
        ] {
            assert_eq!(file_of(Path::new(name), rank(3)), Path::new(expected), "{name}");
        }
    }

    #[test]
    fn ranks_between_equal_ones_are_left_out() {
        // The group of each rank, the ranks that are recorded.
        let rows: [(&[u32], &[u32]); 7] = [
            (&[1, 1, 1, 1, 1, 1, 1, 1], &[0, 7]),
            (&[2, 1, 1, 1, 1, 1, 1, 1], &[0, 1, 3, 7]),
            (&[1, 1, 1, 1, 1, 1, 1, 2], &[0, 3, 5, 6, 7]),
            // Stages of a pipeline, one after another and by turns.
            (&[1, 1, 2, 2, 2, 2, 3, 3], &[0, 1, 2, 3, 5, 6, 7]),
            (&[1, 2, 3, 4, 1, 2, 3, 4], &[0, 1, 2, 3, 7]),
            (&[1, 2], &[0, 1]),
            (&[1], &[0]),
        ];
        for (groups, expected) in rows {
            let peaks = |rank: u32| {
                let group = u64::from(groups[rank as usize]);
                (rank, Some(DevicePeaks { allocated: group, reserved: group }))
            };
            let last = groups.len() as u32 - 1;
            let mut recorded = BTreeMap::from([peaks(0), peaks(last)]);
            while let Some(rank) = between(&recorded) {
                assert_eq!(recorded.insert(rank, peaks(rank).1), None, "{groups:?}: {rank} twice");
            }
            assert_eq!(recorded.keys().copied().collect::<Vec<_>>(), expected, "{groups:?}");
        }
        let unknown = BTreeMap::from([(0, None), (2, None)]);
        assert_eq!(between(&unknown), Some(1));
        assert_eq!(
            left_out(&unknown).as_deref(),
            Some("not recorded, as the ranks around are equal: rank 1")
        );
    }

    #[test]
    fn ranks_with_the_same_peaks_share_a_line() {
        let small = DevicePeaks { allocated: 1 << 20, reserved: 2 << 20 };
        let large = DevicePeaks { allocated: 2 << 20, reserved: 4 << 20 };
        let peaks = (0..8).map(|r| (r, Some(if r == 0 || r == 6 { large } else { small })));
        let mut peaks: BTreeMap<_, _> = peaks.collect();
        assert_eq!(
            comparison(&peaks),
            [
                "ranks 0, 6 equal: peak allocated 2.00 MiB, reserved 4.00 MiB",
                "ranks 1–5, 7 equal: peak allocated 1.00 MiB, reserved 2.00 MiB",
            ]
        );
        peaks.split_off(&1);
        assert_eq!(comparison(&peaks), ["rank 0: peak allocated 2.00 MiB, reserved 4.00 MiB"]);
    }
}

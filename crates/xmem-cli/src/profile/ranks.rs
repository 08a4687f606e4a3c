//! `--ranks`: processes of a distributed job that are recorded one after another, each alone.

use crate::args::{ProfileArgs, RankChoice};
use crate::error::CliError;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use xmem::Bytes;
use xmem_recorder::{DevicePeaks, LoneRank};

/// The most GPUs of a node that a virtual GPU has.
const MAX_GPUS: u32 = 64;

/// The recordings to make: the chosen ranks, or none for a command whose processes all run.
pub(super) fn chosen(args: &ProfileArgs) -> Result<Vec<Option<LoneRank>>, CliError> {
    let Some(world_size) = args.ranks else { return Ok(vec![None]) };
    let wrong = |problem: String, advice| Err(CliError::Ranks { problem, advice });
    let (n, nodes) = (world_size.get(), args.nodes);
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
    let ranks: Vec<u32> = match &args.rank {
        RankChoice::All => (0..n).collect(),
        RankChoice::These(ranks) => ranks.clone(),
    };
    let alone = |rank: &u32| LoneRank::new(*rank, world_size, nodes);
    match ranks.iter().find(|rank| alone(rank).is_none()) {
        Some(rank) => wrong(
            format!("there is no rank {rank} among {n}"),
            "ranks are counted from 0; `--rank all` records all of them",
        ),
        None => Ok(ranks.iter().map(alone).collect()),
    }
}

/// The file of a rank, if there are several: `trace.rank3.json.zst` for `trace.json.zst`.
pub(super) fn file_of(path: &Path, rank: LoneRank) -> PathBuf {
    const ENDS: [&str; 6] = [".json.zst", ".json.gz", ".json", ".pickle", ".zst", ".gz"];
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let end = ENDS.into_iter().find(|end| name.ends_with(end)).unwrap_or_default();
    let stem = &name[..name.len() - end.len()];
    path.with_file_name(format!("{stem}.rank{}{end}", rank.rank()))
}

/// A line about each group of ranks with the same peaks, the highest reserved memory first.
pub(super) fn comparison(peaks: &[(LoneRank, DevicePeaks)]) -> Vec<String> {
    let mut groups: Vec<(DevicePeaks, Vec<u32>)> = Vec::new();
    for (rank, peaks) in peaks {
        match groups.iter_mut().find(|(of, _)| of == peaks) {
            Some((_, ranks)) => ranks.push(rank.rank()),
            None => groups.push((*peaks, vec![rank.rank()])),
        }
    }
    groups.sort_by_key(|(peaks, ranks)| {
        (std::cmp::Reverse((peaks.reserved, peaks.allocated)), ranks[0])
    });
    let line = |(peaks, mut ranks): (DevicePeaks, Vec<u32>)| {
        ranks.sort_unstable();
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
    fn ranks_with_the_same_peaks_share_a_line() {
        let small = DevicePeaks { allocated: 1 << 20, reserved: 2 << 20 };
        let large = DevicePeaks { allocated: 2 << 20, reserved: 4 << 20 };
        let peaks: Vec<_> =
            (0..8).map(|r| (rank(r), if r == 0 || r == 6 { large } else { small })).collect();
        assert_eq!(
            comparison(&peaks),
            [
                "ranks 0, 6 equal: peak allocated 2.00 MiB, reserved 4.00 MiB",
                "ranks 1–5, 7 equal: peak allocated 1.00 MiB, reserved 2.00 MiB",
            ]
        );
        assert_eq!(comparison(&peaks[..1]), ["rank 0: peak allocated 2.00 MiB, reserved 4.00 MiB"]);
    }
}

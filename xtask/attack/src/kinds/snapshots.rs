//! Damage to memory snapshots: to the history, to the segments, and to both.

use crate::dice::{Dice, Strength};
use crate::kinds::Leaves;
use std::collections::{BTreeMap, BTreeSet};
use xmem_snapshot::{Action, BlockState, Limits, Segment, Snapshot, TraceEntry};
use xmem_types::{Addr, Bytes};

/// A kind of damage to a snapshot.
#[derive(Debug)]
pub(crate) struct SnapshotKind {
    pub(crate) name: &'static str,
    pub(crate) what: &'static str,
    damage: fn(&mut Snapshot, &mut Dice),
    pub(crate) leaves: Leaves,
}

impl SnapshotKind {
    const fn new(
        name: &'static str,
        what: &'static str,
        damage: fn(&mut Snapshot, &mut Dice),
    ) -> Self {
        Self { name, what, damage, leaves: Leaves::Damaged }
    }

    /// The bytes of one variant of a snapshot.
    pub(crate) fn apply(
        &self,
        pickle: &[u8],
        name: &str,
        seed: u64,
        strength: Strength,
    ) -> Vec<u8> {
        let (mut snapshot, _) = read(pickle);
        (self.damage)(&mut snapshot, &mut Dice::new(seed, self.name, name, strength));
        written(&snapshot)
    }
}

/// The snapshot in a pickle.
fn read(pickle: &[u8]) -> (Snapshot, xmem_types::Diagnostics) {
    xmem_snapshot::read(pickle, &Limits::default()).expect("a recorded snapshot")
}

/// The snapshot, read and written.
pub(crate) fn rewritten(pickle: &[u8]) -> Vec<u8> {
    written(&read(pickle).0)
}

fn written(snapshot: &Snapshot) -> Vec<u8> {
    let mut bytes = Vec::new();
    xmem_snapshot::write(snapshot, &mut bytes).expect("memory");
    bytes
}

/// What counts as large.
const LARGE: Bytes = Bytes::mib(1);

fn history(snapshot: &mut Snapshot) -> &mut Vec<TraceEntry> {
    let longest = snapshot.device_traces.iter_mut().max_by_key(|trace| trace.len());
    longest.expect("a device")
}

/// Removes the strength's share of the entries concerned.
fn drop_share(snapshot: &mut Snapshot, dice: &mut Dice, concerned: fn(&TraceEntry) -> bool) {
    let trace = history(snapshot);
    let places = (0..trace.len()).filter(|&place| concerned(&trace[place])).collect();
    let chosen: BTreeSet<usize> = dice.choose(places).into_iter().collect();
    let mut place = 0;
    trace.retain(|_| {
        place += 1;
        !chosen.contains(&(place - 1))
    });
}

/// The entries of blocks, each with its frees, by the places of the allocations.
fn lives(trace: &[TraceEntry]) -> BTreeMap<usize, Vec<usize>> {
    let mut lives: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    let mut live: BTreeMap<Addr, usize> = BTreeMap::new();
    for (place, entry) in trace.iter().enumerate() {
        match entry.action {
            Action::Alloc => {
                live.insert(entry.addr, place);
                lives.insert(place, vec![place]);
            }
            Action::FreeRequested | Action::FreeCompleted => {
                if let Some(allocation) = live.get(&entry.addr) {
                    lives.entry(*allocation).or_default().push(place);
                }
            }
            _ => {}
        }
    }
    lives
}

/// Removes the strength's share of large blocks from the history; the addresses of those that were not freed.
fn drop_large(snapshot: &mut Snapshot, dice: &mut Dice) -> BTreeSet<Addr> {
    let trace = history(snapshot);
    let lives = lives(trace);
    let large = lives.keys().copied().filter(|&place| trace[place].size >= LARGE).collect();
    let chosen = dice.choose(large);
    let held = chosen.iter().filter(|place| lives[place].len() == 1);
    let held = held.map(|&place| trace[place].addr).collect();
    let dropped: BTreeSet<usize> =
        chosen.iter().flat_map(|place| lives[place].iter().copied()).collect();
    let mut place = 0;
    trace.retain(|_| {
        place += 1;
        !dropped.contains(&(place - 1))
    });
    held
}

/// Frees blocks of the segments.
fn free_blocks(snapshot: &mut Snapshot, is_freed: impl Fn(Addr) -> bool) {
    for segment in &mut snapshot.segments {
        for block in segment.blocks.iter_mut().filter(|block| is_freed(block.address)) {
            block.state = BlockState::Inactive;
        }
        sum_anew(segment);
    }
}

/// Computes the sums of a segment anew.
fn sum_anew(segment: &mut Segment) {
    let used = segment.blocks.iter().filter(|block| block.state != BlockState::Inactive);
    let held = used.clone().filter(|block| block.state == BlockState::ActiveAllocated);
    segment.requested = segment.requested.map(|_| used.clone().filter_map(|b| b.requested).sum());
    segment.allocated = held.map(|block| block.size).sum();
    segment.active = used.map(|block| block.size).sum();
}

/// Removes segments that no entry of a block and no block in use is in, with their entries.
fn drop_unused_segments(snapshot: &mut Snapshot) {
    let trace = history(snapshot);
    let used: BTreeSet<Addr> = trace
        .iter()
        .filter(|entry| matches!(entry.action, Action::Alloc | Action::FreeRequested))
        .map(|entry| entry.addr)
        .collect();
    let is_used =
        |start: Addr, size: Bytes| used.range(start..Addr(start.0 + size.get())).next().is_some();
    trace.retain(|entry| {
        !matches!(entry.action, Action::SegmentAlloc | Action::SegmentFree)
            || is_used(entry.addr, entry.size)
    });
    snapshot
        .segments
        .retain(|segment| segment.active > Bytes::ZERO || is_used(segment.address, segment.total));
}

fn halve(size: &mut Bytes) {
    *size = Bytes(size.get() / 2);
}

fn halve_segment(segment: &mut Segment) {
    for size in [&mut segment.total, &mut segment.allocated, &mut segment.active] {
        halve(size);
    }
    segment.requested.iter_mut().for_each(halve);
    for block in &mut segment.blocks {
        block.address = Addr(segment.address.0 + (block.address.0 - segment.address.0) / 2);
        halve(&mut block.size);
        block.requested.iter_mut().for_each(halve);
    }
}

pub(crate) static KINDS: &[SnapshotKind] = &[
    SnapshotKind::new("history-missing", "the history removed", |s, _| {
        s.device_traces.iter_mut().for_each(Vec::clear);
    }),
    SnapshotKind::new(
        "beginning-of-history-lost",
        "the first 1 %, 10 %, 33 % or 80 % of the history removed, as by `max_entries`",
        |s, d| {
            let trace = history(s);
            let lost = (trace.len() as f64 * d.strength.cut()).ceil() as usize;
            trace.drain(..lost);
        },
    ),
    SnapshotKind::new(
        "end-of-history-lost",
        "the last 1 %, 10 %, 33 % or 80 % of the history removed",
        |s, d| {
            let trace = history(s);
            let kept = (trace.len() as f64 * (1.0 - d.strength.cut())) as usize;
            trace.truncate(kept);
        },
    ),
    SnapshotKind::new(
        "middle-of-history-lost",
        "1 %, 10 %, 33 % or 80 % of the history removed, from the middle",
        |s, d| {
            let trace = history(s);
            let lost = (trace.len() as f64 * d.strength.cut()).ceil() as usize;
            let from = (trace.len() - lost) / 2;
            trace.drain(from..from + lost);
        },
    ),
    SnapshotKind::new("allocations-lost", "allocations removed from the history", |s, d| {
        drop_share(s, d, |entry| entry.action == Action::Alloc);
    }),
    SnapshotKind::new("frees-lost", "frees removed from the history", |s, d| {
        drop_share(s, d, |entry| {
            matches!(entry.action, Action::FreeRequested | Action::FreeCompleted)
        });
    }),
    SnapshotKind::new("segment-entries-lost", "segments removed from the history", |s, d| {
        drop_share(s, d, |entry| {
            matches!(
                entry.action,
                Action::SegmentAlloc
                    | Action::SegmentFree
                    | Action::SegmentMap
                    | Action::SegmentUnmap
            )
        });
    }),
    SnapshotKind::new("entries-lost", "entries of all kinds removed from the history", |s, d| {
        drop_share(s, d, |_| true);
    }),
    SnapshotKind::new(
        "large-blocks-lost",
        "blocks of a MiB or more removed from the history, with their frees",
        |s, d| {
            drop_large(s, d);
        },
    ),
    SnapshotKind::new(
        "large-blocks-lost-and-freed",
        "the same, with those that were not freed free in their segments",
        |s, d| {
            let held = drop_large(s, d);
            free_blocks(s, |address| held.contains(&address));
        },
    ),
    SnapshotKind::new("sizes-halved", "sizes of allocations and frees halved", |s, d| {
        let trace = history(s);
        for place in d.choose((0..trace.len()).collect()) {
            let is_block = matches!(
                trace[place].action,
                Action::Alloc | Action::FreeRequested | Action::FreeCompleted
            );
            if is_block {
                halve(&mut trace[place].size);
            }
        }
    }),
    SnapshotKind::new(
        "blocks-halved-everywhere",
        "what blocks of some addresses requested halved, in history and segments",
        |s, d| {
            let trace = history(s);
            let allocated = trace.iter().filter(|entry| entry.action == Action::Alloc);
            let addresses: Vec<Addr> = allocated.map(|entry| entry.addr).collect();
            let chosen = d.choose((0..addresses.len()).collect());
            let chosen: BTreeSet<Addr> = chosen.into_iter().map(|place| addresses[place]).collect();
            let is_block = |entry: &TraceEntry| {
                matches!(
                    entry.action,
                    Action::Alloc | Action::FreeRequested | Action::FreeCompleted
                )
            };
            for entry in trace.iter_mut().filter(|e| is_block(e) && chosen.contains(&e.addr)) {
                halve(&mut entry.size);
            }
            for segment in &mut s.segments {
                let blocks = segment.blocks.iter_mut();
                blocks
                    .filter(|block| chosen.contains(&block.address))
                    .filter_map(|block| block.requested.as_mut())
                    .for_each(halve);
                sum_anew(segment);
            }
        },
    ),
    SnapshotKind::new(
        "all-sizes-halved",
        "sizes in history and segments halved, at addresses that are as far apart as before",
        |s, _| {
            history(s).iter_mut().for_each(|entry| halve(&mut entry.size));
            s.segments.iter_mut().for_each(halve_segment);
        },
    ),
    SnapshotKind::new("segments-lost", "segments removed", |s, d| {
        let chosen = d.choose((0..s.segments.len()).collect());
        for place in chosen.into_iter().rev() {
            s.segments.remove(place);
        }
    }),
    SnapshotKind::new("segments-halved", "segments and their blocks half as large", |s, d| {
        for place in d.choose((0..s.segments.len()).collect()) {
            halve_segment(&mut s.segments[place]);
        }
    }),
    SnapshotKind::new("blocks-freed", "blocks of segments free, with their sums", |s, d| {
        let blocks = s.segments.iter().flat_map(|segment| &segment.blocks);
        let used = blocks.filter(|block| block.state != BlockState::Inactive);
        let used: Vec<Addr> = used.map(|block| block.address).collect();
        let chosen = d.choose((0..used.len()).collect());
        let chosen: BTreeSet<Addr> = chosen.into_iter().map(|place| used[place]).collect();
        free_blocks(s, |address| chosen.contains(&address));
    }),
    SnapshotKind::new("segment-sums-halved", "the sums of segments halved", |s, d| {
        for place in d.choose((0..s.segments.len()).collect()) {
            let segment = &mut s.segments[place];
            halve(&mut segment.allocated);
            halve(&mut segment.active);
        }
    }),
    SnapshotKind::new("entries-twice", "entries of the history written twice", |s, d| {
        let trace = history(s);
        for place in d.choose((0..trace.len()).collect()).into_iter().rev() {
            trace.insert(place, trace[place]);
        }
    }),
    SnapshotKind::new("addresses-exchanged", "entries exchange their addresses", |s, d| {
        let trace = history(s);
        let chosen = d.choose((0..trace.len()).collect());
        let addresses: Vec<Addr> = chosen.iter().map(|&place| trace[place].addr).collect();
        for (&place, &address) in chosen.iter().zip(addresses.iter().cycle().skip(1)) {
            trace[place].addr = address;
        }
    }),
    SnapshotKind::new("sizes-exchanged", "entries exchange their sizes", |s, d| {
        let trace = history(s);
        let chosen = d.choose((0..trace.len()).collect());
        let sizes: Vec<Bytes> = chosen.iter().map(|&place| trace[place].size).collect();
        for (&place, &size) in chosen.iter().zip(sizes.iter().cycle().skip(1)) {
            trace[place].size = size;
        }
    }),
    SnapshotKind {
        leaves: Leaves::AnotherJob("history and segments agree"),
        ..SnapshotKind::new(
            "large-blocks-of-another-job",
            "blocks of a MiB or more and the segments that only they are in removed everywhere",
            |s, d| {
                let held = drop_large(s, d);
                free_blocks(s, |address| held.contains(&address));
                drop_unused_segments(s);
            },
        )
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording;

    #[test]
    fn every_kind_damages_and_does_so_the_same_way_again() {
        let name = recording::SNAPSHOTS[0];
        let file = std::fs::File::open(recording::path(name)).expect("a snapshot");
        let pickle = zstd::decode_all(file).expect("zstd");
        let intact = rewritten(&pickle);
        for kind in KINDS {
            let variant = || kind.apply(&pickle, name, 7, Strength::Heavy);
            let first = variant();
            assert!(first == variant(), "{}: not the same twice", kind.name);
            assert!(first != intact, "{}: nothing is damaged", kind.name);
            assert!(!kind.what.is_empty() && !kind.what.ends_with('.'), "{}", kind.name);
        }
    }
}

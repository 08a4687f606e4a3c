//! The history of CUDA's caching allocator as the recorder writes it: one entry for each of its actions, in
//! columns.

use super::activity::{ActivityDto, StreamActivity};
use serde::Deserialize;
use std::collections::BTreeMap;
use xmem_types::{Addr, Bytes, StreamId};

/// Addresses are counted in units of this (c10/cuda/CUDACachingAllocator.cpp, `kMinBlockSize`).
const ALIGNMENT: i64 = 512;

/// The histories of the devices.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllocatorHistory {
    /// True if nothing that the allocator did is missing.
    pub complete: bool,
    /// The options of the allocator as it reports them, if there are any.
    pub settings: Option<String>,
    /// One history for each device that was used.
    pub devices: Vec<DeviceHistory>,
    /// What the streams were told; none of recordings before it was logged.
    pub activity: Option<StreamActivity>,
}

/// The history of a device's allocator.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceHistory {
    /// The device.
    pub index: i16,
    /// Its actions in order.
    pub entries: Vec<HistoryEntry>,
    /// Segments of private pools, as they were seen.
    pub pools: Vec<PoolSighting>,
    /// The handles (`cudaStream_t`) of its streams by their numbers.
    pub streams: Vec<Addr>,
    /// The moments that frees wait for, by the positions of their entries.
    pub awaited: BTreeMap<usize, Vec<u64>>,
}

/// An action of the allocator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HistoryEntry {
    /// The kind.
    pub action: HistoryAction,
    /// The block, or the start of the segment.
    pub address: Addr,
    /// The size that was requested, or that of the segment.
    pub size: Bytes,
    /// The stream of an allocation.
    pub stream: StreamId,
    /// The line of the program that asked for an allocation; 0 where it is not known.
    pub line: u32,
}

/// The kind of a [`HistoryEntry`] (`TraceEntry::Action` in c10/cuda/CUDACachingAllocator.h).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HistoryAction {
    /// A block is handed out.
    Alloc,
    /// The program frees a block, which other streams still use.
    FreeRequested,
    /// The other streams are done with it.
    FreeCompleted,
    /// The program frees a block that no other stream uses.
    Freed,
    /// Memory is taken from the device.
    SegmentAlloc,
    /// Memory is released to the device.
    SegmentFree,
    /// An allocation fails.
    OutOfMemory,
}

/// A segment of a private pool at some moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolSighting {
    /// The number of entries before it.
    pub position: usize,
    /// The start of the segment.
    pub address: Addr,
    /// Its size.
    pub size: Bytes,
    /// Its pool (`MempoolId_t`).
    pub pool: (u64, u64),
}

/// The form in the file.
#[derive(Deserialize)]
pub(super) struct HistoryDto {
    #[serde(default)]
    complete: bool,
    settings: Option<String>,
    #[serde(default)]
    devices: Vec<DeviceDto>,
    activity: Option<ActivityDto>,
}

#[derive(Deserialize)]
pub(super) struct DeviceDto {
    index: i16,
    actions: String,
    addresses: Vec<i64>,
    sizes: Vec<u64>,
    streams: Vec<(String, u64)>,
    #[serde(default)]
    pools: Vec<(usize, i64, u64, (u64, u64))>,
    #[serde(default)]
    awaited: Vec<Vec<u64>>,
    /// Runs of lines of the allocations.
    #[serde(default)]
    lines: Vec<(u32, u64)>,
}

impl HistoryDto {
    /// The history; none if its columns contradict each other.
    pub(super) fn history(self) -> Option<AllocatorHistory> {
        let devices = self.devices.into_iter().map(DeviceDto::history);
        Some(AllocatorHistory {
            complete: self.complete,
            settings: self.settings.filter(|text| !text.is_empty()),
            devices: devices.collect::<Option<_>>()?,
            activity: match self.activity {
                Some(activity) => Some(activity.read()?),
                None => None,
            },
        })
    }
}

impl DeviceDto {
    /// The same with these runs of lines.
    pub(super) fn with_lines(self, lines: Vec<(u32, u64)>) -> Self {
        Self { lines, ..self }
    }

    /// The history; none if its columns contradict each other.
    pub(super) fn history(self) -> Option<DeviceHistory> {
        if self.actions.len() != self.addresses.len() {
            return None;
        }
        let mut sizes = self.sizes.into_iter();
        let (mut streams, handles) = streams(&self.streams)?;
        let mut lines = Runs::new(self.lines.clone());
        let mut address: i64 = 0;
        let mut entries = Vec::with_capacity(self.addresses.len());
        for (letter, step) in self.actions.bytes().zip(self.addresses) {
            address = address.checked_add(step)?;
            let action = match letter {
                b'a' => HistoryAction::Alloc,
                b'f' => HistoryAction::FreeRequested,
                b'c' => HistoryAction::FreeCompleted,
                b'F' => HistoryAction::Freed,
                b's' | b'm' => HistoryAction::SegmentAlloc,
                b'r' | b'u' => HistoryAction::SegmentFree,
                b'o' => HistoryAction::OutOfMemory,
                _ => return None,
            };
            let has_size = matches!(
                action,
                HistoryAction::Alloc | HistoryAction::SegmentAlloc | HistoryAction::SegmentFree
            );
            entries.push(HistoryEntry {
                action,
                address: byte_address(address)?,
                size: Bytes(if has_size { sizes.next()? } else { 0 }),
                stream: match action {
                    HistoryAction::Alloc => streams.next()?,
                    _ => StreamId(0),
                },
                line: match action {
                    HistoryAction::Alloc => lines.next().unwrap_or(0),
                    _ => 0,
                },
            });
        }
        if sizes.next().is_some() || streams.next().is_some() {
            return None;
        }
        let pools = self.pools.into_iter();
        let pools = pools.map(|(position, address, size, pool)| {
            let address = byte_address(address)?;
            (position <= entries.len()).then_some(PoolSighting {
                position,
                address,
                size: Bytes(size),
                pool,
            })
        });
        let awaited = self.awaited.iter().map(|row| {
            let (position, moments) = row.split_first()?;
            Some((usize::try_from(*position).ok()?, moments.to_vec()))
        });
        Some(DeviceHistory {
            index: self.index,
            pools: pools.collect::<Option<_>>()?,
            awaited: awaited.collect::<Option<_>>()?,
            streams: handles,
            entries,
        })
    }
}

fn byte_address(units: i64) -> Option<Addr> {
    u64::try_from(units.checked_mul(ALIGNMENT)?).ok().map(Addr)
}

/// The streams of the allocations: runs of `cudaStream_t` with their lengths. Also the handles by the numbers of streams.
fn streams(runs: &[(String, u64)]) -> Option<(Runs<StreamId>, Vec<Addr>)> {
    // The default stream is the first.
    let mut handles = vec![Addr(0)];
    let mut known = BTreeMap::from([(Addr(0), StreamId(0))]);
    let mut found = Vec::with_capacity(runs.len());
    for (handle, count) in runs {
        let handle = Addr::from_hex(handle)?;
        let stream = *known.entry(handle).or_insert_with(|| {
            handles.push(handle);
            StreamId::new(handles.len() - 1)
        });
        found.push((stream, *count));
    }
    Some((Runs::new(found), handles))
}

/// Values one after the other, which are written as runs of equal ones.
struct Runs<T> {
    runs: std::vec::IntoIter<(T, u64)>,
    now: Option<(T, u64)>,
}

impl<T: Copy> Runs<T> {
    fn new(runs: Vec<(T, u64)>) -> Self {
        Self { runs: runs.into_iter(), now: None }
    }

    fn next(&mut self) -> Option<T> {
        loop {
            match &mut self.now {
                Some((value, left)) if *left > 0 => {
                    *left -= 1;
                    return Some(*value);
                }
                now => *now = Some(self.runs.next()?),
            }
        }
    }
}

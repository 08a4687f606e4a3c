//! Recordings of a GPU: which of its devices is analyzed, and the memory that was allocated before the
//! recording began.
//!
//! The CUDA allocator reports each allocation and each free with the size of the block, and the totals
//! after it (c10/cuda/CUDACachingAllocator.cpp, `reportMemoryUsageToProfiler`). Blocks that were there
//! before the profiler started show by their frees, and the rest of them by the first total.

use crate::lifetime::Tick;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use xmem_trace::{DeviceKind, DeviceProperties, MemoryTable, Trace};
use xmem_types::{
    Addr, BlockId, Bytes, Diagnostics, Location, Nanos, PrivatePoolId, Severity, ThreadIdx,
};

/// The kind of file that a GPU was recorded in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum GpuSource {
    /// The trace of a profiler, whose sizes are those of blocks.
    Trace,
    /// A memory snapshot, whose sizes are those that the program requested.
    Snapshot,
}

impl GpuSource {
    /// The name in machine-readable output (`trace`).
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Trace => "trace",
            Self::Snapshot => "snapshot",
        }
    }
}

/// What a recording of a GPU says beside its blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GpuRecording {
    /// The kind of file.
    pub source: GpuSource,
    /// The index of the device whose memory is analyzed.
    pub index: i16,
    /// The number of devices of which the file has memory.
    pub devices: usize,
    /// The device, as far as the file describes it.
    pub properties: DeviceProperties,
    /// The number of blocks that were allocated before the recording began: the first of the profile.
    pub earlier: usize,
    /// The one of them that stands for all that is never freed.
    pub remainder: Option<BlockId>,
    /// Bytes of the blocks that were allocated before the recording began.
    pub allocated_before: Bytes,
    /// Bytes that were reserved before the recording began, where that is recorded.
    pub reserved_before: Option<Bytes>,
    /// The highest bytes of blocks, where the file says so.
    pub peak_allocated: Option<Bytes>,
    /// The highest bytes of pageable memory of the host that PyTorch allocated while the file was recorded.
    pub host_allocated: Option<Bytes>,
    /// The highest bytes that the program requested, where the file says so.
    pub peak_requested: Option<Bytes>,
    /// The highest reserved bytes, where the file says so.
    pub peak_reserved: Option<Bytes>,
    /// The positions before which the allocator released its cached memory, as
    /// `torch.cuda.empty_cache` does.
    pub cache_releases: Vec<Tick>,
    /// The positions before which the cached memory of a private pool was released as the pool was deleted.
    pub pool_releases: Vec<(Tick, PrivatePoolId)>,
    /// True if streams, private pools and completions of frees are in the file.
    pub has_history: bool,
    /// The moments of the streams' log ([`StreamActivity`](crate::recording::StreamActivity)) that frees wait for.
    pub awaited: BTreeMap<BlockId, Vec<u64>>,
    /// Allocations that failed, in order.
    pub out_of_memory: Vec<RecordedFailure>,
    /// False if more may have been allocated before the recording began than it shows: the job needs at least what
    /// was recorded.
    pub from_the_start: bool,
}

/// An allocation that failed in the recorded job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordedFailure {
    /// Its time; nanoseconds since the first event of the recording.
    pub time: Nanos,
    /// The bytes that were requested, as far as the file says.
    pub size: Bytes,
    /// The bytes that were free on the device, where the file says so.
    pub device_free: Option<Bytes>,
}

impl GpuRecording {
    /// A recording of which nothing is known but its kind.
    #[must_use]
    pub fn new(source: GpuSource) -> Self {
        Self {
            source,
            index: 0,
            devices: 1,
            properties: DeviceProperties::default(),
            earlier: 0,
            remainder: None,
            allocated_before: Bytes::ZERO,
            reserved_before: None,
            peak_allocated: None,
            peak_requested: None,
            peak_reserved: None,
            host_allocated: None,
            cache_releases: Vec::new(),
            pool_releases: Vec::new(),
            has_history: source == GpuSource::Snapshot,
            awaited: BTreeMap::new(),
            out_of_memory: Vec::new(),
            from_the_start: true,
        }
    }

    /// Returns whether there may be blocks that no event shows: all that was allocated before and is never
    /// freed, or anything if the file has no totals.
    #[must_use]
    pub fn may_hide_blocks(&self) -> bool {
        self.remainder.is_some() || self.source == GpuSource::Trace && self.peak_allocated.is_none()
    }
}

/// The memory events that are analyzed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Selection {
    kind: DeviceKind,
    /// All of this kind if none.
    index: Option<i16>,
}

impl Selection {
    /// All devices of a kind.
    pub(crate) const fn kind(kind: DeviceKind) -> Self {
        Self { kind, index: None }
    }

    /// A device.
    pub(crate) const fn device(kind: DeviceKind, index: i16) -> Self {
        Self { kind, index: Some(index) }
    }

    /// Returns whether a row is an allocation or a free of the selected devices.
    pub(crate) fn has(self, memory: &MemoryTable, row: usize) -> bool {
        self.is_of(memory, row) && !memory.out_of_memory[row]
    }

    fn is_of(self, memory: &MemoryTable, row: usize) -> bool {
        memory.device[row] == self.kind
            && self.index.is_none_or(|index| memory.device_index[row] == index)
    }

    /// The rows in time order; ties keep the order of the file.
    pub(crate) fn rows(self, memory: &MemoryTable) -> Vec<u32> {
        let mut rows: Vec<u32> =
            (0..memory.len()).filter(|&row| self.has(memory, row)).map(|row| row as u32).collect();
        rows.sort_by_key(|&r| (memory.time[r as usize], r));
        rows
    }
}

/// The memory of a GPU within a trace.
#[derive(Clone, Debug)]
pub(crate) struct GpuMemory {
    pub(crate) selection: Selection,
    pub(crate) recording: GpuRecording,
    /// Frees of blocks that were allocated before the recording, if the first total is less than they
    /// have together: some allocations are missing instead.
    pub(crate) unexplained: (u64, Option<Location>),
}

/// Chooses the device with most memory, unless one is given, and writes allocations of what was there before the
/// recording began behind the other rows, with a time before all of them.
pub(crate) fn prepare(
    trace: &mut Trace,
    wanted: Option<i16>,
    notes: &mut Diagnostics,
) -> GpuMemory {
    let all = all(&trace.memory);
    if wanted.is_none() {
        report_several(&all, &trace.memory, notes);
    }
    let index = wanted.or_else(|| all.first().copied()).unwrap_or_default();
    let devices = all.len();
    let selection = Selection::device(DeviceKind::Cuda, index);
    let rows = selection.rows(&trace.memory);
    let memory = &trace.memory;
    let properties = trace.header.device_properties.iter();
    let mut recording = GpuRecording {
        index,
        devices,
        properties: properties
            .enumerate()
            .find(|(row, device)| device.index.map_or(*row as i64, i64::from) == i64::from(index))
            .map(|(_, device)| device.clone())
            .unwrap_or_default(),
        peak_allocated: highest(&rows, &memory.total_allocated),
        peak_reserved: highest(&rows, &memory.total_reserved),
        host_allocated: highest(
            &Selection::kind(DeviceKind::Cpu).rows(memory),
            &memory.total_allocated,
        ),
        out_of_memory: (0..memory.len())
            .filter(|&row| memory.out_of_memory[row] && selection.is_of(memory, row))
            .map(|row| RecordedFailure {
                time: memory.time[row],
                size: Bytes(u64::try_from(memory.bytes[row]).unwrap_or(0)),
                device_free: None,
            })
            .collect(),
        ..GpuRecording::new(GpuSource::Trace)
    };
    let first = rows.first().map(|&row| row as usize);
    // The first event reserves at most what it allocates; a free reserves nothing.
    recording.reserved_before = first
        .filter(|&row| memory.bytes[row] < 0)
        .and_then(|row| u64::try_from(memory.total_reserved[row]).ok())
        .map(Bytes);
    let (mut earlier, first_free) = freed_only(memory, &rows);
    let freed: u64 = earlier.iter().map(|&(_, size)| size).fold(0, u64::saturating_add);
    let base = first
        .filter(|&row| memory.total_allocated[row] >= 0)
        .map(|row| i128::from(memory.total_allocated[row]) - i128::from(memory.bytes[row]));
    let mut unexplained = (0, None);
    if let Some(base) = base {
        match u64::try_from(base - i128::from(freed)) {
            Ok(0) => {}
            Ok(rest) => {
                earlier.insert(0, (Addr(0), rest));
                recording.remainder = Some(BlockId(0));
            }
            Err(_) => unexplained = (earlier.len() as u64, first_free),
        }
    }
    let releases = releases(memory, &rows);
    let offset = earlier.len() as u32;
    recording.cache_releases = releases.into_iter().map(|tick| Tick(tick + offset)).collect();
    recording.earlier = earlier.len();
    recording.allocated_before = Bytes(earlier.iter().map(|e| e.1).fold(0, u64::saturating_add));
    report(&recording, notes);
    if let Some(first) = first {
        let origin = Origin {
            time: beginning(trace),
            index,
            thread: trace.memory.thread[first],
            has_totals: base.is_some(),
        };
        origin.write(&earlier, &mut trace.memory);
    }
    GpuMemory { selection, recording, unexplained }
}

/// The devices with memory, that with the highest peak first.
pub(crate) fn all(memory: &MemoryTable) -> Vec<i16> {
    let selection = Selection::kind(DeviceKind::Cuda);
    let rows = (0..memory.len()).filter(|&row| selection.has(memory, row));
    let indices: BTreeSet<i16> = rows.map(|row| memory.device_index[row]).collect();
    if indices.len() < 2 {
        return indices.into_iter().collect();
    }
    peaks(memory).into_iter().map(|(index, _)| index).collect()
}

/// The devices with memory and the peak of each, the highest first.
fn peaks(memory: &MemoryTable) -> Vec<(i16, i64)> {
    let mut running: BTreeMap<i16, (i64, i64)> = BTreeMap::new();
    for row in Selection::kind(DeviceKind::Cuda).rows(memory) {
        let row = row as usize;
        let (now, most) = running.entry(memory.device_index[row]).or_default();
        *now = match memory.total_allocated[row] {
            total @ 0.. => total,
            _ => now.saturating_add(memory.bytes[row]),
        };
        *most = (*most).max(*now);
    }
    let mut peaks: Vec<(i16, i64)> =
        running.into_iter().map(|(index, (_, most))| (index, most)).collect();
    peaks.sort_by_key(|&(index, most)| (Reverse(most), index));
    peaks
}

fn report_several(all: &[i16], memory: &MemoryTable, notes: &mut Diagnostics) {
    let [first, _, ..] = all else { return };
    notes.report("several-gpus", Severity::Note, None, || {
        let peak = |&(index, most): &(i16, i64)| {
            format!("{} on GPU {index}", Bytes(most.unsigned_abs()))
        };
        let peaks: Vec<String> = peaks(memory).iter().map(peak).collect();
        format!(
            "the recording has memory of {} GPUs: that of GPU {first} is shown, which has most (peaks of allocated \
             memory: {})",
            all.len(),
            peaks.join(", ")
        )
    });
}

fn highest(rows: &[u32], column: &[i64]) -> Option<Bytes> {
    let values = rows.iter().filter_map(|&row| u64::try_from(column[row as usize]).ok());
    // A build without the totals writes zeros.
    values.max().filter(|&most| most > 0).map(Bytes)
}

/// Addresses and sizes of the blocks that are freed without having been allocated, by address, with the
/// first free. Formats without addresses tell blocks by size.
fn freed_only(memory: &MemoryTable, rows: &[u32]) -> (Vec<(Addr, u64)>, Option<Location>) {
    let has_addresses = rows.iter().any(|&row| memory.address[row as usize] != Addr(0));
    let mut live: FxHashMap<(Addr, u64), u64> = FxHashMap::default();
    let mut found = Vec::new();
    let mut first = None;
    for &row in rows {
        let r = row as usize;
        let size = memory.bytes[r].unsigned_abs();
        let key = if has_addresses { (memory.address[r], 0) } else { (Addr(0), size) };
        let count = live.entry(key).or_default();
        match memory.bytes[r] {
            0 => {}
            1.. => *count = if has_addresses { 1 } else { *count + 1 },
            _ if *count > 0 => *count -= 1,
            _ => {
                found.push((memory.address[r], size));
                first = first.or(Some(Location::MemoryEvent(row)));
            }
        }
    }
    found.sort_unstable();
    (found, first)
}

/// Events before which cached memory was released: the reserved total falls. No free does that, and an
/// allocation only where the device has no more (`release_cached_blocks`).
fn releases(memory: &MemoryTable, rows: &[u32]) -> Vec<u32> {
    let reserved = |row: u32| memory.total_reserved[row as usize];
    let falls = |pair: &[u32]| reserved(pair[1]) >= 0 && reserved(pair[1]) < reserved(pair[0]);
    let ticks = rows.windows(2).enumerate().filter(|(_, pair)| falls(pair));
    ticks.map(|(at, _)| at as u32 + 1).collect()
}

fn report(recording: &GpuRecording, notes: &mut Diagnostics) {
    if recording.earlier > 0 {
        notes.report("allocated-before", Severity::Note, None, || {
            format!(
                "{} were allocated before the recording began; they count from the start",
                recording.allocated_before
            )
        });
    }
    notes.report_many(
        "recorded-out-of-memory",
        Severity::Warning,
        None,
        recording.out_of_memory.len() as u64,
        || {
            "the recorded job ran out of memory: what it would have done with more is not recorded"
                .into()
        },
    );
    let releases = recording.cache_releases.len() as u64;
    notes.report_many("cache-released", Severity::Note, None, releases, || {
        "reserved memory falls in the recording: cached memory was released (`empty_cache`); the \
         replay releases it at the same places"
            .into()
    });
}

/// A time before all of the trace.
fn beginning(trace: &Trace) -> Nanos {
    let times = trace.ops.start.iter().chain(&trace.memory.time).chain(&trace.python.start);
    Nanos(times.min().map_or(0, |first| first.get().saturating_sub(1)))
}

/// The place of allocations that the recording lacks.
struct Origin {
    time: Nanos,
    index: i16,
    thread: ThreadIdx,
    /// True if the recording has totals.
    has_totals: bool,
}

impl Origin {
    fn write(&self, blocks: &[(Addr, u64)], memory: &mut MemoryTable) {
        let mut total: i64 = 0;
        for &(address, size) in blocks {
            let size = i64::try_from(size).unwrap_or(i64::MAX);
            total = total.saturating_add(size);
            memory.time.push(self.time);
            memory.address.push(address);
            memory.bytes.push(size);
            memory.total_allocated.push(if self.has_totals { total } else { -1 });
            memory.total_reserved.push(-1);
            memory.device.push(DeviceKind::Cuda);
            memory.device_index.push(self.index);
            memory.thread.push(self.thread);
            memory.out_of_memory.push(false);
        }
    }
}

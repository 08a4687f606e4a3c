//! Whether the memory events agree with each other.

use super::checks::{
    ADDRESSES, FOREIGN, FREED_SIZE, LIVE_ADDRESS, OUTSIDE, TOTALS, UNMATCHED, ZERO_BYTES,
};
use super::{Integrity, Subject};
use crate::distributed;
use crate::gpu::GpuMemory;
use crate::pairing::{Tally, is_of_mapped_file, is_of_shared_memory};
use rustc_hash::FxHashMap;
use xmem_trace::DeviceKind;
use xmem_types::{Addr, Location, Nanos, Sym};

pub(super) fn check(subject: &Subject<'_>, integrity: &mut Integrity) {
    let rows = subject.recorded_rows();
    let events = rows.len() as u64;
    totals(subject, integrity);
    let pairing = &subject.pairing;
    let mut add = |check, tally: Tally| integrity.add(check, (tally.count, events), tally.first);
    if pairing.by_address {
        add(&UNMATCHED, unmatched(subject));
        add(&LIVE_ADDRESS, live_address(subject, events));
        add(&FREED_SIZE, pairing.freed_size);
    }
    add(&ZERO_BYTES, pairing.zero_bytes);
    let trace = subject.program.trace;
    // Formats without addresses have no numbers either.
    if trace.evidence.memory.numbered > 0 {
        let nowhere = |row: &&u32| trace.memory.address[**row as usize] == Addr(0);
        let count = rows.iter().filter(nowhere).count() as u64;
        integrity.add(&ADDRESSES, (count, events), None);
    }
    let kinds = &subject.program.trace.memory.device;
    let foreign = kinds.iter().filter(|kind| **kind == DeviceKind::Other).count() as u64;
    integrity.add(&FOREIGN, (foreign, kinds.len() as u64), None);
    // On a GPU, `Module.to` and the libraries of other packages allocate outside of operators, too.
    if subject.gpu.is_none() {
        integrity.add(&OUTSIDE, (outside(subject), subject.origins.len() as u64), None);
    }
}

/// Whether a function of Python, by its name in the trace, is of a file whose functions allocate without an operator: they
/// read tensors from files, and write them. The recorder's are in one module in older recordings.
fn is_of_file_format(name: &str) -> bool {
    let path = name.split('(').next().unwrap_or_default();
    path.ends_with("torch/serialization.py")
        || path.ends_with("xmem_recorder/weights.py")
        || path.contains("xmem_recorder/weights/")
        || path.rsplit('/').nth(1) == Some("safetensors")
}

/// Allocations outside of operators, but for those of tensors that are read from files or written.
fn outside(subject: &Subject<'_>) -> u64 {
    let program = &subject.program;
    let (python, strings) = (&program.trace.python, &program.trace.strings);
    if subject.origins.iter().all(|origin| origin.op.is_some()) {
        return 0;
    }
    let mut times = Vec::new();
    let mut known: FxHashMap<Sym, bool> = FxHashMap::default();
    for row in 0..python.len() {
        let is_of_file = *known
            .entry(python.name[row])
            .or_insert_with_key(|name| is_of_file_format(strings.resolve(*name)));
        if is_of_file {
            times.push((python.start[row], python.start[row] + python.duration[row]));
        }
    }
    times.sort_unstable();
    // Each begins behind the end of the one before.
    let mut spans: Vec<(Nanos, Nanos)> = Vec::new();
    for (start, end) in times {
        match spans.last_mut() {
            Some(last) if start <= last.1 => last.1 = last.1.max(end),
            _ => spans.push((start, end)),
        }
    }
    let is_of_file = |time: Nanos| {
        let before = spans.partition_point(|&(start, _)| start <= time);
        before.checked_sub(1).is_some_and(|span| time <= spans[span].1)
    };
    let blocks = subject.origins.iter().zip(subject.lifetimes);
    blocks.filter(|(origin, life)| origin.op.is_none() && !is_of_file(life.alloc_time)).count()
        as u64
}

/// Allocations at addresses that are in use. The profiler sees no frees in the threads of gloo, which let go of a buffer
/// where they are the last that hold it.
fn live_address(subject: &Subject<'_>, events: u64) -> Tally {
    let found = subject.pairing.live_address;
    let is_few = found.count * 100 <= events;
    let uses_gloo = || !distributed::work(&subject.program.trace.strings).is_empty();
    if subject.gpu.is_none() && is_few && found.count > 0 && uses_gloo() {
        return Tally::default();
    }
    found
}

/// Frees without an allocation. In a recording of a GPU, they are of blocks that were allocated before it
/// began, unless the first total is less than those have.
fn unmatched(subject: &Subject<'_>) -> Tally {
    match subject.gpu {
        Some(&GpuMemory { unexplained: (count, first), .. }) => Tally { count, first },
        None => subject.pairing.unmatched,
    }
}

/// The key of metadata that tells what the host's reporter had counted before the profiler started, in bytes.
const TOTAL_BEFORE_KEY: &str = "xmem_total_before";

/// The reporter counts from zero when a process starts its first profiler, and goes on from there with the next one
/// (c10/core/CPUAllocator.cpp, `ProfiledCPUMemoryReporter`); then metadata tell what it had counted. On a GPU it counts all
/// that is allocated, also before the profiler started.
fn totals(subject: &Subject<'_>, integrity: &mut Integrity) {
    let trace = subject.program.trace;
    let told = trace.header.extra.iter().find(|(key, _)| key == TOTAL_BEFORE_KEY);
    let told = told.and_then(|(_, bytes)| bytes.parse().ok());
    let start: i64 = told.filter(|_| subject.gpu.is_none()).unwrap_or(0);
    let memory = &trace.memory;
    let mut running: FxHashMap<i16, i64> = FxHashMap::default();
    let (mut wrong, mut checked, mut first) = (0, 0, None);
    for &row in subject.rows {
        let r = row as usize;
        let recorded = memory.total_allocated[r];
        if recorded < 0 {
            continue;
        }
        checked += 1;
        if subject.gpu.is_none() && is_of_mapped_file(memory.bytes[r], recorded) {
            continue;
        }
        let before = running.get(&memory.device_index[r]).copied().unwrap_or(start);
        if subject.gpu.is_none()
            && is_of_shared_memory(memory.bytes[r], recorded)
            && before.saturating_add(memory.bytes[r]) != 0
        {
            continue;
        }
        running.insert(memory.device_index[r], recorded);
        if before.saturating_add(memory.bytes[r]) != recorded {
            wrong += 1;
            first = first.or(Some(Location::MemoryEvent(row)));
        }
    }
    if checked > 0 {
        wrong += subject.rows.len() as u64 - checked;
    }
    integrity.add(&TOTALS, (wrong, checked), first);
}

#[cfg(test)]
mod tests {
    use super::is_of_file_format;

    #[test]
    fn functions_that_read_and_write_tensors_are_known_by_their_file() {
        for (name, expected) in [
            ("torch/serialization.py(1462): load", true),
            ("safetensors/torch.py(316): load_file", true),
            ("torch/xmem_recorder/weights.py(151): safe_open", true),
            ("torch/xmem_recorder/weights/pretrained.py(31): from_pretrained", true),
            ("torch/xmem_recorder/cpu/loading.py(24): load", false),
            ("train.py(3): load", false),
        ] {
            assert_eq!(is_of_file_format(name), expected, "{name}");
        }
    }
}

//! Whether the memory events of a GPU are those of PyTorch's caching allocator, and agree with its reserved memory,
//! with the shapes of operators and with the peaks that PyTorch counted.

use super::checks::{BLOCK_SIZES, OUTPUTS, PEAKS, RESERVED, SEGMENTS};
use super::operators::expected_outputs;
use super::signatures::{COPY, device_output_bytes};
use super::{Integrity, Subject};
use xmem_types::{Bytes, Location, Nanos, OpId, Sealed};

/// The unit of blocks (c10/cuda/CUDACachingAllocator.cpp, `kMinBlockSize`).
pub(super) const BLOCK_UNIT: u64 = 512;

/// The unit of segments (`kRoundLarge`), and of the pages of small ones.
pub(super) const SEGMENT_UNIT: u64 = 2 << 20;

/// The size of segments that hold several large blocks, and of the pages of large ones (`kLargeBuffer`).
const LARGE_SEGMENT: u64 = 20 << 20;

pub(super) fn check(subject: &Subject<'_>, integrity: &mut Integrity) {
    let Some(gpu) = subject.gpu else { return };
    sizes(subject, integrity);
    // A build without the totals writes zeros.
    if gpu.recording.peak_allocated.is_some() {
        reserved(subject, integrity);
        peaks(subject, integrity);
    }
    // A compiler runs operators of its own, without memory.
    if subject.complete && !subject.compiled {
        outputs(subject, integrity);
    }
}

/// The most that is reserved for a block of this size: a segment, or pages of one.
pub(crate) const fn most_reserved(block: u64) -> u64 {
    let pages = block.div_ceil(LARGE_SEGMENT);
    (if pages == 0 { 1 } else { pages }).saturating_mul(LARGE_SEGMENT)
}

fn sizes(subject: &Subject<'_>, integrity: &mut Integrity) {
    let memory = &subject.program.trace.memory;
    let rows = subject.recorded_rows();
    let odd = |row: &&u32| !memory.bytes[**row as usize].unsigned_abs().is_multiple_of(BLOCK_UNIT);
    let mut found = rows.iter().filter(odd);
    let count = found.clone().count() as u64;
    let first = found.next().map(|&row| Location::MemoryEvent(row));
    integrity.add(&BLOCK_SIZES, (count, rows.len() as u64), first);
}

/// `Total Reserved` is what segments have: it holds the allocated memory, and grows with an allocation for which a
/// segment, or pages of one, are needed.
fn reserved(subject: &Subject<'_>, integrity: &mut Integrity) {
    let memory = &subject.program.trace.memory;
    let rows = subject.recorded_rows();
    let total = |row: u32| u64::try_from(memory.total_reserved[row as usize]).ok();
    let is_odd = |row: &&u32| {
        total(**row).is_none_or(|reserved| {
            let allocated = memory.total_allocated[**row as usize];
            !reserved.is_multiple_of(SEGMENT_UNIT) || i128::from(reserved) < i128::from(allocated)
        })
    };
    let mut odd = rows.iter().filter(is_odd);
    let count = odd.clone().count() as u64;
    let first = odd.next().map(|&row| Location::MemoryEvent(row));
    integrity.add(&RESERVED, (count, rows.len() as u64), first);
    if subject.larger_segments {
        return;
    }
    let grows = |pair: &&[u32]| {
        let (Some(before), Some(after)) = (total(pair[0]), total(pair[1])) else { return false };
        let bytes = memory.bytes[pair[1] as usize];
        after > before && u64::try_from(bytes).map_or(true, |b| after - before > most_reserved(b))
    };
    let mut unexplained = rows.windows(2).filter(grows);
    let count = unexplained.clone().count() as u64;
    let first = unexplained.next().map(|pair| Location::MemoryEvent(pair[1]));
    integrity.add(&SEGMENTS, (count, rows.len() as u64), first);
}

/// The recorder reads the peaks that PyTorch counts (`torch.cuda.memory_stats`), which are those of the events.
fn peaks(subject: &Subject<'_>, integrity: &mut Integrity) {
    let (Some(gpu), Some((allocated, reserved))) = (subject.gpu, subject.counted_peaks) else {
        return;
    };
    let recording = &gpu.recording;
    // The peaks are those of one device.
    if recording.devices > 1 {
        return;
    }
    let differs = |counted: Bytes, events: Option<Bytes>| u64::from(events != Some(counted));
    let count =
        differs(allocated, recording.peak_allocated) + differs(reserved, recording.peak_reserved);
    integrity.add(&PEAKS, (count, 2), None);
}

/// An operator that returns a new tensor allocates a block for it, on the device or on the host.
fn outputs(subject: &Subject<'_>, integrity: &mut Integrity) {
    let memory = &subject.program.trace.memory;
    let mut allocations: Vec<(Nanos, u64)> = (0..memory.len())
        .filter(|&row| memory.bytes[row] > 0)
        // An allocation that failed stands for any.
        .map(|row| match memory.out_of_memory[row] {
            true => (memory.time[row], u64::MAX),
            false => (memory.time[row], memory.bytes[row].unsigned_abs()),
        })
        .collect();
    allocations.sort_unstable();
    let program = &subject.program;
    let parent = |op: OpId| program.tree.parent(op);
    // A copy within another operator may be one on the meta device, as in `arange` of another type; of a recording that is as it
    // was written, any may be (`module.to("meta")`).
    let is_sealed = program.trace.evidence.sealed == Sealed::Intact;
    let is_within = |copy: OpId| {
        if is_sealed {
            return true;
        }
        let around = parent(copy).filter(|&op| program.op_name(op) == "aten::to").and_then(parent);
        around.is_some_and(|op| program.op_name(op).starts_with("aten::"))
    };
    let inside = |op: OpId| match parent(op) {
        Some(copy) if program.op_name(copy) == COPY && is_within(copy) => "",
        Some(parent) => program.op_name(parent),
        None => "",
    };
    let bytes =
        |op: OpId| device_output_bytes(program.op_name(op), inside(op), program.arguments(op));
    let expected = expected_outputs(subject, |op| inside(op) == COPY, bytes);
    let is_missing = |&(op, bytes): &(OpId, u64)| {
        let (start, end) = (program.op_start(op), program.op_end(op));
        let from = allocations.partition_point(|&(time, _)| time < start);
        let mut inside = allocations[from..].iter().take_while(|&&(time, _)| time <= end);
        !inside.any(|&(_, size)| size >= bytes)
    };
    let checked = expected.len() as u64;
    let mut missing = expected.into_iter().filter(is_missing);
    let first = missing.next().map(|(op, _)| Location::Op(op));
    let count = u64::from(first.is_some()) + missing.count() as u64;
    integrity.add(&OUTPUTS, (count, checked), first);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_needs_at_most_a_segment_or_pages_of_one() {
        const MIB: u64 = 1 << 20;
        for (block, most) in
            [(0, 20), (512, 20), (20 * MIB, 20), (20 * MIB + 512, 40), (133 * MIB, 140)]
        {
            assert_eq!(most_reserved(block), most * MIB, "{block}");
        }
        assert_eq!(most_reserved(u64::MAX), u64::MAX);
    }
}

//! Traces that say impossible things: shapes, sizes and times at the limits of 64 bits.

use super::support::{By, Detail, done, plain_loop};
use proptest::prelude::*;
use xmem_trace::{Thread, Trace};
use xmem_types::{Addr, Nanos, Sym, ThreadIdx};

const EXTREMES: [i64; 7] = [i64::MIN, -1, 0, 1, 1 << 32, i64::MAX - 1, i64::MAX];

/// Replaces one number of a trace, chosen by `column` and `row`.
fn distort(trace: &mut Trace, column: u8, row: usize, value: i64) {
    fn set<T>(column: &mut [T], row: usize, value: T) {
        let row = row % column.len();
        column[row] = value;
    }
    match column % 11 {
        0 => set(&mut trace.memory.bytes, row, value),
        1 => set(&mut trace.memory.time, row, Nanos(value)),
        2 => set(&mut trace.memory.address, row, Addr(value.cast_unsigned())),
        3 => set(&mut trace.memory.total_allocated, row, value),
        4 => set(&mut trace.ops.start, row, Nanos(value)),
        5 => set(&mut trace.ops.duration, row, Nanos(value.max(0))),
        6 => set(&mut trace.ops.sequence, row, value),
        7 => set(&mut trace.python.start, row, Nanos(value)),
        8 => set(&mut trace.python.duration, row, Nanos(value.max(0))),
        9 => set(&mut trace.ops.thread, row, ThreadIdx(1)),
        _ => {
            let extent = value.unsigned_abs();
            let dims = format!("[[{extent},{extent},{extent}],[{extent},{extent}]]");
            let dims = trace.strings.intern(&dims);
            let row = row % trace.signatures.len();
            trace.signatures[row].dims = dims;
        }
    }
}

proptest! {
    #[test]
    fn numbers_at_the_limits_of_64_bits_are_analyzed_without_overflow(
        distortions in prop::collection::vec(
            (any::<u8>(), any::<usize>(), prop::sample::select(&EXTREMES[..])),
            1..12,
        ),
        by in prop::sample::select(&[By::Recorder, By::Profiler][..]),
    ) {
        let mut r = plain_loop(Detail::Everything, by);
        r.trace.threads.push(Thread { process: Sym::EMPTY, thread: Sym::EMPTY });
        for (column, row, value) in distortions {
            distort(&mut r.trace, column, row, value);
        }
        let (profile, _) = done(r);
        let total = profile.blocks.iter().map(|b| b.size).sum();
        prop_assert!(profile.blocks.iter().all(|b| b.size <= total));
    }
}

#[test]
fn a_free_of_2_to_the_63_bytes_of_shared_memory_is_no_overflow() {
    for by in [By::Recorder, By::Profiler] {
        let mut r = plain_loop(Detail::Everything, by);
        r.trace.memory.bytes.fill(i64::MIN);
        r.trace.memory.total_allocated.fill(0);
        let (profile, _) = done(r);
        assert!(profile.integrity.condition() > xmem_analyzer::integrity::Condition::Intact);
    }
}

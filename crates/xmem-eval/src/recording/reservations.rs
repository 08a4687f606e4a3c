//! The address space behind expandable segments. Neither the snapshot nor the trace says where it
//! begins and ends; what was mapped in it does, in part.

use super::Recording;
use super::pages::Pages;
use std::ops::Range;
use xmem_simulator::{AllocatorConfig, PoolKind, SegmentId, SegmentState};
use xmem_snapshot::Action;
use xmem_types::{Addr, Bytes, StreamId};

/// The expandable segments of a recording: one for each pool and stream at a time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reservations(Vec<Reservation>);

/// One of them.
#[derive(Clone, Debug)]
struct Reservation {
    owner: (StreamId, PoolKind),
    /// Its number in the state at the start, if it was there.
    at_start: Option<SegmentId>,
    /// The lowest address that was ever mapped.
    base: Addr,
    mapped: Bytes,
    /// The trace entries during which it was there.
    lifetime: Range<usize>,
}

impl Reservations {
    /// Follows the trace from what was there at its start. A segment without pages is given up
    /// (`release_expandable_segment`).
    pub(crate) fn of(
        recording: &Recording<'_>,
        config: &AllocatorConfig,
        start: &[SegmentState],
    ) -> Self {
        let mut all = Self::default();
        let end = recording.trace().len();
        for state in start.iter().filter(|state| state.expandable) {
            let reservation = all.current((state.stream, state.pool), 0, end, state.addr);
            reservation.at_start = Some(state.segment);
            reservation.mapped += state.size;
        }
        let pages = Pages::of(recording, config);
        for (row, entry) in recording.trace().iter().enumerate() {
            let addr = recording.to_simulated(entry.addr);
            match entry.action {
                Action::SegmentMap => {
                    let owner = (entry.stream, pages.kind(addr, entry.size));
                    all.current(owner, row, end, addr).mapped += entry.size;
                }
                Action::SegmentUnmap => {
                    let owner = (entry.stream, pages.kind(addr, entry.size));
                    let reservation = all.current(owner, row, end, addr);
                    reservation.mapped = reservation.mapped.saturating_sub(entry.size);
                    if reservation.mapped == Bytes::ZERO {
                        reservation.lifetime.end = row;
                    }
                }
                _ => {}
            }
        }
        all
    }

    /// The segment of `owner` that exists at entry `row`, made if there is none.
    fn current(
        &mut self,
        owner: (StreamId, PoolKind),
        row: usize,
        end: usize,
        addr: Addr,
    ) -> &mut Reservation {
        let there = |r: &Reservation| r.owner == owner && r.lifetime.end == end;
        let known = self.0.iter().position(there).unwrap_or_else(|| {
            self.0.push(Reservation {
                owner,
                at_start: None,
                base: addr,
                mapped: Bytes::ZERO,
                lifetime: row..end,
            });
            self.0.len() - 1
        });
        let reservation = &mut self.0[known];
        reservation.base = reservation.base.min(addr);
        reservation
    }

    /// The start addresses of those that existed at the start.
    pub(crate) fn at_start(&self) -> Vec<(SegmentId, Addr)> {
        self.0.iter().filter_map(|r| Some((r.at_start?, r.base))).collect()
    }

    /// The highest memory that the device can have so that all of them, each of which takes an
    /// eighth more of address space than that, have space side by side. None if there never were
    /// two at a time.
    pub(crate) fn total(&self, config: &AllocatorConfig) -> Option<Bytes> {
        let mut least: Option<u64> = None;
        for (row, one) in self.0.iter().enumerate() {
            for other in &self.0[row + 1..] {
                let together = one.lifetime.start < other.lifetime.end
                    && other.lifetime.start < one.lifetime.end;
                if together {
                    let gap = one.base.0.abs_diff(other.base.0);
                    least = Some(least.map_or(gap, |least| least.min(gap)));
                }
            }
        }
        // They are rounded up to whole pages.
        let rounding = config.large_buffer.get();
        least.map(|gap| Bytes(gap.saturating_sub(rounding) / 9 * 8))
    }
}

//! The text that is shown after a step.

use crate::case::Case;
use std::collections::BTreeMap;
use xmem_simulator::{
    AllocatorChoice, BlockUse, EventAction, FrameworkAllocator, PoolKind, SegmentState,
    min_capacity, replay,
};
use xmem_types::{BlockId, Bytes, KIB, MIB, StreamId};

impl Case {
    /// The segment events since the last step, the figures, and every segment with its blocks.
    pub(crate) fn state(&mut self) -> Vec<String> {
        self.session();
        let allocator = self.session.as_ref().expect("just made").allocator();
        let base = allocator.segments().first().map_or(0, |s| s.addr.0);
        let offset = |addr: u64| signed(addr.cast_signed() - base.cast_signed());
        let mut lines = Vec::new();
        for event in &allocator.observer()[self.shown..] {
            match event.action {
                EventAction::SegmentAlloc
                | EventAction::SegmentFree
                | EventAction::SegmentMap
                | EventAction::SegmentUnmap => lines.push(format!(
                    "{} {} at {}",
                    event.action.name(),
                    short(event.size),
                    offset(event.addr.0)
                )),
                EventAction::Oom => {
                    lines.push(format!(
                        "oom {} free {}",
                        short(event.size),
                        short(Bytes(event.addr.0))
                    ));
                }
                _ => {}
            }
        }
        self.shown = allocator.observer().len();
        let stats = allocator.stats();
        lines.push(format!(
            "allocated {} requested {} reserved {} split {}x {} retries {} ooms {}",
            short(stats.allocated_bytes.all.current),
            short(stats.requested_bytes.all.current),
            short(stats.reserved_bytes.all.current),
            stats.inactive_split.all.current,
            short(stats.inactive_split_bytes.all.current),
            stats.num_alloc_retries,
            stats.num_ooms
        ));
        let figures = lines.last_mut().expect("just shown");
        if stats.active_bytes.all.current != stats.allocated_bytes.all.current {
            *figures += &format!(" active {}", short(stats.active_bytes.all.current));
        }
        if stats.num_oom_rejections > 0 {
            *figures += &format!(" rejections {}", stats.num_oom_rejections);
        }
        let names: BTreeMap<u64, &str> = self
            .handles
            .iter()
            .filter_map(|(name, h)| Some((allocator.block((*h)?).addr.0, name.as_str())))
            .collect();
        for segment in allocator.state() {
            let blocks: Vec<String> = segment
                .blocks
                .iter()
                .map(|b| match b.used {
                    BlockUse::Allocated => format!("{} {}", names[&b.addr.0], short(b.size)),
                    BlockUse::PendingFree => format!("pending {}", short(b.size)),
                    BlockUse::Free => format!("free {}", short(b.size)),
                })
                .collect();
            lines.push(format!(
                "  {} {}: {}",
                offset(segment.addr.0),
                self.kind(&segment),
                blocks.join(", ")
            ));
        }
        lines
    }

    /// The purpose of the segment.
    fn kind(&self, segment: &SegmentState) -> String {
        let pool = match (&self.choice, segment.pool) {
            (AllocatorChoice::Bfc(_), _) => return "region".to_owned(),
            (_, PoolKind::Small) => "small",
            (_, PoolKind::Large) => "large",
        };
        let mut kind = match segment.private_pool {
            Some(private) => format!("pool {} {pool}", private.0),
            None => pool.to_owned(),
        };
        if segment.expandable {
            kind += " expandable";
        }
        if segment.stream != StreamId(0) {
            kind += &format!(" stream {}", segment.stream.0);
        }
        kind
    }

    /// The highest figures since they were last reset.
    pub(crate) fn peaks(&mut self) -> Vec<String> {
        let stats = self.session().allocator().stats();
        vec![format!(
            "peak allocated {} reserved {}",
            short(stats.allocated_bytes.all.peak),
            short(stats.reserved_bytes.all.peak)
        )]
    }

    pub(crate) fn replay(&self) -> Vec<String> {
        let got = replay(&self.requests, &self.choice, &self.device);
        let name = |block: BlockId| {
            let known = self.numbers.iter().find(|(_, number)| **number == block);
            known.map_or("?", |(name, _)| name.as_str())
        };
        let mut lines = vec![match got.oom {
            None => "fits".to_owned(),
            Some(oom) => format!(
                "out of memory at request {} ({}): tried {}, allocated {}, reserved {}, device \
                 free {}, largest cached {}, needed {}",
                oom.request,
                name(oom.block),
                short(oom.tried),
                short(oom.allocated),
                short(oom.reserved),
                short(oom.device_free),
                short(oom.largest_cached),
                short(oom.needed)
            ),
        }];
        let live: Vec<&str> = got.live_at_peak.iter().map(|b| name(b.block)).collect();
        lines.push(format!(
            "peak allocated {} at request {}: {}",
            short(got.peak.allocated),
            got.peak.request,
            live.join(" ")
        ));
        lines.push(format!(
            "peak reserved {} at request {}",
            short(got.reserved_peak.reserved),
            got.reserved_peak.request
        ));
        for (at, f) in
            [("allocated", got.fragmentation), ("reserved", got.fragmentation_at_reserved_peak)]
        {
            lines.push(format!(
                "at peak {at}: {} segments, {} free in {} blocks, largest {}, releasable {}",
                f.segments,
                short(f.free),
                f.free_blocks,
                short(f.largest_free),
                short(f.releasable)
            ));
        }
        lines.push(format!(
            "unlimited: allocated {} reserved {}",
            short(got.unlimited.allocated),
            short(got.unlimited.reserved)
        ));
        let smallest = min_capacity(&self.requests, &self.choice, &self.device);
        lines.push(format!("runs in {}", short(smallest)));
        for d in got.diagnostics.iter() {
            lines.push(format!("{}: {}", d.code, d.message));
        }
        lines
    }
}

/// Exact, in the largest unit that divides it.
fn short(size: Bytes) -> String {
    match size.get() {
        0 => "0".to_owned(),
        n if n % MIB == 0 => format!("{}MiB", n / MIB),
        n if n % KIB == 0 => format!("{}KiB", n / KIB),
        n => n.to_string(),
    }
}

fn signed(offset: i64) -> String {
    let sign = if offset < 0 { "-" } else { "" };
    format!("{sign}{}", short(Bytes(offset.unsigned_abs())))
}

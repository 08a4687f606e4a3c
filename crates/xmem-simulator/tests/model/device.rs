//! The device: a capacity, and a list of address ranges in use.

use super::MIB;
use std::collections::VecDeque;
use xmem_simulator::{AddressOrder, DeviceConfig};
use xmem_types::Bytes;

const BOTTOM: u64 = 1 << 45;
const TOP: u64 = 1 << 46;
const PAGE: u64 = 2 * MIB;
const GRANULE: u64 = 32 * MIB;

#[derive(Clone, Debug)]
pub(crate) struct ModelDevice {
    /// The memory that the allocator may take.
    pub(crate) limit: Option<u64>,
    /// The total that the device reports.
    pub(crate) total: Option<u64>,
    pub(crate) used: u64,
    order: AddressOrder,
    /// Ranges in use: start and end, by address.
    taken: Vec<(u64, u64)>,
    /// Address space that the driver has taken: start and end, by address.
    chunks: Vec<(u64, u64)>,
    /// Addresses of the next segments, where a recording gives them.
    pub(crate) segments: VecDeque<u64>,
    /// Pages shared by requests below 1 MiB, in the order in which they were opened, and the
    /// ranges in use in each.
    shared: Vec<(u64, Vec<(u64, u64)>)>,
}

impl ModelDevice {
    pub(super) fn new(config: &DeviceConfig) -> Self {
        Self {
            limit: config.capacity.map(|c| c.get().saturating_sub(config.taken.get())),
            total: config.reported_total.or(config.capacity).map(Bytes::get),
            used: 0,
            order: config.address_order,
            taken: Vec::new(),
            chunks: Vec::new(),
            segments: VecDeque::new(),
            shared: Vec::new(),
        }
    }

    pub(crate) fn free_bytes(&self) -> Option<u64> {
        self.limit.map(|limit| limit.saturating_sub(self.used))
    }

    fn has(&self, size: u64) -> bool {
        self.free_bytes().is_none_or(|free| free >= size)
    }

    /// `cudaMalloc`.
    pub(super) fn malloc(&mut self, size: u64) -> Option<u64> {
        if size < MIB {
            return self.malloc_shared(size.div_ceil(512) * 512);
        }
        let size = size.div_ceil(PAGE) * PAGE;
        if !self.has(size) {
            return None;
        }
        let addr = match self.segments.pop_front() {
            Some(addr) => self.take_at(addr, size),
            None => self.reserve(size)?,
        };
        self.used += size;
        Some(addr)
    }

    /// `cudaFree`.
    pub(super) fn free(&mut self, addr: u64) {
        for page in &mut self.shared {
            if (page.0..page.0 + PAGE).contains(&addr) {
                page.1.retain(|&(start, _)| start != addr);
            }
        }
        if let Some(empty) = self.shared.iter().position(|page| page.1.is_empty()) {
            let (page, _) = self.shared.remove(empty);
            self.used -= PAGE;
            self.unreserve(page);
        } else if let Some(&(_, end)) = self.taken.iter().find(|&&(start, _)| start == addr)
            && !self.shared.iter().any(|page| page.0 == addr)
        {
            self.used -= end - addr;
            self.unreserve(addr);
        }
    }

    fn malloc_shared(&mut self, size: u64) -> Option<u64> {
        for (page, ranges) in &mut self.shared {
            let mut starts = vec![*page];
            starts.extend(ranges.iter().map(|r| r.1));
            starts.sort_unstable();
            let fits = |start: u64| {
                start + size <= *page + PAGE
                    && ranges.iter().all(|r| r.1 <= start || start + size <= r.0)
            };
            if let Some(start) = starts.into_iter().find(|&start| fits(start)) {
                ranges.push((start, start + size));
                return Some(start);
            }
        }
        if !self.has(PAGE) {
            return None;
        }
        let page = self.reserve(PAGE)?;
        self.used += PAGE;
        self.shared.push((page, vec![(page, page + size)]));
        Some(page)
    }

    /// Memory for pages of an expandable segment.
    pub(super) fn map(&mut self, size: u64) -> bool {
        let fits = self.has(size);
        if fits {
            self.used += size;
        }
        fits
    }

    pub(super) fn unmap(&mut self, size: u64) {
        self.used -= size;
    }

    fn take_at(&mut self, addr: u64, size: u64) -> u64 {
        self.taken.push((addr, addr + size));
        self.taken.sort_unstable();
        addr
    }

    /// Address space alone.
    pub(super) fn reserve(&mut self, size: u64) -> Option<u64> {
        let size = size.div_ceil(PAGE) * PAGE;
        let addr = match self.order {
            AddressOrder::Ascending => self.holes(BOTTOM, TOP, size).first()?.0,
            AddressOrder::Descending => self.holes(BOTTOM, TOP, size).last()?.1 - size,
            AddressOrder::Driver | AddressOrder::Recorded => {
                let hole =
                    |&(start, end): &(u64, u64)| self.holes(start, end, size).first().copied();
                match self.chunks.iter().find_map(hole) {
                    Some(hole) => hole.0,
                    None => self.open_chunk(size.div_ceil(GRANULE) * GRANULE)?,
                }
            }
        };
        Some(self.take_at(addr, size))
    }

    pub(super) fn unreserve(&mut self, addr: u64) {
        self.taken.retain(|&(start, _)| start != addr);
        let taken = &self.taken;
        self.chunks.retain(|chunk| taken.iter().any(|&(at, _)| chunk.0 <= at && at < chunk.1));
    }

    /// The highest granules between chunks.
    fn open_chunk(&mut self, span: u64) -> Option<u64> {
        let mut start = TOP.checked_sub(span)?;
        while let Some(&(chunk, _)) =
            self.chunks.iter().rev().find(|chunk| chunk.0 < start + span && start < chunk.1)
        {
            start = chunk.checked_sub(span)?;
        }
        if start < BOTTOM {
            return None;
        }
        self.chunks.push((start, start + span));
        self.chunks.sort_unstable();
        Some(start)
    }

    /// Free address ranges of at least `size` between two addresses, from the bottom up.
    fn holes(&self, bottom: u64, top: u64, size: u64) -> Vec<(u64, u64)> {
        let mut from = bottom;
        let mut holes = Vec::new();
        for &(start, end) in self.taken.iter().filter(|range| bottom <= range.0 && range.0 < top) {
            holes.push((from, start));
            from = end;
        }
        holes.push((from, top));
        holes.retain(|hole| hole.1 - hole.0 >= size);
        holes
    }
}

//! Expandable segments.

use super::Model;
use super::malloc::{Found, Wanted};
use super::place::{Pool, Use};
use xmem_simulator::{EventAction, Reserve};

impl Model {
    /// `try_allocate_expandable_block`: a free block of at least the wanted size, mapped as far as
    /// needed.
    pub(super) fn grow(&mut self, wanted: &Wanted) -> Option<Found> {
        let (s, mut b) = self.find_room(wanted)?;
        if self.segments[s].blocks[b].used == Use::Unmapped {
            b = self.map(s, b, wanted.size)?;
        }
        while self.size_of((s, b)) < wanted.size {
            let missing = wanted.size - self.size_of((s, b));
            b = self.map(s, b + 1, missing)?;
        }
        Some((s, b))
    }

    fn page(&self, pool: Pool) -> u64 {
        if pool.small { self.config.small_buffer.get() } else { self.config.large_buffer.get() }
    }

    /// `find_expandable_block`: where free and unmapped blocks in a row suffice, lowest address
    /// first; else a new segment.
    fn find_room(&mut self, wanted: &Wanted) -> Option<Found> {
        let mut unmapped = Vec::new();
        for (s, segment) in self.segments.iter().enumerate() {
            if segment.pool != wanted.pool || segment.stream != wanted.stream {
                continue;
            }
            for (b, block) in segment.blocks.iter().enumerate() {
                if block.used == Use::Unmapped {
                    unmapped.push((segment.addr_of(b), s, b));
                }
            }
        }
        unmapped.sort_unstable();
        for (_, s, mut b) in unmapped {
            let blocks = &self.segments[s].blocks;
            if b > 0 && blocks[b - 1].used.is_free() {
                b -= 1;
            }
            let usable = |used: Use| used.is_free() || used == Use::Unmapped;
            let row: u64 = blocks[b..].iter().take_while(|x| usable(x.used)).map(|x| x.size).sum();
            if row >= wanted.size {
                return Some((s, b));
            }
        }
        let page = self.page(wanted.pool);
        let size = self.address_space().div_ceil(page) * page;
        let addr = self.device.reserve(size)?;
        let fits = size >= wanted.size;
        self.add_segment(wanted, addr, size, Use::Unmapped);
        // PyTorch crashes where the device has room for more than the address space; 2.15 fails.
        fits.then_some((self.segments.len() - 1, 0))
    }

    fn address_space(&self) -> u64 {
        // Of a device without limit the simulator assumes 256 GiB.
        let total = self.device.total.unwrap_or(256 << 30);
        let most = total + total / 8;
        match self.config.expandable_reserve {
            None => most,
            Some(Reserve::Size(size)) => most.min(size.get()),
            Some(Reserve::PartOfTotal(part)) => most.min((part * total as f64) as u64),
        }
    }

    /// `map_block`: puts memory behind the beginning of an unmapped block. Tells where the block is
    /// then.
    fn map(&mut self, s: usize, b: usize, size: u64) -> Option<usize> {
        let page = self.page(self.segments[s].pool);
        let addr = self.segments[s].addr_of(b);
        let whole = self.segments[s].blocks[b].size;
        let mapped = size.min(whole).div_ceil(page) * page;
        if !self.device.map(mapped) {
            return None;
        }
        self.segments[s].blocks[b].size = mapped;
        self.segments[s].blocks[b].used = Use::Free;
        if mapped < whole {
            let rest = self.new_block(whole - mapped, Use::Unmapped);
            self.segments[s].blocks.insert(b + 1, rest);
        }
        let b = self.segments[s].merge(b);
        self.free_from_now_on(s, b);
        self.figures.device_allocs += 1;
        let stream = self.segments[s].stream;
        self.tell(EventAction::SegmentMap, addr, mapped, stream);
        Some(b)
    }

    /// `unmap_block`: takes the whole pages out of a free block.
    pub(super) fn unmap(&mut self, number: u64) {
        let (s, mut b) = self.block_numbered(number);
        let segment = &self.segments[s];
        let page = self.page(segment.pool);
        let start = segment.addr_of(b) - segment.addr;
        let end = start + segment.blocks[b].size;
        let (first, last) = (start.div_ceil(page) * page, end / page * page);
        if first >= last {
            return;
        }
        let (addr, size) = (segment.addr + first, last - first);
        self.segments[s].blocks[b].size = size;
        self.segments[s].blocks[b].used = Use::Unmapped;
        if first > start {
            let before = self.new_block(first - start, Use::Free);
            self.segments[s].blocks.insert(b, before);
            self.free_from_now_on(s, b);
            b += 1;
        }
        if end > last {
            let after = self.new_block(end - last, Use::Free);
            self.segments[s].blocks.insert(b + 1, after);
            self.free_from_now_on(s, b + 1);
        }
        self.segments[s].merge(b);
        self.device.unmap(size);
        let (stream, pool) = (self.segments[s].stream, self.segments[s].pool);
        // `unmapHandles` waits for the segment's stream.
        self.streams.synchronize_stream(stream);
        self.gave_back(pool);
        self.figures.device_frees += 1;
        self.tell(EventAction::SegmentUnmap, addr, size, stream);
        if self.segments[s].blocks.len() == 1 {
            // `release_expandable_segment`
            let gone = self.segments.remove(s);
            self.device.unreserve(gone.addr);
        }
    }

    pub(super) fn free_from_now_on(&mut self, s: usize, b: usize) {
        let searches = self.searches.get(&self.segments[s].pool).copied().unwrap_or(0);
        self.segments[s].blocks[b].free_since = searches;
    }

    pub(super) fn block_numbered(&self, number: u64) -> Found {
        for (s, segment) in self.segments.iter().enumerate() {
            if let Some(b) = segment.blocks.iter().position(|b| b.number == number) {
                return (s, b);
            }
        }
        panic!("there is no block number {number}");
    }
}

//! A second, slow implementation of the same allocator: segments as plain lists of blocks, every
//! search a scan, every figure summed up anew. It shares no code with the simulator.

use xmem_simulator::{AddressOrder, AllocatorConfig, DeviceConfig};
use xmem_types::Bytes;

const MIB: u64 = 1 << 20;
const BOTTOM: u64 = 1 << 45;
const TOP: u64 = 1 << 46;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) size: u64,
    /// Who has it, and how many bytes it asked for.
    pub(crate) owner: Option<(u32, u64)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) addr: u64,
    pub(crate) size: u64,
    pub(crate) stream: u32,
    pub(crate) small: bool,
    pub(crate) blocks: Vec<Block>,
}

#[derive(Clone, Debug)]
pub(crate) struct Model {
    pub(crate) segments: Vec<Segment>,
    pub(crate) retries: u64,
    pub(crate) ooms: u64,
    pub(crate) limit: Option<u64>,
    config: AllocatorConfig,
    order: AddressOrder,
    lowest_opened: u64,
}

impl Model {
    pub(crate) fn new(config: &AllocatorConfig, device: &DeviceConfig) -> Self {
        Self {
            segments: Vec::new(),
            retries: 0,
            ooms: 0,
            limit: device.capacity.map(|c| c.get().saturating_sub(device.taken.get())),
            config: config.clone(),
            order: device.address_order,
            lowest_opened: TOP,
        }
    }

    pub(crate) fn reserved(&self) -> u64 {
        self.segments.iter().map(|s| s.size).sum()
    }

    fn blocks(&self) -> impl Iterator<Item = &Block> {
        self.segments.iter().flat_map(|s| &s.blocks)
    }

    pub(crate) fn allocated(&self) -> u64 {
        self.blocks().filter(|b| b.owner.is_some()).map(|b| b.size).sum()
    }

    pub(crate) fn requested(&self) -> u64 {
        self.blocks().filter_map(|b| b.owner).map(|(_, n)| n).sum()
    }

    pub(crate) fn allocations(&self) -> u64 {
        self.blocks().filter(|b| b.owner.is_some()).count() as u64
    }

    /// Count and bytes of the free blocks in segments of more than one block.
    pub(crate) fn inactive_split(&self) -> (u64, u64) {
        let split = self.segments.iter().filter(|s| s.blocks.len() > 1);
        let free = split.flat_map(|s| &s.blocks).filter(|b| b.owner.is_none());
        free.fold((0, 0), |(n, bytes), b| (n + 1, bytes + b.size))
    }

    pub(crate) fn largest_free(&self) -> u64 {
        self.blocks().filter(|b| b.owner.is_none()).map(|b| b.size).max().unwrap_or(0)
    }

    fn round(&self, n: u64) -> u64 {
        let d = u64::from({
            let bucket = (n as f64).log2().floor() as i64 - 20;
            self.config.roundup_power2_divisions.0[bucket.clamp(0, 15) as usize]
        });
        if n < 512 {
            512
        } else if d > 1 && n > 512 * d {
            let mut floor = 1;
            while floor * 2 <= n {
                floor *= 2;
            }
            let step = floor / d;
            if n == floor { n } else { n.div_ceil(step) * step }
        } else {
            n.div_ceil(512) * 512
        }
    }

    pub(crate) fn alloc(&mut self, id: u32, n: u64, stream: u32) -> Result<Option<u64>, ()> {
        if n == 0 {
            return Ok(None);
        }
        if n >= 1 << 60 {
            return Err(());
        }
        let r = self.round(n);
        let small = r <= MIB;
        let max_split = self.config.max_split_size.map_or(u64::MAX, Bytes::get);
        let slack = self.config.max_non_split_rounding.get();

        let mut best: Option<(u64, u64, usize, usize)> = None;
        for (s, segment) in self.segments.iter().enumerate() {
            if segment.stream != stream || segment.small != small {
                continue;
            }
            let mut addr = segment.addr;
            for (b, block) in segment.blocks.iter().enumerate() {
                if block.owner.is_none() && block.size >= r {
                    let candidate = (block.size, addr, s, b);
                    best = Some(best.map_or(candidate, |known| known.min(candidate)));
                }
                addr += block.size;
            }
        }
        let best = best.filter(|&(size, ..)| {
            let oversize_for_small_request = r < max_split && size >= max_split;
            let too_much_slack = r >= max_split && size >= r + slack;
            !oversize_for_small_request && !too_much_slack
        });
        let (addr, s, b) = match best {
            Some((_, addr, s, b)) => (addr, s, b),
            None => {
                let s = self.grow(r, small, stream, max_split).ok_or(())?;
                (self.segments[s].addr, s, 0)
            }
        };
        let blocks = &mut self.segments[s].blocks;
        let rest = blocks[b].size - r;
        if if small { rest >= 512 } else { r < max_split && rest > MIB } {
            blocks[b].size = r;
            blocks.insert(b + 1, Block { size: rest, owner: None });
        }
        blocks[b].owner = Some((id, n));
        Ok(Some(addr))
    }

    fn grow(&mut self, r: u64, small: bool, stream: u32, max_split: u64) -> Option<usize> {
        let size = match r {
            _ if small => 2 * MIB,
            _ if r < 10 * MIB => 20 * MIB,
            _ => r.div_ceil(2 * MIB) * 2 * MIB,
        };
        let new =
            Segment { addr: 0, size, stream, small, blocks: vec![Block { size, owner: None }] };
        if let Some(s) = self.map(&new) {
            return Some(s);
        }
        if max_split != u64::MAX
            && self.release_oversize(r.max(max_split), max_split, &new)
            && let Some(s) = self.map(&new)
        {
            return Some(s);
        }
        self.flush();
        self.retries += 1;
        let made = self.map(&new);
        self.ooms += u64::from(made.is_none());
        made
    }

    fn map(&mut self, new: &Segment) -> Option<usize> {
        if self.limit.is_some_and(|limit| self.reserved() + new.size > limit) {
            return None;
        }
        let addr = self.place(new.size)?;
        self.segments.push(Segment { addr, ..new.clone() });
        Some(self.segments.len() - 1)
    }

    /// Free address ranges, from the bottom up.
    fn holes(&self) -> Vec<(u64, u64)> {
        let mut taken: Vec<_> = self.segments.iter().map(|s| (s.addr, s.addr + s.size)).collect();
        taken.sort_unstable();
        let mut from = if self.order == AddressOrder::Driver { self.lowest_opened } else { BOTTOM };
        let mut holes = Vec::new();
        for (start, end) in taken {
            holes.push((from, start));
            from = end;
        }
        holes.push((from, TOP));
        holes
    }

    fn place(&mut self, size: u64) -> Option<u64> {
        let fits = |hole: &&(u64, u64)| hole.1 - hole.0 >= size;
        let holes = self.holes();
        match self.order {
            AddressOrder::Ascending => holes.iter().find(fits).map(|h| h.0),
            AddressOrder::Descending => holes.iter().rev().find(fits).map(|h| h.1 - size),
            AddressOrder::Driver | AddressOrder::Recorded => match holes.iter().find(fits) {
                Some(hole) => Some(hole.0),
                None => {
                    let granules = size.div_ceil(32 * MIB) * 32 * MIB;
                    if granules > self.lowest_opened - BOTTOM {
                        return None;
                    }
                    self.lowest_opened -= granules;
                    Some(self.lowest_opened)
                }
            },
        }
    }

    /// Gives one oversize segment that suffices back, or several from the largest down.
    fn release_oversize(&mut self, key: u64, max_split: u64, new: &Segment) -> bool {
        let mut cached: Vec<_> = self
            .segments
            .iter()
            .filter(|s| s.stream == new.stream && s.small == new.small)
            .filter(|s| s.blocks.len() == 1 && s.blocks[0].owner.is_none() && s.size >= max_split)
            .map(|s| (s.size, s.addr))
            .collect();
        cached.sort_unstable();
        let mut victims: Vec<u64> = Vec::new();
        let mut bytes = 0;
        if let Some(&(size, addr)) = cached.iter().find(|(size, _)| *size >= key) {
            victims.push(addr);
            bytes = size;
        } else {
            for &(size, addr) in cached.iter().rev() {
                if bytes < key {
                    victims.push(addr);
                    bytes += size;
                }
            }
        }
        self.segments.retain(|s| !victims.contains(&s.addr));
        bytes >= key
    }

    pub(crate) fn flush(&mut self) {
        self.segments.retain(|s| s.blocks.iter().any(|b| b.owner.is_some()));
    }

    pub(crate) fn free(&mut self, id: u32) {
        for segment in &mut self.segments {
            let blocks = &mut segment.blocks;
            let Some(b) = blocks.iter().position(|b| b.owner.is_some_and(|(o, _)| o == id)) else {
                continue;
            };
            blocks[b].owner = None;
            if blocks.get(b + 1).is_some_and(|next| next.owner.is_none()) {
                blocks[b].size += blocks.remove(b + 1).size;
            }
            if b > 0 && blocks[b - 1].owner.is_none() {
                blocks[b - 1].size += blocks.remove(b).size;
            }
            return;
        }
    }

    /// Every segment by address.
    pub(crate) fn by_address(&self) -> Vec<Segment> {
        let mut segments = self.segments.clone();
        segments.sort_by_key(|s| s.addr);
        segments
    }

    /// Address, size and request of the block that `id` has.
    pub(crate) fn find(&self, id: u32) -> Option<(u64, u64, u64)> {
        for segment in &self.segments {
            let mut addr = segment.addr;
            for block in &segment.blocks {
                if let Some((owner, n)) = block.owner
                    && owner == id
                {
                    return Some((addr, block.size, n));
                }
                addr += block.size;
            }
        }
        None
    }
}

//! A second, slow implementation of TensorFlow's allocator: regions as plain lists of chunks, bins
//! made anew for every search, every figure summed up. It shares no code with the simulator.

use crate::Region;
use xmem_simulator::{AddressOrder, BfcConfig, DeviceConfig, MemoryLimit};
use xmem_types::Bytes;

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
const TIB: u64 = 1 << 40;

#[derive(Clone, Debug)]
struct Chunk {
    addr: u64,
    size: u64,
    /// Who has it, and how many bytes it asked for.
    owner: Option<(u32, u64)>,
    /// True if it is the first of its region.
    first: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Model {
    /// By address.
    chunks: Vec<Chunk>,
    config: BfcConfig,
    order: AddressOrder,
    limit: Option<u64>,
    capacity: Option<u64>,
    lifted: bool,
    pub(crate) next_region: u64,
    pub(crate) peak_in_use: u64,
    pub(crate) peak_pool: u64,
    pub(crate) largest: u64,
    pub(crate) device_frees: u64,
}

impl Model {
    pub(crate) fn new(config: &BfcConfig, device: &DeviceConfig) -> Self {
        let capacity = device.capacity.map(|c| c.get().saturating_sub(device.taken.get()));
        let limit = match (config.limit, capacity) {
            (MemoryLimit::Exactly(Bytes(limit)), _) => Some(limit),
            (MemoryLimit::FreeLessReserve { .. } | MemoryLimit::Fraction(_), None) => None,
            (MemoryLimit::Fraction(part), Some(_)) => {
                device.capacity.map(|total| (total.get() as f64 * part) as u64)
            }
            (MemoryLimit::FreeLessReserve { compute_capability }, Some(free)) => {
                let by_gpu = [500, 500, 500, 500, 500, 500, 500, 1050, 1536, 1800];
                let large = by_gpu[compute_capability.min(9) as usize];
                let reserve = MIB * if free < 2 * GIB { 225 } else { large };
                Some(if free > reserve { free - reserve } else { free })
            }
        };
        let first = if config.allow_growth || limit.is_none() { 2 * MIB } else { u64::MAX };
        Self {
            chunks: Vec::new(),
            config: *config,
            order: device.address_order,
            limit,
            capacity,
            lifted: false,
            next_region: first.min(limit.unwrap_or(16 * TIB)).div_ceil(256) * 256,
            peak_in_use: 0,
            peak_pool: 0,
            largest: 0,
            device_frees: 0,
        }
    }

    pub(crate) fn lift(&mut self) {
        self.capacity = None;
        self.lifted |= self.limit.is_some();
    }

    pub(crate) fn alloc(&mut self, id: u32, n: u64) -> Result<Option<u64>, ()> {
        if n == 0 {
            return Ok(None);
        }
        let rounded = u64::try_from(u128::from(n).div_ceil(256) * 256).map_err(|_| ())?;
        let found = self.find(rounded);
        let found = found.or_else(|| self.extend(rounded).then(|| self.find(rounded)).flatten());
        let found = found.or_else(|| {
            let again = self.collect(rounded) && self.extend(rounded);
            again.then(|| self.find(rounded)).flatten()
        });
        let row = found.ok_or(())?;
        let chunk = &mut self.chunks[row];
        chunk.owner = Some((id, n));
        let (addr, size) = (chunk.addr, chunk.size);
        self.largest = self.largest.max(size);
        self.peak_in_use = self.peak_in_use.max(self.in_use());
        Ok(Some(addr))
    }

    /// The bin that chunks of this size are in: the highest that starts at or below it.
    fn bin(size: u64) -> usize {
        (0..21).rev().find(|&bin| 256 << bin <= size).unwrap_or(0)
    }

    /// The row of the chunk to be used, split if need be.
    fn find(&mut self, rounded: u64) -> Option<usize> {
        let row = (Self::bin(rounded)..21).find_map(|bin| {
            let free = self.chunks.iter().enumerate().filter(|(_, c)| c.owner.is_none());
            let mut in_bin: Vec<_> = free.filter(|(_, c)| Self::bin(c.size) == bin).collect();
            in_bin.sort_by_key(|(_, c)| (c.size, c.addr));
            in_bin.into_iter().find(|(_, c)| c.size >= rounded).map(|(row, _)| row)
        })?;
        let waste = match self.config.fragmentation_fraction {
            Some(part) if part > 0.0 => (self.limit.unwrap_or(16 * TIB) as f64 * part) as u64,
            _ => 128 * MIB,
        };
        let Chunk { addr, size, .. } = self.chunks[row];
        if size >= rounded * 2 || size - rounded >= waste {
            self.chunks[row].size = rounded;
            let (addr, size) = (addr + rounded, size - rounded);
            self.chunks.insert(row + 1, Chunk { addr, size, owner: None, first: false });
        }
        Some(row)
    }

    fn extend(&mut self, rounded: u64) -> bool {
        let left = self.limit.unwrap_or(16 * TIB).saturating_sub(self.pool()) / 256 * 256;
        let Some((addr, size)) = (if self.lifted {
            let pages = rounded.div_ceil(2 * MIB).saturating_mul(2 * MIB);
            self.place(pages).map(|addr| (addr, pages))
        } else if rounded > left {
            None
        } else {
            self.ask(rounded, left)
        }) else {
            return false;
        };
        let row = self.chunks.partition_point(|c| c.addr < addr);
        let before = row.checked_sub(1).map(|before| &self.chunks[before]);
        let touches = before.is_some_and(|c| c.addr + c.size == addr);
        let first = !(touches && self.config.coalesce_regions);
        self.chunks.insert(row, Chunk { addr, size, owner: None, first });
        self.merge();
        self.peak_pool = self.peak_pool.max(self.pool());
        true
    }

    fn ask(&mut self, rounded: u64, left: u64) -> Option<(u64, u64)> {
        let mut doubled = false;
        while self.next_region < rounded {
            self.next_region *= 2;
            doubled = true;
        }
        let mut size = self.next_region.min(left);
        let addr = loop {
            match self.place(size) {
                Some(addr) => break addr,
                None => {
                    let tenth_less = (size as f32 * 0.9f32) as u64;
                    size = (tenth_less.div_ceil(256) * 256).min(size - 256);
                }
            }
            if size < rounded {
                return None;
            }
        };
        if !doubled {
            self.next_region *= 2;
        }
        Some((addr, size))
    }

    /// The address of a range from the device, if it has one.
    fn place(&self, size: u64) -> Option<u64> {
        let pages = |n: u64| n.div_ceil(2 * MIB) * 2 * MIB;
        let taken: Vec<_> = self.spans().iter().map(|s| (s.0, s.0 + pages(s.1))).collect();
        let used: u64 = taken.iter().map(|(start, end)| end - start).sum();
        if self.capacity.is_some_and(|capacity| used + pages(size) > capacity) {
            return None;
        }
        let ends = taken.iter().map(|t| t.0).chain([64 * TIB]);
        let holes = [32 * TIB].into_iter().chain(taken.iter().map(|t| t.1)).zip(ends);
        let mut fitting = holes.filter(|(start, end)| end - start >= pages(size));
        match self.order {
            AddressOrder::Ascending => fitting.next().map(|(start, _)| start),
            AddressOrder::Descending => fitting.last().map(|(_, end)| end - pages(size)),
            order => panic!("the model does not know {order:?}"),
        }
    }

    fn collect(&mut self, rounded: u64) -> bool {
        if !self.config.garbage_collection {
            return false;
        }
        let unused: Vec<u64> = self
            .regions()
            .into_iter()
            .filter(|(_, chunks)| chunks.iter().all(|(_, asked)| asked.is_none()))
            .map(|(addr, _)| addr)
            .collect();
        let bytes: u64 = self.spans().iter().filter(|s| unused.contains(&s.0)).map(|s| s.1).sum();
        let limit = self.limit.unwrap_or(16 * TIB);
        if unused.is_empty() || rounded > limit.saturating_sub(self.pool() - bytes) {
            return false;
        }
        // A region without a chunk in use is one chunk.
        self.chunks.retain(|c| !unused.contains(&c.addr));
        self.device_frees += unused.len() as u64;
        true
    }

    pub(crate) fn free(&mut self, id: u32) {
        for chunk in &mut self.chunks {
            if chunk.owner.is_some_and(|(owner, _)| owner == id) {
                chunk.owner = None;
            }
        }
        self.merge();
    }

    /// Merges all free neighbors within regions.
    fn merge(&mut self) {
        let mut merged: Vec<Chunk> = Vec::new();
        for chunk in self.chunks.drain(..) {
            match merged.last_mut() {
                Some(last) if last.owner.is_none() && chunk.owner.is_none() && !chunk.first => {
                    last.size += chunk.size;
                }
                _ => merged.push(chunk),
            }
        }
        self.chunks = merged;
    }

    /// Every region's start and size.
    fn spans(&self) -> Vec<(u64, u64)> {
        self.regions().iter().map(|(addr, list)| (*addr, list.iter().map(|c| c.0).sum())).collect()
    }

    pub(crate) fn regions(&self) -> Vec<Region> {
        let mut regions: Vec<Region> = Vec::new();
        for chunk in &self.chunks {
            if chunk.first {
                regions.push((chunk.addr, Vec::new()));
            }
            let (_, chunks) = regions.last_mut().expect("a region begins with its first chunk");
            chunks.push((chunk.size, chunk.owner.map(|(_, n)| n)));
        }
        regions
    }

    pub(crate) fn pool(&self) -> u64 {
        self.chunks.iter().map(|c| c.size).sum()
    }

    pub(crate) fn in_use(&self) -> u64 {
        self.chunks.iter().filter(|c| c.owner.is_some()).map(|c| c.size).sum()
    }

    pub(crate) fn largest_free(&self) -> u64 {
        self.chunks.iter().filter(|c| c.owner.is_none()).map(|c| c.size).max().unwrap_or(0)
    }

    /// Number and bytes of free chunks in regions that are partly in use.
    pub(crate) fn split_free(&self) -> (u64, u64) {
        let regions = self.regions();
        let split = regions.iter().filter(|(_, chunks)| chunks.len() > 1);
        let free = split.flat_map(|(_, chunks)| chunks).filter(|(_, asked)| asked.is_none());
        free.fold((0, 0), |(n, bytes), (size, _)| (n + 1, bytes + size))
    }
}

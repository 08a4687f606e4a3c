//! Giving memory back: garbage collection, `release_available_cached_blocks`,
//! `release_cached_blocks`.

use super::Model;
use super::malloc::Wanted;
use super::place::Pool;
use super::sizes::max_split;
use xmem_simulator::EventAction;

const LARGE: Pool = Pool { private: None, small: false };
const SMALL: Pool = Pool { private: None, small: true };

impl Model {
    /// `garbage_collect_cached_blocks`: segments that nobody asked for in a while.
    pub(super) fn collect_garbage(&mut self) {
        let (Some(limit), Some(threshold)) =
            (self.limit(), self.config.garbage_collection_threshold)
        else {
            return;
        };
        let threshold = (threshold * limit as f64) as u64;
        let total = self.reserved();
        if total <= threshold {
            return;
        }
        let target = total - threshold;
        let mut reclaimed = 0;
        // Expandable segments count here, but never go.
        let mut candidates: Vec<(u64, u64)> = Vec::new();
        for (s, b) in self.free_blocks(LARGE, None) {
            if !self.segments[s].is_split() {
                let block = &self.segments[s].blocks[b];
                let searches = self.searches.get(&LARGE).copied().unwrap_or(0);
                candidates.push((block.number, searches - block.free_since));
            }
        }
        while reclaimed < target && !candidates.is_empty() {
            let ages: u64 = candidates.iter().map(|c| c.1).sum();
            let average = ages as f64 / candidates.len() as f64;
            let goes = |model: &Self, &(number, age): &(u64, u64)| {
                let (s, _) = model.block_numbered(number);
                !model.segments[s].expandable && age as f64 >= average
            };
            let going: Vec<_> = candidates.iter().copied().filter(|c| goes(self, c)).collect();
            if going.is_empty() {
                break;
            }
            candidates.retain(|c| !going.contains(c));
            for (number, _) in going {
                reclaimed += self.release(number);
            }
        }
    }

    /// `release_available_cached_blocks`: one oversize segment that suffices, or several. Whether
    /// that was enough.
    pub(super) fn release_available(&mut self, wanted: &Wanted) -> bool {
        let limit = max_split(&self.config);
        let key = wanted.size.max(limit);
        let blocks = self.free_blocks(wanted.pool, Some(wanted.stream));
        let numbers: Vec<_> = blocks
            .iter()
            .map(|&at| {
                let (s, b) = at;
                let segment = &self.segments[s];
                (segment.blocks[b].number, segment.blocks[b].size, segment.expandable)
            })
            .collect();
        let enough = numbers.iter().position(|&(_, size, _)| size >= key);
        if let Some(i) = enough
            && !numbers[i].2
        {
            self.release(numbers[i].0);
            return true;
        }
        let mut released = 0;
        for &(number, size, expandable) in numbers[..enough.unwrap_or(numbers.len())].iter().rev() {
            if released >= key || size < limit {
                break;
            }
            if !expandable {
                released += self.release(number);
            }
        }
        released >= key
    }

    /// `release_cached_blocks` of all pools, as far as scopes allow.
    pub(super) fn release_cached(&mut self) {
        if !self.is_capturing() {
            self.wait_for_events(None);
            self.release_pool_blocks(LARGE);
            self.release_pool_blocks(SMALL);
        } else if !self.since(8) {
            // In the scope of a `MemPool` only that pool's memory could go back.
            return;
        }
        self.beyond_the_simulator |= self.unused.is_ambiguous();
        for pool in self.unused.list() {
            self.release_private_blocks(pool);
        }
    }

    /// `release_blocks`: whole segments first, then the pages of expandable ones.
    pub(super) fn release_pool_blocks(&mut self, pool: Pool) {
        let mut whole = Vec::new();
        let mut expandable = Vec::new();
        for (s, b) in self.free_blocks(pool, None) {
            let segment = &self.segments[s];
            if segment.expandable {
                expandable.push(segment.blocks[b].number);
            } else if !segment.is_split() {
                whole.push(segment.blocks[b].number);
            }
        }
        for number in whole {
            self.release(number);
        }
        for number in expandable {
            self.unmap(number);
        }
    }

    /// `release_block`. Tells its size.
    fn release(&mut self, number: u64) -> u64 {
        let (s, _) = self.block_numbered(number);
        let gone = self.segments.remove(s);
        assert!(!gone.is_split() && !gone.expandable, "only whole segments go back");
        self.device.free(gone.addr);
        self.gave_back(gone.pool);
        self.figures.device_frees += 1;
        self.tell(EventAction::SegmentFree, gone.addr, gone.size(), gone.stream);
        gone.size()
    }

    /// A private pool has one piece of memory less. Of expandable segments PyTorch counts what it
    /// took for requests, but gives back ranges of pages, so that the count can go wrong.
    pub(super) fn gave_back(&mut self, pool: Pool) {
        let Some(private) = pool.private else { return };
        let known = self.pools.get_mut(&private).expect("it had memory");
        if known.device_blocks == 0 {
            self.undefined = true;
        } else {
            known.device_blocks -= 1;
        }
    }
}

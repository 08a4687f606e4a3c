//! The order in which PyTorch goes through a set of private pools: that of its hash table
//! (`ska::flat_hash_map`, `c10/util/flat_hash_map.h`). Fibonacci hashing spreads the number that
//! PyTorch gave the pool (`MempoolIdHash`).

/// A pool, and the number that PyTorch gave it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Numbered {
    pub(super) pool: u32,
    pub(super) number: u64,
}

/// A set of pools in the order of the table's slots.
#[derive(Clone, Debug, Default)]
pub(super) struct HashOrder {
    /// The content of each slot, with its distance from where it belongs.
    slots: Vec<Option<(Numbered, usize)>>,
    /// A power of two, or 0 at first; there are a few slots more for those pushed off the end.
    buckets: usize,
}

impl HashOrder {
    pub(super) fn list(&self) -> Vec<u32> {
        self.slots.iter().flatten().map(|(known, _)| known.pool).collect()
    }

    pub(super) fn insert(&mut self, new: Numbered) {
        if self.list().contains(&new.pool) {
            return;
        }
        if (self.list().len() + 1) * 2 > self.buckets || !self.place(new) {
            self.grow();
            self.insert(new);
        }
    }

    pub(super) fn remove(&mut self, pool: u32) {
        let at = |slot: &Option<(Numbered, usize)>| slot.is_some_and(|(n, _)| n.pool == pool);
        let Some(mut hole) = self.slots.iter().position(at) else { return };
        self.slots[hole] = None;
        // Those behind it that were pushed off their place move back.
        while let Some(Some((next, distance @ 1..))) = self.slots.get(hole + 1).copied() {
            self.slots[hole] = Some((next, distance - 1));
            self.slots[hole + 1] = None;
            hole += 1;
        }
    }

    /// Returns whether two of them want the same slot, so that the one put in first comes first.
    /// The simulator does not go that far.
    pub(super) fn is_ambiguous(&self) -> bool {
        let wanted = |(at, slot): (usize, &Option<(Numbered, usize)>)| Some(at - slot.as_ref()?.1);
        let wanted: Vec<usize> = self.slots.iter().enumerate().filter_map(wanted).collect();
        wanted.windows(2).any(|pair| pair[0] == pair[1])
    }

    fn longest_way(&self) -> usize {
        4.max(self.buckets.max(1).ilog2() as usize)
    }

    /// Puts a number where it belongs or behind, before those that are nearer to their place. Fails
    /// where that is too far off.
    fn place(&mut self, new: Numbered) -> bool {
        let before = self.slots.clone();
        let golden = 11_400_714_819_323_198_485_u64;
        let shift = 64 - self.buckets.ilog2();
        let mut slot = (golden.wrapping_mul(new.number) >> shift) as usize;
        let mut carried = (new, 0);
        loop {
            if carried.1 >= self.longest_way() || slot >= self.slots.len() {
                self.slots = before;
                return false;
            }
            match self.slots[slot] {
                None => {
                    self.slots[slot] = Some(carried);
                    return true;
                }
                Some(there) if there.1 < carried.1 => {
                    self.slots[slot] = Some(carried);
                    carried = there;
                }
                Some(_) => {}
            }
            carried.1 += 1;
            slot += 1;
        }
    }

    fn grow(&mut self) {
        let known: Vec<Numbered> = self.slots.iter().flatten().map(|&(known, _)| known).collect();
        self.buckets = (self.buckets * 2).max(4);
        self.slots = vec![None; self.buckets + self.longest_way()];
        for pool in known {
            self.insert(pool);
        }
    }
}

//! The places of blocks: segments as lists of blocks.

/// A part of a segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    /// The object in PyTorch: of two blocks that merge, one number stays.
    pub(crate) number: u64,
    pub(crate) size: u64,
    pub(crate) used: Use,
    /// The allocation it answers, or answered last.
    pub(crate) life: u64,
    /// `stream_uses`.
    pub(crate) other_streams: Vec<u32>,
    /// `gc_count_base`: how many searches its pool had seen when it became free.
    pub(crate) free_since: u64,
}

/// The use of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    /// The program has it.
    Held { requested: u64 },
    /// The program gave it back, other streams may still use it.
    Waiting { requested: u64 },
    /// Nobody has it.
    Free,
    /// Address space of an expandable segment without memory.
    Unmapped,
}

impl Use {
    pub(crate) fn is_free(self) -> bool {
        self == Self::Free
    }
}

/// One of the lists of free blocks (`BlockPool`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Pool {
    pub(crate) private: Option<u32>,
    pub(crate) small: bool,
}

/// A range from the device, or the address space of an expandable segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) addr: u64,
    /// The number of segments before it, itself included.
    pub(crate) made: u64,
    pub(crate) stream: u32,
    pub(crate) pool: Pool,
    pub(crate) expandable: bool,
    pub(crate) blocks: Vec<Block>,
}

impl Segment {
    pub(crate) fn size(&self) -> u64 {
        self.blocks.iter().map(|b| b.size).sum()
    }

    pub(crate) fn mapped(&self) -> u64 {
        self.blocks.iter().filter(|b| b.used != Use::Unmapped).map(|b| b.size).sum()
    }

    pub(crate) fn addr_of(&self, block: usize) -> u64 {
        self.addr + self.blocks[..block].iter().map(|b| b.size).sum::<u64>()
    }

    pub(crate) fn is_split(&self) -> bool {
        self.blocks.len() > 1
    }

    /// `try_merge_blocks` with both neighbors, where they are of the same kind. The block keeps
    /// its number. Tells where it is then.
    pub(crate) fn merge(&mut self, mut block: usize) -> usize {
        let used = self.blocks[block].used;
        if block > 0 && self.blocks[block - 1].used == used {
            self.blocks[block].size += self.blocks[block - 1].size;
            self.blocks.remove(block - 1);
            block -= 1;
        }
        if block + 1 < self.blocks.len() && self.blocks[block + 1].used == used {
            self.blocks[block].size += self.blocks[block + 1].size;
            self.blocks.remove(block + 1);
        }
        block
    }
}

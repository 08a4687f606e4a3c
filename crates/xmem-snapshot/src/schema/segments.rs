//! Segments and blocks.

use super::decoder::Decoder;
use super::fields::{Field, Within, need, shown};
use crate::build::sum;
use crate::error::SnapshotError;
use crate::frames::StackId;
use crate::model::{BlockState, DeviceIndex, PoolId, Segment, SegmentKind, SnapshotBlock};
use crate::pickle::Value;
use xmem_types::{Addr, Bytes, StreamId};

impl<'t> Decoder<'t, '_, '_> {
    /// The list of segments.
    pub(super) fn segments(
        &mut self,
        value: Value,
        at: usize,
    ) -> Result<Vec<Segment>, SnapshotError> {
        let (elements, at) = self.list(value, at).within(|| "segments".to_owned())?;
        self.budget.take::<Segment>(elements.len(), at)?;
        let mut segments = Vec::with_capacity(elements.len());
        for (i, &element) in elements.iter().enumerate() {
            segments.push(self.segment(element, at).within(|| format!("segments[{i}]"))?);
        }
        Ok(segments)
    }

    fn segment(&mut self, value: Value, at: usize) -> Result<Segment, SnapshotError> {
        let fields = self.fields(value, at)?;
        let at = fields.at;
        let mut device = DeviceIndex::default();
        let (mut address, mut total, mut blocks) = (None, None, None);
        let (mut allocated, mut active, mut requested) = (None, None, None);
        let mut stream = StreamId::default();
        let mut kind = None;
        let mut pool = PoolId::default();
        let mut expandable = false;
        let mut stack = StackId::EMPTY;
        for field in fields {
            match field.key {
                b"device" => device = self.device(field)?,
                b"address" => address = Some(self.addr(field)?),
                b"total_size" => total = Some(self.bytes(field)?),
                b"allocated_size" => allocated = Some(self.bytes(field)?),
                b"active_size" => active = Some(self.bytes(field)?),
                b"requested_size" => requested = Some(self.bytes(field)?),
                b"stream" => stream = self.stream(field)?,
                b"segment_type" => kind = Some(self.segment_kind(field)?),
                b"segment_pool_id" => pool = self.pool(field)?,
                b"is_expandable" => expandable = self.flag(field)?,
                b"frames" => stack = self.stack(field)?,
                b"blocks" => blocks = Some(field),
                b"forward_frames" => {}
                _ => self.unknown("a segment", field),
            }
        }
        let address = need(address, "address", at)?;
        let blocks = self.blocks(need(blocks, "blocks", at)?, address)?;
        let total = need(total, "total_size", at)?;
        let segment = Segment {
            device,
            address,
            total,
            allocated: allocated
                .unwrap_or_else(|| sum(&blocks, |b| b == BlockState::ActiveAllocated)),
            active: active.unwrap_or_else(|| sum(&blocks, |b| b != BlockState::Inactive)),
            requested,
            stream,
            // Written by every version; tools that make snapshots from other data leave it out.
            kind: kind.unwrap_or(SegmentKind::Large),
            pool,
            expandable,
            stack,
            blocks,
        };
        self.check(&segment, at);
        Ok(segment)
    }

    fn segment_kind(&self, field: Field<'t>) -> Result<SegmentKind, SnapshotError> {
        match self.text(field)? {
            b"small" => Ok(SegmentKind::Small),
            b"large" => Ok(SegmentKind::Large),
            other => Err(field.error(format!("is `{}`, expected small or large", shown(other)))),
        }
    }

    fn pool(&mut self, field: Field<'t>) -> Result<PoolId, SnapshotError> {
        let part = |value| self.tree.integer(value).map(i64::cast_unsigned);
        match *self.elements(field)? {
            [a, b] => match (part(a), part(b)) {
                (Some(a), Some(b)) => Ok(PoolId(a, b)),
                _ => Err(field.error("holds something else than integers".to_owned())),
            },
            ref other => Err(field.error(format!("has {} elements, expected 2", other.len()))),
        }
    }

    fn blocks(
        &mut self,
        field: Field<'t>,
        start: Addr,
    ) -> Result<Vec<SnapshotBlock>, SnapshotError> {
        let elements = self.elements(field)?;
        self.budget.take::<SnapshotBlock>(elements.len(), field.at)?;
        let mut blocks = Vec::with_capacity(elements.len());
        let mut next = start;
        for (i, &element) in elements.iter().enumerate() {
            let block = self.block(element, field.at, next).within(|| format!("blocks[{i}]"))?;
            next = Addr(block.address.0.saturating_add(block.size.get()));
            blocks.push(block);
        }
        Ok(blocks)
    }

    /// One block; `next` is where the one before it ends, for versions that wrote no address.
    fn block(
        &mut self,
        value: Value,
        at: usize,
        next: Addr,
    ) -> Result<SnapshotBlock, SnapshotError> {
        let fields = self.fields(value, at)?;
        let at = fields.at;
        let mut address = next;
        let (mut size, mut state, mut requested) = (None, None, None);
        let mut stack = StackId::EMPTY;
        for field in fields {
            match field.key {
                b"address" => address = self.addr(field)?,
                b"size" => size = Some(self.bytes(field)?),
                b"requested_size" => requested = Some(self.bytes(field)?),
                b"state" => state = Some(self.block_state(field)?),
                b"frames" => stack = self.stack(field)?,
                b"history" => {
                    if let Some(newest) = self.history(field)? {
                        requested = newest.requested.or(requested);
                        stack = newest.stack;
                    }
                }
                b"forward_frames" => {}
                _ => self.unknown("a block", field),
            }
        }
        Ok(SnapshotBlock {
            address,
            size: need(size, "size", at)?,
            requested,
            state: need(state, "state", at)?,
            stack,
        })
    }

    fn block_state(&self, field: Field<'t>) -> Result<BlockState, SnapshotError> {
        match self.text(field)? {
            b"active_allocated" => Ok(BlockState::ActiveAllocated),
            // The second name is that of the documentation only.
            b"active_pending_free" | b"active_awaiting_free" => Ok(BlockState::ActivePendingFree),
            b"inactive" => Ok(BlockState::Inactive),
            other => Err(field.error(format!(
                "is `{}`, expected active_allocated, active_pending_free or inactive",
                shown(other)
            ))),
        }
    }

    /// The newest of a block's `history`, which PyTorch 1.12 to 2.0 wrote instead of its frames.
    fn history(&mut self, field: Field<'t>) -> Result<Option<Newest>, SnapshotError> {
        let Some(&newest) = self.elements(field)?.first() else { return Ok(None) };
        let fields = self.fields(newest, field.at).within(|| "history[0]".to_owned())?;
        let mut found = Newest { requested: None, stack: StackId::EMPTY };
        for field in fields {
            match field.key {
                b"real_size" => found.requested = Some(self.bytes(field)?),
                b"frames" => found.stack = self.stack(field)?,
                b"addr" => {}
                _ => self.unknown("a block's history", field),
            }
        }
        Ok(Some(found))
    }

    /// Checks a property of any snapshot: the blocks fill the segment, and its sums are theirs.
    fn check(&mut self, segment: &Segment, at: usize) {
        let mut next = Some(segment.address.0);
        for block in &segment.blocks {
            next = next
                .filter(|&next| next == block.address.0)
                .and_then(|next| next.checked_add(block.size.get()));
        }
        if next != segment.address.0.checked_add(segment.total.get()) {
            self.odd("blocks-do-not-fill-segment", at, || {
                let address = segment.address.0;
                format!("the blocks of the segment at {address:#x} leave gaps or overlap")
            });
        }
        let allocated = sum(&segment.blocks, |state| state == BlockState::ActiveAllocated);
        let active = sum(&segment.blocks, |state| state != BlockState::Inactive);
        if (allocated, active) != (segment.allocated, segment.active) {
            self.odd("segment-sums-differ", at, || {
                format!(
                    "the segment at {:#x} says {} allocated and {} active, its blocks say {allocated} \
                     and {active}",
                    segment.address.0, segment.allocated, segment.active,
                )
            });
        }
    }
}

/// The present use of a block, by its history.
struct Newest {
    requested: Option<Bytes>,
    stack: StackId,
}

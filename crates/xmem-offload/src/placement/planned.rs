//! A static plan as a placement: each piece has its offset.

use super::{PlaceError, Space};
use crate::events::PieceId;
use crate::groups::Group;
use std::collections::BTreeMap;
use xmem_planner::{BlockList, Limits, Plan, Planner, Refused, plan};
use xmem_types::Bytes;

/// The live pieces of a plan.
#[derive(Clone, Debug)]
pub(crate) struct PlannedSpace {
    plan: Plan,
    /// By offset.
    live: BTreeMap<Bytes, (PieceId, Bytes)>,
}

impl PlannedSpace {
    /// The plan of `list`, whose ids are those of the pieces.
    pub(crate) fn new(
        list: &BlockList,
        planner: Planner,
        limits: &Limits,
    ) -> Result<Self, Refused> {
        Ok(Self { plan: plan(list, planner, limits)?.plan, live: BTreeMap::new() })
    }
}

impl Space for PlannedSpace {
    fn allocate(&mut self, piece: PieceId, size: Bytes, _group: Group) -> Result<(), PlaceError> {
        if size > Bytes::ZERO {
            self.live.insert(self.plan.offsets()[piece.index()], (piece, size));
        }
        Ok(())
    }

    fn free(&mut self, piece: PieceId) {
        let offset = self.plan.offsets()[piece.index()];
        if self.live.get(&offset).is_some_and(|&(live, _)| live == piece) {
            self.live.remove(&offset);
        }
    }

    fn has_room(&self, _size: Bytes, _group: Group) -> bool {
        true
    }

    fn used(&self) -> Bytes {
        let last = self.live.last_key_value();
        last.map_or(Bytes::ZERO, |(&offset, &(_, size))| offset + size)
    }

    fn holes(&self) -> Vec<Bytes> {
        let mut end = Bytes::ZERO;
        let mut holes = Vec::new();
        for (&offset, &(_, size)) in &self.live {
            if offset > end {
                holes.push(offset - end);
            }
            end = offset + size;
        }
        holes
    }

    fn address(&self, piece: PieceId) -> Option<Bytes> {
        let offset = self.plan.offsets()[piece.index()];
        self.live.get(&offset).is_some_and(|&(live, _)| live == piece).then_some(offset)
    }
}

//! The curves side by side: highest allocated memory, phase by phase.

use super::differences::Compared;
use super::result::{Judged, PhasePeaks};
use crate::side::EventKind;
use xmem::analyzer::Phase;
use xmem_types::{Bytes, IterationId};

/// A phase of an iteration.
pub(super) type Section = (Option<IterationId>, Phase);

impl Compared<'_> {
    /// Every phase that the recording covers, in order.
    pub(super) fn phases(&self) -> Vec<PhasePeaks> {
        let sections = self.sections();
        let window = &self.alignment.window;
        let mut list: Vec<PhasePeaks> = Vec::new();
        let mut raise = |section: Section, raise: &dyn Fn(&mut Judged)| {
            let same = |row: &&mut PhasePeaks| (row.iteration, row.phase) == section;
            if let Some(row) = list.iter_mut().rev().find(same) {
                raise(&mut row.allocated);
                return;
            }
            let mut allocated = Judged::default();
            raise(&mut allocated);
            list.push(PhasePeaks { iteration: section.0, phase: section.1, allocated });
        };
        for at in window.clone() {
            let value = self.predicted.side.allocated[at];
            raise(sections[at], &|judged| judged.estimated = judged.estimated.max(value));
        }
        let mut pairs = self.alignment.pairs.iter().peekable();
        let mut here = window.start;
        for (at, &value) in self.recorded.side.allocated.iter().enumerate() {
            while let Some(&(ours, _)) = pairs.next_if(|(_, theirs)| *theirs <= at) {
                here = ours;
            }
            let Some(&section) = sections.get(here) else { break };
            raise(section, &|judged: &mut Judged| {
                judged.recorded = Bytes::max(judged.recorded, value);
            });
        }
        list
    }

    /// Of each predicted event, the phase of the last allocation.
    pub(super) fn sections(&self) -> Vec<Section> {
        let mut now: Section = (None, Phase::Init);
        let section = |event: &crate::side::Event| {
            if event.kind == EventKind::Alloc {
                let block = self.prediction.block(self.predicted.ids[event.block]);
                now = (block.iteration, block.phase);
            }
            now
        };
        self.predicted.side.events.iter().map(section).collect()
    }
}

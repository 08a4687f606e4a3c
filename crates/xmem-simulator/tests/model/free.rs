//! `DeviceCachingAllocator::free`.

use super::Model;
use super::place::Use;
use xmem_simulator::EventAction;

impl Model {
    pub(super) fn free(&mut self, addr: u64) {
        let (s, b) = self.at(addr);
        let stream = self.segments[s].stream;
        let block = &mut self.segments[s].blocks[b];
        let Use::Held { requested } = block.used else { panic!("freed twice") };
        block.used = Use::Waiting { requested };
        let (number, is_shared) = (block.number, !block.other_streams.is_empty());
        self.tell(EventAction::FreeRequested, addr, requested, stream);
        if !is_shared {
            self.complete_free(number);
        } else if !self.is_capturing() {
            self.record_events(number);
        } else {
            self.streams.deferred.push(number);
        }
    }

    /// `free_block`.
    pub(super) fn complete_free(&mut self, number: u64) {
        let (s, b) = self.block_numbered(number);
        let (addr, stream) = (self.segments[s].addr_of(b), self.segments[s].stream);
        let Use::Waiting { requested } = self.segments[s].blocks[b].used else {
            panic!("completed twice")
        };
        self.segments[s].blocks[b].used = Use::Free;
        let b = self.segments[s].merge(b);
        self.free_from_now_on(s, b);
        self.tell(EventAction::FreeCompleted, addr, requested, stream);
    }
}

//! The operations of a program on the allocator besides allocations and frees.

use super::CachingAllocator;
use super::private::Owner;
use crate::allocator::{Control, Observer, RequestIndex, Unsupported};

impl<O: Observer> CachingAllocator<O> {
    pub(super) fn do_control(
        &mut self,
        at: RequestIndex,
        control: Control,
    ) -> Result<(), Unsupported> {
        match control {
            Control::RecordStream { block, stream } => {
                let known = self.arena.get(block.0);
                // `recordStream`: its own stream needs no waiting.
                if self.stream_of(known.set) == stream {
                    return Ok(());
                }
                self.arena.get_mut(block.0).shared = true;
                if self.private.no_capture(self.current) {
                    self.streams.record(block.0, stream);
                } else {
                    self.streams.record_in_capture(block.0, stream);
                }
            }
            Control::AwaitStreams { block, id } => {
                self.arena.get_mut(block.0).shared = true;
                self.streams.await_completion(block.0, id);
            }
            Control::Complete(id) => {
                if let Some(slot) = self.streams.complete(id) {
                    self.complete_free(slot);
                }
            }
            Control::Synchronize => self.streams.finish(),
            Control::MemoryFraction(fraction) => self.limits.set_fraction(fraction),
            Control::ResetPeaks => self.counters.reset_peaks(),
            Control::EnterPool { pool, options } => {
                self.private.enter(pool, options, &mut self.pools);
            }
            Control::BeginCapture { pool, stream } => {
                self.current = stream;
                self.private.capture(pool, stream, &mut self.pools);
            }
            Control::LeavePool(pool) => {
                if !self.private.leave(pool) {
                    return Err(Unsupported::NoOpenScope(pool));
                }
            }
            Control::ReleasePool(pool) => {
                let Some(row) = self.private.release(pool) else {
                    return Err(Unsupported::NoSuchPool(pool));
                };
                // `MemPool::~MemPool` empties its own pool.
                if self.private.get(row).owner == Owner::MemPool
                    && self.private.freeable().contains(&row)
                {
                    self.synchronize_and_free_of(row);
                    self.release_private(row, at);
                }
            }
        }
        Ok(())
    }
}

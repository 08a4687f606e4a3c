//! Streams whose work is complete when the host waits for it, at the latest at the end of the next iteration: the
//! other end of what a host that runs ahead of the GPU can see (as native/completion.c of xmem-virtual-gpu).

use super::Streams;
use std::collections::BTreeMap;
use xmem_analyzer::recording::ActivityKind;
use xmem_types::Nanos;

/// A moment on a stream; moments of all streams are counted together.
type Moment = (u32, u64);

#[derive(Default)]
pub(super) struct HostWaits {
    moments: BTreeMap<u64, Moment>,
    now: u64,
    /// The moment at which the iteration began.
    iteration: u64,
    /// Iterations that are over.
    iterations: u64,
    /// The last complete moment of each stream.
    done: BTreeMap<u32, u64>,
    /// What a stream waits for from a moment on.
    waits: BTreeMap<u32, Vec<(u64, Moment)>>,
}

impl HostWaits {
    /// Completes a stream up to a moment, and what it waited for until then.
    fn complete(&mut self, moment: Moment) {
        let mut open = vec![moment];
        while let Some((stream, until)) = open.pop() {
            let done = self.done.entry(stream).or_default();
            if *done >= until {
                continue;
            }
            *done = until;
            if let Some(waits) = self.waits.get_mut(&stream) {
                let is_due = |(at, _): &mut (u64, Moment)| *at <= until;
                open.extend(waits.extract_if(.., is_due).map(|(_, other)| other));
            }
        }
    }

    fn complete_all(&mut self, until: u64) {
        let streams: Vec<u32> = self.moments.values().map(|(stream, _)| *stream).collect();
        for stream in streams {
            self.complete((stream, until));
        }
    }
}

impl Streams for HostWaits {
    fn advance(&mut self, _: Nanos) {}

    fn operator(&mut self, _: u32, _: Nanos) {}

    fn activity(&mut self, _: u32, stream: u32, kind: ActivityKind) {
        self.now += 1;
        match kind {
            ActivityKind::Record(moment) => {
                self.moments.insert(moment, (stream, self.now));
            }
            ActivityKind::Wait(moment) => {
                if let Some(moment) = self.moments.get(&moment).filter(|other| other.0 != stream) {
                    self.waits.entry(stream).or_default().push((self.now, *moment));
                }
            }
            ActivityKind::HostWaitsForStream => self.complete((stream, self.now)),
            ActivityKind::HostWaitsForMoment(moment) => {
                if let Some(moment) = self.moments.get(&moment) {
                    self.complete(*moment);
                }
            }
            ActivityKind::HostWaitsForDevice => self.complete_all(self.now),
            ActivityKind::Work | ActivityKind::Copy(_) | ActivityKind::Collective { .. } => {}
        }
    }

    fn iteration(&mut self) {
        self.complete_all(self.iteration);
        self.iteration = self.now;
        self.iterations += 1;
    }

    fn is_complete(&self, moment: u64) -> bool {
        self.moments
            .get(&moment)
            .is_none_or(|(stream, at)| self.done.get(stream).is_some_and(|done| at <= done))
    }

    fn collective(&mut self, _: u32) -> u64 {
        self.iterations
    }

    /// At the end of the next iteration.
    fn has_let_go(&self, collective: u64) -> bool {
        collective + 2 <= self.iterations
    }
}

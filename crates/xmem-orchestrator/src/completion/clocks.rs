//! Streams whose work takes as long as a model says.

use super::{CompletionModel, Streams};
use std::collections::BTreeMap;
use xmem_analyzer::Profile;
use xmem_analyzer::recording::{ActivityKind, CollectiveKind, StreamActivity};
use xmem_timing::{Collective, Group};
use xmem_types::Nanos;

/// The clocks of host and streams.
pub(super) struct Clocks<'a> {
    model: &'a CompletionModel,
    host: HostTime,
    /// Ranks of the job that share a machine; none if the recording does not say.
    local: Option<u32>,
    now: Nanos,
    /// By how much the host is late, as it has waited.
    late: Nanos,
    /// When the work on each stream is done.
    streams: BTreeMap<u32, Nanos>,
    /// The stream of each thread.
    chosen: BTreeMap<u32, u32>,
    /// When moments are complete.
    moments: BTreeMap<u64, Nanos>,
    /// When collectives are.
    collectives: Vec<Nanos>,
}

/// The time between two looks at collectives (torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp,
/// `kWatchdogThreadSleepMillis`): what is complete is found to be at the latest after it.
const WATCHDOG: Nanos = Nanos(100_000_000);

impl<'a> Clocks<'a> {
    pub(super) fn new(
        profile: &Profile,
        activity: &StreamActivity,
        model: &'a CompletionModel,
    ) -> Self {
        let host = HostTime::new(activity, profile.base_time(), model.host);
        let rank = profile.rank();
        let local = rank.map(|rank| rank.world_size.div_ceil(rank.nodes.unwrap_or(1).max(1)));
        Self::of(host, local, model)
    }

    pub(super) fn of(host: HostTime, local: Option<u32>, model: &'a CompletionModel) -> Self {
        Self {
            model,
            host,
            local,
            now: Nanos::MIN,
            late: Nanos::ZERO,
            streams: BTreeMap::new(),
            chosen: BTreeMap::new(),
            moments: BTreeMap::new(),
            collectives: Vec::new(),
        }
    }

    fn work(&mut self, stream: u32, duration: Nanos) {
        let done = self.streams.entry(stream).or_insert(Nanos::MIN);
        *done = (*done).max(self.now) + duration;
    }

    fn wait(&mut self, until: Option<Nanos>) {
        if let Some(until) = until.filter(|until| *until > self.now) {
            self.late = self.late + (until - self.now);
            self.now = until;
        }
    }

    /// Ranks of one machine, as far as they fit on one.
    fn group(&self, ranks: u32) -> Group {
        Group { ranks, ranks_of_a_machine: ranks.min(self.local.unwrap_or(ranks)) }
    }
}

impl Streams for Clocks<'_> {
    fn advance(&mut self, time: Nanos) {
        self.now = self.now.max(self.host.at(time) + self.late);
    }

    fn operator(&mut self, thread: u32, duration: Nanos) {
        let stream = self.chosen.get(&thread).copied().unwrap_or(0);
        self.work(stream, duration);
    }

    fn activity(&mut self, thread: u32, stream: u32, kind: ActivityKind) {
        match kind {
            ActivityKind::Work => {
                self.chosen.insert(thread, stream);
            }
            ActivityKind::Copy(bytes) => {
                self.work(stream, self.model.device.transfer_duration(bytes));
            }
            ActivityKind::Collective { operation, bytes, ranks, .. } => {
                let (operation, group) = (collective_of(operation), self.group(ranks));
                self.work(stream, self.model.device.collective_duration(operation, bytes, group));
            }
            ActivityKind::Record(moment) => {
                let done = self.streams.get(&stream).map_or(self.now, |done| self.now.max(*done));
                self.moments.insert(moment, done);
            }
            ActivityKind::Wait(moment) => {
                if let Some(until) = self.moments.get(&moment) {
                    let done = self.streams.entry(stream).or_insert(Nanos::MIN);
                    *done = (*done).max(*until);
                }
            }
            ActivityKind::HostWaitsForStream => self.wait(self.streams.get(&stream).copied()),
            ActivityKind::HostWaitsForMoment(moment) => {
                self.wait(self.moments.get(&moment).copied());
            }
            ActivityKind::HostWaitsForDevice => self.wait(self.streams.values().max().copied()),
        }
    }

    fn iteration(&mut self) {}

    fn is_complete(&self, moment: u64) -> bool {
        self.moments.get(&moment).is_none_or(|done| *done <= self.now)
    }

    fn collective(&mut self, stream: u32) -> u64 {
        self.collectives.push(self.streams.get(&stream).copied().unwrap_or(self.now));
        self.collectives.len() as u64 - 1
    }

    fn has_let_go(&self, collective: u64) -> bool {
        let done = self.collectives.get(collective as usize);
        done.is_none_or(|done| *done + WATCHDOG <= self.now)
    }
}

/// The host's time without the recorder.
pub(super) struct HostTime {
    pauses: Vec<(Nanos, Nanos)>,
    share: f64,
}

#[cfg(test)]
impl Default for HostTime {
    fn default() -> Self {
        Self { pauses: Vec::new(), share: 1.0 }
    }
}

#[cfg(test)]
impl HostTime {
    pub(super) fn share(self, share: f64) -> Self {
        Self { share, ..self }
    }
}

impl HostTime {
    fn new(activity: &StreamActivity, base: Nanos, share: f64) -> Self {
        let pauses = activity.pauses.iter().map(|p| (p.start - base, p.end - base)).collect();
        Self { pauses, share }
    }

    /// The time of the host at a time of the trace.
    fn at(&self, time: Nanos) -> Nanos {
        let paused: Nanos =
            self.pauses.iter().map(|(from, to)| time.min(*to).max(*from) - *from).sum();
        Nanos(((time - paused).get() as f64 * self.share) as i64)
    }
}

/// The operation of a collective in the log, as the model of durations names it.
#[must_use]
pub const fn collective_of(kind: CollectiveKind) -> Collective {
    match kind {
        CollectiveKind::AllReduce => Collective::AllReduce,
        CollectiveKind::AllGather => Collective::AllGather,
        CollectiveKind::ReduceScatter => Collective::ReduceScatter,
        CollectiveKind::BroadcastOrReduce => Collective::BroadcastOrReduce,
        CollectiveKind::AllToAll => Collective::AllToAll,
        CollectiveKind::PointToPoint => Collective::PointToPoint,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_of_the_recorder_are_no_time_of_the_host() {
        let host = HostTime { pauses: vec![(Nanos(100), Nanos(200))], share: 0.5 };
        for (time, expected) in [(-10, -5), (100, 50), (150, 50), (200, 50), (300, 100)] {
            assert_eq!(host.at(Nanos(time)), Nanos(expected), "{time}");
        }
    }
}

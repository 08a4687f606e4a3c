//! Measurements of the memory of the command's processes.

use crate::host::Host;
use crate::request::Shortage;
use crate::tree::Tree;
use std::time::{Duration, Instant};
use xmem_types::Bytes;

/// The time between two measurements of memory.
const MEMORY_INTERVAL: Duration = Duration::from_millis(250);

/// The time between two searches for new processes, each of which lists all processes of the host.
const PROCESS_INTERVAL: Duration = Duration::from_secs(1);

/// The time between two measurements with shared memory counted once, which are slow.
const PROPORTIONAL_INTERVAL: Duration = Duration::from_secs(2);

/// The memory of the command's processes.
#[derive(Debug)]
pub(crate) struct Memory {
    host: Host,
    resident: Bytes,
    peak: Bytes,
    /// The time of the last measurement.
    measured: Option<Instant>,
    /// The time of the last search for processes.
    searched: Option<Instant>,
    /// The time of the last measurement with shared memory counted once.
    measured_proportionally: Option<Instant>,
}

impl Memory {
    /// Without a measurement so far.
    pub(crate) fn new() -> Self {
        Self {
            host: Host::new(),
            resident: Bytes::ZERO,
            peak: Bytes::ZERO,
            measured: None,
            searched: None,
            measured_proportionally: None,
        }
    }

    /// Resident memory at the last measurement.
    pub(crate) fn resident(&self) -> Bytes {
        self.resident
    }

    /// The highest resident memory so far.
    pub(crate) fn peak(&self) -> Bytes {
        self.peak
    }

    /// Total memory of the host.
    pub(crate) fn total(&mut self) -> Bytes {
        self.host.memory().total
    }

    /// True if it is time for another measurement.
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        self.measured.is_none_or(|at| now - at >= MEMORY_INTERVAL)
    }

    /// Refreshes the processes and measures them; returns a shortage if the host, or the limit to the
    /// command, has little memory left.
    pub(crate) fn measure(
        &mut self,
        now: Instant,
        tree: &mut Tree,
        limit: Option<Bytes>,
    ) -> Option<Shortage> {
        self.measured = Some(now);
        if self.searched.is_none_or(|at| now - at >= PROCESS_INTERVAL) {
            self.searched = Some(now);
            tree.refresh();
        } else {
            tree.refresh_members();
        }
        let resident = tree.resident();
        self.resident = resident;
        self.peak = self.peak.max(resident);
        let host = self.host.memory();
        if host.is_short() {
            let (total, available) = (host.total, host.available);
            return Some(Shortage::Host { resident, total, available });
        }
        let limit = limit.filter(|limit| resident > *limit)?;
        if self.measured_proportionally.is_some_and(|at| now - at < PROPORTIONAL_INTERVAL) {
            return None;
        }
        self.measured_proportionally = Some(now);
        let resident = tree.proportional();
        (resident > limit).then_some(Shortage::Limit { limit, resident })
    }
}

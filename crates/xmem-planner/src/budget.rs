//! How long a planner may search.

use std::time::{Duration, Instant};

/// The limits of a planner that searches. With a limit on nodes that is reached before the time is over, the
/// same list gives the same plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The time that a search may take.
    pub time: Duration,
    /// The steps of a search; `None` for no limit.
    pub nodes: Option<u64>,
    /// The seed of planners that try orders by chance.
    pub seed: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { time: Duration::from_secs(5), nodes: None, seed: 1 }
    }
}

/// What is left of the [`Limits`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    deadline: Instant,
    nodes: u64,
    left: u64,
}

impl Budget {
    pub(crate) fn new(limits: &Limits) -> Self {
        let nodes = limits.nodes.unwrap_or(u64::MAX);
        // A time without end is a year.
        let time = limits.time.min(Duration::from_secs(365 * 24 * 3600));
        Self { deadline: Instant::now() + time, nodes, left: nodes }
    }

    /// Takes one step; false if there is none left. The clock is read at each call: a step is to be some
    /// microseconds of work.
    pub(crate) fn step(&mut self) -> bool {
        if self.left == 0 || Instant::now() >= self.deadline {
            return false;
        }
        self.left -= 1;
        true
    }

    /// This share of the time and of the steps that are left.
    pub(crate) fn part(&self, share: f64) -> Self {
        let nodes =
            if self.left == u64::MAX { u64::MAX } else { (self.left as f64 * share) as u64 };
        let deadline = Instant::now() + self.time_left().mul_f64(share);
        Self { deadline, nodes, left: nodes }
    }

    /// Half of the steps that are left, and all of the time.
    pub(crate) const fn half_of_steps(&self) -> Self {
        let nodes = if self.left == u64::MAX { u64::MAX } else { self.left / 2 };
        Self { deadline: self.deadline, nodes, left: nodes }
    }

    /// Takes these steps at once, which are at most [`left`](Self::left).
    pub(crate) const fn take(&mut self, steps: u64) {
        self.left -= steps;
    }

    /// The steps that are left.
    pub(crate) const fn left(&self) -> u64 {
        self.left
    }

    /// The steps that were taken.
    pub(crate) const fn taken(&self) -> u64 {
        self.nodes - self.left
    }

    /// The time at which nothing is left.
    pub(crate) const fn deadline(&self) -> Instant {
        self.deadline
    }

    /// The time that is left.
    pub(crate) fn time_left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }
}

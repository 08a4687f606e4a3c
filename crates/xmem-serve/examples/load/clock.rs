//! Latencies.

use std::time::Duration;

/// Times of requests.
#[derive(Debug, Default)]
pub(crate) struct Times(pub(crate) Vec<Duration>);

impl Times {
    /// Median, 99th and 99.9th percentile, and longest.
    pub(crate) fn shown(mut self) -> String {
        self.0.sort_unstable();
        let at = |share: usize| self.0[(self.0.len() - 1) * share / 1000];
        format!(
            "median {:.2?}, p99 {:.2?}, p99.9 {:.2?}, longest {:.2?}",
            at(500),
            at(990),
            at(999),
            at(1000)
        )
    }
}

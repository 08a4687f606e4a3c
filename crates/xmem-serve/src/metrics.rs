//! Counters in Prometheus' text format (Prometheus, "Exposition formats", version 0.0.4).

use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use xmem_gate::{Action, Decision};

/// A number that grows, or goes up and down.
#[derive(Debug, Default)]
pub(crate) struct Number(AtomicU64);

impl Number {
    pub(crate) fn add(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn sub(&self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Counts something for as long as the result lives.
    pub(crate) fn during(&self) -> During<'_> {
        self.add();
        During(self)
    }
}

/// Something that is counted while it lasts.
pub(crate) struct During<'a>(&'a Number);

impl Drop for During<'_> {
    fn drop(&mut self) {
        self.0.sub();
    }
}

/// A file that is read again when it changes.
#[derive(Debug, Default)]
pub(crate) struct File {
    reloads: Number,
    errors: Number,
    is_broken: AtomicBool,
}

impl File {
    pub(crate) fn reloaded(&self) {
        self.is_broken.store(false, Ordering::Relaxed);
        self.reloads.add();
    }

    pub(crate) fn broke(&self) {
        self.errors.add();
        self.is_broken.store(true, Ordering::Relaxed);
    }
}

/// The reasons for which a request gets no review.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// Not a review.
    Malformed,
    /// Not JSON, by its content type.
    ContentType,
    /// Longer than the limit.
    TooLarge,
    /// Slower than the limit.
    Timeout,
    /// No memory for the body within the limit.
    Busy,
    /// From a client without the certificate that it must have.
    Unverified,
}

impl Refusal {
    const ALL: [Self; 6] = [
        Self::Malformed,
        Self::ContentType,
        Self::TooLarge,
        Self::Timeout,
        Self::Busy,
        Self::Unverified,
    ];

    const fn name(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::ContentType => "content_type",
            Self::TooLarge => "too_large",
            Self::Timeout => "timeout",
            Self::Busy => "busy",
            Self::Unverified => "unverified",
        }
    }
}

/// Upper bounds of the histogram, in microseconds.
const BOUNDS: [u64; 10] = [100, 250, 500, 1_000, 2_500, 5_000, 10_000, 100_000, 500_000, 2_000_000];

/// All metrics.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    pub(crate) connections: Number,
    pub(crate) handshake_failures: Number,
    pub(crate) ended_unverified: Number,
    pub(crate) in_flight: Number,
    pub(crate) internal_errors: Number,
    actions: [Number; 3],
    decisions: [Number; 5],
    refusals: [Number; 6],
    buckets: [Number; 11],
    micros: AtomicU64,
    pub(crate) site: File,
    pub(crate) certificate: File,
    pub(crate) client_ca: File,
}

const ACTIONS: [Action; 3] = [Action::Admit, Action::Warn, Action::Reject];

impl Metrics {
    pub(crate) fn reviewed(&self, action: Action, decisions: impl Iterator<Item = Decision>) {
        if let Some(at) = ACTIONS.iter().position(|known| *known == action) {
            self.actions[at].add();
        }
        for decision in decisions {
            if let Some(at) = Decision::ALL.iter().position(|known| *known == decision) {
                self.decisions[at].add();
            }
        }
    }

    pub(crate) fn refused(&self, refusal: Refusal) {
        if let Some(at) = Refusal::ALL.iter().position(|known| *known == refusal) {
            self.refusals[at].add();
        }
    }

    pub(crate) fn took(&self, time: Duration) {
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let bucket = BOUNDS.iter().position(|bound| micros <= *bound).unwrap_or(BOUNDS.len());
        self.buckets[bucket].add();
        self.micros.fetch_add(micros, Ordering::Relaxed);
    }

    /// The page of `/metrics`.
    pub(crate) fn page(&self) -> String {
        let mut page = Page::default();
        page.head("xmem_build_info", "gauge", "The version of the server.");
        page.line("xmem_build_info", &format!("{{version=\"{}\"}}", env!("CARGO_PKG_VERSION")), 1);
        page.single("xmem_connections", "gauge", "Open connections.", self.connections.get());
        let failures = self.handshake_failures.get();
        page.single("xmem_tls_handshake_failures_total", "counter", "Failed handshakes.", failures);
        page.single(
            "xmem_unverified_connections_ended_total",
            "counter",
            "Connections without a verified client that gave way to newer ones.",
            self.ended_unverified.get(),
        );
        page.single("xmem_reviews_in_flight", "gauge", "Reviews in work.", self.in_flight.get());
        page.head("xmem_reviews_total", "counter", "Reviews by what followed.");
        for (action, number) in ACTIONS.iter().zip(&self.actions) {
            let label = format!("{{action=\"{}\"}}", action.name());
            page.line("xmem_reviews_total", &label, number.get());
        }
        page.head("xmem_decisions_total", "counter", "Decisions about pod templates.");
        for (decision, number) in Decision::ALL.iter().zip(&self.decisions) {
            let label = format!("{{decision=\"{}\"}}", decision.name());
            page.line("xmem_decisions_total", &label, number.get());
        }
        page.head("xmem_refused_requests_total", "counter", "Requests without a review.");
        for (refusal, number) in Refusal::ALL.iter().zip(&self.refusals) {
            let label = format!("{{reason=\"{}\"}}", refusal.name());
            page.line("xmem_refused_requests_total", &label, number.get());
        }
        let errors = self.internal_errors.get();
        page.single(
            "xmem_internal_errors_total",
            "counter",
            "Reviews with an internal error.",
            errors,
        );
        self.durations(&mut page);
        for (name, file) in [
            ("site", &self.site),
            ("certificate", &self.certificate),
            ("client_ca", &self.client_ca),
        ] {
            let total = |what: &str| format!("xmem_{name}_{what}_total");
            page.single(
                &total("reloads"),
                "counter",
                "Changes that were read.",
                file.reloads.get(),
            );
            page.single(&total("errors"), "counter", "Changes that are broken.", file.errors.get());
            let broken = u64::from(file.is_broken.load(Ordering::Relaxed));
            let help = "1 if the file is broken and its last good state is in use.";
            page.single(&format!("xmem_{name}_broken"), "gauge", help, broken);
        }
        page.0
    }

    fn durations(&self, page: &mut Page) {
        let name = "xmem_review_duration_seconds";
        page.head(name, "histogram", "Time from the head of a review to its answer.");
        let mut sum = 0;
        let seconds = |micros: u64| micros as f64 / 1e6;
        let bounds = BOUNDS.iter().map(|bound| seconds(*bound).to_string());
        for (bound, number) in bounds.chain(["+Inf".to_owned()]).zip(&self.buckets) {
            sum += number.get();
            page.line(&format!("{name}_bucket"), &format!("{{le=\"{bound}\"}}"), sum);
        }
        let micros = self.micros.load(Ordering::Relaxed);
        page.line(&format!("{name}_sum"), "", seconds(micros));
        page.line(&format!("{name}_count"), "", sum);
    }
}

#[derive(Default)]
struct Page(String);

impl Page {
    fn head(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to a string does not fail.
        let _ = write!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
    }

    fn line(&mut self, name: &str, labels: &str, value: impl std::fmt::Display) {
        let _ = writeln!(self.0, "{name}{labels} {value}");
    }

    fn single(&mut self, name: &str, kind: &str, help: &str, value: u64) {
        self.head(name, kind, help);
        self.line(name, "", value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_cumulative_and_end_with_all() {
        let metrics = Metrics::default();
        for micros in [50, 100, 101, 700, 3_000_000] {
            metrics.took(Duration::from_micros(micros));
        }
        metrics.reviewed(Action::Reject, [Decision::DoesNotFit, Decision::Fits].into_iter());
        metrics.site.broke();
        let page = metrics.page();
        for line in [
            "xmem_review_duration_seconds_bucket{le=\"0.0001\"} 2",
            "xmem_review_duration_seconds_bucket{le=\"0.00025\"} 3",
            "xmem_review_duration_seconds_bucket{le=\"0.001\"} 4",
            "xmem_review_duration_seconds_bucket{le=\"2\"} 4",
            "xmem_review_duration_seconds_bucket{le=\"+Inf\"} 5",
            "xmem_review_duration_seconds_sum 3.000951",
            "xmem_review_duration_seconds_count 5",
            "xmem_reviews_total{action=\"reject\"} 1",
            "xmem_decisions_total{decision=\"does_not_fit\"} 1",
            "xmem_site_broken 1",
            "xmem_certificate_broken 0",
        ] {
            assert!(page.lines().any(|found| found == line), "{line}\n{page}");
        }
        metrics.site.reloaded();
        assert!(metrics.page().contains("xmem_site_broken 0"));
    }
}

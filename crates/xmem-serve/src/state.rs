//! What all requests share: the site, the metrics, and the memory for bodies.

use crate::body::BodyMemory;
use crate::metrics::{File, Metrics};
use crate::review::Review;
use crate::{Limits, Mutation};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;
use xmem_gate::Site;
use xmem_gate::kubernetes::TemplateCheck;

/// The function that decides about a review.
pub(crate) type Decide = fn(&Review, &Site) -> Vec<TemplateCheck>;

/// The shared state.
pub(crate) struct State {
    site: RwLock<Arc<Site>>,
    pub(crate) metrics: Metrics,
    pub(crate) bodies: BodyMemory,
    pub(crate) limits: Limits,
    pub(crate) mutation: Mutation,
    pub(crate) decide: Decide,
    /// True from the signal on.
    stopping: AtomicBool,
}

impl State {
    pub(crate) fn new(site: Site, limits: Limits, mutation: Mutation, decide: Decide) -> Self {
        Self {
            site: RwLock::new(Arc::new(site)),
            metrics: Metrics::default(),
            bodies: BodyMemory::new(limits.bodies),
            limits,
            mutation,
            decide,
            stopping: AtomicBool::new(false),
        }
    }

    /// The site, as last read without an error.
    pub(crate) fn site(&self) -> Arc<Site> {
        Arc::clone(&self.site.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Takes over a site file that was read again, or keeps the last good one.
    pub(crate) fn set_site(&self, read: Result<Site, String>) {
        match read {
            Ok(site) => {
                self.metrics.site.reloaded();
                *self.site.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(site);
                tracing::info!("the site file was read again");
            }
            Err(error) => {
                self.metrics.site.broke();
                tracing::error!(%error, "the site file is broken: the last good one stays in force");
            }
        }
    }

    /// Notes that the certificate was read again, or that the last good one is kept.
    pub(crate) fn note_certificate(&self, read: Result<(), String>) {
        note("the certificate", &self.metrics.certificate, read);
    }

    /// Notes that the authority of clients was read again, or that the last good one is kept.
    pub(crate) fn note_client_ca(&self, read: Result<(), String>) {
        note("the authority of clients", &self.metrics.client_ca, read);
    }

    /// The longest time of a request. The API server announces in the query how long it waits, and does what the
    /// `failurePolicy` says when it has no answer then: what is left is for the way, and for an error that says why.
    pub(crate) fn request_limit(&self, query: Option<&str>) -> Duration {
        self.limits.request.unwrap_or_else(|| {
            let own = self.site().timeout;
            announced_timeout(query.unwrap_or_default()).unwrap_or(own).min(own) * 3 / 4
        })
    }

    pub(crate) fn stop(&self) {
        self.stopping.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }
}

fn note(what: &str, file: &File, read: Result<(), String>) {
    match read {
        Ok(()) => {
            file.reloaded();
            tracing::info!("{what} was read again");
        }
        Err(error) => {
            file.broke();
            tracing::error!(%error, "{what} is broken: the last good one stays in use");
        }
    }
}

/// The `timeoutSeconds` of the webhook in a query (`timeout=2s`; Kubernetes,
/// `staging/src/k8s.io/apiserver/pkg/admission/plugin/webhook/validating/dispatcher.go`).
fn announced_timeout(query: &str) -> Option<Duration> {
    let text = query.split('&').find_map(|pair| pair.strip_prefix("timeout="))?;
    let seconds = text.strip_suffix('s')?.parse::<u8>().ok()?;
    Some(Duration::from_secs(seconds.into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer;

    #[test]
    fn the_server_answered_when_the_api_server_had_given_up() {
        let limit = |site: &str, query: Option<&str>| {
            let site = Site::from_toml(site).expect("a site");
            let state = State::new(site, Limits::default(), Mutation::Off, answer::decide);
            state.request_limit(query).as_millis()
        };
        for (site, query, expected) in [
            ("", Some("timeout=2s"), 1500),
            ("", Some("timeout=1s"), 750),
            ("", Some("timeout=30s"), 1500),
            ("timeout = 30.0", Some("timeout=2s"), 1500),
            ("timeout = 30.0", Some("a=b&timeout=10s"), 7500),
            ("timeout = 0.4", Some("timeout=2s"), 300),
            ("", None, 1500),
            ("", Some("timeout=soon"), 1500),
            ("", Some("timeout=1000s"), 1500),
        ] {
            assert_eq!(limit(site, query), expected, "{site} {query:?}");
        }
    }
}

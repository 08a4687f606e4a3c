//! What all requests share: the site, the metrics, and the permits for reviews.

use crate::metrics::Metrics;
use crate::review::Review;
use crate::{Limits, Mutation};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;
use tokio::sync::Semaphore;
use xmem_gate::Site;
use xmem_gate::kubernetes::TemplateCheck;

/// The part of a body that one permit stands for.
const PART: usize = 512 << 10;

/// The function that decides about a review.
pub(crate) type Decide = fn(&Review, &Site) -> Vec<TemplateCheck>;

/// The shared state.
pub(crate) struct State {
    site: RwLock<Arc<Site>>,
    pub(crate) metrics: Metrics,
    pub(crate) permits: Semaphore,
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
            permits: Semaphore::new(limits.reviews),
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
        match read {
            Ok(()) => {
                self.metrics.certificate.reloaded();
                tracing::info!("the certificate was read again");
            }
            Err(error) => {
                self.metrics.certificate.broke();
                tracing::error!(%error, "the certificate is broken: the last good one stays in use");
            }
        }
    }

    /// The longest time of a request.
    pub(crate) fn request_limit(&self) -> Duration {
        self.limits.request.unwrap_or_else(|| self.site().timeout)
    }

    /// The permits of a review with a body of this length: together, bodies in memory are bounded.
    pub(crate) fn permits_for(&self, length: usize) -> u32 {
        let parts = length.div_ceil(PART).min(self.limits.reviews).max(1);
        u32::try_from(parts).unwrap_or(u32::MAX)
    }

    pub(crate) fn stop(&self) {
        self.stopping.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }
}

//! The server from its files to its end.

use crate::connections::Connections;
use crate::files::{Files, Watched, certified_key, site, watch};
use crate::state::{Decide, State};
use crate::tls::{Certificates, Tls};
use crate::{Settings, answer};
use rustls::crypto::CryptoProvider;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use tokio::net::TcpListener;
use xmem_gate::Site;

/// The reason why a server does not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The runtime cannot be started.
    #[error("cannot start the threads of the server")]
    Runtime {
        /// The cause.
        source: io::Error,
    },
    /// Signals cannot be awaited.
    #[error("cannot wait for signals")]
    Signal {
        /// The cause.
        source: io::Error,
    },
    /// The address cannot be bound.
    #[error("cannot listen on {address}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The cause.
        source: io::Error,
    },
    /// The certificate or its key cannot be used.
    #[error("cannot use the certificate: {reason}")]
    Certificate {
        /// What is wrong.
        reason: String,
    },
    /// The authority of clients cannot be used.
    #[error("cannot use the authority of clients: {reason}")]
    ClientCa {
        /// What is wrong.
        reason: String,
    },
    /// The site file cannot be used.
    #[error("cannot use the site file `{}`: {reason}", xmem::types::printable_path(.path))]
    Site {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
}

/// A server that is bound to its address.
pub struct Server {
    listener: TcpListener,
    tls: Arc<Tls>,
    certificates: Arc<Certificates>,
    provider: Arc<CryptoProvider>,
    files: Files,
    state: Arc<State>,
}

impl Server {
    /// Reads the files and binds the address.
    ///
    /// # Errors
    /// If a file cannot be used, or the address cannot be bound.
    pub async fn bind(settings: Settings) -> Result<Self, ServeError> {
        Self::with(settings, answer::decide).await
    }

    pub(crate) async fn with(settings: Settings, decide: Decide) -> Result<Self, ServeError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let certificate = Watched::new([settings.certificate, settings.key]);
        let certified = match certificate.contents() {
            [Ok(chain), Ok(key)] => certified_key(chain, key, &provider),
            [Err(error), _] | [_, Err(error)] => Err(error.clone()),
        };
        let certified = certified.map_err(|reason| ServeError::Certificate { reason })?;
        let (site, site_file) = match settings.site {
            None => (Site::default(), None),
            Some(path) => {
                let watched = Watched::new([path.clone()]);
                let [content] = watched.contents();
                let read = content.clone().and_then(|bytes| site(&bytes));
                (read.map_err(|reason| ServeError::Site { path, reason })?, Some(watched))
            }
        };
        let certificates = Arc::new(Certificates::new(certified));
        let client_ca = settings.client_ca.map(|path| Watched::new([path]));
        let authority = match client_ca.as_ref().map(Watched::contents) {
            None => None,
            Some([Ok(pem)]) => Some(pem.as_slice()),
            Some([Err(reason)]) => return Err(ServeError::ClientCa { reason: reason.clone() }),
        };
        let tls = Tls::new(Arc::clone(&provider), Arc::clone(&certificates), authority)
            .map_err(|reason| ServeError::ClientCa { reason })?;
        let address = settings.listen;
        let listener = TcpListener::bind(address)
            .await
            .map_err(|source| ServeError::Listen { address, source })?;
        Ok(Self {
            listener,
            tls: Arc::new(tls),
            certificates,
            provider,
            files: Files { site: site_file, certificate, client_ca },
            state: Arc::new(State::new(site, settings.limits, settings.mutation, decide)),
        })
    }

    /// The address it is bound to.
    ///
    /// # Errors
    /// If the system does not tell.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// What all requests share.
    #[cfg(test)]
    pub(crate) fn state(&self) -> Arc<State> {
        Arc::clone(&self.state)
    }

    /// Serves until `stop`. After it, open connections get one more answer for a while, and requests that have
    /// begun are answered.
    pub async fn run(self, stop: impl Future<Output = ()>) {
        let Self { listener, tls, certificates, provider, files, state } = self;
        if let Ok(address) = listener.local_addr() {
            tracing::info!(%address, "serving");
        }
        let every = state.limits.reload;
        let same_tls = Arc::clone(&tls);
        let watching = watch(Arc::clone(&state), certificates, provider, same_tls, files, every);
        let watching = tokio::spawn(watching);
        let connections = Connections::new(tls, Arc::clone(&state));
        let mut stop = pin!(stop);
        loop {
            tokio::select! {
                () = &mut stop => break,
                () = connections.next(&listener) => {}
            }
        }
        state.stop();
        tracing::info!("stopping");
        watching.abort();
        connections.drain(&listener).await;
        drop(listener);
        let grace = state.limits.grace;
        match tokio::time::timeout(grace, connections.end()).await {
            Ok(()) => tracing::info!("stopped"),
            Err(_) => tracing::warn!("stopped with requests that did not end"),
        }
    }
}

/// Ends with SIGTERM or SIGINT.
#[cfg(unix)]
pub(crate) fn signal() -> Result<impl Future<Output = ()>, ServeError> {
    use tokio::signal::unix::{SignalKind, signal};
    let listen = |kind| signal(kind).map_err(|source| ServeError::Signal { source });
    let (mut terminate, mut interrupt) =
        (listen(SignalKind::terminate())?, listen(SignalKind::interrupt())?);
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

/// Ends with Ctrl+C.
#[cfg(not(unix))]
pub(crate) fn signal() -> Result<impl Future<Output = ()>, ServeError> {
    Ok(async {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    })
}

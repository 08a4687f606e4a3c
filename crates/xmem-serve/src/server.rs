//! The listener: connections with TLS, their limits, and the end.

use crate::files::{Certificates, Files, Watched, certified_key, site, watch};
use crate::state::{Decide, State};
use crate::{Settings, answer, routes};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use rustls::ServerConfig;
use rustls::crypto::CryptoProvider;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;
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
    /// The site file cannot be used.
    #[error("cannot use the site file `{}`: {reason}", xmem::printable_path(.path))]
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
    tls: TlsAcceptor,
    certificates: Arc<Certificates>,
    provider: Arc<CryptoProvider>,
    files: Files,
    state: Arc<State>,
}

/// The pause after a connection could not be accepted, as when there are no more file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

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
        let tls = tls(Arc::clone(&provider), Arc::clone(&certificates))
            .map_err(|error| ServeError::Certificate { reason: error.to_string() })?;
        let address = settings.listen;
        let listener = TcpListener::bind(address)
            .await
            .map_err(|source| ServeError::Listen { address, source })?;
        Ok(Self {
            listener,
            tls,
            certificates,
            provider,
            files: Files { site: site_file, certificate },
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
        let watching =
            tokio::spawn(watch(Arc::clone(&state), certificates, provider, files, every));
        let connections = Connections {
            tls,
            permits: Arc::new(Semaphore::new(state.limits.connections)),
            open: GracefulShutdown::new(),
            service: TowerToHyperService::new(routes::router(Arc::clone(&state))),
            state: Arc::clone(&state),
        };
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
        match tokio::time::timeout(grace, connections.open.shutdown()).await {
            Ok(()) => tracing::info!("stopped"),
            Err(_) => tracing::warn!("stopped with requests that did not end"),
        }
    }
}

/// HTTP/1.1 only: the API server sends few requests, and one request a connection at a time is easier to
/// bound.
fn tls(
    provider: Arc<CryptoProvider>,
    certificates: Arc<Certificates>,
) -> Result<TlsAcceptor, rustls::Error> {
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_cert_resolver(certificates);
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

struct Connections {
    tls: TlsAcceptor,
    permits: Arc<Semaphore>,
    open: GracefulShutdown,
    service: TowerToHyperService<axum::Router>,
    state: Arc<State>,
}

impl Connections {
    /// Goes on for a while after the signal, so that clients do not lose requests that are on their way, and
    /// learn to connect elsewhere.
    async fn drain(&self, listener: &TcpListener) {
        if self.state.metrics.connections.get() == 0 {
            return;
        }
        let serve = async {
            loop {
                self.next(listener).await;
            }
        };
        // It has no other end.
        let _: Result<(), _> = tokio::time::timeout(self.state.limits.drain, serve).await;
    }

    /// Accepts a connection, as soon as there may be one more.
    async fn next(&self, listener: &TcpListener) {
        // The semaphore is never closed.
        let Ok(permit) = Arc::clone(&self.permits).acquire_owned().await else { return };
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                return;
            }
        };
        let (tls, service) = (self.tls.clone(), self.service.clone());
        let (state, watcher) = (Arc::clone(&self.state), self.open.watcher());
        tokio::spawn(async move {
            let _permit = permit;
            let _counted = state.metrics.connections.during();
            let Some(stream) = handshake(&tls, stream, state.limits.handshake).await else {
                state.metrics.handshake_failures.add();
                return;
            };
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(state.limits.head)
                .serve_connection(TokioIo::new(stream), service);
            let served = if state.is_stopping() {
                // It ends with its first answer, which is waited for.
                let _open = watcher;
                connection.await
            } else {
                watcher.watch(connection).await
            };
            if let Err(error) = served {
                tracing::debug!(%error, "a connection ended early");
            }
        });
    }
}

async fn handshake(
    tls: &TlsAcceptor,
    stream: TcpStream,
    limit: Duration,
) -> Option<tokio_rustls::server::TlsStream<TcpStream>> {
    // Answers are small, and each is waited for.
    let _ = stream.set_nodelay(true);
    match tokio::time::timeout(limit, tls.accept(stream)).await {
        Ok(Ok(stream)) => Some(stream),
        Ok(Err(error)) => {
            tracing::debug!(%error, "a handshake failed");
            None
        }
        Err(_) => {
            tracing::debug!("a handshake took too long");
            None
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

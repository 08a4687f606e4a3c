//! Connections: accepted, told apart by who their client is, and served with their limits.

use crate::routes;
use crate::state::State;
use crate::tls::{Peer, Tls};
use crate::unverified::{Entry, Unverified};
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use hyper_util::service::TowerToHyperService;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_rustls::server::TlsStream;

/// The pause after a connection could not be accepted, as when there are no more file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The buffer of a connection: the longest head, and the part of a body that is read at once.
const BUFFER: usize = 64 << 10;

/// All connections.
pub(crate) struct Connections {
    shared: Shared,
    open: GracefulShutdown,
}

/// What they share.
#[derive(Clone)]
struct Shared {
    tls: Arc<Tls>,
    permits: Arc<Semaphore>,
    unverified: Arc<Unverified>,
    service: TowerToHyperService<axum::Router>,
    state: Arc<State>,
}

/// A connection after its handshake.
struct Begun {
    stream: TlsStream<TcpStream>,
    peer: Peer,
    /// None for a client that is not verified.
    permit: Option<OwnedSemaphorePermit>,
}

impl Connections {
    pub(crate) fn new(tls: Arc<Tls>, state: Arc<State>) -> Self {
        let shared = Shared {
            tls,
            permits: Arc::new(Semaphore::new(state.limits.connections)),
            unverified: Arc::new(Unverified::new(
                state.limits.unverified,
                state.limits.unverified_time,
            )),
            service: TowerToHyperService::new(routes::router(Arc::clone(&state))),
            state,
        };
        Self { shared, open: GracefulShutdown::new() }
    }

    /// Accepts a connection.
    pub(crate) async fn next(&self, listener: &TcpListener) {
        self.shared.unverified.place().await;
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                return;
            }
        };
        let (shared, watcher) = (self.shared.clone(), self.open.watcher());
        let entry = self.shared.unverified.enter();
        tokio::spawn(async move {
            let _counted = shared.state.metrics.connections.during();
            shared.run(stream, entry, watcher).await;
        });
    }

    /// Goes on for a while after the signal, so that clients do not lose requests that are on their way, and
    /// learn to connect elsewhere.
    pub(crate) async fn drain(&self, listener: &TcpListener) {
        let state = &self.shared.state;
        if state.metrics.connections.get() == 0 {
            return;
        }
        let serve = async {
            loop {
                self.next(listener).await;
            }
        };
        // It has no other end.
        let _: Result<(), _> = tokio::time::timeout(state.limits.drain, serve).await;
    }

    /// Waits for the requests that have begun.
    pub(crate) async fn end(self) {
        self.open.shutdown().await;
    }
}

impl Shared {
    /// Serves a connection to its end, or until a newer one takes its place while its client is not verified.
    async fn run(&self, stream: TcpStream, entry: Entry, watcher: Watcher) {
        let metrics = &self.state.metrics;
        let begun = tokio::select! {
            begun = self.begin(stream) => begun,
            () = entry.ended() => return metrics.ended_unverified.add(),
        };
        let Some(Begun { stream, peer, permit }) = begun else {
            return metrics.handshake_failures.add();
        };
        let served = self.serve(stream, peer, watcher);
        match permit {
            Some(_permit) => {
                drop(entry);
                served.await;
            }
            None => tokio::select! {
                () = served => {}
                () = entry.ended() => metrics.ended_unverified.add(),
            },
        }
    }

    /// The handshake, and the wait for one of the connections that may be served.
    async fn begin(&self, stream: TcpStream) -> Option<Begun> {
        // Answers are small, and each is waited for.
        let _ = stream.set_nodelay(true);
        let handshake = self.tls.acceptor().accept(stream);
        let stream = match tokio::time::timeout(self.state.limits.handshake, handshake).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => {
                tracing::debug!(%error, "a handshake failed");
                return None;
            }
            Err(_) => {
                tracing::debug!("a handshake took too long");
                return None;
            }
        };
        let peer = self.tls.peer(&stream);
        let permit = match peer {
            // The semaphore is never closed.
            Peer::Accepted => Some(Arc::clone(&self.permits).acquire_owned().await.ok()?),
            Peer::Unverified => None,
        };
        Some(Begun { stream, peer, permit })
    }

    async fn serve(&self, stream: TlsStream<TcpStream>, peer: Peer, watcher: Watcher) {
        let limits = self.state.limits;
        let (service, has_begun) = (self.service.clone(), Arc::new(AtomicBool::new(false)));
        let begins = Arc::clone(&has_begun);
        let service = service_fn(move |mut request: Request<Incoming>| {
            begins.store(true, Ordering::Relaxed);
            request.extensions_mut().insert(peer);
            service.call(request)
        });
        let between = match peer {
            Peer::Accepted => limits.idle,
            Peer::Unverified => limits.head,
        };
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(between)
            .max_buf_size(BUFFER)
            .serve_connection(TokioIo::new(stream), service);
        let served = async {
            if self.state.is_stopping() {
                // It ends with its first answer, which is waited for.
                let _open = watcher;
                connection.await
            } else {
                watcher.watch(connection).await
            }
        };
        let silent = async {
            tokio::time::sleep(limits.head).await;
            if has_begun.load(Ordering::Relaxed) {
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            served = served => {
                if let Err(error) = served {
                    tracing::debug!(%error, "a connection ended early");
                }
            }
            () = silent => tracing::debug!("no request came in time"),
        }
    }
}

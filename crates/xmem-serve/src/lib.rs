//! The gate as an admission webhook of Kubernetes, over HTTPS.
//!
//! Requests are answered from annotations, the request and the site file; no trace is read, and nothing is
//! stored. The decision is that of [`xmem_gate::kubernetes`]. Logs go to `tracing`, whose output is left to
//! the caller.
#![forbid(unsafe_code)]

mod answer;
mod body;
mod connections;
mod files;
mod metrics;
mod review;
mod routes;
mod server;
mod state;
#[cfg(test)]
mod tests;
mod tls;
mod unverified;
mod words;

pub use server::{ServeError, Server};

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// The settings of a server.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The address to listen on.
    pub listen: SocketAddr,
    /// The chain of certificates (PEM), the server's own first. It is read again when it changes.
    pub certificate: PathBuf,
    /// The private key (PEM).
    pub key: PathBuf,
    /// The authority (PEM) that signs the certificates of clients who may ask for reviews: the API server. It is read
    /// again when it changes. Without one, everybody may.
    pub client_ca: Option<PathBuf>,
    /// The site file. It is read again when it changes.
    pub site: Option<PathBuf>,
    /// What `/mutate` does.
    pub mutation: Mutation,
    /// Limits of requests and connections.
    pub limits: Limits,
}

/// What `/mutate` does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mutation {
    /// There is no `/mutate`.
    #[default]
    Off,
    /// It annotates new objects with the decision.
    Annotate,
}

/// Limits of requests and connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The longest body of a request, in bytes.
    pub body: usize,
    /// The longest time of a TLS handshake.
    pub handshake: Duration,
    /// The longest time from a connection to the end of the first request's head; of a client that is not verified, also
    /// from one request to the next.
    pub head: Duration,
    /// The longest time from the end of a request to the end of the next one's head, of a verified client.
    pub idle: Duration,
    /// The longest time of a request after its head: for its body and the decision. None for three quarters of the
    /// `timeout` of the site file, or of that which the API server announces if it is shorter.
    pub request: Option<Duration>,
    /// The memory of all bodies at the same time beyond the first 64 KiB of each, in bytes, as they arrive. A body that
    /// finds none left waits.
    pub bodies: usize,
    /// Connections at the same time; others wait for their turn after the handshake.
    pub connections: usize,
    /// Connections at the same time whose client is not verified: in the handshake, or without the certificate for
    /// which it is asked. A new one ends the oldest.
    pub unverified: usize,
    /// The time that each of these has at least. Meanwhile, others wait to be accepted.
    pub unverified_time: Duration,
    /// The time between two looks at the files.
    pub reload: Duration,
    /// The time after a signal in which connections are still accepted and served, each for one more request.
    pub drain: Duration,
    /// The longest time that requests have to end after that.
    pub grace: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            // The API server stores objects of up to 1.5 MiB. It sends them as JSON, in which a character may
            // take six (`<` is `\u003c`), and on an update the old one with them.
            body: 20 << 20,
            handshake: Duration::from_secs(5),
            head: Duration::from_secs(10),
            // The API server gives up its idle connections after 90 seconds (Go's http.DefaultTransport, taken over by
            // k8s.io/apimachinery, pkg/util/net, SetOldTransportDefaults). Ended by it, none is lost with a request
            // that was just sent.
            idle: Duration::from_secs(120),
            request: None,
            bodies: 32 << 20,
            connections: 512,
            // The backlog of the listener, 1,024 connections, takes 0.6 seconds of this pace at most.
            unverified: 448,
            unverified_time: Duration::from_millis(250),
            reload: Duration::from_secs(5),
            drain: Duration::from_secs(2),
            grace: Duration::from_secs(20),
        }
    }
}

/// Serves until SIGTERM or SIGINT.
///
/// # Errors
/// If a file cannot be read at the start, or the address cannot be bound.
pub fn serve(settings: Settings) -> Result<(), ServeError> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|source| ServeError::Runtime { source })?;
    runtime.block_on(async {
        let stop = server::signal()?;
        let server = Server::bind(settings).await?;
        server.run(stop).await;
        Ok(())
    })
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}

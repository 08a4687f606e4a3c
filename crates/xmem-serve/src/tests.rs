//! The server through its listener: HTTPS, as the API server speaks it.
#![expect(clippy::disallowed_methods, reason = "tests write the files that the server reads")]

mod bypasses;
#[path = "../tests/support/client.rs"]
mod client;
mod limits;
mod reload;
mod reviews;
mod verification;

use crate::server::Server;
use crate::state::{Decide, State};
use crate::{Limits, Mutation, Settings, answer};
use client::{Client, Identity, post, roots};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

const SITE: &str = r#"
policy = "reject"
margin = "5%"
help = "https://hpc.example.org/gpu-memory"

[[gpu]]
device = "t4-16g"
products = ["Tesla-T4"]

[[gpu]]
device = "a100-40g"
products = ["NVIDIA-A100-SXM4-40GB"]

[[workload]]
group = "example.org"
kind = "Sweep"
templates = ["spec.trials.*.pod"]
"#;

/// A running server with its files.
struct Running {
    folder: TempDir,
    identity: Identity,
    address: SocketAddr,
    state: Arc<State>,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

/// Limits under which nothing times out but what a test lets time out.
fn patient() -> Limits {
    Limits {
        request: Some(Duration::from_secs(60)),
        head: Duration::from_secs(60),
        idle: Duration::from_secs(60),
        handshake: Duration::from_secs(60),
        reload: Duration::from_millis(20),
        drain: Duration::ZERO,
        grace: Duration::from_secs(60),
        unverified_time: Duration::from_millis(1),
        ..Limits::default()
    }
}

impl Running {
    async fn start(limits: Limits) -> Self {
        Self::with(SITE, limits, Mutation::Off, answer::decide).await
    }

    async fn with(site: &str, limits: Limits, mutation: Mutation, decide: Decide) -> Self {
        Self::asking(None, site, limits, mutation, decide).await
    }

    /// With an authority of clients, if one is given.
    async fn asking(
        client_ca: Option<&str>,
        site: &str,
        limits: Limits,
        mutation: Mutation,
        decide: Decide,
    ) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let identity = Identity::new();
        let file = |name: &str, text: &str| -> PathBuf {
            let path = folder.path().join(name);
            std::fs::write(&path, text).expect("written");
            path
        };
        let settings = Settings {
            listen: "127.0.0.1:0".parse().expect("an address"),
            certificate: file("tls.crt", &identity.chain),
            key: file("tls.key", &identity.key),
            client_ca: client_ca.map(|pem| file("client-ca.crt", pem)),
            site: Some(file("site.toml", site)),
            mutation,
            limits,
        };
        let server = Server::with(settings, decide).await.expect("bound");
        let (address, state) = (server.address().expect("bound"), server.state());
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(server.run(async move {
            let _ = stopped.await;
        }));
        Self { folder, identity, address, state, stop: Some(stop), task }
    }

    /// Returns whether the page of metrics has this line.
    fn counts(&self, line: &str) -> bool {
        self.state.metrics.page().lines().any(|found| found == line)
    }

    fn write(&self, name: &str, text: &str) {
        // As mounted files change: whole, at once.
        let new = self.folder.path().join("new");
        std::fs::write(&new, text).expect("written");
        std::fs::rename(new, self.folder.path().join(name)).expect("renamed");
    }

    async fn client(&self) -> Client {
        connect(self.address, &[&self.identity]).await
    }

    /// The status and body that a new connection gets for a review.
    async fn review(&self, body: &str) -> (u16, String) {
        self.client().await.ask(&post("/validate", body)).await
    }

    async fn get(&self, path: &str) -> (u16, String) {
        self.client().await.ask(format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n").as_bytes()).await
    }

    fn stop(&mut self) {
        if let Some(stop) = self.stop.take() {
            stop.send(()).expect("running");
        }
    }

    async fn ended(self) {
        self.task.await.expect("no panic");
    }
}

/// Connects, and trusts these identities alone.
async fn connect(address: SocketAddr, trusted: &[&Identity]) -> Client {
    Client::with_roots(address, roots(trusted)).await.expect("connected")
}

/// Waits until something holds; the test runner ends a test for which it never does.
async fn until(holds: impl AsyncFn() -> bool) {
    while !holds().await {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

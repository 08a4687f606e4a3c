//! `xmem serve` with its files.

use super::certificates::{Authority, replace};
use crate::daemon::{self, Daemon, free_ports, wait};
use nix::sys::signal::Signal;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::time::Duration;
use xmem_task::Error;

/// The longest time until the server listens.
const READY_LIMIT: Duration = Duration::from_secs(60);
/// The longest time until the server has seen a change of its files, at which it looks every five seconds.
const RELOAD_LIMIT: Duration = Duration::from_secs(60);

/// The server, ended when this is dropped.
pub(super) struct Server {
    xmem: PathBuf,
    folder: PathBuf,
    address: String,
    /// None while it is down.
    daemon: Option<Daemon>,
}

impl Server {
    /// Starts it with a certificate and a site file.
    pub(super) fn start(
        folder: &Path,
        xmem: &Path,
        authority: &Authority,
        site: &str,
    ) -> Result<Self, Error> {
        let [port] = free_ports()?;
        let mut server = Self {
            xmem: xmem.to_owned(),
            folder: folder.to_owned(),
            address: format!("127.0.0.1:{port}"),
            daemon: None,
        };
        authority.issue()?.write(folder, "tls")?;
        server.write_site(site)?;
        server.begin()?;
        Ok(server)
    }

    /// The program.
    pub(super) fn program(&self) -> &Path {
        &self.xmem
    }

    /// Its address and port.
    pub(super) fn address(&self) -> &str {
        &self.address
    }

    /// Starts it again, on the same port.
    pub(super) fn begin(&mut self) -> Result<(), Error> {
        let arguments = [
            "serve",
            "--tls-cert=tls.crt",
            "--tls-key=tls.key",
            "--site=site.toml",
            "--mutate",
            &format!("--listen={}", self.address),
        ];
        // An empty XMEM_LOG is none.
        let environment = [("XMEM_LOG", Path::new(""))];
        let mut daemon = Daemon::start(&self.xmem, arguments, &environment, &self.folder)?;
        daemon.wait("xmem serve to listen", READY_LIMIT, || {
            TcpStream::connect(&self.address).is_ok()
        })?;
        self.daemon = Some(daemon);
        Ok(())
    }

    /// Ends it as SIGKILL does.
    pub(super) fn kill(&mut self) {
        if let Some(daemon) = self.daemon.take() {
            daemon.kill();
        }
    }

    /// Ends it as SIGTERM does: after the requests that have begun.
    pub(super) fn stop(&mut self) {
        drop(self.daemon.take());
    }

    /// Lets it hang, or go on.
    pub(super) fn signal(&self, signal: Signal) {
        if let Some(daemon) = &self.daemon {
            daemon.signal(signal);
        }
    }

    /// The reviews of `/validate` that it has answered since the tests began.
    pub(super) fn asked(&self) -> usize {
        // Requests that it refused have no uid.
        self.logged("\"endpoint\":\"validate\",\"uid\"")
    }

    /// Replaces the site file.
    pub(super) fn write_site(&self, text: &str) -> Result<(), Error> {
        replace(&self.folder.join("site.toml"), text)
    }

    /// Replaces the site file by one that cannot be used, and waits until the server has read it.
    pub(super) fn write_broken_site(&self, text: &str) -> Result<(), Error> {
        let line = "the site file is broken";
        let before = self.logged(line);
        self.write_site(text)?;
        wait("the server to read a broken site file", RELOAD_LIMIT, || self.logged(line) > before)
    }

    /// Replaces the certificate, and waits until the server has read it.
    pub(super) fn rotate(&self, authority: &Authority) -> Result<(), Error> {
        let line = "the certificate was read again";
        let before = self.logged(line);
        authority.issue()?.write(&self.folder, "tls")?;
        wait("the server to read its new certificate", RELOAD_LIMIT, || self.logged(line) > before)
    }

    /// The lines of its log with this text.
    fn logged(&self, text: &str) -> usize {
        // Read without the daemon, which may be down.
        let log = std::fs::read(daemon::log_of(&self.xmem, &self.folder)).unwrap_or_default();
        String::from_utf8_lossy(&log).lines().filter(|line| line.contains(text)).count()
    }
}

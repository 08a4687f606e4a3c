//! The server as a process of its own.
#![expect(clippy::disallowed_methods, reason = "writes the files that the server reads")]

use crate::client::{Client, Identity, roots};
use rustls::RootCertStore;
use std::io::{BufRead as _, BufReader};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const SITE: &str = r#"
policy = "reject"
margin = "5%"

[[gpu]]
device = "t4-16g"
products = ["Tesla-T4"]

[[gpu]]
device = "a100-40g"
products = ["NVIDIA-A100-SXM4-40GB"]
"#;

/// Clock ticks a second in /proc (proc(5)); 100 on all of Linux's architectures in use.
const TICKS: f64 = 100.0;

/// A running `xmem serve`; killed at the end.
pub(crate) struct ServerProcess {
    program: PathBuf,
    folder: TempDir,
    child: Child,
    port: u16,
    pub(crate) identities: Vec<Identity>,
}

impl ServerProcess {
    pub(crate) fn start(program: &Path) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("site.toml"), SITE).expect("written");
        let identities = vec![Identity::new()];
        install(folder.path(), 0, &identities[0]);
        // The server starts in that folder.
        let program = program.canonicalize().expect("a program");
        let (child, port) = spawn(&program, folder.path(), 0);
        Self { program, folder, child, port, identities }
    }

    /// SIGKILL.
    pub(crate) fn kill(&mut self) {
        self.child.kill().expect("killed");
        self.child.wait().expect("ended");
    }

    /// Starts it again on the same port; the time until it listens.
    pub(crate) fn restart(&mut self) -> Duration {
        let start = Instant::now();
        (self.child, self.port) = spawn(&self.program, self.folder.path(), self.port);
        start.elapsed()
    }

    /// Puts one more certificate in place, with its key, as Kubernetes changes a mounted secret.
    pub(crate) fn rotate(&self, version: usize) {
        install(self.folder.path(), version, &self.identities[version]);
    }

    /// The address, and the certificates that the server has or will have.
    pub(crate) fn whom_to_trust(&self) -> (SocketAddr, RootCertStore) {
        let trusted: Vec<&Identity> = self.identities.iter().collect();
        ((Ipv4Addr::LOCALHOST, self.port).into(), roots(&trusted))
    }

    pub(crate) async fn client(&self) -> std::io::Result<Client> {
        let (address, roots) = self.whom_to_trust();
        Client::with_roots(address, roots).await
    }

    /// CPU time of the process so far, in seconds.
    pub(crate) fn cpu(&self) -> f64 {
        cpu(&self.child.id().to_string())
    }

    /// Memory that the process has now, and had at most, in MiB.
    pub(crate) fn memory(&self) -> (f64, f64) {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()));
        let status = status.expect("running");
        let value = |name: &str| -> f64 {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).expect(name);
            line.trim().trim_end_matches(" kB").parse::<f64>().expect("a number") / 1024.0
        };
        (value("VmRSS:"), value("VmHWM:"))
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        // It may have been killed before.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// CPU time of this process so far, in seconds.
pub(crate) fn own_cpu() -> f64 {
    cpu("self")
}

fn cpu(process: &str) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).expect("running");
    let fields = stat.rsplit(')').next().expect("fields").split_whitespace();
    let ticks: f64 =
        fields.skip(11).take(2).map(|ticks| ticks.parse::<f64>().expect("ticks")).sum();
    ticks / TICKS
}

/// Writes a folder with certificate and key, and lets the link `tls` name it, at once.
fn install(folder: &Path, version: usize, identity: &Identity) {
    let own = folder.join(format!("tls-{version}"));
    std::fs::create_dir(&own).expect("a folder");
    std::fs::write(own.join("tls.crt"), &identity.chain).expect("written");
    std::fs::write(own.join("tls.key"), &identity.key).expect("written");
    let link = folder.join("new");
    std::os::unix::fs::symlink(&own, &link).expect("a link");
    std::fs::rename(link, folder.join("tls")).expect("renamed");
}

fn spawn(program: &Path, folder: &Path, port: u16) -> (Child, u16) {
    let mut child = Command::new(program)
        .args(["serve", "--tls-cert", "tls/tls.crt", "--tls-key", "tls/tls.key"])
        .args(["--site", "site.toml", "--listen", &format!("127.0.0.1:{port}")])
        .current_dir(folder)
        .stderr(Stdio::piped())
        .spawn()
        .expect("the server starts");
    let mut log = BufReader::new(child.stderr.take().expect("piped"));
    let mut line = String::new();
    while !line.contains("\"serving\"") {
        line.clear();
        assert!(log.read_line(&mut line).expect("text") > 0, "the server ended");
    }
    let port = line
        .split("127.0.0.1:")
        .nth(1)
        .and_then(|rest| rest.split('"').next()?.parse().ok())
        .expect("an address");
    // The rest of the log goes nowhere, but must be read.
    std::thread::spawn(move || std::io::copy(&mut log, &mut std::io::sink()));
    (child, port)
}

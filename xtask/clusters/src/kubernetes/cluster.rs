//! etcd and kube-apiserver in a folder, without controllers and nodes.

use super::assets::Assets;
use super::certificates::{self, Authority, replace};
use super::kubectl::{Kubectl, OutputError};
use crate::daemon::{Daemon, free_ports};
use serde_json::{Value, json};
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;
use xmem_task::Error;

/// The longest time until a daemon answers: the API server prepares its objects first.
const READY_LIMIT: Duration = Duration::from_secs(180);

/// The token of the only user.
const TOKEN: &str = "token-of-the-tests";

/// The daemons, ended when this is dropped.
#[derive(Debug)]
pub(super) struct Cluster {
    /// Ended first.
    _server: Daemon,
    _etcd: Daemon,
    kubectl: Kubectl,
    has_policies: bool,
}

impl Cluster {
    /// Starts the daemons, and waits until they answer.
    pub(super) fn start(
        folder: &Path,
        assets: &Assets,
        authority: &Authority,
    ) -> Result<Self, Error> {
        let [port, client, peer] = free_ports()?;
        let etcd = start_etcd(folder, assets, [client, peer])?;
        authority.issue()?.write(folder, "api")?;
        replace(&folder.join("ca.crt"), authority.pem())?;
        certificates::write_keys(folder, "tokens")?;
        replace(&folder.join("tokens.csv"), &format!("{TOKEN},admin,admin,\"system:masters\"\n"))?;
        replace(&folder.join("kubeconfig"), &kubeconfig(folder, port).to_string())?;
        let mut server = start_server(folder, assets, port, client)?;
        let kubectl = Kubectl::new(&assets.kubectl, folder);
        server.wait("kube-apiserver to be ready", READY_LIMIT, || {
            kubectl.run(&["get", "--raw", "/readyz"]).is_ok_and(|said| said.exit == 0)
        })?;
        let admission = kubectl.must(&["get", "--raw", "/apis/admissionregistration.k8s.io/v1"])?;
        let has_policies = admission.contains("\"validatingadmissionpolicies\"");
        Ok(Self { _server: server, _etcd: etcd, kubectl, has_policies })
    }

    pub(super) fn kubectl(&self) -> Kubectl {
        self.kubectl.clone()
    }

    /// Returns whether there is a ValidatingAdmissionPolicy of version v1 (Kubernetes 1.30).
    pub(super) fn has_policies(&self) -> bool {
        self.has_policies
    }

    /// The version of the API server.
    pub(super) fn version(&self) -> Result<String, Error> {
        let text = self.kubectl.must(&["get", "--raw", "/version"])?;
        let value: Value = serde_json::from_str(&text).map_err(OutputError)?;
        Ok(value["gitVersion"].as_str().unwrap_or("unknown").to_owned())
    }
}

fn start_etcd(folder: &Path, assets: &Assets, ports: [u16; 2]) -> Result<Daemon, Error> {
    let [client, peer] = ports.map(|port| format!("http://127.0.0.1:{port}"));
    let arguments = [
        "--data-dir=etcd".to_owned(),
        format!("--listen-client-urls={client}"),
        format!("--advertise-client-urls={client}"),
        format!("--listen-peer-urls={peer}"),
        format!("--initial-advertise-peer-urls={peer}"),
        format!("--initial-cluster=default={peer}"),
    ];
    let mut etcd = Daemon::start(&assets.etcd, arguments, &[], folder)?;
    etcd.wait("etcd to listen", READY_LIMIT, || {
        TcpStream::connect(("127.0.0.1", ports[0])).is_ok()
    })?;
    Ok(etcd)
}

fn start_server(folder: &Path, assets: &Assets, port: u16, etcd: u16) -> Result<Daemon, Error> {
    let arguments = [
        format!("--etcd-servers=http://127.0.0.1:{etcd}"),
        "--bind-address=127.0.0.1".to_owned(),
        "--advertise-address=127.0.0.1".to_owned(),
        // The service `kubernetes` cannot have an endpoint on 127.0.0.1.
        "--endpoint-reconciler-type=none".to_owned(),
        format!("--secure-port={port}"),
        "--cert-dir=.".to_owned(),
        "--tls-cert-file=api.crt".to_owned(),
        "--tls-private-key-file=api.key".to_owned(),
        "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
        "--service-account-key-file=tokens.pub".to_owned(),
        "--service-account-signing-key-file=tokens.key".to_owned(),
        "--service-cluster-ip-range=10.0.0.0/24".to_owned(),
        "--token-auth-file=tokens.csv".to_owned(),
        "--authorization-mode=AlwaysAllow".to_owned(),
        // No controller makes the service accounts of pods.
        "--disable-admission-plugins=ServiceAccount".to_owned(),
        "--enable-admission-plugins=MutatingAdmissionWebhook,ValidatingAdmissionWebhook".to_owned(),
    ];
    Daemon::start(&assets.server, arguments, &[], folder)
}

/// The user's configuration; JSON is YAML, too.
fn kubeconfig(folder: &Path, port: u16) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "tests", "cluster": {
            "server": format!("https://127.0.0.1:{port}"),
            "certificate-authority": folder.join("ca.crt"),
        }}],
        "users": [{"name": "admin", "user": {"token": TOKEN}}],
        "contexts": [{"name": "tests", "context": {
            "cluster": "tests", "user": "admin", "namespace": "research",
        }}],
        "current-context": "tests",
    })
}

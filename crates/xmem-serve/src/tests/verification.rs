//! Clients with and without a certificate of the authority that the server asks for.

use super::client::{Client, post, roots};
use super::reviews::recorded;
use super::{Running, SITE, patient, until};
use crate::{Limits, Mutation, answer};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
};
use rustls::ClientConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use std::sync::Arc;

/// An authority that signs the certificates of clients.
struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

impl Authority {
    fn new() -> Self {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::new(Vec::new()).expect("names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "authority of clients");
        let pem = params.self_signed(&key).expect("a certificate").pem();
        Self { issuer: Issuer::new(params, key), pem }
    }

    /// A client's certificate and key.
    fn issue(&self) -> (CertificateDer<'static>, PrivateKeyDer<'static>) {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::new(Vec::new()).expect("names");
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        params.distinguished_name.push(DnType::CommonName, "kube-apiserver");
        let certificate = params.signed_by(&key, &self.issuer).expect("a certificate");
        let key = PrivatePkcs8KeyDer::from(key.serialize_der());
        (certificate.der().clone(), PrivateKeyDer::Pkcs8(key))
    }
}

async fn start(authority: &Authority, limits: Limits) -> Running {
    let pem = Some(authority.pem.as_str());
    Running::asking(pem, SITE, limits, Mutation::Annotate, answer::decide).await
}

/// A connection with a certificate of this authority.
async fn verified(server: &Running, authority: &Authority) -> std::io::Result<Client> {
    let (certificate, key) = authority.issue();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots(&[&server.identity]))
        .with_client_auth_cert(vec![certificate], key)
        .expect("a client's certificate");
    Client::with_config(server.address, config).await
}

/// The status of a review on a connection; none if it was closed.
async fn status(client: std::io::Result<Client>) -> Option<u16> {
    let mut client = client.ok()?;
    client.send(&post("/validate", recorded("job-create"))).await.ok()?;
    client.answer().await.map(|(status, _)| status)
}

#[tokio::test]
async fn whoever_reached_the_port_got_reviews() {
    let (authority, other) = (Authority::new(), Authority::new());
    let server = start(&authority, patient()).await;
    assert_eq!(status(verified(&server, &authority).await).await, Some(200));
    // Of another authority, the handshake fails; TLS 1.3 tells a client with its first answer.
    assert_eq!(status(verified(&server, &other).await).await, None);
    // Without a certificate, only what probes ask for.
    for path in ["/validate", "/mutate"] {
        let (code, text) = server.client().await.ask(&post(path, recorded("job-create"))).await;
        assert_eq!(code, 401);
        assert!(text.contains("--client-ca"), "{text}");
    }
    for path in ["/healthz", "/readyz", "/metrics"] {
        assert_eq!(server.get(path).await.0, 200, "{path}");
    }
    assert!(server.counts("xmem_refused_requests_total{reason=\"unverified\"} 2"));
}

#[tokio::test]
async fn clients_without_a_certificate_do_not_stall_the_api_server() {
    let authority = Authority::new();
    let limits = Limits { connections: 2, unverified: 3, ..patient() };
    let server = start(&authority, limits).await;
    let mut strangers = Vec::new();
    for _ in 0..30 {
        strangers.push(server.client().await);
        assert_eq!(status(verified(&server, &authority).await).await, Some(200));
    }
    // The last ones are served, the others gave way.
    let healthz = b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n";
    assert_eq!(strangers.pop().expect("a client").ask(healthz).await.0, 200);
    assert_eq!(strangers.swap_remove(0).answer().await, None);
    // A body is not read, however long it is said to be.
    let mut client = server.client().await;
    let head = "POST /validate HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n\
                content-length: 20971520\r\n\r\n";
    assert_eq!(client.ask(head.as_bytes()).await.0, 401);
}

#[tokio::test]
async fn a_new_authority_counts_for_new_connections() {
    let (first, second) = (Authority::new(), Authority::new());
    let server = start(&first, patient()).await;
    let mut old = verified(&server, &first).await.expect("connected");
    assert_eq!(old.ask(&post("/validate", recorded("job-create"))).await.0, 200);
    server.write("client-ca.crt", "nonsense");
    until(async || server.counts("xmem_client_ca_broken 1")).await;
    assert_eq!(status(verified(&server, &first).await).await, Some(200));
    server.write("client-ca.crt", &second.pem);
    until(async || status(verified(&server, &second).await).await == Some(200)).await;
    assert_eq!(status(verified(&server, &first).await).await, None);
    assert_eq!(old.ask(&post("/validate", recorded("job-create"))).await.0, 200);
    assert!(server.counts("xmem_client_ca_broken 0"));
}

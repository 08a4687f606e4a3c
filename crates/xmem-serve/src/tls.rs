//! The TLS of the listener: the server's certificate, and the authority whose clients are believed.

use rustls::crypto::CryptoProvider;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::server::{ClientHello, ResolvesServerCert, WebPkiClientVerifier};
use rustls::sign::CertifiedKey;
use rustls::{RootCertStore, ServerConfig};
use std::sync::{Arc, PoisonError, RwLock};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// The certificate that new connections get.
#[derive(Debug)]
pub(crate) struct Certificates(RwLock<Arc<CertifiedKey>>);

impl Certificates {
    pub(crate) fn new(key: CertifiedKey) -> Self {
        Self(RwLock::new(Arc::new(key)))
    }

    pub(crate) fn replace(&self, key: CertifiedKey) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(key);
    }
}

impl ResolvesServerCert for Certificates {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner)))
    }
}

/// Who the client of a connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Peer {
    /// It has a certificate of the authority, or none is asked for.
    Accepted,
    /// It has none, and is not believed: probes and collectors of metrics.
    Unverified,
}

/// The configuration of new connections.
pub(crate) struct Tls {
    provider: Arc<CryptoProvider>,
    certificates: Arc<Certificates>,
    asks_for_certificates: bool,
    config: RwLock<Arc<ServerConfig>>,
}

impl Tls {
    /// `client_ca` is the authority of clients (PEM), if they are asked for a certificate.
    pub(crate) fn new(
        provider: Arc<CryptoProvider>,
        certificates: Arc<Certificates>,
        client_ca: Option<&[u8]>,
    ) -> Result<Self, String> {
        let config = config(&provider, &certificates, client_ca)?;
        Ok(Self {
            provider,
            certificates,
            asks_for_certificates: client_ca.is_some(),
            config: RwLock::new(Arc::new(config)),
        })
    }

    /// Replaces the authority of clients.
    pub(crate) fn replace_client_ca(&self, client_ca: &[u8]) -> Result<(), String> {
        let config = config(&self.provider, &self.certificates, Some(client_ca))?;
        *self.config.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(config);
        Ok(())
    }

    /// The acceptor of a new connection.
    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        let config = self.config.read().unwrap_or_else(PoisonError::into_inner);
        TlsAcceptor::from(Arc::clone(&config))
    }

    /// The client of a connection after its handshake, in which a certificate was checked if there is one.
    pub(crate) fn peer(&self, stream: &TlsStream<TcpStream>) -> Peer {
        let has_certificate = stream.get_ref().1.peer_certificates().is_some();
        match self.asks_for_certificates && !has_certificate {
            true => Peer::Unverified,
            false => Peer::Accepted,
        }
    }
}

/// HTTP/1.1 only: the API server sends few requests, and one request a connection at a time is easier to
/// bound. A client without a certificate gets a connection, because the kubelet's probes have none.
fn config(
    provider: &Arc<CryptoProvider>,
    certificates: &Arc<Certificates>,
    client_ca: Option<&[u8]>,
) -> Result<ServerConfig, String> {
    let builder = ServerConfig::builder_with_provider(Arc::clone(provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    let builder = match client_ca {
        None => builder.with_no_client_auth(),
        Some(pem) => {
            let roots = Arc::new(authority(pem)?);
            let verifier = WebPkiClientVerifier::builder_with_provider(roots, Arc::clone(provider))
                .allow_unauthenticated()
                .build()
                .map_err(|error| error.to_string())?;
            builder.with_client_cert_verifier(verifier)
        }
    };
    let resolver: Arc<Certificates> = Arc::clone(certificates);
    let mut config = builder.with_cert_resolver(resolver);
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

/// The certificates of an authority (PEM).
fn authority(pem: &[u8]) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem) {
        let certificate = certificate.map_err(|error| format!("it is not PEM: {error}"))?;
        roots.add(certificate).map_err(|error| format!("it is no authority: {error}"))?;
    }
    if roots.is_empty() {
        return Err("the file has no certificate".to_owned());
    }
    Ok(roots)
}

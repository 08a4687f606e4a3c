//! A client that writes requests byte by byte, as no well-behaved one does.

use rcgen::CertifiedKey;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// A certificate of its own for `localhost`.
pub(crate) struct Identity {
    pub(crate) chain: String,
    pub(crate) key: String,
    pub(crate) der: CertificateDer<'static>,
}

impl Identity {
    pub(crate) fn new() -> Self {
        let CertifiedKey { cert, signing_key } =
            rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
        Self { chain: cert.pem(), key: signing_key.serialize_pem(), der: cert.der().clone() }
    }
}

/// A connection.
pub(crate) struct Client {
    stream: TlsStream<TcpStream>,
    /// Bytes that came behind the last response.
    rest: Vec<u8>,
}

/// The certificates of these identities.
pub(crate) fn roots(trusted: &[&Identity]) -> RootCertStore {
    let mut roots = RootCertStore::empty();
    for identity in trusted {
        roots.add(identity.der.clone()).expect("a certificate");
    }
    roots
}

/// A review as a request.
pub(crate) fn post(path: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!(
        "POST {path}?timeout=2s HTTP/1.1\r\nhost: xmem.xmem-system.svc\r\naccept: application/json\r\n\
         content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    )
    .into_bytes()
}

impl Client {
    /// Connects, and trusts these certificates alone.
    pub(crate) async fn with_roots(
        address: SocketAddr,
        roots: RootCertStore,
    ) -> std::io::Result<Self> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_root_certificates(roots)
            .with_no_client_auth();
        Self::with_config(address, config).await
    }

    /// Connects as configured.
    pub(crate) async fn with_config(
        address: SocketAddr,
        config: ClientConfig,
    ) -> std::io::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        let name = ServerName::try_from("localhost").expect("a name");
        let stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await?;
        Ok(Self { stream, rest: Vec::new() })
    }

    /// The server's certificate.
    pub(crate) fn certificate(&self) -> CertificateDer<'static> {
        let (_, session) = self.stream.get_ref();
        session.peer_certificates().expect("a chain")[0].clone().into_owned()
    }

    /// Writes bytes; the server may have closed the connection.
    pub(crate) async fn send(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.stream.write_all(bytes).await?;
        self.stream.flush().await
    }

    /// The status and body of the next response; none if the connection ends before it.
    pub(crate) async fn answer(&mut self) -> Option<(u16, String)> {
        let end = loop {
            match self.rest.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
                Some(at) => break at + 4,
                None => self.read().await?,
            }
        };
        let head = String::from_utf8(self.rest[..end].to_vec()).expect("text").to_lowercase();
        let status = head.split(' ').nth(1)?.parse().ok()?;
        let length =
            head.split("content-length: ").nth(1).and_then(|rest| rest.split("\r\n").next());
        let length: usize = length.map_or(0, |length| length.parse().expect("a length"));
        while self.rest.len() < end + length {
            self.read().await?;
        }
        let body = String::from_utf8(self.rest[end..end + length].to_vec()).expect("text");
        self.rest.drain(..end + length);
        Some((status, body))
    }

    async fn read(&mut self) -> Option<()> {
        let mut bytes = [0; 4096];
        let count = self.stream.read(&mut bytes).await.ok().filter(|count| *count > 0)?;
        self.rest.extend_from_slice(&bytes[..count]);
        Some(())
    }

    /// Sends a request and waits for its answer.
    pub(crate) async fn ask(&mut self, request: &[u8]) -> (u16, String) {
        self.send(request).await.expect("sent");
        self.answer().await.expect("an answer")
    }
}

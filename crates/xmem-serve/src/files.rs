//! Files that are read again when they change: the site file, the certificate with its key, and the authority of
//! clients.
//!
//! Files are compared by content, as Kubernetes replaces mounted files by a link to a new folder. What
//! cannot be used leaves the last good state in place.

use crate::state::State;
use crate::tls::{Certificates, Tls};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use std::fmt;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use xmem_gate::Site;

/// The longest file.
const MAX_FILE: u64 = 1 << 20;

/// A file's content, or the reason why there is none.
pub(crate) fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    #[expect(
        clippy::disallowed_methods,
        reason = "the server reads its own certificate and site file"
    )]
    let file = std::fs::File::open(path)?;
    file.take(MAX_FILE + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_FILE {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "the file is longer than 1 MiB"));
    }
    Ok(bytes)
}

/// The site of a file's content.
pub(crate) fn site(bytes: &[u8]) -> Result<Site, String> {
    let text = std::str::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned())?;
    let site = Site::from_toml(text).map_err(|error| error.to_string())?;
    for sentence in site.ineffective() {
        tracing::warn!("the site file: {sentence}");
    }
    Ok(site)
}

/// The certificate and key of two files' contents.
pub(crate) fn certified_key(
    chain: &[u8],
    key: &[u8],
    provider: &CryptoProvider,
) -> Result<CertifiedKey, String> {
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(chain)
        .collect::<Result<_, _>>()
        .map_err(|error| format!("the certificate is not PEM: {error}"))?;
    if chain.is_empty() {
        return Err("the file has no certificate".to_owned());
    }
    let key = PrivateKeyDer::from_pem_slice(key)
        .map_err(|error| format!("the key is not PEM: {error}"))?;
    let certified = CertifiedKey::from_der(chain, key, provider)
        .map_err(|error| format!("certificate and key do not go together: {error}"))?;
    Ok(certified)
}

/// Looks at the files until the server ends.
pub(crate) async fn watch(
    state: Arc<State>,
    certificates: Arc<Certificates>,
    provider: Arc<CryptoProvider>,
    tls: Arc<Tls>,
    files: Files,
    every: Duration,
) {
    let mut files = files;
    let mut clock = tokio::time::interval(every);
    clock.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    clock.tick().await;
    loop {
        clock.tick().await;
        let looked = tokio::task::spawn_blocking(move || {
            let changes = files.look();
            (files, changes)
        });
        // Reading does not panic, and the runtime does not end before this task.
        let Ok((same, changes)) = looked.await else { return };
        files = same;
        if let Some(content) = changes.site {
            let read = content.and_then(|bytes| site(&bytes));
            state.set_site(read);
        }
        if let Some(content) = changes.certificate {
            let read = content
                .and_then(|(chain, key)| certified_key(&chain, &key, &provider))
                .map(|key| certificates.replace(key));
            state.note_certificate(read);
        }
        if let Some(content) = changes.client_ca {
            state.note_client_ca(content.and_then(|bytes| tls.replace_client_ca(&bytes)));
        }
    }
}

/// A file's content as it was last seen.
type Content<T> = Result<T, String>;

/// The files with their last contents.
#[derive(Debug)]
pub(crate) struct Files {
    pub(crate) site: Option<Watched<1>>,
    pub(crate) certificate: Watched<2>,
    pub(crate) client_ca: Option<Watched<1>>,
}

/// Files that belong together, with their last contents.
pub(crate) struct Watched<const N: usize> {
    paths: [PathBuf; N],
    seen: [Content<Vec<u8>>; N],
}

impl<const N: usize> fmt::Debug for Watched<N> {
    /// Without contents: one is a private key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Watched").field(&self.paths).finish()
    }
}

impl<const N: usize> Watched<N> {
    pub(crate) fn new(paths: [PathBuf; N]) -> Self {
        let seen = contents(&paths);
        Self { paths, seen }
    }

    /// The contents as last seen.
    pub(crate) fn contents(&self) -> &[Content<Vec<u8>>; N] {
        &self.seen
    }

    /// The contents, if they changed.
    fn look(&mut self) -> Option<&[Content<Vec<u8>>; N]> {
        let now = contents(&self.paths);
        if now == self.seen {
            return None;
        }
        self.seen = now;
        Some(&self.seen)
    }
}

fn contents<const N: usize>(paths: &[PathBuf; N]) -> [Content<Vec<u8>>; N] {
    paths.each_ref().map(|path| {
        read(path).map_err(|error| format!("`{}`: {error}", xmem::types::printable_path(path)))
    })
}

/// Contents that changed.
struct Changes {
    site: Option<Content<Vec<u8>>>,
    certificate: Option<Content<(Vec<u8>, Vec<u8>)>>,
    client_ca: Option<Content<Vec<u8>>>,
}

impl Files {
    fn look(&mut self) -> Changes {
        let look = |file: &mut Option<Watched<1>>| {
            file.as_mut().and_then(Watched::look).map(|[content]| content.clone())
        };
        let (site, client_ca) = (look(&mut self.site), look(&mut self.client_ca));
        let certificate = self.certificate.look().map(|[chain, key]| match (chain, key) {
            (Ok(chain), Ok(key)) => Ok((chain.clone(), key.clone())),
            (Err(error), _) | (_, Err(error)) => Err(error.clone()),
        });
        Changes { site, certificate, client_ca }
    }
}

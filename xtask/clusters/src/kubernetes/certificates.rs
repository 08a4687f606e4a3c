//! Certificates for 127.0.0.1, and the authority that signs them.

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use std::path::Path;
use xmem_task::{Error, TaskError};

/// A certificate could not be made.
#[derive(Debug, thiserror::Error)]
#[error("cannot make a certificate")]
pub(super) struct CertificateError(#[from] rcgen::Error);

impl TaskError for CertificateError {}

/// A certificate authority.
pub(super) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

/// A certificate with its key, both PEM.
pub(super) struct Identity {
    pub(super) certificate: String,
    pub(super) key: String,
}

impl Authority {
    pub(super) fn new() -> Result<Self, CertificateError> {
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::new(Vec::new())?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        params.distinguished_name.push(DnType::CommonName, "authority of the tests");
        let pem = params.self_signed(&key)?.pem();
        Ok(Self { issuer: Issuer::new(params, key), pem })
    }

    /// Its own certificate.
    pub(super) fn pem(&self) -> &str {
        &self.pem
    }

    /// A new certificate of a server on 127.0.0.1.
    pub(super) fn issue(&self) -> Result<Identity, CertificateError> {
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::new(["127.0.0.1".to_owned()])?;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.distinguished_name.push(DnType::CommonName, "server of the tests");
        let certificate = params.signed_by(&key, &self.issuer)?.pem();
        Ok(Identity { certificate, key: key.serialize_pem() })
    }
}

/// Writes a pair of keys that sign and check tokens: `NAME.key` and `NAME.pub`.
pub(super) fn write_keys(folder: &Path, name: &str) -> Result<(), Error> {
    let key = KeyPair::generate().map_err(CertificateError)?;
    replace(&folder.join(format!("{name}.key")), &key.serialize_pem())?;
    replace(&folder.join(format!("{name}.pub")), &key.public_key_pem())
}

impl Identity {
    /// Replaces the files `NAME.crt` and `NAME.key` of a folder, each at once, as mounted files change.
    pub(super) fn write(&self, folder: &Path, name: &str) -> Result<(), Error> {
        for (ending, text) in [("crt", &self.certificate), ("key", &self.key)] {
            replace(&folder.join(format!("{name}.{ending}")), text)?;
        }
        Ok(())
    }
}

/// Replaces a file at once.
pub(super) fn replace(path: &Path, text: &str) -> Result<(), Error> {
    let new = path.with_extension("new");
    std::fs::write(&new, text).map_err(Error::file(&new))?;
    std::fs::rename(&new, path).map_err(Error::file(path))
}

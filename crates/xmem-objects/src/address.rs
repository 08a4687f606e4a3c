//! Addresses: `s3://bucket/prefix`.

use crate::ObjectsError;
use object_store::path::Path as ObjectPath;
use std::fmt;
use std::str::FromStr;
use url::Url;

/// The address of a folder or of an object: a scheme, a bucket or container, and the begin of names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectAddress {
    provider: Provider,
    url: Url,
}

/// Whose store it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Provider {
    Amazon,
    Google,
    Azure,
}

impl ObjectAddress {
    /// Whether a text is meant to be an address, and not a path.
    #[must_use]
    pub fn is_one(text: &str) -> bool {
        text.split_once("://").is_some_and(|(scheme, _)| {
            !scheme.is_empty() && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric())
        })
    }

    pub(crate) fn provider(&self) -> Provider {
        self.provider
    }

    pub(crate) fn as_str(&self) -> &str {
        self.url.as_str()
    }

    /// The begin of the names of its objects.
    pub(crate) fn prefix(&self) -> &str {
        self.url.path()
    }

    /// The folder and the name of the object that the address names, if it does not end in `/`.
    #[must_use]
    pub fn split_name(&self) -> Option<(Self, String)> {
        let (folder, name) = self.url.path().rsplit_once('/')?;
        if name.is_empty() {
            return None;
        }
        let name = ObjectPath::from_url_path(name).ok()?.to_string();
        let mut url = self.url.clone();
        url.set_path(folder);
        Some((Self { url, ..*self }, name))
    }

    /// The address of an object in this folder.
    #[must_use]
    pub fn object(&self, name: &str) -> Self {
        let mut url = self.url.clone();
        url.set_path(&format!("{}/{name}", url.path().trim_end_matches('/')));
        Self { url, ..*self }
    }
}

impl FromStr for ObjectAddress {
    type Err = ObjectsError;

    /// # Errors
    ///
    /// [`ObjectsError::Address`] if the scheme is not that of a known store, or the bucket is missing.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = |reason: &str| ObjectsError::Address {
            address: text.to_owned(),
            reason: reason.to_owned(),
        };
        let url = Url::parse(text).map_err(|error| wrong(&error.to_string()))?;
        let provider = match url.scheme() {
            "s3" | "s3a" => Provider::Amazon,
            "gs" => Provider::Google,
            "az" | "abfs" | "abfss" => Provider::Azure,
            _ => return Err(wrong("expected s3://, gs:// or az://")),
        };
        if url.host_str().is_none_or(str::is_empty) {
            return Err(wrong("the bucket is missing"));
        }
        if !url.username().is_empty() && provider != Provider::Azure || url.password().is_some() {
            return Err(wrong("credentials belong in the environment"));
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(wrong("expected a bucket and a prefix alone"));
        }
        Ok(Self { provider, url })
    }
}

impl fmt::Display for ObjectAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_told_from_paths() {
        for (text, is_one) in [
            ("s3://bucket", true),
            ("gs://bucket/a", true),
            ("ftp://host", true),
            ("runs/store", false),
            ("/runs://store", false),
            ("://", false),
            ("", false),
        ] {
            assert_eq!(ObjectAddress::is_one(text), is_one, "{text}");
        }
    }

    #[test]
    fn an_address_has_a_known_scheme_and_a_bucket() {
        for (text, message) in [
            ("ftp://host/a", "expected s3://, gs:// or az://"),
            ("s3:///a", "the bucket is missing"),
            ("s3://key:secret@bucket", "credentials belong in the environment"),
            ("s3://bucket/a?versionId=1", "expected a bucket and a prefix alone"),
            ("s3", "relative URL without a base"),
        ] {
            let error = text.parse::<ObjectAddress>().expect_err(text).to_string();
            assert!(error.contains(message), "{text}: {error}");
        }
        let folder: ObjectAddress = "s3://bucket/runs/".parse().expect("an address");
        assert_eq!(folder.object("a.json").to_string(), "s3://bucket/runs/a.json");
        let root: ObjectAddress = "gs://bucket".parse().expect("an address");
        assert_eq!(root.object("a b").to_string(), "gs://bucket/a%20b");
        let split = |text: &str| {
            let address: ObjectAddress = text.parse().expect("an address");
            address.split_name().map(|(folder, name)| (folder.to_string(), name))
        };
        let parts = Some(("s3://bucket/runs".to_owned(), "a b.json".to_owned()));
        assert_eq!(split("s3://bucket/runs/a%20b.json"), parts);
        assert_eq!(split("s3://bucket/runs/"), None);
        assert_eq!(split("s3://bucket"), None);
    }
}

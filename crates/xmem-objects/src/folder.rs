//! A folder of objects.

use crate::address::Provider;
use crate::error::causes;
use crate::{ObjectAddress, ObjectsError};
use futures_util::{StreamExt as _, TryStreamExt as _};
use object_store::aws::AmazonS3Builder;
use object_store::azure::MicrosoftAzureBuilder;
use object_store::buffered::BufWriter;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::path::Path as ObjectPath;
use object_store::{ObjectStore, ObjectStoreExt as _, RetryConfig};
use std::io::{self, Read, Write};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncWriteExt as _;
use tokio::runtime::{Builder, Runtime};

/// How often a request is made again, and how long after the first one.
const RETRIES: usize = 4;
const RETRY_LIMIT: Duration = Duration::from_secs(30);
/// What is read of a file at a time.
const CHUNK: usize = 1 << 20;

/// All objects whose names begin with a prefix.
#[derive(Debug)]
pub struct ObjectFolder {
    address: ObjectAddress,
    store: Arc<dyn ObjectStore>,
    prefix: ObjectPath,
    runtime: Runtime,
}

impl ObjectFolder {
    /// The folder at an address. Nothing is requested yet.
    ///
    /// # Errors
    ///
    /// [`ObjectsError`] if the environment has invalid settings for this store.
    pub fn new(address: ObjectAddress) -> Result<Self, ObjectsError> {
        // Another part of the process may have chosen one: that is used.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let failed = |error: &object_store::Error| ObjectsError::request(&address, error);
        let store = store(&address).map_err(|error| failed(&error))?;
        let prefix =
            ObjectPath::from_url_path(address.prefix()).map_err(|error| failed(&error.into()))?;
        let runtime = Builder::new_current_thread().enable_all().build()?;
        Ok(Self { address, store, prefix, runtime })
    }

    /// Its address.
    #[must_use]
    pub const fn address(&self) -> &ObjectAddress {
        &self.address
    }

    /// Asks the store for one name, to learn whether it answers and has the bucket.
    ///
    /// # Errors
    ///
    /// [`ObjectsError::Request`] if not.
    pub fn check(&self) -> Result<(), ObjectsError> {
        let mut objects = self.store.list(Some(&self.prefix));
        let first = self.runtime.block_on(objects.try_next());
        first.map(drop).map_err(|error| ObjectsError::request(&self.address, &error))
    }

    /// The names of its objects, those in folders beneath with `/`, in order.
    ///
    /// # Errors
    ///
    /// [`ObjectsError::Request`] if the store cannot be reached or refuses.
    pub fn names(&self) -> Result<Vec<String>, ObjectsError> {
        let objects = self.store.list(Some(&self.prefix)).try_collect::<Vec<_>>();
        let objects = self.runtime.block_on(objects);
        let objects = objects.map_err(|error| ObjectsError::request(&self.address, &error))?;
        let name = |location: &ObjectPath| {
            let parts: Vec<_> = location.prefix_match(&self.prefix)?.collect();
            Some(parts.iter().map(AsRef::as_ref).collect::<Vec<&str>>().join("/"))
        };
        let mut names: Vec<String> =
            objects.iter().filter_map(|object| name(&object.location)).collect();
        names.sort();
        Ok(names)
    }

    /// Copies an object to `out`. Returns `false` if the object does not exist.
    ///
    /// # Errors
    ///
    /// [`ObjectsError::Request`] if the store cannot be reached or refuses, [`ObjectsError::Copy`] if `out` fails.
    pub fn get(&self, name: &str, out: &mut impl Write) -> Result<bool, ObjectsError> {
        let failed =
            |error: &object_store::Error| ObjectsError::request(&self.address.object(name), error);
        self.runtime.block_on(async {
            let object = match self.store.get(&self.location(name)?).await {
                Ok(object) => object,
                Err(object_store::Error::NotFound { .. }) => return Ok(false),
                Err(error) => return Err(failed(&error)),
            };
            let mut chunks = object.into_stream();
            while let Some(chunk) = chunks.next().await {
                out.write_all(&chunk.map_err(|error| failed(&error))?)?;
            }
            Ok(true)
        })
    }

    /// Makes an object of what `content` has, in parts if it is large. It is there only when it is complete.
    ///
    /// # Errors
    ///
    /// [`ObjectsError::Request`] if the store cannot be reached or refuses, [`ObjectsError::Copy`] if `content` fails.
    pub fn put(&self, name: &str, content: &mut impl Read) -> Result<(), ObjectsError> {
        // The error of a writer of objects is that of a request.
        let failed = |error: io::Error| ObjectsError::Request {
            address: self.address.object(name),
            reason: causes(&error),
        };
        let mut chunk = vec![0; CHUNK];
        self.runtime.block_on(async {
            let mut object = BufWriter::new(Arc::clone(&self.store), self.location(name)?);
            loop {
                match content.read(&mut chunk)? {
                    0 => break,
                    count => object.write_all(&chunk[..count]).await.map_err(failed)?,
                }
            }
            object.shutdown().await.map_err(failed)
        })
    }

    /// Removes an object.
    ///
    /// # Errors
    /// If the store cannot be reached, or refuses.
    pub fn delete(&self, name: &str) -> Result<(), ObjectsError> {
        let location = self.location(name)?;
        let deleted = self.store.delete(&location);
        match self.runtime.block_on(deleted) {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(ObjectsError::request(&self.address.object(name), &error)),
        }
    }

    fn location(&self, name: &str) -> Result<ObjectPath, ObjectsError> {
        let name = ObjectPath::parse(name)
            .map_err(|error| ObjectsError::request(&self.address, &error.into()))?;
        Ok(self.prefix.parts().chain(name.parts()).collect())
    }
}

/// The store of an address, with the settings of the environment.
fn store(address: &ObjectAddress) -> Result<Arc<dyn ObjectStore>, object_store::Error> {
    let retry =
        RetryConfig { max_retries: RETRIES, retry_timeout: RETRY_LIMIT, ..RetryConfig::default() };
    let url = address.as_str();
    Ok(match address.provider() {
        Provider::Amazon => {
            Arc::new(AmazonS3Builder::from_env().with_url(url).with_retry(retry).build()?)
        }
        Provider::Google => {
            Arc::new(GoogleCloudStorageBuilder::from_env().with_url(url).with_retry(retry).build()?)
        }
        Provider::Azure => {
            Arc::new(MicrosoftAzureBuilder::from_env().with_url(url).with_retry(retry).build()?)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use object_store::memory::InMemory;

    fn folder(prefix: &str, store: &Arc<InMemory>) -> ObjectFolder {
        ObjectFolder {
            address: format!("s3://bucket/{prefix}").parse().expect("an address"),
            store: Arc::clone(store) as Arc<dyn ObjectStore>,
            prefix: prefix.into(),
            runtime: Builder::new_current_thread().build().expect("a runtime"),
        }
    }

    #[test]
    fn what_is_put_is_found_and_read_again() {
        let store = Arc::new(InMemory::new());
        let runs = folder("runs", &store);
        let content: Vec<u8> = (0..3 * CHUNK).map(|at| at as u8).collect();
        runs.put("a/b c.json", &mut content.as_slice()).expect("it is stored");
        runs.put("z.json", &mut io::empty()).expect("it is stored");
        folder("other", &store).put("x.json", &mut io::empty()).expect("it is stored");
        assert_eq!(runs.names().expect("names"), ["a/b c.json", "z.json"]);
        assert_eq!(folder("runs/a", &store).names().expect("names"), ["b c.json"]);
        let mut read = Vec::new();
        assert!(runs.get("a/b c.json", &mut read).expect("it is read"));
        assert!(read == content, "{} bytes", read.len());
        assert!(!runs.get("b.json", &mut read).expect("the store answers"));
        for _ in 0..2 {
            runs.delete("z.json").expect("it is removed");
        }
        assert_eq!(runs.names().expect("names"), ["a/b c.json"]);
        runs.check().expect("the store answers");
    }

    #[test]
    fn an_object_that_is_not_read_to_its_end_is_none() {
        struct Broken;
        impl Read for Broken {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                Err(io::Error::other("the disk is gone"))
            }
        }
        let runs = folder("runs", &Arc::new(InMemory::new()));
        let error = runs.put("a.json", &mut Broken).expect_err("it cannot be read");
        assert_eq!(error.to_string(), "the disk is gone");
        assert_eq!(runs.names().expect("names"), <[String; 0]>::default());
    }
}

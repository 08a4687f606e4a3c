//! Files in object stores: Amazon S3 and what speaks its protocol, Google Cloud Storage, Azure Blob Storage.
//!
//! An [`ObjectFolder`] is all objects whose names begin with a prefix, as `s3://bucket/prefix` names them. Credentials,
//! regions and endpoints come from the environment, by the variables of each provider's own tools (`AWS_ACCESS_KEY_ID`,
//! `AWS_ENDPOINT_URL`, `GOOGLE_APPLICATION_CREDENTIALS`, `AZURE_STORAGE_ACCOUNT_NAME`, …). The requests are those of the crate
//! `object_store`; here they block the calling thread, and any number of threads may call.
//!
//! This is the one crate that opens connections, and only to the store that an address names.
#![forbid(unsafe_code)]

mod address;
mod error;
mod folder;

pub use address::ObjectAddress;
pub use error::ObjectsError;
pub use folder::ObjectFolder;

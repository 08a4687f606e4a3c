//! Where recordings are kept, as `--store` names it.

use crate::terminal::shown;
use std::fmt;
use std::path::{self, Path, PathBuf};
use std::str::FromStr;
use xmem_objects::{ObjectAddress, ObjectsError};

/// A folder, or the address of an object store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StorePlace {
    Folder(PathBuf),
    Objects(ObjectAddress),
}

impl StorePlace {
    /// The place as an argument of a process in another folder.
    pub(super) fn argument(&self) -> String {
        match self {
            Self::Folder(folder) => absolute(folder),
            Self::Objects(address) => address.to_string(),
        }
    }
}

/// A path as an argument of a process in another folder.
pub(super) fn absolute(path: &Path) -> String {
    let path = path::absolute(path).unwrap_or_else(|_| path.to_owned());
    path.to_string_lossy().into_owned()
}

impl From<PathBuf> for StorePlace {
    fn from(folder: PathBuf) -> Self {
        Self::Folder(folder)
    }
}

impl FromStr for StorePlace {
    type Err = ObjectsError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match ObjectAddress::is_one(text) {
            true => text.parse().map(Self::Objects),
            false => Ok(Self::Folder(text.into())),
        }
    }
}

impl fmt::Display for StorePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(folder) => shown(folder).fmt(f),
            Self::Objects(address) => address.fmt(f),
        }
    }
}

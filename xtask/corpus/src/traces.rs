//! `traces/`: the folders of recorded cases, and their tables.

use std::path::{Path, PathBuf};
use xmem_task::{Error, repo};

/// The figures of the CUDA side, in the folder of a case.
pub(crate) const EXPECTED: &str = "expected.toml";
/// What is known of the recording, in the folder of a case.
pub(crate) const META: &str = "meta.toml";
/// The history of the allocator on the CUDA side, in the folder of a case.
pub(crate) const SNAPSHOT: &str = "snapshot.pickle.zst";

/// Every folder of `traces/` with a recording of the CUDA side, sorted.
pub(crate) fn recorded() -> Result<Vec<PathBuf>, Error> {
    let mut folders: Vec<PathBuf> = repo::files()?
        .into_iter()
        .filter(|path| path.starts_with("traces") && path.ends_with(EXPECTED))
        .filter_map(|path| path.parent().map(|folder| repo::root().join(folder)))
        .collect();
    folders.sort();
    Ok(folders)
}

/// The name of a case, which is that of its folder.
pub(crate) fn name(folder: &Path) -> String {
    folder.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Reads a table of a case.
pub(crate) fn table(path: &Path) -> Result<toml::Table, Error> {
    let text = std::fs::read_to_string(path).map_err(Error::file(path))?;
    toml::from_str(&text).map_err(|source| Error::Data { path: path.to_owned(), source })
}

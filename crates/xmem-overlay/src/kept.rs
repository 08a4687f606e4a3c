//! What a command wrote, by what lies in the private folder afterwards.

use std::fs::{self, FileType};
use std::path::Path;
use xmem_types::Bytes;

/// Files that are looked at, at most: a summary must not take longer than the job.
const MAX_ENTRIES: u64 = 1_000_000;

/// Ends of names of files that hold weights: PyTorch's, safetensors', Lightning's, NumPy's, HDF5's, TensorFlow's,
/// pickles.
const CHECKPOINTS: [&str; 10] =
    ["bin", "ckpt", "distcp", "h5", "npz", "pickle", "pkl", "pt", "pth", "safetensors"];

/// Compiled Python, which is no work of the script.
const COMPILED: &str = "pyc";

/// What a command wrote, and what was kept out of the user's files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// Files that it wrote or changed.
    pub written: u64,
    /// Files and folders that it removed or renamed.
    pub removed: u64,
    /// The written ones that hold weights, by their names.
    pub checkpoints: u64,
    /// Sizes of the written ones.
    pub size: Bytes,
}

impl Kept {
    /// True if the command changed nothing.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        self.written + self.removed == 0
    }

    /// Adds what lies in a layer: files, and for what was removed devices with the number 0 (overlayfs' whiteouts). The
    /// preloaded library puts links where files are that were not changed.
    pub(crate) fn add(&mut self, folder: &Path) {
        let top = folder;
        let mut folders = vec![folder.to_owned()];
        let mut seen = 0;
        while let Some(folder) = folders.pop() {
            // What cannot be read is not counted.
            for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
                seen += 1;
                if seen > MAX_ENTRIES {
                    return;
                }
                let Ok(kind) = entry.file_type() else { continue };
                let path = entry.path();
                let end = path.extension().and_then(|end| end.to_str()).unwrap_or_default();
                if kind.is_symlink() && is_unchanged(top, &path) {
                    continue;
                }
                if kind.is_dir() {
                    folders.push(path);
                } else if is_device(kind) {
                    self.removed += 1;
                } else if end != COMPILED {
                    self.written += 1;
                    self.checkpoints += u64::from(CHECKPOINTS.contains(&end));
                    let size = entry.metadata().map_or(0, |metadata| metadata.len());
                    self.size = Bytes(self.size.get().saturating_add(size));
                }
            }
        }
    }
}

/// True for a link to the path at which it stands in the layer.
fn is_unchanged(layer: &Path, path: &Path) -> bool {
    let (Ok(target), Ok(within)) = (fs::read_link(path), path.strip_prefix(layer)) else {
        return false;
    };
    target == Path::new("/").join(within)
}

#[cfg(unix)]
fn is_device(kind: FileType) -> bool {
    std::os::unix::fs::FileTypeExt::is_char_device(&kind)
}

#[cfg(not(unix))]
fn is_device(_kind: FileType) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checkpoints_are_known_by_their_names_and_compiled_files_do_not_count() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::create_dir_all(folder.path().join("run/__pycache__")).expect("made");
        for (name, size) in [("run/model.pt", 100), ("a.csv", 10), ("run/__pycache__/a.pyc", 50)] {
            fs::write(folder.path().join(name), vec![0; size]).expect("written");
        }
        // What the preloaded library puts where a file was not changed.
        #[cfg(unix)]
        std::os::unix::fs::symlink("/b.txt", folder.path().join("b.txt")).expect("made");
        let mut kept = Kept::default();
        kept.add(folder.path());
        let expected = Kept { written: 2, removed: 0, checkpoints: 1, size: Bytes(110) };
        assert_eq!(kept, expected);
    }
}

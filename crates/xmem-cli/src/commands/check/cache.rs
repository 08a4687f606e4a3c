//! Answers that are kept, so that an unchanged trace is not replayed again.
//!
//! An answer is found by the hash of all bytes of the trace, of everything else it depends on, and of this
//! program. It is believed only if nobody but the caller can have written it, and if its figures give its decision.

use crate::config::base_folder;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};
use xmem_report::check::CheckDocument;
use xmem_tempfiles::TemporaryFile;

/// The answers that are kept at most; the oldest give way.
const MAX_FILES: usize = 512;

/// An answer is not longer than this.
const LONGEST: u64 = 4 << 20;

/// The folder of the caller's answers.
#[derive(Debug)]
pub(super) struct Cache {
    folder: PathBuf,
}

/// What an answer is found by.
#[derive(Debug)]
pub(super) struct Key(String);

impl Key {
    /// The key of a trace; none of standard input and of what cannot be read.
    pub(super) fn of(trace: &Path, trust_mtime: bool, settings: &str) -> Option<Self> {
        let found = fs::metadata(trace).ok().filter(fs::Metadata::is_file)?;
        let mut hasher = blake3::Hasher::new();
        hasher.update(program()?.as_bytes()).update(settings.as_bytes()).update(b"\0");
        if trust_mtime {
            let place = fs::canonicalize(trace).ok()?;
            let time = stamp(&found);
            hasher.update(format!("{place:?} {} {time:?}", found.len()).as_bytes());
        } else {
            hasher.update_reader(File::open(trace).ok()?).ok()?;
        }
        Some(Self(hasher.finalize().to_hex().to_string()))
    }
}

/// The time of the last change.
fn stamp(found: &fs::Metadata) -> Option<std::time::Duration> {
    found.modified().ok()?.duration_since(UNIX_EPOCH).ok()
}

/// This program: two builds of one version may answer differently.
fn program() -> Option<String> {
    let this = fs::metadata(std::env::current_exe().ok()?).ok()?;
    Some(format!("{} {} {:?}", env!("CARGO_PKG_VERSION"), this.len(), stamp(&this)))
}

impl Cache {
    /// The folder `xmem/checks` of the caches of the user.
    pub(super) fn of_environment() -> Option<Self> {
        let caches = base_folder("XDG_CACHE_HOME", ".cache")?;
        Some(Self { folder: caches.join("xmem").join("checks") })
    }

    fn file(&self, key: &Key) -> PathBuf {
        self.folder.join(format!("{}.json", key.0))
    }

    /// The kept answer.
    pub(super) fn find(&self, key: &Key) -> Option<CheckDocument> {
        let file = File::open(self.file(key)).ok()?;
        if !is_private(&file.metadata().ok()?) {
            return None;
        }
        let mut text = String::new();
        file.take(LONGEST).read_to_string(&mut text).ok()?;
        CheckDocument::from_json(&text)
    }

    /// Keeps an answer. A cache that cannot be written costs time and nothing else.
    pub(super) fn keep(&self, key: &Key, document: &CheckDocument) {
        if let Err(error) = self.try_keep(key, document) {
            tracing::debug!(%error, folder = %xmem::types::printable_path(&self.folder), "the answer is not kept");
        }
    }

    fn try_keep(&self, key: &Key, document: &CheckDocument) -> io::Result<()> {
        let text = document.to_json();
        if text.len() as u64 >= LONGEST {
            return Ok(());
        }
        if !self.folder.is_dir() {
            if let Some(parent) = self.folder.parent() {
                fs::create_dir_all(parent)?;
            }
            match xmem_tempfiles::create_private_folder(&self.folder) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                _ => {}
            }
        }
        if !is_private(&fs::metadata(&self.folder)?) {
            return Err(io::Error::other("other users can write to the folder"));
        }
        self.make_room()?;
        let mut file = TemporaryFile::beside(&self.file(key), None)?;
        io::Write::write_all(&mut file, text.as_bytes())?;
        file.persist(&self.file(key)).map(drop)
    }

    /// Removes the oldest answers, a tenth at once.
    fn make_room(&self) -> io::Result<()> {
        let mut kept: Vec<(SystemTime, PathBuf)> = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            let time = entry.metadata().and_then(|found| found.modified());
            kept.push((time.unwrap_or(UNIX_EPOCH), entry.path()));
        }
        if kept.len() < MAX_FILES {
            return Ok(());
        }
        kept.sort();
        for (_, path) in kept.iter().take(kept.len() - MAX_FILES + MAX_FILES / 10) {
            // Another process may have removed it.
            let _ = fs::remove_file(path);
        }
        Ok(())
    }
}

/// Returns whether only the caller can have written it.
#[cfg(unix)]
fn is_private(found: &fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    found.uid() == nix::unistd::geteuid().as_raw() && found.mode() & 0o022 == 0
}

#[cfg(not(unix))]
fn is_private(_: &fs::Metadata) -> bool {
    true
}

//! Recordings, kept under a hash of what decides about them, so that a later run continues one that was stopped, and several
//! processes can work for the same evaluation.

use super::error::EvalFailure;
use super::place::StorePlace;
use crate::error::CliError;
use crate::objects::ObjectsFailure;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::{NamedTempFile, TempPath};
use xmem::Bytes;
use xmem_eval::evaluation::MemoryByClass;
use xmem_objects::ObjectFolder;
use xmem_tempfiles::PrivateFolder;

/// The version of the content: a recording that an incompatible program made is not used.
const VERSION: &str = "xmem.eval-round/1";

/// Where rounds are kept: a folder, or an object store with a folder for what is in use.
#[derive(Debug)]
pub(super) struct Store {
    place: StorePlace,
    folder: PathBuf,
    objects: Option<Objects>,
}

/// An object store, and the folder that its objects are copied to.
#[derive(Debug)]
struct Objects {
    folder: ObjectFolder,
    _copies: PrivateFolder,
}

/// The trace of a round.
#[derive(Debug)]
pub(super) enum KeptTrace {
    /// A file of the store.
    File(PathBuf),
    /// A copy of an object, removed when this is dropped.
    Copy(TempPath),
}

/// The name of a round: a hash of what decides about it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key(String);

/// What was recorded of a command.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Round {
    schema: String,
    /// The command, for people.
    command: String,
    /// Whether it ran out of memory.
    pub(super) out_of_memory: bool,
    /// Peak reserved memory, where the recording of a virtual GPU has it.
    reserved_bytes: Option<u64>,
    /// The time that it took.
    took_s: f64,
    /// The version of PyTorch.
    torch: Option<String>,
    /// The peak by class, where it was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    classes: Option<ClassesOfRound>,
}

/// Bytes by class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ClassesOfRound {
    live: u64,
    rounding: u64,
    reservation: u64,
}

impl Round {
    pub(super) fn new(
        command: &[OsString],
        reserved: Option<Bytes>,
        out_of_memory: bool,
        took: Duration,
        torch: Option<String>,
    ) -> Self {
        let words: Vec<_> = command.iter().map(|word| word.to_string_lossy()).collect();
        Self {
            schema: VERSION.to_owned(),
            command: words.join(" "),
            out_of_memory,
            reserved_bytes: reserved.map(Bytes::get),
            took_s: took.as_secs_f64(),
            torch,
            classes: None,
        }
    }

    /// The round with its peak by class.
    pub(super) fn with_classes(mut self, classes: Option<MemoryByClass>) -> Self {
        self.classes = classes.map(|classes| ClassesOfRound {
            live: classes.live.get(),
            rounding: classes.rounding.get(),
            reservation: classes.reservation.get(),
        });
        self
    }

    pub(super) fn classes(&self) -> Option<MemoryByClass> {
        self.classes.map(|classes| MemoryByClass {
            live: Bytes(classes.live),
            rounding: Bytes(classes.rounding),
            reservation: Bytes(classes.reservation),
        })
    }

    pub(super) fn reserved(&self) -> Option<Bytes> {
        self.reserved_bytes.map(Bytes)
    }

    pub(super) fn took(&self) -> Duration {
        Duration::try_from_secs_f64(self.took_s).unwrap_or_default()
    }
}

impl Key {
    /// The key of a command under settings; files that the command names count by their content.
    pub(super) fn new(command: &[OsString], settings: &[String]) -> Self {
        let mut hash = blake3::Hasher::new();
        let mut add = |bytes: &[u8]| {
            hash.update(&(bytes.len() as u64).to_le_bytes());
            hash.update(bytes);
        };
        add(VERSION.as_bytes());
        add(env!("CARGO_PKG_VERSION").as_bytes());
        for (at, word) in command.iter().enumerate() {
            // The same script in another folder is the same job.
            match fs::read(word) {
                Ok(content) if at > 0 => add(&content),
                _ => add(word.as_encoded_bytes()),
            }
        }
        for setting in settings {
            add(setting.as_bytes());
        }
        let hash = hash.finalize().to_hex();
        Self(hash[..32].to_owned())
    }
}

impl Store {
    /// The store at a place. An object store must answer; a folder need not be there.
    pub(super) fn open(place: StorePlace) -> Result<Self, CliError> {
        let address = match &place {
            StorePlace::Folder(folder) => {
                return Ok(Self { folder: folder.clone(), objects: None, place });
            }
            StorePlace::Objects(address) => address.clone(),
        };
        let folder = ObjectFolder::new(address).map_err(ObjectsFailure::from)?;
        folder.check().map_err(ObjectsFailure::from)?;
        let copies = PrivateFolder::new().map_err(EvalFailure::from)?;
        let path = copies.path().to_owned();
        Ok(Self { place, folder: path, objects: Some(Objects { folder, _copies: copies }) })
    }

    /// Makes the folder, if it is not there.
    pub(super) fn make(&self) -> Result<(), EvalFailure> {
        fs::create_dir_all(&self.folder)
            .map_err(|source| EvalFailure::Store { store: self.place.clone(), source })
    }

    pub(super) fn place(&self) -> &StorePlace {
        &self.place
    }

    /// A round that is kept.
    pub(super) fn find(&self, key: &Key) -> io::Result<Option<Round>> {
        let Some(path) = self.copy(self.file(key, "json"))? else { return Ok(None) };
        let round = fs::read(path).ok().and_then(|text| serde_json::from_slice(&text).ok());
        Ok(round.filter(|round: &Round| round.schema == VERSION))
    }

    /// Keeps a round with its file, if it has one: its trace or its graph.
    pub(super) fn keep(&self, key: &Key, round: &Round, file: Option<&Path>) -> io::Result<()> {
        // Its file first: a round that is found is complete.
        if let (Some(objects), Some(file)) = (&self.objects, file) {
            objects.put(file)?;
        }
        let text = NamedTempFile::new_in(&self.folder)?;
        serde_json::to_writer_pretty(&text, round)?;
        let path = self.file(key, "json");
        text.persist(&path).map_err(|error| error.error)?;
        self.objects.as_ref().map_or(Ok(()), |objects| objects.put(&path))
    }

    /// The file for the trace of a round.
    pub(super) fn trace(&self, key: &Key) -> PathBuf {
        self.file(key, "trace.json.zst")
    }

    /// The trace of a round that is kept.
    pub(super) fn kept_trace(&self, key: &Key) -> io::Result<Option<KeptTrace>> {
        let path = self.trace(key);
        let Some(objects) = &self.objects else {
            return Ok(path.exists().then_some(KeptTrace::File(path)));
        };
        // A copy for each that reads: equal jobs are evaluated at the same time.
        let mut copy = NamedTempFile::new_in(&self.folder)?;
        let is_there = objects.get(&path, &mut copy)?;
        Ok(is_there.then(|| KeptTrace::Copy(copy.into_temp_path())))
    }

    /// The trace that was recorded for a round, once that is kept: of objects, it is not left behind.
    pub(super) fn recorded_trace(&self, key: &Key) -> io::Result<KeptTrace> {
        let path = self.trace(key);
        if self.objects.is_none() {
            return Ok(KeptTrace::File(path));
        }
        let copy = NamedTempFile::new_in(&self.folder)?.into_temp_path();
        fs::rename(path, &copy)?;
        Ok(KeptTrace::Copy(copy))
    }

    /// The file for the graph that a round exported.
    pub(super) fn graph(&self, key: &Key) -> PathBuf {
        self.file(key, "pt2")
    }

    /// The graph of a round that is kept.
    pub(super) fn kept_graph(&self, key: &Key) -> io::Result<Option<PathBuf>> {
        self.copy(self.graph(key))
    }

    /// The file for what the command of a round prints.
    pub(super) fn printed(&self, key: &Key) -> PathBuf {
        self.file(key, "log")
    }

    fn file(&self, key: &Key, extension: &str) -> PathBuf {
        self.folder.join(format!("{}.{extension}", key.0))
    }

    /// A file of the folder, copied from the object store if it is only there.
    fn copy(&self, path: PathBuf) -> io::Result<Option<PathBuf>> {
        let is_there = match &self.objects {
            _ if path.exists() => true,
            None => false,
            Some(objects) => {
                let mut file = NamedTempFile::new_in(&self.folder)?;
                let is_there = objects.get(&path, &mut file)?;
                if is_there {
                    file.persist(&path).map_err(|error| error.error)?;
                }
                is_there
            }
        };
        Ok(is_there.then_some(path))
    }
}

impl KeptTrace {
    pub(super) fn path(&self) -> &Path {
        match self {
            Self::File(path) => path,
            Self::Copy(path) => path,
        }
    }
}

impl Objects {
    /// Copies the object of a file of the folder to `out`, if there is one.
    fn get(&self, path: &Path, out: &mut NamedTempFile) -> io::Result<bool> {
        self.folder.get(&name(path), out).map_err(io::Error::other)
    }

    /// Makes an object of a file.
    fn put(&self, path: &Path) -> io::Result<()> {
        let mut file = File::open(path)?;
        self.folder.put(&name(path), &mut file).map_err(io::Error::other)
    }
}

/// The name of an object: that of the file.
fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[&str]) -> Vec<OsString> {
        words.iter().map(OsString::from).collect()
    }

    #[test]
    fn a_round_is_found_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let place = StorePlace::Folder(folder.path().join("store"));
        let store = Store::open(place).expect("a folder");
        store.make().expect("it can be made");
        let command = words(&["python", "train.py"]);
        let key = Key::new(&command, &["t4-16g".to_owned()]);
        assert_eq!(store.find(&key).expect("a store"), None);
        let took = Duration::from_millis(2500);
        let round =
            Round::new(&command, Some(Bytes::mib(3)), false, took, Some("2.11.0".to_owned()));
        store.keep(&key, &round, None).expect("it can be written");
        assert_eq!(store.find(&key).expect("a store"), Some(round));
        let other = Key::new(&command, &["a100-40g".to_owned()]);
        assert_eq!(store.find(&other).expect("a store"), None);
        fs::write(folder.path().join("store").join(format!("{}.json", key.0)), "{").expect("write");
        assert_eq!(store.find(&key).expect("a store"), None, "half a file is none");
    }

    #[test]
    fn a_changed_script_is_another_job_and_a_moved_one_is_not() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str, content: &str| {
            let path = folder.path().join(name);
            fs::write(&path, content).expect("it can be written");
            Key::new(&[OsString::from("python"), path.into_os_string()], &[])
        };
        assert_eq!(at("a.py", "x"), at("b.py", "x"));
        assert_ne!(at("a.py", "x"), at("a.py", "y"));
        // Words are not joined.
        assert_ne!(Key::new(&words(&["a", "bc"]), &[]), Key::new(&words(&["ab", "c"]), &[]));
    }
}

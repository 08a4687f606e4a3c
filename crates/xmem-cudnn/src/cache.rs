//! A cache of answers in files, so that cuDNN is asked about a job's convolutions once.
//!
//! A file holds the answers of one release of cuDNN for one device: a title line that names both, then
//! one line for each question. A malformed file counts as empty and is replaced. Files are replaced
//! as a whole, so that a reader never sees half of one.
//!
//! A file or folder that other users can change is neither read nor written: its answers would be theirs.

use crate::trust::{self, Caller};
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use xmem_tempfiles::{TemporaryFile, create_private_folder};
use xmem_types::Bytes;

/// The answers of one release for one device, by question.
#[derive(Debug)]
pub(crate) struct Cache {
    file: Option<PathBuf>,
    title: String,
    answers: BTreeMap<String, Vec<Bytes>>,
    /// True while there are answers that the file lacks.
    unsaved: bool,
}

impl Cache {
    /// The answers of this release for a device with these properties; only in memory without a folder.
    pub(crate) fn open(folder: Option<&Path>, version: &str, properties: &str) -> Self {
        let title = title(version, properties);
        let file = folder.map(|folder| folder.join(file_name(version, properties)));
        let file = file.filter(|file| match trust::place(file, Caller::current()) {
            Ok(()) => true,
            Err(distrust) => {
                tracing::warn!("the cache of cuDNN's answers is not used: {distrust}");
                false
            }
        });
        let answers = file.as_deref().and_then(|file| read(file, &title)).unwrap_or_default();
        Self { file, title, answers, unsaved: false }
    }

    pub(crate) fn get(&self, question: &str) -> Option<&[Bytes]> {
        self.answers.get(question).map(Vec::as_slice)
    }

    pub(crate) fn insert(&mut self, question: String, sizes: Vec<Bytes>) {
        self.answers.insert(question, sizes);
        self.unsaved = true;
    }

    /// Writes new answers to the file, together with those that others have written since. After an
    /// error the answers stay in memory only.
    pub(crate) fn save(&mut self) -> io::Result<()> {
        let Some(file) = self.file.take_if(|_| self.unsaved) else { return Ok(()) };
        self.unsaved = false;
        self.write(&file)?;
        self.file = Some(file);
        Ok(())
    }

    fn write(&mut self, file: &Path) -> io::Result<()> {
        let folder = file.parent().unwrap_or(Path::new("."));
        create_private(folder)?;
        if let Some(others) = read(file, &self.title) {
            for (question, sizes) in others {
                self.answers.entry(question).or_insert(sizes);
            }
        }
        let mut text = format!("{}\n", self.title);
        for (question, sizes) in &self.answers {
            let sizes: Vec<String> = sizes.iter().map(|size| size.get().to_string()).collect();
            text += &format!("{question}\t{}\n", sizes.join(" "));
        }
        let mut beside = TemporaryFile::beside(file, None)?;
        beside.write_all(text.as_bytes())?;
        beside.persist(file)?;
        Ok(())
    }
}

/// Makes a folder, and those around it that do not exist, for this user only.
pub(crate) fn create_private(folder: &Path) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    if let Some(parent) = folder.parent() {
        create_private(parent)?;
    }
    match create_private_folder(folder) {
        // Another process was faster.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made,
    }
}

fn title(version: &str, properties: &str) -> String {
    format!("xmem-cudnn 1\t{version}\t{properties}")
}

fn file_name(version: &str, properties: &str) -> String {
    format!("cudnn-{version}-{:016x}.tsv", digest(properties))
}

/// A file of answers, read only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AnswerFile {
    /// The release of cuDNN that gave them.
    pub(crate) version: String,
    /// Sizes by question.
    pub(crate) answers: BTreeMap<String, Vec<Bytes>>,
}

impl AnswerFile {
    /// The file in a folder for a device with these properties, that of the last release by name;
    /// `None` if the folder has no such file.
    pub(crate) fn newest(folder: &Path, properties: &str) -> Option<Self> {
        let versions = fs::read_dir(folder).ok()?.filter_map(|entry| {
            let name = entry.ok()?.file_name().into_string().ok()?;
            let version = name.strip_prefix("cudnn-")?.split('-').next()?.to_owned();
            (name == file_name(&version, properties)).then_some(version)
        });
        let mut versions: Vec<String> = versions.collect();
        versions.sort();
        versions.into_iter().rev().find_map(|version| {
            let file = folder.join(file_name(&version, properties));
            let answers = read(&file, &title(&version, properties))?;
            Some(Self { version, answers })
        })
    }
}

/// True if a folder has files of answers, for whatever device.
pub(crate) fn has_answers(folder: &Path) -> bool {
    let named = |name: &str| name.starts_with("cudnn-") && name.ends_with(".tsv");
    fs::read_dir(folder).is_ok_and(|entries| {
        entries.flatten().any(|entry| entry.file_name().to_str().is_some_and(named))
    })
}

/// The answers in a file; `None` if there is no such file, its title differs or a line is malformed.
fn read(file: &Path, title: &str) -> Option<BTreeMap<String, Vec<Bytes>>> {
    let text = fs::read_to_string(file).ok()?;
    let (first, rest) = text.split_once('\n')?;
    if first != title || !text.ends_with('\n') {
        return None;
    }
    rest.lines()
        .map(|line| {
            let (question, sizes) = line.split_once('\t')?;
            let sizes: Option<Vec<Bytes>> =
                sizes.split(' ').map(|n| n.parse().ok().map(Bytes)).collect();
            Some((question.to_owned(), sizes?))
        })
        .collect()
}

/// FNV-1a, 64 bits: the same in every release and on every machine.
fn digest(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(folder: &Path) -> Cache {
        Cache::open(Some(folder), "9.19.0", "{}")
    }

    fn only_file(folder: &Path) -> PathBuf {
        let files: Vec<PathBuf> =
            fs::read_dir(folder).expect("folder").map(|e| e.expect("entry").path()).collect();
        assert_eq!(files.len(), 1, "{files:?}");
        files[0].clone()
    }

    #[test]
    fn answers_come_back_and_those_of_two_processes_add_up() {
        let folder = tempfile::tempdir().expect("folder");
        let below = folder.path().join("not/there/yet");
        let (mut one, mut two) = (open(&below), open(&below));
        one.insert("a".to_owned(), vec![Bytes(7), Bytes(0)]);
        two.insert("b".to_owned(), vec![Bytes(1)]);
        one.save().expect("saved");
        two.save().expect("saved");
        let again = open(&below);
        assert_eq!(again.get("a"), Some(&[Bytes(7), Bytes(0)][..]));
        assert_eq!(again.get("b"), Some(&[Bytes(1)][..]));
        assert_eq!(again.get("c"), None);
        only_file(&below);
    }

    #[test]
    fn other_releases_and_devices_have_files_of_their_own() {
        let folder = tempfile::tempdir().expect("folder");
        let mut cache = open(folder.path());
        cache.insert("a".to_owned(), vec![Bytes(7)]);
        cache.save().expect("saved");
        for (version, properties) in [("9.20.0", "{}"), ("9.19.0", "{ }")] {
            let other = Cache::open(Some(folder.path()), version, properties);
            assert_eq!(other.get("a"), None, "{version} {properties}");
        }
    }

    #[test]
    fn a_broken_file_counts_as_empty_and_is_written_anew() {
        let folder = tempfile::tempdir().expect("folder");
        let mut cache = open(folder.path());
        cache.insert("a".to_owned(), vec![Bytes(7)]);
        cache.save().expect("saved");
        let file = only_file(folder.path());
        let good = fs::read(&file).expect("file");
        let cut = &good[..good.len() - 1];
        let words = good.iter().map(|&b| if b == b'7' { b'x' } else { b }).collect::<Vec<_>>();
        for bad in [cut, &words, b"", b"\xff\xfe\n"] {
            fs::write(&file, bad).expect("written");
            let mut cache = open(folder.path());
            assert_eq!(cache.get("a"), None);
            cache.insert("b".to_owned(), vec![Bytes(8)]);
            cache.save().expect("saved");
            assert_eq!(open(folder.path()).get("b"), Some(&[Bytes(8)][..]));
        }
    }
}

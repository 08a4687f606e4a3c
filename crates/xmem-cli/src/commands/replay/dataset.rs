//! Answers as a table in parts: Parquet files in a folder, or objects of an object store, divided by device.
//!
//! A part is written whole or not at all, so that a run that is killed leaves only complete ones. Its name says which shard
//! wrote it; errors have a partition of their own, which the next run of the shard removes and tries again.

use super::error::ReplayFailure;
use super::resume::{Completed, Known};
use super::settings::Settings;
use crate::error::CliError;
use crate::objects::ObjectsFailure;
use crate::output;
use crate::shard::Shard;
use crate::terminal::shown;
use crate::traces::TraceInput;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use walkdir::WalkDir;
use xmem_objects::{ObjectAddress, ObjectFolder};
use xmem_report::lines::{ANSWERS, AnswerCells, answer_columns, answers_of_columns};

/// The most rows that wait for their part.
const MAX_ROWS: usize = 50_000;

/// The longest time that a row waits for its part.
const MAX_WAIT: Duration = Duration::from_secs(60);

/// The partition of rows without a device (Hive, "Dynamic Partition Inserts").
const NO_DEVICE: &str = "device=__HIVE_DEFAULT_PARTITION__";

/// The ending of parts.
const ENDING: &str = ".parquet";

/// A table that is being written.
pub(super) struct Dataset {
    place: Place,
    /// The beginning of the names of this shard's parts.
    shard: String,
    /// What tells the parts of this run from those of others.
    run: String,
    /// Parts that were written.
    parts: usize,
    /// Rows that wait, by their partition.
    rows: BTreeMap<String, Vec<AnswerCells>>,
    waiting: usize,
    since: Option<Instant>,
}

enum Place {
    Folder(PathBuf),
    Objects(ObjectFolder),
}

impl Dataset {
    /// A table at this path or address.
    pub(super) fn at(output: &Path, shard: Option<Shard>) -> Result<Self, CliError> {
        let address = output.to_str().filter(|text| ObjectAddress::is_one(text));
        let place = match address {
            Some(text) => {
                let address = text.parse().map_err(ObjectsFailure::from)?;
                Place::Objects(ObjectFolder::new(address).map_err(ObjectsFailure::from)?)
            }
            None => Place::Folder(output.to_owned()),
        };
        let Shard { number, of } = shard.unwrap_or(Shard { number: 1, of: 1 });
        let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Ok(Self {
            place,
            shard: format!("part-{number}-{of}-"),
            run: format!("{:x}-{:x}", time.as_micros(), std::process::id()),
            parts: 0,
            rows: BTreeMap::new(),
            waiting: 0,
            since: None,
        })
    }

    /// Refuses a table that has parts of this shard already.
    pub(super) fn refuse_earlier(&self) -> Result<(), CliError> {
        match self.place.names()?.iter().any(|name| self.is_own(name)) {
            true => Err(ReplayFailure::EarlierParts { place: self.place.text() }.into()),
            false => Ok(()),
        }
    }

    /// The answers that the table has, and their exit code. Errors of this shard are removed.
    pub(super) fn completed(
        &self,
        traces: &[TraceInput],
        settings: &[Settings],
    ) -> Result<Completed, CliError> {
        let known = Known::new(traces, settings, str::to_owned);
        let (mut done, mut errors) = (Completed::default(), Vec::new());
        for name in self.place.names()? {
            let answers = xmem_view::columns_of_parquet(self.place.read(&name)?, ANSWERS)
                .and_then(|columns| answers_of_columns(&columns))
                .map_err(|problem| ReplayFailure::ForeignPart {
                    part: self.place.part(&name),
                    problem,
                })?;
            answers.into_iter().for_each(|answer| known.add(answer, &mut done));
            if name.starts_with(NO_DEVICE) && self.is_own(&name) {
                errors.push(name);
            }
        }
        // Once all files are known to be parts of a table.
        errors.iter().try_for_each(|name| self.place.remove(name))?;
        Ok(done)
    }

    /// Returns whether a part was written by this shard; without shards, all were.
    fn is_own(&self, name: &str) -> bool {
        let file = name.rsplit('/').next().unwrap_or_default();
        self.shard == "part-1-1-" || file.starts_with(&self.shard)
    }

    /// Adds a row, and writes the rows that wait if they are many, or wait for long.
    pub(super) fn put(&mut self, row: AnswerCells) -> Result<(), CliError> {
        let partition = match row.device() {
            Some(device) => format!("device={}", encoded(device)),
            None => NO_DEVICE.to_owned(),
        };
        self.rows.entry(partition).or_default().push(row);
        self.waiting += 1;
        let since = *self.since.get_or_insert_with(Instant::now);
        if self.waiting >= MAX_ROWS || since.elapsed() >= MAX_WAIT { self.flush() } else { Ok(()) }
    }

    /// Writes the rows that wait.
    pub(super) fn flush(&mut self) -> Result<(), CliError> {
        for (partition, rows) in std::mem::take(&mut self.rows) {
            let name = format!("{partition}/{}{}-{:05}{ENDING}", self.shard, self.run, self.parts);
            self.place.write(&name, &xmem_view::columns_parquet(answer_columns(&rows), ANSWERS))?;
            self.parts += 1;
        }
        (self.waiting, self.since) = (0, None);
        Ok(())
    }
}

impl Place {
    /// The names of all parts, below the place.
    fn names(&self) -> Result<Vec<String>, CliError> {
        let mut names = match self {
            Self::Objects(folder) => folder.names().map_err(ObjectsFailure::from)?,
            Self::Folder(folder) if !folder.exists() => Vec::new(),
            Self::Folder(folder) => {
                let entries = WalkDir::new(folder).min_depth(1).into_iter();
                let files = entries.map(|entry| {
                    let path = entry?.into_path();
                    Ok(path.strip_prefix(folder).ok().and_then(Path::to_str).map(str::to_owned))
                });
                let files: Result<Vec<Option<String>>, walkdir::Error> = files.collect();
                let files = files.map_err(|error| self.failed(folder, error.into()))?;
                files.into_iter().flatten().map(|name| name.replace('\\', "/")).collect()
            }
        };
        names.retain(|name| name.ends_with(ENDING));
        names.sort();
        Ok(names)
    }

    fn read(&self, name: &str) -> Result<Vec<u8>, CliError> {
        match self {
            Self::Folder(folder) => {
                let file = folder.join(name);
                std::fs::read(&file).map_err(|error| self.failed(&file, error))
            }
            Self::Objects(folder) => {
                let mut bytes = Vec::new();
                folder.get(name, &mut bytes).map_err(ObjectsFailure::from)?;
                Ok(bytes)
            }
        }
    }

    fn remove(&self, name: &str) -> Result<(), CliError> {
        match self {
            Self::Folder(folder) => {
                let file = folder.join(name);
                std::fs::remove_file(&file).map_err(|error| self.failed(&file, error))
            }
            Self::Objects(folder) => Ok(folder.delete(name).map_err(ObjectsFailure::from)?),
        }
    }

    fn write(&self, name: &str, bytes: &[u8]) -> Result<(), CliError> {
        match self {
            Self::Folder(folder) => {
                let file = folder.join(name);
                let parent = file.parent().expect("a part is in a folder");
                std::fs::create_dir_all(parent).map_err(|error| self.failed(parent, error))?;
                output::bytes(Some(&file), |out| Ok(out.write_all(bytes)?))
            }
            Self::Objects(folder) => {
                Ok(folder.put(name, &mut io::Cursor::new(bytes)).map_err(ObjectsFailure::from)?)
            }
        }
    }

    fn failed(&self, path: &Path, source: io::Error) -> CliError {
        ReplayFailure::Parts { path: path.to_owned(), source }.into()
    }

    /// The place as the user named it.
    fn text(&self) -> String {
        match self {
            Self::Folder(folder) => shown(folder),
            Self::Objects(folder) => folder.address().to_string(),
        }
    }

    fn part(&self, name: &str) -> String {
        match self {
            Self::Folder(folder) => shown(&folder.join(name)),
            Self::Objects(folder) => folder.address().object(name).to_string(),
        }
    }
}

/// A value in the name of a partition, as Hive writes it: bytes that a file name might not take have hexadecimal digits.
fn encoded(value: &str) -> String {
    let byte = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => {
            char::from(byte).to_string()
        }
        other => format!("%{other:02X}"),
    };
    value.bytes().map(byte).collect()
}

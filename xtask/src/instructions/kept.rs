//! The counts that are kept in the repository.

use super::callgrind::Count;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;
use xmem_task::{Error, repo};

/// Where they lie.
const FILE: &str = "benches/instructions.toml";

/// Counts, and of what they are.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Kept {
    schema: String,
    date: String,
    pub(super) commit: String,
    rustc: String,
    pub(super) trace: BTreeMap<String, KeptCount>,
}

/// The count of one trace.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct KeptCount {
    pub(super) total: u64,
    pub(super) functions: BTreeMap<String, u64>,
}

/// Reads them.
pub(super) fn read() -> Result<Kept, Error> {
    let path = Path::new(FILE);
    toml::from_str(&repo::text(path)?).map_err(|_| Error::Figures { path: path.to_owned() })
}

/// Writes new ones.
pub(super) fn write(counts: &[(&str, &Count)]) -> Result<(), Error> {
    let trace = |(name, count): &(&str, &Count)| {
        let functions = count.functions.clone();
        ((*name).to_owned(), KeptCount { total: count.total, functions })
    };
    let kept = Kept {
        schema: "xmem.instructions/1".to_owned(),
        date: repo::said("date", &["-u", "+%F"]),
        commit: repo::said("git", &["describe", "--always", "--dirty"]),
        rustc: repo::said("rustc", &["--version"]),
        trace: counts.iter().map(trace).collect(),
    };
    let text = toml::to_string(&kept).expect("tables of strings and numbers");
    let text = format!("# Written by `UPDATE_EXPECT=1 cargo xtask instructions`.\n{text}");
    let path = repo::root().join(FILE);
    std::fs::write(&path, text).map_err(Error::file(&path))?;
    println!("{}", path.display());
    Ok(())
}

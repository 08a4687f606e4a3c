//! The sources of figures.

use super::figures::{self, Figure};
use super::{DATA, data};
use crate::error::CorpusError;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;
use xmem_task::{Error, repo};

/// A repository with scripts and with figures that they gave on GPUs.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Source {
    /// The key of the catalogue.
    #[serde(skip)]
    pub(super) name: String,
    /// What it is, in Markdown.
    pub(super) title: String,
    /// `OWNER/NAME` on GitHub.
    pub(super) repository: String,
    /// The repository that has the figures, if it is another one than that of the scripts.
    #[serde(default)]
    figures_of: Option<String>,
    /// The license of the scripts.
    pub(super) license: String,
    /// The files and folders that are needed of a commit.
    pub(super) paths: Vec<String>,
    /// The list of packages with which the scripts run, a path in this repository.
    pub(super) environment: String,
    /// Packages that take the place of those of the environment, by the name of the set.
    #[serde(default)]
    pub(super) packages: BTreeMap<String, Vec<String>>,
    /// The list of packages of another environment, by the name of the set.
    #[serde(default)]
    pub(super) environments: BTreeMap<String, String>,
    /// The Python file that runs a group.
    #[serde(default)]
    pub(super) driver: String,
    /// True if the scripts do what values tell: they run with `xmem run`, which keeps those that follow from the host.
    #[serde(default)]
    pub(super) values: bool,
    /// The processes of the jobs, of which some run, one after the other, with `xmem run --ranks`.
    #[serde(default)]
    pub(super) ranks: Option<u32>,
    /// Those that run.
    #[serde(default = "first")]
    pub(super) as_ranks: Vec<u32>,
    /// What the figures are, in Markdown.
    pub(super) about: String,
    /// What is known about a difference, by group.
    #[serde(default)]
    pub(super) cause: BTreeMap<String, String>,
}

/// The first process of a job.
fn first() -> Vec<u32> {
    vec![0]
}

impl Source {
    /// Its figures.
    pub(super) fn figures(&self) -> Result<Vec<Figure>, Error> {
        figures::read(&data(&format!("{}.tsv", self.name)))
    }

    /// The list of packages of the environment in which a set runs.
    pub(super) fn environment_of(&self, set: &str) -> &str {
        self.environments.get(set).unwrap_or(&self.environment)
    }

    /// Where its repository is.
    pub(super) fn url(&self) -> String {
        format!("https://github.com/{}", self.repository)
    }

    /// The repository that has the figures.
    pub(super) fn publisher(&self) -> &str {
        self.figures_of.as_deref().unwrap_or(&self.repository)
    }
}

/// Reads the catalogue.
pub(super) fn read() -> Result<Vec<Source>, Error> {
    #[derive(Deserialize)]
    struct File {
        source: BTreeMap<String, Source>,
    }
    let path = Path::new(DATA).join("sources.toml");
    let file: File = toml::from_str(&repo::text(&path)?)
        .map_err(|error| CorpusError::Unusable { path, what: error.to_string() })?;
    let named = |(name, mut source): (String, Source)| {
        if source.driver.is_empty() {
            source.driver = format!("{name}.py");
        }
        Source { name, ..source }
    };
    Ok(file.source.into_iter().map(named).collect())
}

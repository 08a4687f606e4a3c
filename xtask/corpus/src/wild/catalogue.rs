//! The list of scripts: where each comes from, and how it is run.

use super::DATA;
use crate::error::CorpusError;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;
use xmem_task::{Error, repo};

/// The device of runs that name none.
const DEVICE: &str = "a100-40g";

/// All runs, by name.
#[derive(Debug)]
pub(super) struct Catalogue {
    pub(super) runs: Vec<Run>,
}

/// A script with its arguments.
#[derive(Clone, Debug)]
pub(super) struct Run {
    pub(super) name: String,
    /// The name of its source.
    pub(super) origin: String,
    pub(super) source: Origin,
    /// Where the script lies in its source.
    pub(super) script: String,
    pub(super) arguments: Vec<String>,
    /// Where it runs; none for the folder of the script.
    pub(super) folder: Option<String>,
    pub(super) environment: BTreeMap<String, String>,
    /// What `data.py` makes, as JSON.
    pub(super) data: String,
    pub(super) device: String,
    pub(super) length: Length,
}

/// How much of a script runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Length {
    /// All of it.
    Complete,
    /// So many steps of its optimizers.
    Steps(u32),
}

/// Where scripts come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// A repository at a commit; only some paths of it.
    Git { url: String, commit: String, paths: Vec<String> },
    /// An installed package.
    Package(String),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    source: BTreeMap<String, SourceTable>,
    run: BTreeMap<String, RunTable>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SourceTable {
    git: Option<String>,
    commit: Option<String>,
    #[serde(default)]
    paths: Vec<String>,
    package: Option<String>,
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct RunTable {
    /// The run from which it takes what it does not say itself, but for the arguments.
    like: Option<String>,
    source: Option<String>,
    script: Option<String>,
    #[serde(default)]
    arguments: Vec<String>,
    folder: Option<String>,
    environment: Option<BTreeMap<String, String>>,
    data: Option<Vec<serde_json::Value>>,
    device: Option<String>,
    steps: Option<u32>,
}

impl Catalogue {
    /// The catalogue of the repository.
    pub(super) fn read() -> Result<Self, Error> {
        let path = Path::new(DATA).join("catalogue.toml");
        Ok(Self::parse(&repo::text(&path)?).map_err(|what| CorpusError::Unusable { path, what })?)
    }

    fn parse(text: &str) -> Result<Self, String> {
        let file: File = toml::from_str(text).map_err(|error| error.to_string())?;
        let origin = |name: &str| {
            let table = file.source.get(name).ok_or(format!("no source is named {name}"))?;
            table.origin().ok_or(format!("source {name} has neither git and commit nor package"))
        };
        let mut runs = Vec::new();
        for (name, table) in &file.run {
            let other = match &table.like {
                Some(like) => Some(file.run.get(like).ok_or(format!("no run is named {like}"))?),
                None => None,
            };
            let table = table.completed(other);
            let named =
                |value: Option<String>, key| value.ok_or(format!("run {name} has no {key}"));
            let source = named(table.source, "source")?;
            runs.push(Run {
                source: origin(&source)?,
                origin: source,
                script: named(table.script, "script")?,
                arguments: table.arguments,
                folder: table.folder,
                environment: table.environment.unwrap_or_default(),
                data: serde_json::Value::Array(table.data.unwrap_or_default()).to_string(),
                device: table.device.unwrap_or_else(|| DEVICE.to_owned()),
                length: table.steps.map_or(Length::Complete, Length::Steps),
                name: name.clone(),
            });
        }
        Ok(Self { runs })
    }
}

impl RunTable {
    /// This run, with what it does not say from the other.
    fn completed(&self, other: Option<&Self>) -> Self {
        let Some(other) = other else { return self.clone() };
        let mut run = self.clone();
        run.source = run.source.or_else(|| other.source.clone());
        run.script = run.script.or_else(|| other.script.clone());
        run.folder = run.folder.or_else(|| other.folder.clone());
        run.environment = run.environment.or_else(|| other.environment.clone());
        run.data = run.data.or_else(|| other.data.clone());
        run.device = run.device.or_else(|| other.device.clone());
        run.steps = run.steps.or(other.steps);
        run
    }
}

impl SourceTable {
    fn origin(&self) -> Option<Origin> {
        match (&self.git, &self.commit, &self.package) {
            (Some(url), Some(commit), None) => Some(Origin::Git {
                url: url.clone(),
                commit: commit.clone(),
                paths: self.paths.clone(),
            }),
            (None, None, Some(package)) => Some(Origin::Package(package.clone())),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_catalogue_of_the_repository_is_readable_and_pinned() {
        let catalogue = Catalogue::read().expect("a catalogue");
        assert!(catalogue.runs.len() >= 25, "{} runs", catalogue.runs.len());
        for run in &catalogue.runs {
            if let Origin::Git { url, commit, .. } = &run.source {
                assert!(url.starts_with("https://"), "{}: {url}", run.name);
                let hex = commit.len() == 40 && commit.chars().all(|c| c.is_ascii_hexdigit());
                assert!(hex, "{}: {commit}", run.name);
            }
        }
    }

    #[test]
    fn a_run_like_another_has_its_own_script_and_arguments() {
        let text = "[source.s]\npackage = 'p'\n[run.a]\nsource = 's'\nscript = 'a.py'\n\
                    arguments = ['1']\nsteps = 3\ndata = [{ make = 'mnist' }]\n\
                    [run.b]\nlike = 'a'\nscript = 'b.py'\n[run.c]\nlike = 'a'\nsteps = 5\n";
        let runs = Catalogue::parse(text).expect("runs").runs;
        let [a, b, c] = &runs[..] else { panic!("{runs:?}") };
        assert_eq!((b.script.as_str(), b.length, &b.data), ("b.py", Length::Steps(3), &a.data));
        assert!(b.arguments.is_empty() && a.arguments == ["1"]);
        assert_eq!((c.script.as_str(), c.length), ("a.py", Length::Steps(5)));
        let unknown = Catalogue::parse(&text.replace("like = 'a'", "like = 'x'"));
        assert!(unknown.expect_err("no run").contains("named x"));
    }

    #[test]
    fn a_run_needs_a_source_that_is_listed_and_pinned() {
        let run = "[run.a]\nsource = 's'\nscript = 'train.py'\n";
        let parse = |source: &str| Catalogue::parse(&format!("{source}{run}"));
        let listed = "[source.s]\ngit = 'https://a/b'\ncommit = 'c'\n";
        let catalogue = parse(listed).expect("a run");
        assert_eq!(catalogue.runs[0].length, Length::Complete);
        assert!(parse("[source.t]\npackage = 'p'\n").expect_err("no source").contains("named s"));
        assert!(parse("[source.s]\ngit = 'u'\n").expect_err("no commit").contains("neither"));
    }
}

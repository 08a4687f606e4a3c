//! The files of a project and a user.

use super::error::ConfigFailure;
use super::{Layer, keys, text};
use crate::error::CliError;
use crate::terminal::shown;
use std::path::{Path, PathBuf};

/// Where files of settings are looked for.
#[derive(Debug, Default)]
pub(super) struct Files {
    /// The folder in which the command runs, and those above it up to the root of the repository; only the
    /// first outside of one.
    project: Vec<PathBuf>,
    user: Option<PathBuf>,
}

impl Files {
    pub(super) fn of_environment() -> Self {
        let configs = base_folder("XDG_CONFIG_HOME", ".config");
        Self {
            project: std::env::current_dir().map(|here| project(&here)).unwrap_or_default(),
            user: configs.map(|configs| configs.join("xmem/config.toml")),
        }
    }

    /// The settings of each file that exists, from the one that counts first.
    pub(super) fn layers(&self) -> Result<Vec<Layer>, CliError> {
        let mut layers = Vec::new();
        let own = self.project.iter().map(|folder| folder.join("xmem.toml"));
        if let Some(file) = own.into_iter().find(|file| file.is_file()) {
            layers.push(keys::of_table(&table(&file)?, &file, "")?);
        }
        for folder in &self.project {
            let file = folder.join("pyproject.toml");
            if !file.is_file() {
                continue;
            }
            let table = table(&file)?;
            let tool = table.get("tool").and_then(|tool| tool.get("xmem"));
            if let Some(tool) = tool.and_then(toml::Value::as_table) {
                layers.push(keys::of_table(tool, &file, " [tool.xmem]")?);
                break;
            }
        }
        if let Some(file) = self.user.as_deref().filter(|file| file.is_file()) {
            layers.push(keys::of_table(&table(file)?, file, "")?);
        }
        Ok(layers)
    }
}

/// A folder of the XDG Base Directory Specification: that of the variable, else `usual` in the home folder.
/// Relative paths do not count, as the specification demands.
pub(crate) fn base_folder(variable: &str, usual: &str) -> Option<PathBuf> {
    let folder =
        |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    folder(variable).or_else(|| Some(folder("HOME")?.join(usual)))
}

fn project(here: &Path) -> Vec<PathBuf> {
    let root = here.ancestors().position(|folder| folder.join(".git").exists());
    here.ancestors().take(root.map_or(1, |depth| depth + 1)).map(Path::to_path_buf).collect()
}

fn table(file: &Path) -> Result<toml::Table, CliError> {
    let text = text(file)?;
    text.parse().map_err(|error: toml::de::Error| {
        let line = error.span().map_or(0, |span| text[..span.start].matches('\n').count());
        ConfigFailure::Value {
            place: format!("`{}`, line {}", shown(file), line + 1),
            reason: error.message().to_owned(),
        }
        .into()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder with files, removed at the end.
    fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("folder");
        for (name, content) in files {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().expect("parent")).expect("folder");
            std::fs::write(path, content).expect("file");
        }
        folder
    }

    #[test]
    fn files_are_looked_for_up_to_the_root_of_the_repository() {
        let folder = folder(&[
            ("xmem.toml", "margin = '9%'"),
            ("repo/.git/HEAD", ""),
            ("repo/pyproject.toml", "[tool.xmem]\nmargin = '3%'\npolicy = 'warn'"),
            ("repo/job/deep/x", ""),
            ("repo/job/pyproject.toml", "[project]\nname = 'job'"),
            ("user.toml", "margin = '7%'\ntorch = '2.6'"),
        ]);
        let found = |here: &str| {
            let files = Files {
                project: project(&folder.path().join(here)),
                user: Some(folder.path().join("user.toml")),
            };
            let layers = files.layers().expect("layers");
            let of = |layer: &Layer| layer.values.iter().map(|(k, v)| format!("{k}={v}")).collect();
            layers.iter().map(of).collect::<Vec<Vec<String>>>()
        };
        let user = vec!["margin=7%".to_owned(), "torch=2.6".to_owned()];
        let project = vec!["margin=3%".to_owned(), "policy=warn".to_owned()];
        assert_eq!(found("repo/job/deep"), [project.clone(), user.clone()]);
        assert_eq!(found("repo"), [project, user.clone()]);
        // Outside of a repository only the folder itself counts.
        assert_eq!(found(""), [vec!["margin=9%".to_owned()], user]);
    }

    #[test]
    fn what_is_wrong_in_a_file_is_said_with_its_place() {
        for (text, reason) in [
            ("margn = '5%'", "did you mean `margin`?"),
            ("margin = 'much'", "`much` is not a margin"),
            ("device = 'a100-40x'", "did you mean `a100-40g`?"),
            ("device = ['a100']", "neither a text nor a number"),
            ("cache = 'perhaps'", "`cache`"),
            ("margin = ", "line 1"),
        ] {
            let folder = folder(&[("xmem.toml", text)]);
            let files = Files { project: vec![folder.path().to_path_buf()], user: None };
            let error = files.layers().expect_err(text).message();
            assert!(error.contains(reason) && error.contains("xmem.toml"), "{text}: {error}");
        }
    }
}

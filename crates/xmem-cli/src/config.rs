//! Settings from options, variables and files, with one precedence.
//!
//! Of each setting, the first of these counts: the option, the variable `XMEM_*`, `xmem.toml` of the
//! project, `[tool.xmem]` of its `pyproject.toml`, the user's file, the site file.

mod args;
mod error;
mod files;
mod keys;

use crate::error::CliError;
use crate::input::{self, Kind};
use crate::terminal::shown;
use crate::values::share_or_size;
pub(crate) use error::ConfigFailure;
use files::Files;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use xmem_gate::{Margin, Site};

pub(crate) use args::SettingsArgs;
pub(crate) use files::base_folder;
pub(crate) use keys::KEYS;

/// The site file where none is named.
const SITE: &str = "/etc/xmem/site.toml";

/// The settings of a command.
#[derive(Debug, Default)]
pub(crate) struct Config {
    /// From the one that counts first.
    layers: Vec<Layer>,
    pub(crate) site: Site,
    /// The site file, if there is one.
    pub(crate) site_file: Option<PathBuf>,
}

/// Settings from one place.
#[derive(Debug)]
pub(crate) struct Layer {
    pub(crate) origin: String,
    /// The folder that relative paths in it start from; none for those of the command line.
    folder: Option<PathBuf>,
    /// Keys with values as text, each checked.
    values: Vec<(&'static str, String)>,
}

/// A setting with its origin.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setting<'a> {
    pub(crate) value: &'a str,
    pub(crate) layer: &'a Layer,
}

impl Config {
    /// Reads all settings.
    ///
    /// # Errors
    /// If a file cannot be read or has an unknown key, or a value is not one of its key.
    pub(crate) fn load(args: &SettingsArgs) -> Result<Self, CliError> {
        let variables = !args.no_config;
        let site_file = site_file(args.site.clone(), variables);
        let site = site_file.as_deref().map(read_site).transpose()?.unwrap_or_default();
        let mut layers = Vec::new();
        if variables {
            layers.extend(keys::variables()?);
            layers.extend(Files::of_environment().layers()?);
        }
        Ok(Self { layers, site, site_file })
    }

    /// The setting of a key, with its origin.
    pub(crate) fn find(&self, key: &str) -> Option<Setting<'_>> {
        debug_assert!(KEYS.iter().any(|known| known.name == key), "{key}");
        self.layers.iter().find_map(|layer| {
            let (_, value) = layer.values.iter().find(|(name, _)| *name == key)?;
            Some(Setting { value, layer })
        })
    }

    /// A setting that is not given as an option.
    pub(crate) fn get<T: FromStr>(&self, key: &str) -> Option<T> {
        // Values were checked as they were read.
        self.find(key)?.value.parse().ok()
    }

    /// A setting that is a share or a size.
    pub(crate) fn margin(&self, key: &str) -> Option<Margin> {
        share_or_size(self.find(key)?.value).ok()
    }

    /// A setting that is a path.
    pub(crate) fn path(&self, key: &str) -> Option<PathBuf> {
        let Setting { value, layer } = self.find(key)?;
        let folder = layer.folder.as_deref().unwrap_or(Path::new(""));
        Some(folder.join(value))
    }
}

/// The site file: the given one, else that of the environment, else the usual one if it exists.
pub(crate) fn site_file(given: Option<PathBuf>, variables: bool) -> Option<PathBuf> {
    let named = given.or_else(|| {
        let site = variables.then(|| std::env::var_os("XMEM_SITE")).flatten();
        site.filter(|path| !path.is_empty()).map(PathBuf::from)
    });
    named.or_else(|| Some(PathBuf::from(SITE)).filter(|path| path.is_file()))
}

/// The site of this machine; without a site file, one without devices.
///
/// # Errors
/// If its file cannot be read.
pub(crate) fn site() -> Result<Site, CliError> {
    site_file(None, true).as_deref().map(read_site).transpose().map(Option::unwrap_or_default)
}

fn read_site(path: &Path) -> Result<Site, CliError> {
    let text = text(path)?;
    Site::from_toml(&text).map_err(|source| {
        ConfigFailure::Site { path: path.to_owned(), source: Box::new(source) }.into()
    })
}

/// The text of a file of settings.
fn text(path: &Path) -> Result<String, CliError> {
    let bytes = input::raw(path, Kind::Device, None)?;
    String::from_utf8(bytes).map_err(|_| {
        ConfigFailure::Value {
            place: format!("`{}`", shown(path)),
            reason: "it is not UTF-8".to_owned(),
        }
        .into()
    })
}

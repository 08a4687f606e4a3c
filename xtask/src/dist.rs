//! `cargo xtask release`, `dist`, `wheel`, `man` and `completions`: the program as it is distributed, and what belongs to it.

mod package;
mod paths;
mod release;
mod sbom;
mod wheel;

use std::path::PathBuf;
use xmem_task::Error;

pub(crate) use package::run;
pub(crate) use release::{Options, run as release};
pub(crate) use wheel::run as wheel;

#[cfg(feature = "dist")]
mod built {
    use super::{Error, PathBuf};
    use clap::ValueEnum as _;
    use xmem_task::repo;

    pub(crate) fn man(out: Option<PathBuf>) -> Result<(), Error> {
        let folder = folder(out, "man")?;
        clap_mangen::generate_to(xmem_cli::command(), &folder).map_err(Error::file(&folder))?;
        println!("{}", folder.display());
        Ok(())
    }

    pub(crate) fn completions(out: Option<PathBuf>) -> Result<(), Error> {
        let folder = folder(out, "completions")?;
        for &shell in clap_complete::Shell::value_variants() {
            clap_complete::generate_to(shell, &mut xmem_cli::command(), "xmem", &folder)
                .map_err(Error::file(&folder))?;
        }
        println!("{}", folder.display());
        Ok(())
    }

    fn folder(out: Option<PathBuf>, default: &str) -> Result<PathBuf, Error> {
        let folder = match out {
            Some(folder) => folder,
            None => repo::target()?.join(default),
        };
        std::fs::create_dir_all(&folder).map_err(Error::file(&folder))?;
        Ok(folder)
    }
}

#[cfg(feature = "dist")]
pub(crate) use built::{completions, man};

/// The man pages: needs this program built with the command line's definition.
#[cfg(not(feature = "dist"))]
pub(crate) fn man(out: Option<PathBuf>) -> Result<(), Error> {
    again("man", out)
}

/// The completions: needs this program built with the command line's definition.
#[cfg(not(feature = "dist"))]
pub(crate) fn completions(out: Option<PathBuf>) -> Result<(), Error> {
    again("completions", out)
}

#[cfg(not(feature = "dist"))]
fn again(task: &str, out: Option<PathBuf>) -> Result<(), Error> {
    let out = out.map(|folder| folder.display().to_string());
    let arguments = match &out {
        Some(folder) => vec![task, "--out", folder],
        None => vec![task],
    };
    crate::again::with("dist", &arguments)
}

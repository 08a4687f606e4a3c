//! `cargo xtask release`: all that a release has, in one folder: the program's archive, wheels, a Debian package, checksums.
//!
//! Version and date are those of the workspace and of the changelog. Nothing is uploaded, and no tag is made.

use super::package::{CHECKSUMS, checksums};
use super::{package, wheel};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use xmem_task::{Error, TaskError, repo, run};

/// The version of everything.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// What is to be made.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Make everything although the commit is not that of a release, and say what is missing
    #[arg(long)]
    dry_run: bool,
    /// Sign the checksums with this key of GnuPG
    #[arg(long, value_name = "KEY")]
    sign: Option<String>,
    /// Folder to write to, which must not exist [default: releases/VERSION in the target folder]
    #[arg(long)]
    out: Option<PathBuf>,
}

/// Why a release cannot be made.
#[derive(Debug, thiserror::Error)]
enum ReleaseError {
    #[error("this commit is not a release:\n{}\n--dry-run makes everything anyway", .0.join("\n"))]
    NotReady(Vec<String>),
    #[error("{} exists: remove it, or name another folder with --out", .0.display())]
    Exists(PathBuf),
    #[error("a Debian package needs the name of who packages it: set DEBFULLNAME and DEBEMAIL")]
    Packager,
}

impl TaskError for ReleaseError {}

/// Makes everything.
pub(crate) fn run(options: &Options) -> Result<(), Error> {
    let missing = missing()?;
    if !missing.is_empty() {
        if !options.dry_run {
            return Err(ReleaseError::NotReady(missing).into());
        }
        missing.iter().for_each(|what| println!("not a release: {what}"));
    }
    let packager = packager().ok_or(ReleaseError::Packager)?;
    let folder = match &options.out {
        Some(folder) => folder.clone(),
        None => repo::target()?.join("releases").join(VERSION),
    };
    if folder.exists() {
        return Err(ReleaseError::Exists(folder).into());
    }
    let name = format!("xmem-{VERSION}-{}-{}", std::env::consts::ARCH, std::env::consts::OS);
    let program = folder.join(&name);
    package::run(Some(program.clone()))?;
    wheel::run(&wheel::targets(), Some(folder.clone()))?;
    run::step("Debian package", || debian(&program.join("xmem"), &folder, &packager))?;
    run::step("archive", || archive(&folder, &name))?;
    fs::remove_dir_all(&program).map_err(Error::file(&program))?;
    run::step("checksums", || {
        let list = folder.join(CHECKSUMS);
        fs::write(&list, checksums(&folder)?).map_err(Error::file(&list))?;
        match &options.sign {
            Some(key) => run::succeed(Command::new("gpg").args(sign(key)).arg(&list)),
            None => {
                println!("not signed: --sign KEY");
                Ok(())
            }
        }
    })?;
    println!("{}", folder.display());
    Ok(())
}

/// What the commit lacks to be a release.
fn missing() -> Result<Vec<String>, Error> {
    let changes = repo::output(Command::new("git").args(["status", "--porcelain"]))?;
    let described = repo::output(Command::new("git").args(["tag", "--points-at", "HEAD"]))?;
    let changelog = repo::text(Path::new("CHANGELOG.md"))?;
    let server = repo::text(Path::new("contrib/kubernetes/server.yaml"))?;
    let mut missing = Vec::new();
    if !changes.trim().is_empty() {
        missing.push("files differ from the commit".to_owned());
    }
    if !described.lines().any(|tag| tag == format!("v{VERSION}")) {
        missing.push(format!("the commit has no tag v{VERSION}"));
    }
    missing.extend(of_documents(VERSION, &changelog, &server));
    Ok(missing)
}

/// What documents lack that name the version.
fn of_documents(version: &str, changelog: &str, server: &str) -> Vec<String> {
    let mut missing = Vec::new();
    if !changelog.lines().any(|line| line.starts_with(&format!("## {version} - "))) {
        missing.push(format!("CHANGELOG.md has no section `{version} - YYYY-MM-DD`"));
    }
    if !server.lines().any(|line| line.trim_end().ends_with(&format!("/xmem:{version}"))) {
        missing.push(format!("contrib/kubernetes/server.yaml does not name the image {version}"));
    }
    missing
}

/// The name and the address of who packages: variables of Debian's tools, or of git.
fn packager() -> Option<[String; 2]> {
    let of = |variable: &str, key: &str| {
        let value = std::env::var(variable).unwrap_or_else(|_| repo::said("git", &["config", key]));
        (!value.trim().is_empty()).then(|| value.trim().to_owned())
    };
    Some([of("DEBFULLNAME", "user.name")?, of("DEBEMAIL", "user.email")?])
}

fn debian(program: &Path, out: &Path, [name, email]: &[String; 2]) -> Result<(), Error> {
    let script = repo::root().join("contrib/packaging/debian/build.sh");
    let mut command = Command::new(script);
    command.arg(program).arg(out).env("DEBFULLNAME", name).env("DEBEMAIL", email);
    run::succeed(&mut command)
}

/// Packs the folder of the program: equal files give equal bytes.
fn archive(folder: &Path, name: &str) -> Result<(), Error> {
    let time = repo::output(Command::new("git").args(["log", "-1", "--format=%ct"]))?;
    let time = format!("--mtime=@{}", time.trim());
    let same = ["--sort=name", "--owner=0", "--group=0", "--numeric-owner", &time];
    let file = format!("{name}.tar.gz");
    let mut command = Command::new("tar");
    command.args(same).args(["--use-compress-program=gzip -9 --no-name", "-cf", &file, name]);
    run::succeed(command.current_dir(folder))
}

/// The arguments of gpg before the file.
fn sign(key: &str) -> [&str; 5] {
    ["--armor", "--detach-sign", "--yes", "--local-user", key]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_name_the_version_that_is_released() {
        let server = "        image: registry.example.org/xmem:1.2.0\n";
        let changelog = "# Changelog\n\n## Unreleased\n\n## 1.2.0 - 2027-01-31\n";
        assert_eq!(of_documents("1.2.0", changelog, server), Vec::<String>::new());
        assert_eq!(of_documents("1.2.1", changelog, server).len(), 2);
        assert_eq!(of_documents("1.2.0", "## Unreleased\n", server).len(), 1);
    }

    #[test]
    fn the_archive_of_equal_files_has_equal_bytes_and_a_checksum() {
        let folder = std::env::temp_dir().join(format!("xtask-release-{}", std::process::id()));
        let file = folder.join("xmem-1.2.0/man/xmem.1");
        let made = || {
            fs::create_dir_all(file.parent().expect("a folder")).expect("made");
            fs::write(&file, "page").expect("written");
            archive(&folder, "xmem-1.2.0").expect("packed");
            fs::read(folder.join("xmem-1.2.0.tar.gz")).expect("read")
        };
        let (first, second) = (made(), made());
        fs::remove_dir_all(folder.join("xmem-1.2.0")).expect("removed");
        let sums = checksums(&folder).expect("read");
        fs::remove_dir_all(&folder).expect("removed");
        assert_eq!(first, second);
        assert!(sums.ends_with("  xmem-1.2.0.tar.gz\n"), "{sums}");
        assert_eq!(sums.lines().count(), 1);
    }
}

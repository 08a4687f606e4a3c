//! `cargo xtask dist`: the program as it is distributed, with what belongs to it and a checksum of each file.

use super::{completions, man, paths, sbom};
use sha2::{Digest, Sha256};
use std::fs;
use std::path::{Path, PathBuf};
use xmem_task::{Error, repo, run};

/// Files of the repository that belong to the program.
const FILES: [&str; 5] =
    ["LICENSE-APACHE", "LICENSE-MIT", "README.md", "SECURITY.md", "docs/data-licenses.md"];

/// The list of checksums, in the format of `sha256sum --check`.
pub(super) const CHECKSUMS: &str = "SHA256SUMS";

/// Builds everything into a folder.
pub(crate) fn run(out: Option<PathBuf>) -> Result<(), Error> {
    let folder = match out {
        Some(folder) => folder,
        None => repo::target()?.join("dist"),
    };
    // A folder of its own: the flags are others than those of other builds.
    let target = repo::target()?.join("dist-build");
    fs::create_dir_all(&folder).map_err(Error::file(&folder))?;
    run::step("build", || build(&target, &folder.join("xmem")))?;
    run::step("man pages and completions", || {
        man(Some(folder.join("man")))?;
        completions(Some(folder.join("completions")))
    })?;
    run::step("list of parts", || write(&folder.join("xmem.cdx.json"), &sbom::document()?))?;
    for name in FILES {
        let to = folder.join(Path::new(name).file_name().expect("a name"));
        fs::copy(repo::root().join(name), &to).map_err(Error::file(to))?;
    }
    run::step("checksums", || write(&folder.join(CHECKSUMS), &checksums(&folder)?))?;
    println!("{}", folder.display());
    Ok(())
}

fn build(target: &Path, to: &Path) -> Result<(), Error> {
    let rows = paths::remapped(target.to_owned());
    let target_text = target.display().to_string();
    let arguments =
        ["build", "--profile", "dist", "--locked", "--package", "xmem-cli", "--target-dir"];
    let environment =
        [("CARGO_ENCODED_RUSTFLAGS", paths::of_rust(&rows)), ("CFLAGS", paths::of_c(&rows))];
    let environment: Vec<(&str, &str)> =
        environment.iter().map(|(name, value)| (*name, value.as_str())).collect();
    run::cargo_with(&[&arguments[..], &[target_text.as_str()]].concat(), &environment)?;
    let program = target.join("dist/xmem");
    let bytes = fs::read(&program).map_err(Error::file(&program))?;
    paths::check(&bytes, &rows)?;
    fs::copy(&program, to).map(drop).map_err(Error::file(to))
}

/// A line for each file below a folder, by its path there.
pub(super) fn checksums(folder: &Path) -> Result<String, Error> {
    let mut files = Vec::new();
    list(folder, folder, &mut files)?;
    files.sort();
    let mut lines = String::new();
    for name in files.iter().filter(|name| name.as_str() != CHECKSUMS) {
        let path = folder.join(name);
        let bytes = fs::read(&path).map_err(Error::file(path))?;
        let digest: String =
            Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        lines += &format!("{digest}  {name}\n");
    }
    Ok(lines)
}

fn list(folder: &Path, below: &Path, into: &mut Vec<String>) -> Result<(), Error> {
    for entry in fs::read_dir(folder).map_err(Error::file(folder))? {
        let path = entry.map_err(Error::file(folder))?.path();
        if path.is_dir() {
            list(&path, below, into)?;
        } else {
            let name = path.strip_prefix(below).expect("it is below");
            into.push(name.to_string_lossy().replace('\\', "/"));
        }
    }
    Ok(())
}

fn write(path: &Path, text: &str) -> Result<(), Error> {
    fs::write(path, text).map_err(Error::file(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_but_the_list_itself_has_a_checksum() {
        let folder = std::env::temp_dir().join(format!("xtask-checksums-{}", std::process::id()));
        fs::create_dir_all(folder.join("man")).expect("made");
        for (name, text) in [("xmem", "abc"), ("man/xmem.1", ""), (CHECKSUMS, "old")] {
            fs::write(folder.join(name), text).expect("written");
        }
        let lines = checksums(&folder).expect("read");
        fs::remove_dir_all(&folder).expect("removed");
        // Of FIPS 180-2, appendix B.1, and of nothing.
        assert_eq!(
            lines,
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  man/xmem.1\n\
             ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad  xmem\n"
        );
    }
}

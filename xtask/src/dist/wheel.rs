//! `cargo xtask wheel`: wheels of the program with its Python package, for pip and uv.
//!
//! maturin packs them, and Zig is the linker and the C compiler: the programs need no newer glibc than that of
//! manylinux2014 (2.17), whatever this machine has. Both come from PyPI, pinned, into an environment of their own.

use super::paths::{self, Remapped};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use xmem_task::{Error, TaskError, repo, run};

/// The project that is packed.
const PROJECT: &str = "crates/xmem-python";

/// What packs it. Installed as `PACKAGES` say.
const PACKAGES: [&str; 2] = ["maturin==1.16.0", "ziglang==0.17.1"];

/// The largest wheel, in bytes.
const SIZE_LIMIT: u64 = 12_000_000;

/// The systems that there are wheels for: the target of rustc, and the tag of the wheel. The virtual GPU is on the first
/// one alone; on the other one the program records on the CPU.
const SYSTEMS: [(&str, &str); 2] =
    [("x86_64-unknown-linux-gnu", "manylinux2014"), ("x86_64-unknown-linux-musl", "musllinux_1_2")];

/// A wheel that cannot be had.
#[derive(Debug, thiserror::Error)]
enum WheelError {
    #[error("there are no wheels for `{target}`: choose one of {}", SYSTEMS.map(|(name, _)| name).join(", "))]
    Target { target: String },
    #[error("the wheel for {target} is not in `{}`", folder.display())]
    Missing { target: &'static str, folder: PathBuf },
    #[error("the wheel for {target} has {size} bytes, more than {SIZE_LIMIT}")]
    TooLarge { target: &'static str, size: u64 },
}

impl TaskError for WheelError {}

/// Builds the wheels of these targets into a folder; without any, that of the first one.
pub(crate) fn run(targets: &[String], out: Option<PathBuf>) -> Result<(), Error> {
    let systems = systems(targets)?;
    let target = repo::target()?;
    let out = out.unwrap_or_else(|| target.join("wheels"));
    fs::create_dir_all(&out).map_err(Error::file(&out))?;
    let tools = target.join("wheel-tools");
    run::step("maturin and Zig", || install(&tools))?;
    let mut lines = Vec::new();
    for (triple, tag) in systems {
        run::step(triple, || {
            let wheel = build(triple, tag, &tools, &target.join("wheel-build"), &out)?;
            let size = fs::metadata(&wheel).map_err(Error::file(&wheel))?.len();
            if size > SIZE_LIMIT {
                return Err(WheelError::TooLarge { target: triple, size }.into());
            }
            lines.push(format!("{} ({:.1} MB)", wheel.display(), size as f64 / 1e6));
            Ok(())
        })?;
    }
    println!("{}", lines.join("\n"));
    Ok(())
}

fn systems(targets: &[String]) -> Result<Vec<(&'static str, &'static str)>, Error> {
    if targets.is_empty() {
        return Ok(vec![SYSTEMS[0]]);
    }
    let find = |target: &String| {
        let found = SYSTEMS.into_iter().find(|(triple, _)| triple == target);
        found.ok_or_else(|| WheelError::Target { target: target.clone() }.into())
    };
    targets.iter().map(find).collect()
}

/// An environment with the pinned packages.
fn install(tools: &Path) -> Result<(), Error> {
    let python = tools.join("bin/python");
    if !python.exists() {
        run::succeed(Command::new("python3").args(["-m", "venv"]).arg(tools))?;
    }
    let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
    run::succeed(Command::new(python).args(pip).args(PACKAGES))
}

fn build(
    triple: &'static str,
    tag: &str,
    tools: &Path,
    target: &Path,
    out: &Path,
) -> Result<PathBuf, Error> {
    // Nothing happens if it is there. Without rustup, cargo says what is missing.
    let _ = Command::new("rustup").args(["target", "add", triple]).status();
    let rows = paths::remapped(target.to_owned());
    let path = std::env::var_os("PATH").unwrap_or_default();
    let tools_first = std::iter::once(tools.join("bin")).chain(std::env::split_paths(&path));
    let path = std::env::join_paths(tools_first).expect("the parts of a PATH");
    let mut command = Command::new(tools.join("bin/maturin"));
    command
        .args(["build", "--zig", "--compatibility", tag, "--target", triple, "--out"])
        .arg(out)
        .arg("--target-dir")
        .arg(target)
        .env("PATH", path)
        .env("CARGO_ENCODED_RUSTFLAGS", paths::of_rust(&rows))
        .env("CFLAGS", paths::of_c(&rows))
        // Of the build that started this program.
        .env_remove("CARGO")
        .current_dir(repo::root().join(PROJECT));
    run::succeed(&mut command)?;
    check(&target.join(triple).join("dist/xmem"), &rows)?;
    let (machine, _) = triple.split_once('-').expect("a target has a machine");
    newest(out, tag, machine)?
        .ok_or_else(|| WheelError::Missing { target: triple, folder: out.to_owned() }.into())
}

/// Fails if the program has folders of this machine in it.
fn check(program: &Path, rows: &[Remapped]) -> Result<(), Error> {
    let bytes = fs::read(program).map_err(Error::file(program))?;
    paths::check(&bytes, rows)
}

/// The wheel of a system that was written last.
fn newest(folder: &Path, tag: &str, machine: &str) -> Result<Option<PathBuf>, Error> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(Error::file(folder))? {
        let path = entry.map_err(Error::file(folder))?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.contains(tag) && name.ends_with(&format!("_{machine}.whl")) {
            let written = fs::metadata(&path).and_then(|data| data.modified());
            found.push((written.map_err(Error::file(&path))?, path));
        }
    }
    Ok(found.into_iter().max().map(|(_, path)| path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_target_there_is_one_wheel_and_unknown_ones_are_refused() {
        assert_eq!(systems(&[]).expect("one"), [SYSTEMS[0]]);
        let musl = "x86_64-unknown-linux-musl".to_owned();
        assert_eq!(systems(&[musl]).expect("known"), [SYSTEMS[1]]);
        let error = systems(&["sparc".to_owned()]).expect_err("unknown").to_string();
        assert!(error.contains("x86_64-unknown-linux-gnu, x86_64-unknown-linux-musl"), "{error}");
    }
}

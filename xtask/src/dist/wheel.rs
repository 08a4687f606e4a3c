//! `cargo xtask wheel`: wheels of the program with its Python package, for pip and uv.
//!
//! maturin packs them, and Zig is the linker and the C compiler: wheels for other systems are built on this machine, and
//! those for Linux need no newer glibc than that of manylinux2014 (2.17), whatever this machine has. Both come from PyPI,
//! pinned, into an environment of their own.

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

/// A system that there is a wheel for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct System {
    /// The target of rustc.
    target: &'static str,
    /// The platform in the name of the wheel.
    platform: &'static str,
}

/// The systems that there are wheels for. The virtual GPU is on the first one alone.
const SYSTEMS: [System; 5] = [
    System { target: "x86_64-unknown-linux-gnu", platform: "manylinux2014_x86_64" },
    System { target: "x86_64-unknown-linux-musl", platform: "musllinux_1_2_x86_64" },
    System { target: "aarch64-unknown-linux-gnu", platform: "manylinux2014_aarch64" },
    System { target: "aarch64-unknown-linux-musl", platform: "musllinux_1_2_aarch64" },
    System { target: "x86_64-pc-windows-gnu", platform: "win_amd64" },
];

impl System {
    /// What maturin is asked for: a release of the C library, on Linux.
    fn compatibility(self) -> Option<&'static str> {
        let (machine, _) = self.target.split_once('-').expect("a target has a machine");
        self.platform.strip_suffix(machine)?.strip_suffix('_')
    }

    /// The file of the program.
    fn program(self) -> &'static str {
        if self.target.contains("-windows-") { "xmem.exe" } else { "xmem" }
    }
}

/// A wheel that cannot be had.
#[derive(Debug, thiserror::Error)]
enum WheelError {
    #[error("there are no wheels for `{target}`: choose one of {}", SYSTEMS.map(|system| system.target).join(", "))]
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
    for system in systems {
        run::step(system.target, || {
            let wheel = build(system, &tools, &target.join("wheel-build"), &out)?;
            let size = fs::metadata(&wheel).map_err(Error::file(&wheel))?.len();
            if size > SIZE_LIMIT {
                return Err(WheelError::TooLarge { target: system.target, size }.into());
            }
            lines.push(format!("{} ({:.1} MB)", wheel.display(), size as f64 / 1e6));
            Ok(())
        })?;
    }
    println!("{}", lines.join("\n"));
    Ok(())
}

/// The targets of all wheels.
pub(crate) fn targets() -> Vec<String> {
    SYSTEMS.map(|system| system.target.to_owned()).to_vec()
}

fn systems(targets: &[String]) -> Result<Vec<System>, Error> {
    if targets.is_empty() {
        return Ok(vec![SYSTEMS[0]]);
    }
    let find = |target: &String| {
        let found = SYSTEMS.into_iter().find(|system| system.target == target);
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

fn build(system: System, tools: &Path, target: &Path, out: &Path) -> Result<PathBuf, Error> {
    // Nothing happens if it is there. Without rustup, cargo says what is missing.
    let _ = Command::new("rustup").args(["target", "add", system.target]).status();
    let rows = paths::remapped(target.to_owned());
    let path = std::env::var_os("PATH").unwrap_or_default();
    let tools_first = std::iter::once(tools.join("bin")).chain(std::env::split_paths(&path));
    let path = std::env::join_paths(tools_first).expect("the parts of a PATH");
    let mut command = Command::new(tools.join("bin/maturin"));
    command
        .args(["build", "--zig", "--compression-level", "9", "--target", system.target, "--out"])
        .arg(out)
        .arg("--target-dir")
        .arg(target)
        .env("PATH", path)
        .env("CARGO_ENCODED_RUSTFLAGS", paths::of_rust(&rows))
        .env("CFLAGS", paths::of_c(&rows))
        // Of the build that started this program.
        .env_remove("CARGO")
        .current_dir(repo::root().join(PROJECT));
    if let Some(tag) = system.compatibility() {
        command.args(["--compatibility", tag]);
    }
    run::succeed(&mut command)?;
    check(&target.join(system.target).join("dist").join(system.program()), &rows)?;
    newest(out, system.platform)?
        .ok_or_else(|| WheelError::Missing { target: system.target, folder: out.to_owned() }.into())
}

/// Fails if the program has folders of this machine in it.
fn check(program: &Path, rows: &[Remapped]) -> Result<(), Error> {
    let bytes = fs::read(program).map_err(Error::file(program))?;
    paths::check(&bytes, rows)
}

/// The wheel of a system that was written last.
fn newest(folder: &Path, platform: &str) -> Result<Option<PathBuf>, Error> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(Error::file(folder))? {
        let path = entry.map_err(Error::file(folder))?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.contains(platform) && name.ends_with(".whl") {
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

    #[test]
    fn maturin_is_asked_for_a_c_library_on_linux_alone() {
        let asked = SYSTEMS.map(System::compatibility);
        let linux = [Some("manylinux2014"), Some("musllinux_1_2")];
        assert_eq!(asked[..2], linux);
        assert_eq!(asked[2..4], linux);
        assert_eq!(asked[4..], [None]);
    }
}

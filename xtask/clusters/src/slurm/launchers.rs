//! submitit and TorchX on the cluster: the programs of their guide, as they stand there and with a GPU that is too small.

use super::cluster;
use super::programs::Program;
use crate::python;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use xmem_task::tally::text_of;
use xmem_task::{Error, repo};

const PAGE: &str = "docs/guide/job-launchers.md";

/// What is installed, from PyPI.
const PACKAGES: [&str; 2] = ["submitit==1.5.4", "torchx==0.7.0"];

/// What is not as it should be: each program submits its job, and none for a GPU that is too small.
pub(super) fn check(folder: &Path) -> Result<Vec<String>, Error> {
    let text = repo::text(Path::new(PAGE))?;
    let (Some(submitit), Some(torchx)) = (block(&text, "python"), block(&text, "sh")) else {
        return Ok(vec![format!("{PAGE} lacks a program of submitit or of TorchX")]);
    };
    let home = folder.join("launchers");
    std::fs::create_dir_all(&home).map_err(Error::file(&home))?;
    let python = python::environment(&home, &PACKAGES)?;
    let bench = Bench { folder, home: &home, python: &python };
    bench.put_trace("mlp_adam")?;
    let mut complaints = Vec::new();
    // The V100 of the site has 2 GiB, and is that of the partition `strict`.
    let too_small = [
        submitit.replace("gpu:a100:1", "gpu:v100:1"),
        torchx.replace("partition=gpu", "partition=strict"),
    ];
    complaints.extend(bench.complaints(&[submitit, torchx], true)?);
    bench.put_trace("vgg11_adagrad")?;
    complaints.extend(bench.complaints(&[submitit, torchx], true)?);
    complaints.extend(bench.complaints(&too_small.each_ref().map(String::as_str), false)?);
    Ok(complaints)
}

/// The first block of a language.
fn block<'t>(page: &'t str, language: &str) -> Option<&'t str> {
    let (_, rest) = page.split_once(&format!("\n```{language}\n"))?;
    rest.split_once("```\n").map(|(block, _)| block)
}

struct Bench<'a> {
    /// The folder of the cluster.
    folder: &'a Path,
    /// The folder in which the programs run.
    home: &'a Path,
    python: &'a Path,
}

impl Bench<'_> {
    /// Makes a recorded job the trace of the page.
    fn put_trace(&self, name: &str) -> Result<(), Error> {
        let from = repo::root().join("traces").join(name).join("trace.json.zst");
        let folder = self.home.join("runs");
        std::fs::create_dir_all(&folder).map_err(Error::file(&folder))?;
        std::fs::copy(&from, folder.join("trace.json.zst")).map_err(Error::file(&from))?;
        Ok(())
    }

    /// Runs a program of submitit and a command of TorchX, which are to submit their jobs or to fail with the decision.
    fn complaints(
        &self,
        [submitit, torchx]: &[&str; 2],
        is_submitted: bool,
    ) -> Result<Vec<String>, Error> {
        let ran =
            [self.run(&self.python.join("python"), submitit)?, self.run(Path::new("sh"), torchx)?];
        let is_right = |output: &Output| {
            let text = text_of(output);
            // Then TorchX asks for the state of the job, which a cluster without accounting does not say.
            let was_submitted = output.status.success() || text.contains("Launched app: slurm://");
            was_submitted == is_submitted && text.contains("xmem: DOES NOT FIT") != is_submitted
        };
        Ok(ran.iter().filter(|output| !is_right(output)).map(text_of).collect())
    }

    fn run(&self, program: &Path, text: &str) -> Result<Output, Error> {
        let xmem = Program::Real.folder(self.folder);
        let path =
            format!("{}:{}:/usr/sbin:/usr/bin:/sbin:/bin", xmem.display(), self.python.display());
        Command::new("timeout")
            .arg("120")
            .arg(program)
            .args(["-c", text])
            .env_clear()
            .env("HOME", self.home)
            .env("PATH", path)
            .env("SLURM_CONF", cluster::configuration(self.folder, true))
            .env("XMEM_SITE", self.folder.join("site.toml"))
            .env("XMEM_TEST_ASKED", self.folder.join("asked"))
            .current_dir(self.home)
            .stdin(Stdio::null())
            .output()
            .map_err(Error::start(program.display().to_string()))
    }
}

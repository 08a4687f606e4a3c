//! A case on the cluster: its submissions, and what is complained about.

use super::case::{Case, Change};
use super::cluster::{self, Cluster};
use super::{TESTS, programs};
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use xmem_task::tally::text_of;
use xmem_task::{Error, repo};

/// Job scripts: name, directives and commands.
const JOBS: [(&str, &str); 4] = [
    ("job.sh", "#XMEM --trace {traces}/vgg11_adagrad/trace.json.zst"),
    ("small.sh", "#XMEM --trace {traces}/mlp_adam/trace.json.zst"),
    ("gres.sh", "#SBATCH --gres=gpu:v100:1\n#XMEM --trace {traces}/vgg11_adagrad/trace.json.zst"),
    ("plain.sh", "# no trace"),
];

/// What the cases share.
#[derive(Debug)]
pub(super) struct Bench {
    /// The folder of the cluster.
    folder: PathBuf,
    /// The folder in which commands run.
    home: PathBuf,
}

impl Bench {
    /// Writes what the submissions need: programs, job scripts, and the table of the site in both forms.
    pub(super) fn new(folder: &Path, xmem: &Path) -> Result<Self, Error> {
        programs::write(folder, xmem)?;
        let home = folder.join("home");
        std::fs::create_dir_all(&home).map_err(Error::file(&home))?;
        let bench = Self { folder: folder.to_owned(), home };
        for (name, directives) in JOBS {
            let path = bench.home.join(name);
            let text = format!("#!/bin/sh\n{}\ntrue\n", bench.filled(directives, 0));
            std::fs::write(&path, text).map_err(Error::file(&path))?;
        }
        let site = bench.site();
        std::fs::write(&site, repo::text(&Path::new(TESTS).join("site.toml"))?)
            .map_err(Error::file(&site))?;
        let table = Command::new(xmem)
            .args(["config", "--format", "lua"])
            .env("XMEM_SITE", &site)
            .stderr(Stdio::inherit())
            .output()
            .map_err(Error::start(xmem.display().to_string()))?;
        if !table.status.success() {
            return Err(Error::Failed { command: "xmem config --format lua".to_owned() });
        }
        for side in ["slurm", "bypass"] {
            let path = folder.join(side).join("xmem_site.lua");
            std::fs::create_dir_all(folder.join(side)).map_err(Error::file(&path))?;
            std::fs::write(&path, &table.stdout).map_err(Error::file(&path))?;
        }
        Ok(bench)
    }

    /// Submits what the case says, and gives what is not as it should be.
    pub(super) fn check(&self, case: &Case, cluster: &mut Cluster) -> Result<Vec<String>, Error> {
        let mut complaints = Vec::new();
        let asked = self.folder.join("asked");
        std::fs::write(&asked, "").map_err(Error::file(&asked))?;
        let outputs = self.submit(case)?;
        let texts: Vec<String> = outputs.iter().map(text_of).collect();
        let text = texts.concat();

        let mut expected = vec![case.exit; case.times - case.rejected];
        expected.extend(vec![1; case.rejected]);
        let mut codes: Vec<i32> =
            outputs.iter().map(|output| output.status.code().unwrap_or(-1)).collect();
        codes.sort_unstable();
        if codes != expected {
            complaints.push(format!("exit status {}\n{text}", counts(&codes)));
        }
        let times = std::fs::read_to_string(&asked).map_err(Error::file(&asked))?.lines().count();
        if case.asked.is_some_and(|expected| times != expected) {
            complaints.push(format!("xmem was started {times} times\n{text}"));
        }
        for wanted in case.output.iter().filter(|wanted| !text.contains(wanted.as_str())) {
            complaints.push(format!("no `{wanted}` in the output\n{text}"));
        }
        for unwanted in case.without.iter().filter(|unwanted| text.contains(unwanted.as_str())) {
            complaints.push(format!("`{unwanted}` in the output\n{text}"));
        }
        if let Some(absent) = &case.absent
            && self.home.join(absent).exists()
        {
            complaints.push(format!("{absent} is there"));
        }
        if case.restart {
            cluster.restart()?;
        }
        let jobs: Vec<&str> = texts.iter().filter_map(|text| number_of_job(text)).collect();
        for job in &jobs {
            if let Some(change) = &case.change {
                complaints.extend(changed(cluster, job, change)?);
            }
            if !case.job.is_empty() {
                let shown = cluster.tool("scontrol").args(["show", "job", job]).output();
                let shown = text_of(&shown.map_err(Error::start("scontrol"))?);
                complaints.extend(unexpected(case, &shown));
            }
        }
        if !case.job.is_empty() && jobs.len() != case.times - case.rejected {
            complaints.push(format!("{} jobs were submitted", jobs.len()));
        }
        if !jobs.is_empty() {
            cluster.tool("scancel").args(&jobs).status().map_err(Error::start("scancel"))?;
        }
        Ok(complaints)
    }

    /// Runs the command of a case, as often as it says at once.
    fn submit(&self, case: &Case) -> Result<Vec<Output>, Error> {
        let children: Vec<Child> =
            (0..case.times).map(|number| self.spawn(case, number)).collect::<Result<_, _>>()?;
        children
            .into_iter()
            .map(|child| child.wait_with_output().map_err(Error::start(&case.command[0])))
            .collect()
    }

    fn spawn(&self, case: &Case, number: usize) -> Result<Child, Error> {
        let home = case.xmem.folder(&self.folder);
        let mut command = Command::new("timeout");
        command.arg("120").args(case.command.iter().map(|word| self.filled(word, number)));
        // Nothing of the caller's own job or environment.
        command
            .env_clear()
            .env("HOME", &self.home)
            .env("PATH", format!("{}:/usr/sbin:/usr/bin:/sbin:/bin", home.display()))
            .env("SLURM_CONF", cluster::configuration(&self.folder, case.client))
            .env("XMEM_SITE", self.site())
            .env("XMEM_TEST_ASKED", self.folder.join("asked"))
            .current_dir(&self.home);
        if let Some(trace) = &case.trace {
            let traces = repo::root().join("traces");
            command.env("XMEM_TRACE", traces.join(trace).join("trace.json.zst"));
        }
        let stdin = self.folder.join("stdin");
        let mut file = File::create(&stdin).map_err(Error::file(&stdin))?;
        file.write_all(case.stdin.as_bytes()).map_err(Error::file(&stdin))?;
        let file = File::open(&stdin).map_err(Error::file(&stdin))?;
        command.stdin(file).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().map_err(Error::start(&case.command[0]))
    }

    fn site(&self) -> PathBuf {
        self.folder.join("site.toml")
    }

    /// A text with its placeholders replaced.
    fn filled(&self, text: &str, number: usize) -> String {
        let mut text = text
            .replace("{folder}", &self.home.display().to_string())
            .replace("{traces}", &repo::root().join("traces").display().to_string())
            .replace("{number}", &number.to_string());
        for (name, _) in JOBS {
            text =
                text.replace(&format!("{{{name}}}"), &self.home.join(name).display().to_string());
        }
        text
    }
}

/// Numbers with how often each is there: `0 (100 times), 1`.
fn counts(codes: &[i32]) -> String {
    let chunks = codes.chunk_by(|a, b| a == b);
    let texts = chunks.map(|chunk| match chunk.len() {
        1 => chunk[0].to_string(),
        times => format!("{} ({times} times)", chunk[0]),
    });
    texts.collect::<Vec<_>>().join(", ")
}

/// The job that `sbatch` has submitted.
fn number_of_job(text: &str) -> Option<&str> {
    text.lines().find_map(|line| line.strip_prefix("Submitted batch job ")).map(str::trim)
}

/// Changes a job, and gives what is not as it should be.
fn changed(cluster: &Cluster, job: &str, change: &Change) -> Result<Option<String>, Error> {
    let mut command = cluster.tool("scontrol");
    command.args(["update", &format!("job={job}")]).args(&change.arguments);
    let output = command.output().map_err(Error::start("scontrol"))?;
    let code = output.status.code().unwrap_or(-1);
    Ok((code != change.exit)
        .then(|| format!("scontrol update: exit status {code}\n{}", text_of(&output))))
}

/// The fields of a job that are not as the case says.
fn unexpected(case: &Case, shown: &str) -> Vec<String> {
    let mut complaints = Vec::new();
    for (field, expected) in &case.job {
        let prefix = format!("{field}=");
        let found = shown.lines().find_map(|line| line.trim().strip_prefix(&prefix));
        let is_right = match found {
            Some(found) => !expected.is_empty() && found.contains(expected.as_str()),
            None => expected.is_empty(),
        };
        if !is_right {
            complaints.push(match found {
                Some(found) => format!("the job has {field}={found}"),
                None => format!("the job has no {field}"),
            });
        }
    }
    complaints
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_job_is_read_from_the_output_of_sbatch() {
        for (text, job) in [
            ("Submitted batch job 12\n", Some("12")),
            ("sbatch: lua: xmem: x\nSubmitted batch job 7 \n", Some("7")),
            ("sbatch: error: x\n", None),
        ] {
            assert_eq!(number_of_job(text), job, "{text}");
        }
    }

    #[test]
    fn exit_statuses_are_counted() {
        assert_eq!(counts(&[0, 0, 1]), "0 (2 times), 1");
    }
}

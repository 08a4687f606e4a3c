//! An evaluation that a cluster runs in parts, one of which is killed in the middle.

use std::path::{Path, PathBuf};
use std::process::Command;
use xmem_task::Error;
use xmem_task::tally::text_of;

/// The number of jobs.
const JOBS: u64 = 9;
/// The number of parts.
pub(crate) const PARTS: u64 = 3;
/// The job whose part is killed when it is estimated for the first time.
const FATAL: u64 = 5;

const MATRIX: &str = "\
[estimators.ours]
command = ['sh', 'estimate.sh', '{batch}']
[[jobs]]
family = 'cnn'
command = ['true', '{batch}']
factors = { batch = [1], device = ['t4-16g'] }
";

/// The folder of an evaluation.
#[derive(Debug)]
pub(crate) struct Evaluation {
    folder: PathBuf,
    store: String,
}

impl Evaluation {
    /// Writes the matrix, its readings and its estimator, which notes each call.
    pub(crate) fn new(folder: &Path, store: &str) -> Result<Self, Error> {
        std::fs::create_dir_all(folder).map_err(Error::file(folder))?;
        let evaluation = Self { folder: folder.to_owned(), store: store.to_owned() };
        let rows: String =
            (1..=JOBS).map(|job| format!("{job},t4-16g,{},false\n", job << 20)).collect();
        let here = folder.display();
        let estimator = format!(
            "echo $1 >>'{here}/calls'\n\
             if [ $1 = {FATAL} ] && mkdir '{here}/killed' 2>/dev/null; then kill -9 $PPID; fi\n\
             echo $(($1 * 1048576))\n"
        );
        for (name, text) in [
            ("matrix.toml", MATRIX.to_owned()),
            ("runs.csv", format!("batch,device,peak_bytes,out_of_memory\n{rows}")),
            ("estimate.sh", estimator),
        ] {
            let path = folder.join(name);
            std::fs::write(&path, text).map_err(Error::file(&path))?;
        }
        Ok(evaluation)
    }

    /// The arguments of `xmem`, in the folder of the evaluation.
    pub(crate) fn arguments(&self) -> [&str; 7] {
        let store = self.store.as_str();
        let readings = "runs.csv";
        ["eval", "matrix.toml", "--readings", readings, "--without-second-round", "--store", store]
    }

    /// What is not as it should be when all parts are done: each job is counted once, and only the one whose part was killed
    /// was estimated twice.
    pub(crate) fn complaints(&self, xmem: &mut Command) -> Result<Vec<String>, Error> {
        let mut complaints = Vec::new();
        let output = xmem
            .args(self.arguments())
            .args(["--without-recording", "--quiet"])
            .current_dir(&self.folder)
            .output()
            .map_err(Error::start("xmem"))?;
        let text = text_of(&output);
        if text != format!("ours: {JOBS} runs, median error 0.0 %\n") {
            complaints.push(format!("the answer is\n{text}"));
        }
        let path = self.folder.join("calls");
        let calls = std::fs::read_to_string(&path).unwrap_or_default();
        for job in 1..=JOBS {
            let count = calls.lines().filter(|line| *line == job.to_string()).count();
            let expected = if job == FATAL { 2 } else { 1 };
            if count != expected {
                complaints.push(format!("job {job} was estimated {count} times, not {expected}"));
            }
        }
        Ok(complaints)
    }
}

//! `cargo xtask test-ray`: an evaluation as tasks of Ray, which share an object store.
//!
//! Ray runs on this machine, and moto stands for Amazon S3: its server checks requests as S3 does, but for signatures.

mod guide;

use crate::daemon::{Daemon, free_ports};
use crate::evaluation::{Evaluation, PARTS};
use crate::folder::Folder;
use crate::options::Options;
use crate::python;
use std::ffi::OsStr;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;
use xmem_task::program::{self, Profile};
use xmem_task::tally::{Tally, text_of};
use xmem_task::{Error, only, repo};

/// What is installed, from PyPI.
const PACKAGES: [&str; 5] = [
    "ray[data]==2.60.0",
    "moto[server]==5.2.5",
    "pyspark==4.3.0",
    "pandas==2.3.3",
    "pyarrow==26.0.1",
];
/// The longest time until the server answers.
const READY_LIMIT: Duration = Duration::from_secs(60);
/// Makes the bucket.
const BUCKET: &str = "import boto3; boto3.client('s3').create_bucket(Bucket='evaluations')";

/// Uploads traces, by the names of their folders.
const UPLOAD: &str = "import boto3, os, sys
for file in sys.argv[1:]:
    name = '/'.join(['traces', *file.split(os.sep)[-2:]])
    boto3.client('s3').upload_file(file, 'evaluations', name)";

/// Prints the answers that are objects, as a data set that is divided by device.
const ANSWERS: &str = "import os, pyarrow.dataset, pyarrow.fs
store = pyarrow.fs.S3FileSystem(endpoint_override=os.environ['AWS_ENDPOINT_URL'], region='eu-west-1')
answers = pyarrow.dataset.dataset('evaluations/answers', filesystem=store, format='parquet', partitioning='hive')
rows = answers.to_table(columns=['trace', 'device', 'device_name', 'need_bytes']).to_pylist()
assert all(row['device'] == row['device_name'] for row in rows), rows
print(*sorted(f\"{row['trace'].split('/')[-2]} {row['need_bytes']}\" for row in rows), sep='\\n')";

/// Runs the tests.
pub fn run(options: &Options) -> Result<(), Error> {
    let mut tally = Tally::new("test-ray");
    let xmem = program::find(options.program.as_deref(), Profile::Dev)?;
    let folder = Folder::new(options.folder.clone(), "ray")?;
    let python = python::environment(folder.path(), &PACKAGES)?;
    let [port] = free_ports()?;
    let server = python.join("moto_server");
    let mut server =
        Daemon::start(&server, ["-p".to_owned(), port.to_string()], &[], folder.path())?;
    server.wait("a server for objects", READY_LIMIT, || {
        TcpStream::connect(("127.0.0.1", port)).is_ok()
    })?;
    let bench = Bench { folder: folder.path(), python: &python, xmem: &xmem, port };
    bench.make_bucket()?;
    let cases = [
        "parts-as-tasks",
        "traces-as-objects",
        "answers-as-objects",
        "missing-bucket",
        "missing-credentials",
        "guide",
    ];
    for case in cases {
        if only::selects(&options.only, case) {
            tally.check(case, || match case {
                "traces-as-objects" => bench.traces_as_objects(),
                "answers-as-objects" => bench.answers_as_objects(),
                "missing-bucket" => bench.missing_bucket(),
                "missing-credentials" => bench.missing_credentials(),
                "guide" => guide::complaints(&bench),
                _ => bench.parts_as_tasks(),
            })?;
        }
    }
    tally.finish()
}

/// What the cases share.
struct Bench<'a> {
    folder: &'a Path,
    python: &'a Path,
    xmem: &'a Path,
    port: u16,
}

impl Bench<'_> {
    /// A command that finds xmem, the Python environment and the server.
    fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let tool = self.xmem.parent().unwrap_or(Path::new("")).display();
        let path = format!("{tool}:{}:/usr/bin:/bin", self.python.display());
        let mut command = Command::new(program);
        command
            .env_clear()
            .envs([("PATH", path.as_str()), ("AWS_REGION", "eu-west-1")])
            .envs([("AWS_ACCESS_KEY_ID", "key"), ("AWS_SECRET_ACCESS_KEY", "secret")])
            .env("HOME", self.folder)
            .env("AWS_ENDPOINT_URL", format!("http://127.0.0.1:{}", self.port))
            .env("AWS_ALLOW_HTTP", "true")
            .stdin(Stdio::null());
        command
    }

    fn make_bucket(&self) -> Result<(), Error> {
        let mut python = self.command(self.python.join("python"));
        // Without one, boto3 makes buckets in its own region alone.
        python.env("AWS_DEFAULT_REGION", "us-east-1").args(["-c", BUCKET]);
        let output = python.output().map_err(Error::start("python"))?;
        match output.status.success() {
            true => Ok(()),
            false => Err(Error::Failed { command: text_of(&output) }),
        }
    }

    fn parts_as_tasks(&self) -> Result<Vec<String>, Error> {
        let home = self.folder.join("tasks");
        let evaluation = Evaluation::new(&home, "s3://evaluations/runs")?;
        let parts = PARTS.to_string();
        let ran = self
            .command(self.xmem)
            .args(evaluation.arguments())
            .args(["--on", "ray", "--shards", &parts, "--submit"])
            .current_dir(&home)
            .output()
            .map_err(Error::start("xmem"))?;
        if !ran.status.success() {
            return Ok(vec![format!("{}\n{}", ran.status, text_of(&ran))]);
        }
        let mut complaints = evaluation.complaints(&mut self.command(self.xmem))?;
        if home.join("s3:").exists() {
            complaints.push("the store is a folder".to_owned());
        }
        Ok(complaints)
    }

    /// Traces that are objects get the answers of the same traces as files, and a gate reads none.
    /// Uploads some traces, and gives their files.
    fn upload(&self) -> Result<[PathBuf; 3], Error> {
        let traces = repo::root().join("traces");
        let files = ["gpt2_adamw", "mlp_adam", "vgg11_adagrad"]
            .map(|name| traces.join(name).join("trace.json.zst"));
        let mut python = self.command(self.python.join("python"));
        python.args(["-c", UPLOAD]).args(&files);
        let output = python.output().map_err(Error::start("python"))?;
        match output.status.success() {
            true => Ok(files),
            false => Err(Error::Failed { command: text_of(&output) }),
        }
    }

    /// Two parts write their answers as objects, and again, which adds none.
    fn answers_as_objects(&self) -> Result<Vec<String>, Error> {
        self.upload()?;
        let answers = "s3://evaluations/answers";
        for shard in ["1/2", "2/2", "1/2", "2/2"] {
            let mut xmem = self.command(self.xmem);
            xmem.args(["replay", "s3://evaluations/traces", "-d", "h100-80g", "--shard", shard]);
            xmem.args(["--format", "parquet", "-o", answers, "--skip-done"]);
            let ran = xmem.output().map_err(Error::start("xmem"))?;
            if !ran.status.success() {
                return Ok(vec![text_of(&ran)]);
            }
        }
        let mut xmem = self.command(self.xmem);
        xmem.args(["replay", "s3://evaluations/traces", "-d", "h100-80g", "--format", "jsonl"]);
        let expected = xmem.output().map_err(Error::start("xmem"))?;
        let mut rows = Vec::new();
        for line in String::from_utf8_lossy(&expected.stdout).lines() {
            let answer: serde_json::Value = serde_json::from_str(line).unwrap_or_default();
            let trace = answer["trace"].as_str().unwrap_or_default();
            let name = trace.rsplit('/').nth(1).unwrap_or_default();
            rows.push(format!("{name} {}", answer["need_bytes"]));
        }
        rows.sort();
        let mut python = self.command(self.python.join("python"));
        let shown = python.args(["-c", ANSWERS]).output().map_err(Error::start("python"))?;
        let found = String::from_utf8_lossy(&shown.stdout);
        let is_right = rows.len() == 3 && found.lines().eq(rows.iter().map(String::as_str));
        Ok(if is_right { Vec::new() } else { vec![format!("{rows:?}\n{}", text_of(&shown))] })
    }

    fn traces_as_objects(&self) -> Result<Vec<String>, Error> {
        let files = self.upload()?;
        let replay = |inputs: &[&OsStr]| {
            let mut xmem = self.command(self.xmem);
            xmem.arg("replay").args(inputs).args(["-d", "t4-16g", "--format", "csv"]);
            xmem.output().map_err(Error::start("xmem"))
        };
        let of_files = replay(&files.iter().map(|file| file.as_os_str()).collect::<Vec<_>>())?;
        let of_objects = replay(&[OsStr::new("s3://evaluations/traces")])?;
        // The first column is the name.
        let answers = |output: &Output| -> Vec<String> {
            let text = String::from_utf8_lossy(&output.stdout);
            text.lines().map(|line| line.split_once(',').unwrap_or_default().1.to_owned()).collect()
        };
        let mut complaints = Vec::new();
        if answers(&of_files) != answers(&of_objects) || answers(&of_files).len() != files.len() + 1
        {
            complaints.push(format!("{}\n{}", text_of(&of_files), text_of(&of_objects)));
        }
        // A single object has one document, as a single file has, and not a list.
        let mut one = self.command(self.xmem);
        one.args(["replay", "s3://evaluations/traces/mlp_adam/trace.json.zst"]);
        let one = one
            .args(["-d", "t4-16g", "--format", "json"])
            .output()
            .map_err(Error::start("xmem"))?;
        if !String::from_utf8_lossy(&one.stdout).starts_with("{") {
            complaints.push(format!("one object has no document of its own: {}", text_of(&one)));
        }
        let mut gate = self.command(self.xmem);
        gate.args(["check", "s3://evaluations/traces/mlp_adam/trace.json.zst", "-d", "t4-16g"]);
        let gate = gate.output().map_err(Error::start("xmem"))?;
        if gate.status.code() != Some(3) || !text_of(&gate).contains("does not exist") {
            complaints.push(format!("a gate read an object: {}", text_of(&gate)));
        }
        Ok(complaints)
    }

    fn missing_bucket(&self) -> Result<Vec<String>, Error> {
        let evaluation = Evaluation::new(&self.folder.join("bucket"), "s3://nowhere/runs")?;
        let mut xmem = self.command(self.xmem);
        self.refuses(
            xmem.args(evaluation.arguments()),
            "bucket",
            "The specified bucket does not exist",
        )
    }

    fn missing_credentials(&self) -> Result<Vec<String>, Error> {
        let evaluation = Evaluation::new(&self.folder.join("key"), "s3://evaluations/runs")?;
        let mut xmem = self.command(self.xmem);
        xmem.args(evaluation.arguments()).env_remove("AWS_ACCESS_KEY_ID");
        self.refuses(&mut xmem, "key", "Missing AccessKeyId")
    }

    /// Whether a run ends with the code of unreadable files, and says why.
    fn refuses(&self, xmem: &mut Command, home: &str, why: &str) -> Result<Vec<String>, Error> {
        let ran =
            xmem.current_dir(self.folder.join(home)).output().map_err(Error::start("xmem"))?;
        let text = text_of(&ran);
        let is_right = ran.status.code() == Some(3) && text.contains(why);
        Ok(if is_right { Vec::new() } else { vec![format!("{}\n{text}", ran.status)] })
    }
}

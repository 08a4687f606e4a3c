//! The programs of the guide about Ray and Spark, run as they stand there.

use super::Bench;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Output;
use xmem_task::tally::text_of;
use xmem_task::{Error, repo};

const PAGE: &str = "docs/guide/ray-and-spark.md";
/// The recorded jobs in the folder `runs`, which also has a file that is no recording.
const JOBS: [&str; 3] = ["gpt2_adamw", "mlp_adam", "vgg11_adagrad"];
/// Prints the answers that a program wrote, by the names of their folders.
const SHOW: &str = "import pyarrow.parquet
rows = pyarrow.parquet.read_table('answers').to_pylist()
print(*sorted((row['trace'].split('/')[-2], row['verdict'], row['need_bytes']) for row in rows))";
/// Prints what they should be.
const EXPECT: &str = "import sys, xmem
names = {name: xmem.replay(f'runs/{name}/trace.json.zst', device='h100-80g') for name in sys.argv[1:]}
rows = [(name, answer.verdict, answer.need_bytes) for name, answer in names.items()]
print(*sorted([*rows, ('text', 'unreadable', None)]))";

/// What is not as it should be: each program writes the answers that the package gives without it.
pub(super) fn complaints(bench: &Bench<'_>) -> Result<Vec<String>, Error> {
    let text = repo::text(Path::new(PAGE))?;
    let programs: Vec<&str> = text
        .split("```python\n")
        .skip(1)
        .filter_map(|rest| rest.split_once("```\n").map(|(program, _)| program))
        .collect();
    if programs.len() != 2 {
        return Ok(vec![format!("{PAGE} has {} programs", programs.len())]);
    }
    let home = bench.folder.join("guide");
    for name in JOBS {
        let folder = home.join("runs").join(name);
        std::fs::create_dir_all(&folder).map_err(Error::file(&folder))?;
        let trace = repo::root().join("traces").join(name).join("trace.json.zst");
        symlink(trace, folder.join("trace.json.zst")).map_err(Error::file(&folder))?;
    }
    let other = home.join("runs/text/text.json.zst");
    std::fs::create_dir_all(home.join("runs/text")).map_err(Error::file(&other))?;
    std::fs::write(&other, "to whom it may concern\n").map_err(Error::file(&other))?;

    let python = |program: &str, arguments: &[&str]| -> Result<Output, Error> {
        let mut python = bench.command(bench.python.join("python"));
        python
            .env("PYTHONPATH", repo::root().join("crates/xmem-python/python"))
            .env("XMEM_PROGRAM", bench.xmem)
            .current_dir(&home)
            .args(["-c", program])
            .args(arguments);
        python.output().map_err(Error::start("python"))
    };
    let expected = python(EXPECT, &JOBS)?;
    let mut complaints = Vec::new();
    for program in programs {
        let ran = python(program, &[])?;
        let shown = python(SHOW, &[])?;
        if !ran.status.success() || shown.stdout != expected.stdout || expected.stdout.is_empty() {
            let texts = [&ran, &shown, &expected].map(text_of);
            complaints.push(texts.join("\n"));
        }
        let answers = home.join("answers");
        if answers.exists() {
            std::fs::remove_dir_all(&answers).map_err(Error::file(&answers))?;
        }
    }
    Ok(complaints)
}

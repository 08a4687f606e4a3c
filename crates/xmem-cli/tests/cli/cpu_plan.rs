//! Jobs that follow a plan on the CPU compute what they compute without it.

use crate::job::Folder;
use crate::shell::xmem;
use serde_json::Value;
use std::process::Command;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
const JOBS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cli/cpu_plan.py");

fn interpreter() -> String {
    std::env::var("XMEM_TEST_PYTHON").expect("XMEM_TEST_PYTHON names an interpreter")
}

/// What a job prints without a plan.
fn printed(job: &str) -> String {
    let output = Command::new(interpreter()).args([JOBS, job]).output().expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

/// Runs a job with a plan; returns what it prints, and the report.
fn run(folder: &Folder, plan: &str, job: &str) -> (String, Value) {
    let python = interpreter();
    let (report, hints) = (folder.path("run.json"), folder.path("hints.json"));
    let options = ["run", "--cpu", "--plan", plan, "--check-plan", "--report", &report];
    let command = ["--export-hints", &hints, "--", &python, JOBS, job];
    let ran = xmem(options.into_iter().chain(command));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    (ran.stdout, serde_json::from_str(&folder.read("run.json")).expect("a report"))
}

#[test]
#[ignore = "needs an interpreter with PyTorch, named by XMEM_TEST_PYTHON"]
fn a_job_on_the_cpu_computes_the_same_with_a_plan() {
    for (job, share) in [
        ("inference", 70),
        ("training", 70),
        ("workers", 70),
        // Requests of other threads count, too.
        ("threads", 5),
        ("lengths", 30),
        // Counted by calls, its iterations would differ in size.
        ("marked", 70),
    ] {
        let folder = Folder::new();
        let (ran, report) = run(&folder, "auto", job);
        assert_eq!(ran, printed(job), "{job}");
        let count = |name: &str| report[name].as_u64().expect("a count");
        assert_eq!(count("collisions"), 0, "{job}");
        assert!(count("planned") * 100 >= count("requests") * share, "{job}: {report}");
    }
}

#[test]
#[ignore = "needs an interpreter with PyTorch, named by XMEM_TEST_PYTHON"]
fn a_plan_of_a_recording_or_of_a_run_before_is_followed_from_the_first_iteration() {
    let (folder, python) = (Folder::new(), interpreter());
    let trace = folder.path("trace.json.zst");
    // It warns that nothing is on a GPU.
    xmem(["profile", "--engine", "cpu", "-o", &trace, "--", &python, JOBS, "training"]);
    let expected = printed("training");
    for plan in [trace, folder.path("hints.json")] {
        let (ran, report) = run(&folder, &plan, "training");
        assert_eq!(ran, expected, "{plan}");
        let count = |name: &str| report[name].as_u64().expect("a count");
        assert_eq!(count("collisions"), 0, "{plan}: {report}");
        assert!(count("planned") * 100 >= count("requests") * 90, "{plan}: {report}");
    }
}

#[test]
fn a_plan_for_other_memory_is_refused() {
    let folder = Folder::new();
    let hints = folder.path("hints.json");
    let trace = format!("{ROOT}/traces/mlp_adam/trace.json.zst");
    let planned = xmem(["plan", &trace, "--planner", "bestfit", "--export-hints", &hints]);
    assert_eq!(planned.code, 0, "{}", planned.stderr);
    let ran = xmem(["run", "--cpu", "--plan", &hints, "--", "true"]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("is a plan for the memory of a GPU"), "{}", ran.stderr);
}

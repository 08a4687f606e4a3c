//! Objects that are as large as the API server takes them.

use super::outages::{FailurePolicy, set_policy};
use super::{Bench, LARGE, SMALL, Scenario};
use xmem_task::Error;

pub(super) static SCENARIOS: [Scenario; 1] = [Scenario {
    name: "a Job of 3 MB, Fail: decided about, labeled, finalized and deleted",
    needs: None,
    run: large_job,
}];

/// Characters that JSON of Kubernetes writes as six (`\u003c`): a request may have 3 MiB.
const CHARACTERS: usize = 480_000;

/// What is done to the Job, with the exit status and the reviews that it takes.
const STEPS: [(&[&str], usize); 4] = [
    (&["label", "job", "long", "team=vision"], 1),
    (
        &[
            "patch",
            "job",
            "long",
            "--type=merge",
            "-p",
            r#"{"metadata":{"finalizers":["example.org/f"]}}"#,
        ],
        1,
    ),
    (&["patch", "job", "long", "--type=merge", "-p", r#"{"metadata":{"finalizers":null}}"#], 1),
    (&["delete", "job", "long", "--wait=false"], 0),
];

fn large_job(bench: &mut Bench) -> Result<Vec<String>, Error> {
    // With this policy, what the server refuses to read is seen.
    set_policy(bench, FailurePolicy::Fail)?;
    let mut complaints = Vec::new();
    let mut say = |arguments: &[&str], wanted: &str, reviews: usize| -> Result<(), Error> {
        let before = bench.server.asked();
        let said = bench.kubectl.run(&[arguments, &["-n", "research"]].concat())?;
        let asked = bench.server.asked() - before;
        if !said.text.contains(wanted) || asked != reviews {
            let command = arguments.join(" ");
            complaints.push(format!(
                "{command}: no `{wanted}` with {reviews} reviews, but {asked}\n{}",
                said.text
            ));
        }
        Ok(())
    };
    for (gpu, wanted) in
        [(SMALL, "denied the request: xmem: does not fit"), (LARGE, "job.batch/long created")]
    {
        let path = bench.manifest("annotated-job.yaml", "long", gpu)?;
        let text = std::fs::read_to_string(&path).map_err(Error::file(&path))?;
        let arguments = format!("args: [\"{}\"]\n        resources:", "<".repeat(CHARACTERS));
        let text = text.replace("resources:", &arguments);
        std::fs::write(&path, text).map_err(Error::file(&path))?;
        say(&["create", "-f", &path.display().to_string()], wanted, 1)?;
    }
    for (step, reviews) in STEPS {
        say(step, "ed", reviews)?;
    }
    set_policy(bench, FailurePolicy::Ignore)?;
    Ok(complaints)
}

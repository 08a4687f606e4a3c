//! Files of the server that change while it runs.

use super::load::{Counts, Load};
use super::outages::{FailurePolicy, set_policy};
use super::{Bench, SMALL, Scenario, TESTS};
use std::path::Path;
use xmem_task::{Error, repo};

pub(super) static SCENARIOS: [Scenario; 2] = [
    Scenario { name: "the site file changes: warn, reject, broken, warn", needs: None, run: site },
    Scenario {
        name: "the certificate is rotated three times during creations: nothing fails",
        needs: None,
        run: certificate,
    },
];

/// The namespace whose rules change.
const NAMESPACE: &str = "changing";

/// What is done to objects that were created before the rules changed, and passes.
const UPDATES: [&[&str]; 8] = [
    &["label", "job", "changed", "team=vision"],
    &["annotate", "job", "changed", "note=none"],
    &["label", "deployment", "changed", "team=vision"],
    &["scale", "deployment", "changed", "--replicas=2"],
    &["set", "image", "deployment/changed", "train=registry.example.org/train:2"],
    &["rollout", "restart", "deployment", "changed"],
    &[
        "patch",
        "job",
        "changed",
        "--type=merge",
        "-p",
        r#"{"metadata":{"finalizers":["example.org/f"]}}"#,
    ],
    &["patch", "job", "changed", "--type=merge", "-p", r#"{"metadata":{"finalizers":null}}"#],
];

/// A change of the pods, which is decided about.
const MORE_GPUS: &str = r#"[{"op": "replace", "value": "2",
    "path": "/spec/template/spec/containers/0/resources/limits/nvidia.com~1gpu"}]"#;

fn site(bench: &mut Bench) -> Result<Vec<String>, Error> {
    let warn = repo::text(&Path::new(TESTS).join("site.toml"))?;
    let rule = |policy: &str| format!("[namespace.{NAMESPACE}]\npolicy = \"{policy}\"");
    let reject = warn.replace(&rule("warn"), &rule("reject"));
    let mut complaints = Vec::new();
    let mut say = |arguments: &[&str], exit: i32, wanted: &str| -> Result<(), Error> {
        let said = bench.kubectl.run(&[arguments, &["-n", NAMESPACE]].concat())?;
        if said.exit != exit || !said.text.contains(wanted) {
            let command = arguments.join(" ");
            complaints.push(format!("{command}: status {}\n{}", said.exit, said.text));
        }
        Ok(())
    };
    for manifest in ["annotated-job.yaml", "deployment.yaml"] {
        let path = bench.manifest(manifest, "changed", SMALL)?;
        let path = path.display().to_string();
        say(&["create", "-f", &path], 0, "Warning: xmem: does not fit")?;
    }

    let is_rejected = |text: &str| text.contains("denied the request: xmem: does not fit");
    bench.server.write_site(&reject)?;
    bench.wait_for("rejections by the new site file", NAMESPACE, SMALL, is_rejected)?;
    for update in UPDATES {
        say(update, 0, "changed")?;
    }
    let patch = ["patch", "deployment", "changed", "--type=json", "-p", MORE_GPUS];
    say(&patch, 1, "denied the request: xmem: does not fit")?;

    bench.server.write_broken_site("policy = nonsense\n")?;
    if !is_rejected(&bench.try_job(NAMESPACE, SMALL)?) {
        complaints.push("a broken site file has changed the rules".to_owned());
    }
    let mut say = |arguments: &[&str]| -> Result<(), Error> {
        let said = bench.kubectl.run(&[arguments, &["-n", NAMESPACE]].concat())?;
        if said.exit != 0 {
            complaints.push(format!("{}\n{}", arguments.join(" "), said.text));
        }
        Ok(())
    };
    say(&["delete", "job,deployment", "changed", "--wait=false"])?;

    bench.server.write_site(&warn)?;
    bench.wait_for("warnings by the new site file", NAMESPACE, SMALL, |text| {
        text.contains("Warning: xmem: does not fit") && text.contains("created")
    })?;
    Ok(complaints)
}

fn certificate(bench: &mut Bench) -> Result<Vec<String>, Error> {
    // With this policy, whatever fails is seen.
    set_policy(bench, FailurePolicy::Fail)?;
    let load = Load::start(bench)?;
    for _ in 0..3 {
        bench.server.rotate(&bench.authority)?;
        load.wait_for_runs()?;
    }
    let counts = Counts::sum(&load.finish()?);
    println!(
        "        {} Jobs: {} created, {} rejected",
        counts.jobs(),
        counts.created,
        counts.rejected
    );
    let as_expected =
        counts.rejected > 0 && counts.created == counts.rejected && counts.is_decided();
    set_policy(bench, FailurePolicy::Ignore)?;
    Ok(if as_expected { Vec::new() } else { vec![format!("{counts:?}")] })
}

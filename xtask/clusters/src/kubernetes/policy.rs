//! The policy in CEL, without a server.

use super::case::Feature;
use super::{Bench, LARGE, MANIFESTS, SMALL, Scenario};
use std::path::PathBuf;
use std::process::Command;
use xmem_task::tally::text_of;
use xmem_task::{Error, repo};

/// The last, because it ends the webhooks.
pub(super) static SCENARIOS: [Scenario; 1] = [Scenario {
    name: "the policy of xmem config without a server; server.yaml is valid",
    needs: Some(Feature::AdmissionPolicies),
    run: without_server,
}];

/// Less than the Jobs of the manifests need: 2 GiB without the context.
const MESSAGE: &str =
    "denied request: xmem: does not fit: needs 2582 MiB of 1648 MiB on Tesla-V100-SXM2-16GB";

fn without_server(bench: &mut Bench) -> Result<Vec<String>, Error> {
    let kubectl = bench.kubectl.clone();
    for kind in ["validatingwebhookconfiguration", "mutatingwebhookconfiguration"] {
        kubectl.must(&["delete", kind, "xmem"])?;
    }
    bench.server.kill();
    let path = |file: &str| repo::root().join(MANIFESTS).join(file).display().to_string();
    kubectl.must(&["apply", "-f", &path("namespace.yaml")])?;
    for file in ["server.yaml", "admission-policy.yaml"] {
        kubectl.must(&["apply", "--dry-run=server", "-f", &path(file)])?;
    }
    kubectl.must(&["apply", "-f", &written(bench)?.display().to_string()])?;
    bench.wait_for("rejections by the policy", "research", SMALL, |text| text.contains(MESSAGE))?;

    let mut complaints = Vec::new();
    for (manifest, namespace, gpu, wanted) in [
        ("annotated-job.yaml", "research", LARGE, "created"),
        ("annotated-job.yaml", "unlabeled", SMALL, "created"),
        ("annotated-job.yaml", "teaching", SMALL, "Warning: "),
        ("annotated-job.yaml", "teaching", SMALL, "created"),
        ("job.yaml", "research", SMALL, "created"),
        ("job.yaml", "strict", SMALL, "xmem: GPU memory not checked: no annotation"),
        ("cpu-job.yaml", "strict", SMALL, "created"),
        ("pod.yaml", "research", LARGE, "created"),
        ("pod.yaml", "research", SMALL, MESSAGE),
        ("owned-pod.yaml", "research", SMALL, MESSAGE),
        ("spelled-pod.yaml", "research", SMALL, MESSAGE),
        ("deployment.yaml", "research", SMALL, MESSAGE),
        ("replicaset.yaml", "research", SMALL, MESSAGE),
        ("daemonset.yaml", "research", SMALL, MESSAGE),
        ("statefulset.yaml", "research", SMALL, MESSAGE),
        ("cronjob.yaml", "research", SMALL, MESSAGE),
    ] {
        let file = bench.manifest(manifest, "tried", gpu)?.display().to_string();
        let said = kubectl.run(&["create", "--dry-run=server", "-n", namespace, "-f", &file])?;
        if !said.text.contains(wanted) {
            complaints.push(format!("{manifest} in {namespace} on {gpu}\n{}", said.text));
        }
    }
    Ok(complaints)
}

/// The policy that xmem writes from the site file.
fn written(bench: &Bench) -> Result<PathBuf, Error> {
    let output = Command::new(bench.server.program())
        .args(["config", "--site", "site.toml", "--format", "admission-policy"])
        .current_dir(&bench.folder)
        .output()
        .map_err(Error::start("xmem config"))?;
    if !output.status.success() {
        print!("{}", text_of(&output));
        return Err(Error::Failed { command: "xmem config --format admission-policy".to_owned() });
    }
    let path = bench.folder.join("admission-policy.yaml");
    std::fs::write(&path, &output.stdout).map_err(Error::file(&path))?;
    Ok(path)
}

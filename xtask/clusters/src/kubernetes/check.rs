//! A case on the cluster: its commands, and what is complained about.

use super::Bench;
use super::case::{Case, Step};
use std::path::Path;
use std::process::Command;
use xmem_task::tally::text_of;
use xmem_task::{Error, repo};

/// Does what the case says, and gives what is not as it should be.
pub(super) fn check(case: &Case, number: usize, bench: &Bench) -> Result<Vec<String>, Error> {
    let name = format!("case-{number}");
    let manifest = bench.manifest(&case.manifest, &name, &case.gpu)?;
    let mut complaints = Vec::new();
    if let Some(trace) = &case.trace {
        complaints.extend(annotate(trace, &manifest, bench)?);
    }
    let filled = |text: &String| {
        text.replace("{manifest}", &manifest.display().to_string()).replace("{name}", &name)
    };
    for step in &case.step {
        let step = Step {
            command: step.command.iter().map(filled).collect(),
            output: step.output.iter().map(filled).collect(),
            without: step.without.iter().map(filled).collect(),
            ..step.clone()
        };
        complaints.extend(done(&step, &case.namespace, bench)?);
    }
    Ok(complaints)
}

/// Annotates a manifest, as its author does. That the job does not fit is no failure.
fn annotate(trace: &str, manifest: &Path, bench: &Bench) -> Result<Option<String>, Error> {
    let xmem = bench.server.program();
    let trace = repo::root().join("traces").join(trace).join("trace.json.zst");
    let output = Command::new(xmem)
        .arg("check")
        .arg(trace)
        .arg("--k8s")
        .arg(manifest)
        .args(["--site", "site.toml", "--write"])
        .current_dir(&bench.folder)
        .output()
        .map_err(Error::start(xmem.display().to_string()))?;
    let text = text_of(&output);
    Ok((!text.contains("annotations of 1 pod template"))
        .then(|| format!("xmem check has annotated nothing\n{text}")))
}

/// Runs a command, and gives what is not as it should be.
fn done(step: &Step, namespace: &str, bench: &Bench) -> Result<Vec<String>, Error> {
    let mut arguments: Vec<&str> = step.command.iter().map(String::as_str).collect();
    if !arguments.contains(&"-n") {
        arguments.extend(["-n", namespace]);
    }
    let before = bench.server.asked();
    let said = bench.kubectl.run(&arguments)?;
    let asked = bench.server.asked() - before;

    let command = format!("kubectl {}", arguments.join(" "));
    let mut complaints = Vec::new();
    let mut complain = |what: String| complaints.push(format!("{what}\n{command}\n{}", said.text));
    if said.exit != step.exit {
        complain(format!("exit status {}", said.exit));
    }
    if let Some(expected) = step.asked.filter(|expected| *expected != asked) {
        complain(format!("the server was asked {asked} times, not {expected}"));
    }
    for wanted in step.output.iter().filter(|wanted| !said.text.contains(wanted.as_str())) {
        complain(format!("no `{wanted}` in the output"));
    }
    for unwanted in step.without.iter().filter(|unwanted| said.text.contains(unwanted.as_str())) {
        complain(format!("`{unwanted}` in the output"));
    }
    Ok(complaints)
}

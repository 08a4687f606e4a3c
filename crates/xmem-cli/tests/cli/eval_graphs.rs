//! `xmem eval` with estimates from graphs, against runs that were recorded with PyTorch's CUDA build, kernels stubbed.

use crate::job::Folder;
use crate::profile::flat;
use crate::schema_check::check;
use crate::shell::{Ran, command};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Stdio;

const SCHEMA: &str = include_str!("../../../../docs/schema/xmem.eval.1.schema.json");

/// Recorded jobs with graphs.
const JOBS: [&str; 2] = ["squeezenet_sgd", "vgg11_sgd_pos0"];

const DEVICE: &str = "rtx3060-12g";

fn traces() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../traces")
}

/// Runs the command with the answers of cuDNN that are kept beside the traces.
fn xmem(args: &[&str]) -> Ran {
    let mut command = command(args);
    command.env("XMEM_CUDNN", traces().join("cudnn")).stdin(Stdio::null());
    command.output().expect("runs").into()
}

fn graph(name: &str) -> String {
    traces().join(format!("graphs/{name}.pt2")).display().to_string()
}

/// Reserved bytes of the recorded job.
fn recorded(name: &str) -> u64 {
    let text = std::fs::read_to_string(traces().join(name).join("expected.toml")).expect("a file");
    let expected: toml::Table = text.parse().expect("TOML");
    expected["peak"]["reserved-bytes"].as_integer().expect("a number").unsigned_abs()
}

/// A matrix of the jobs, with their graphs, and a table of their runs.
fn folder(options: &str) -> Folder {
    let folder = Folder::empty();
    let graphs = traces().join("graphs").display().to_string();
    let matrix = format!(
        "classes = true\n\
         [estimators.xmem-graph]\nengine = 'graph'\n\
         [estimators.dnnmem-graph]\nengine = 'graph'\nfigure = 'dnnmem'\n\
         [estimators.bfc-graph]\nengine = 'graph'\nfigure = 'dnnmem-bfc'\n\
         [estimators.all-on-exit]\nengine = 'graph'\nfigure = 'dnnmem'\npolicies = ['forward_output=demand:exit']\n\
         [estimators.shapes-graph]\nengine = 'graph'\nfigure = 'shape-inference'\n\
         [[jobs]]\nfamily = 'cnn'\ncommand = ['true', '{{job}}']\n\
         graph = {{ file = '{graphs}/{{job}}.pt2' }}\n{options}\n\
         factors = {{ job = ['squeezenet_sgd', 'vgg11_sgd_pos0'], device = ['{DEVICE}'] }}\n"
    );
    folder.put("matrix.toml", matrix.as_bytes());
    let rows = JOBS.map(|job| format!("{job},{DEVICE},{},false\n", recorded(job)));
    let table = format!("job,device,peak_bytes,out_of_memory\n{}", rows.concat());
    folder.put("runs.csv", table.as_bytes());
    folder
}

fn eval(folder: &Folder, more: &[&str]) -> Ran {
    let (matrix, runs) = (folder.path("matrix.toml"), folder.path("runs.csv"));
    let args = ["eval", &matrix, "--readings", &runs, "--without-recording"];
    xmem(&[&args[..], &["--without-second-round"], more].concat())
}

fn bytes(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no number of bytes"))
}

/// The estimates are those of `xmem estimate` and of `xmem plan` about the same graph: no figure is computed twice.
#[test]
fn graphs_are_estimated_as_by_the_other_commands() {
    let folder = folder("");
    let ran = eval(&folder, &["--format", "json"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let document = ran.json();
    let schema: Value = serde_json::from_str(SCHEMA).expect("a schema");
    check(&schema, &document).expect("the schema holds");
    for (name, job) in JOBS.iter().zip(document["jobs"].as_array().expect("jobs")) {
        let of = |estimator: &str| &job["estimates"][estimator];
        let memory = |estimator: &str| bytes(&of(estimator)["memory_bytes"]);
        assert_eq!(memory("xmem-graph"), recorded(name), "{name}");
        assert_eq!(of("xmem-graph")["signed_error"], 0.0);

        let trace = folder.path(&format!("{name}.json"));
        let estimate = ["estimate", &graph(name), "--device", DEVICE, "--trace", &trace];
        assert_eq!(xmem(&estimate).code, 0);
        let plan = ["plan", &trace, "--device", DEVICE, "--planner", "bestfit", "--format", "json"];
        let breakdown = xmem(&plan).json()["breakdown"].clone();
        let context = breakdown["categories"].as_array().expect("categories");
        let context = context.iter().find(|category| category["category"] == "context");
        let context = bytes(&context.expect("the context")["bytes"]);
        let expected = |key: &str| bytes(&breakdown[key]);
        assert_eq!(memory("dnnmem-graph"), expected("dnnmem_bytes") - context, "{name}");
        assert_eq!(memory("bfc-graph"), expected("dnnmem_bfc_bytes") - context, "{name}");
        assert_eq!(memory("shapes-graph"), expected("shape_inference_all_outputs_bytes"), "{name}");
        assert!(memory("shapes-graph") < memory("dnnmem-graph"), "{name}");
        assert!(memory("dnnmem-graph") < memory("all-on-exit"), "{name}");

        for estimator in ["xmem-graph", "dnnmem-graph"] {
            let classes = &of(estimator)["classes"];
            let sum: u64 = ["live_bytes", "rounding_bytes", "reservation_bytes"]
                .map(|class| bytes(&classes[class]))
                .iter()
                .sum();
            assert_eq!(sum, memory(estimator), "{name}: the classes of {estimator}");
        }
        assert_eq!(of("shapes-graph")["classes"], Value::Null);
    }
    assert!(!folder.names().iter().any(|name| name.ends_with(".store")), "nothing was recorded");
}

/// A reading of the whole process has the CUDA context in it, and the estimates then have it, too; the baseline never has.
#[test]
fn readings_of_processes_have_the_context() {
    let memory = |options: &str, estimator: &str| {
        let ran = eval(&folder(options), &["--format", "json", "--only", "job=squeezenet_sgd"]);
        bytes(&ran.json()["jobs"][0]["estimates"][estimator]["memory_bytes"])
    };
    let more =
        |estimator: &str| memory("readings_from = 'process'", estimator) - memory("", estimator);
    assert_eq!(more("xmem-graph"), 200 << 20);
    assert_eq!(more("dnnmem-graph"), 200 << 20);
    assert_eq!(more("shapes-graph"), 0);
}

#[test]
fn a_few_jobs_are_shown_one_by_one() {
    let ran =
        eval(&folder(""), &["--estimators", "xmem-graph,dnnmem-graph", "--format", "markdown"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    expect_test::expect![[r#"
        :

        | job | peak | dnnmem-graph | xmem-graph |
        | --- | --: | --: | --: |
        | squeezenet\_sgd | 134.00 MiB | 134.00 MiB (0.0 %) | 134.00 MiB (0.0 %) |
        | vgg11\_sgd\_pos0 | 1.13 GiB | 1.12 GiB (−0.3 %) | 1.13 GiB (0.0 %) |
    "#]]
    .assert_eq(ran.stdout.split("Each job").nth(1).expect("a table"));
}

#[test]
fn what_is_wrong_with_graphs_is_named() {
    let broken = folder("");
    let matrix = broken.read("matrix.toml");
    let with = |from: &str, to: &str| {
        let folder = folder("");
        folder.put("matrix.toml", matrix.replace(from, to).as_bytes());
        eval(&folder, &[])
    };
    for (from, to, message) in [
        ("demand:exit", "never", "invalid policies of the estimator `all-on-exit`"),
        ("/{job}.pt2", "/{model}.pt2", "has {model}, which is not one of their factors"),
        ("/{job}.pt2", "/{job}.none", "cannot read `"),
        ("/{job}.pt2", "/job.py", "its graph cannot be estimated: "),
        ("'graph'", "'graphs'", "is not a matrix of jobs"),
    ] {
        let ran = with(from, to);
        assert_eq!((ran.code, ran.stdout.as_str()), (3, ""), "{from}: {}", ran.stderr);
        assert!(flat(&ran).contains(message), "{from}: {}", ran.stderr);
    }
}

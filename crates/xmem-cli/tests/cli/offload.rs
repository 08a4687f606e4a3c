//! `xmem offload` on recorded networks.

use crate::job::Folder;
use crate::schema_check::check;
use crate::shell::{Ran, command, xmem};
use expect_test::expect;
use serde_json::Value;

const SCHEMA: &str = include_str!("../../../../docs/schema/xmem.offload.1.schema.json");
const RESNET: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../traces/networks/resnet32.json.zst");

const README: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md");

fn valid(ran: &Ran) -> Value {
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    let document = ran.json();
    check(&serde_json::from_str(SCHEMA).expect("schema"), &document).expect("valid");
    document
}

fn row<'d>(document: &'d Value, policy: &str, placement: &str) -> &'d Value {
    let rows = document["rows"].as_array().expect("rows");
    let found = rows.iter().find(|row| row["policy"] == policy && row["placement"] == placement);
    found.unwrap_or_else(|| panic!("no row of {policy} and {placement}"))
}

#[test]
fn the_page_shows_what_the_command_prints() {
    let page = include_str!("../../../../docs/offload.md");
    let (_, block) = page.split_once("```console\n$ xmem ").expect("a command");
    let (typed, shown) = block.split_once('\n').expect("its output");
    let (shown, _) = shown.split_once("\n```").expect("the end");
    let mut ran = command(typed.split(' '));
    ran.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let ran: Ran = ran.output().expect("runs").into();
    assert_eq!((ran.stdout.trim_end(), ran.stderr.as_str(), ran.code), (shown, "", 0));
}

#[test]
fn a_policy_as_text() {
    let ran = xmem(["offload", RESNET, "--device", "p100-16g", "--policy", "dymem", "-q"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    let (sentence, _) = ran.stdout.split_once("  ").expect("the input");
    expect!["dymem (caching) needs 176.00 MiB instead of 236.00 MiB (-25 %), and takes 2.08 times as long"].assert_eq(sentence);
    let ran = xmem(["offload", RESNET, "--device", "p100-16g", "--policy", "dymem"]);
    for expected in ["a model, not a measurement", "33 conv", "TFLOP/s at 60 %", "12.0 GB/s"] {
        assert!(ran.stdout.contains(expected), "{expected} in\n{}", ran.stdout);
    }
}

#[test]
fn policies_and_placements_as_json() {
    let ran = xmem([
        "offload",
        RESNET,
        "--device",
        "p100-16g",
        "--placement",
        "all",
        "--min-capacity",
        "--format",
        "json",
    ]);
    let document = valid(&ran);
    assert_eq!(document["rows"].as_array().map(Vec::len), Some(11 * 5));
    for row in document["rows"].as_array().expect("rows") {
        assert_eq!(row["to_host_bytes"], row["to_device_bytes"]);
        assert!(row["peak_bytes"].as_u64() >= row["lower_bound_bytes"].as_u64());
    }
    assert_eq!(row(&document, "serial", "gtbm")["overlapped_us"], 0.0);
    assert_eq!(row(&document, "vdnn-dyn", "caching")["chosen"]["policy"], "none");
    let planned = row(&document, "dymem", "bestfit");
    assert!(planned["smallest_capacity_bytes"].is_null());
    let bytes = |placement: &str| row(&document, "dymem", placement)["peak_bytes"].as_u64();
    assert!(bytes("bestfit") <= bytes("gtbm") && bytes("gtbm") < bytes("pool-best-fit"));
}

#[test]
fn a_capacity_makes_policies_wait_or_fail() {
    let run = |capacity: &str, more: &[&str]| {
        let given = ["offload", RESNET, "--device", "p100-16g", "--placement", "pool-best-fit"];
        let rest = ["--capacity", capacity, "--format", "json"];
        valid(&xmem(given.into_iter().chain(rest).chain(more.iter().copied())))
    };
    let document = run("120MiB", &[]);
    assert_eq!(document["capacity_bytes"], 120 << 20);
    let failed = &row(&document, "none", "pool-best-fit")["out_of_memory"];
    assert!(failed["live_bytes"].as_u64() <= Some(120 << 20), "{failed}");
    assert!(row(&document, "vdnn-all", "pool-best-fit")["out_of_memory"].is_null());
    assert_ne!(row(&document, "vdnn-dyn", "pool-best-fit")["chosen"]["policy"], "none");
    // What is moved only where memory is short costs less than what is always moved.
    let cached = run("160MiB", &["--policy", "superneurons", "--tensor-cache"]);
    let cached = row(&cached, "superneurons", "pool-best-fit");
    assert!(cached["out_of_memory"].is_null());
    let always = run("160MiB", &["--policy", "superneurons"]);
    let always = row(&always, "superneurons", "pool-best-fit");
    assert!(cached["to_host_bytes"].as_u64() < always["to_host_bytes"].as_u64());
}

#[test]
fn the_headline_says_what_runs_in_a_capacity() {
    let ran = |capacity: &str| {
        let given = ["offload", RESNET, "--device", "p100-16g", "--placement", "gtbm", "-q"];
        xmem(given.into_iter().chain(["--capacity", capacity])).stdout
    };
    let page = ran("120MiB");
    assert!(
        page.starts_with("dymem (gtbm) runs in 120.00 MiB, where without offloading"),
        "{page}"
    );
    let page = ran("50MiB");
    assert!(page.starts_with("Without offloading, 50.00 MiB are too little"), "{page}");
}

#[test]
fn sizes_beyond_any_memory_are_refused() {
    let trace = r#"{"traceEvents": [
        {"ph": "X", "cat": "cpu_op", "name": "aten::empty", "pid": 1, "tid": 1, "ts": 1, "dur": 5},
        {"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "pid": 1, "tid": 1, "ts": 2,
         "args": {"Bytes": 4611686018427387904, "Addr": 64, "Device Type": 0, "Device Id": -1}}
    ]}"#;
    let folder = Folder::empty();
    folder.put("huge.json", trace.as_bytes());
    let ran = xmem(["offload", &folder.path("huge.json")]);
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    assert!(ran.stderr.contains("the blocks have more than 2^60 bytes"), "{}", ran.stderr);
}

#[test]
fn options_of_the_model_change_the_times() {
    let step = |more: &[&str]| {
        let given = ["offload", RESNET, "--device", "p100-16g", "--policy", "vdnn-all"];
        let document =
            valid(&xmem(given.into_iter().chain(["--format", "json"]).chain(more.iter().copied())));
        row(&document, "vdnn-all", "caching")["step_us"].as_f64().expect("a time")
    };
    let usual = step(&[]);
    assert!(step(&["--pcie-gbps", "48"]) < usual);
    assert!(step(&["--pcie-gbps", "1.5"]) > usual);
    assert!(step(&["--duplex"]) <= usual);
    let folder = Folder::empty();
    folder.put("measured.csv", b"op,duration_us\naten::convolution_backward,5000\n");
    assert!(step(&["--durations", &folder.path("measured.csv")]) > usual);
}

/// Profiles of a GPU have the time of a convolution at the innermost operator, for which the model has no formula.
#[test]
fn measured_durations_count_at_inner_operators_and_others_are_named() {
    let folder = Folder::empty();
    let ran = |table: &str, format: &str| {
        folder.put("measured.csv", table.as_bytes());
        let table = folder.path("measured.csv");
        let arguments = ["offload", RESNET, "--device", "p100-16g", "--policy", "dymem"];
        xmem(arguments.into_iter().chain(["--format", format, "--durations", &table]))
    };
    let document =
        valid(&ran("op,duration_us\naten::cudnn_convolution,1000\naten::foo,1\n", "json"));
    // 33 convolutions, of which the model says 3 ms.
    let computed = row(&document, "none", "caching")["compute_us"].as_f64().expect("a time");
    assert!((33_000.0..45_000.0).contains(&computed), "{computed}");
    let parameters = document["model"]["parameters"].as_array().expect("parameters");
    for expected in
        ["2 measured operators", "not in the iteration, of the measured ones: aten::foo"]
    {
        assert!(parameters.iter().any(|line| line == expected), "{expected} in {parameters:?}");
    }
    let unused = ran("op,duration_us\naten::foo,1\n", "text");
    assert_eq!(unused.code, 3);
    assert!(unused.stderr.contains("no operator of the table of durations"), "{}", unused.stderr);
}

/// PyTorch's allocator gives cached segments back where memory is short: without a limit, Dymem has 176 MiB in them.
#[test]
fn what_runs_in_a_capacity_needs_no_more() {
    let ran = xmem([
        "offload",
        RESNET,
        "--device",
        "p100-16g",
        "--placement",
        "all",
        "--capacity",
        "120MiB",
        "--format",
        "json",
    ]);
    let document = valid(&ran);
    for row in document["rows"].as_array().expect("rows") {
        let peak = row["peak_bytes"].as_u64().expect("bytes");
        let is_static = row["placement"] == "bestfit";
        assert!(is_static || peak <= 120 << 20, "{peak} bytes: {row}");
    }
    assert_eq!(row(&document, "dymem", "caching")["out_of_memory"], Value::Null);
}

#[test]
fn recomputation_is_counted() {
    let ran = xmem([
        "offload",
        RESNET,
        "--device",
        "p100-16g",
        "--policy",
        "superneurons",
        "--recompute",
        "--format",
        "csv",
    ]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert_eq!(lines.len(), 3);
    let columns: Vec<&str> = lines[0].split(',').collect();
    assert!(lines[1..].iter().all(|line| line.split(',').count() == columns.len()));
    assert!(lines[2].starts_with("superneurons,caching,"));
}

#[test]
fn memory_over_time_is_a_table() {
    let folder = Folder::empty();
    let series = folder.path("series.csv");
    let ran = xmem(["offload", RESNET, "--policy", "dymem", "--series", &series, "-q"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    let text = folder.read("series.csv");
    assert!(text.starts_with("policy,placement,time_us,live_bytes,used_bytes,unusable\nnone,"));
    assert!(text.lines().filter(|line| line.starts_with("dymem,caching,")).count() > 500);
}

#[test]
fn unknown_names_and_tables_are_refused() {
    for (arguments, expected) in [
        (vec!["--policy", "vdnn"], "`vdnn` is not a policy; there are all, none, serial"),
        (vec!["--placement", "best"], "`best` is not a placement; there are all, caching"),
        (vec!["--pcie-gbps", "0"], "expected a number from 0.001 up"),
        (vec!["--tensor-cache"], "--capacity"),
        (vec!["--durations", README], "offloading cannot be simulated"),
    ] {
        let ran = xmem(["offload", RESNET].into_iter().chain(arguments));
        assert!(ran.code == 2 || ran.code == 3, "{}", ran.code);
        assert!(ran.stderr.contains(expected), "{expected} in\n{}", ran.stderr);
    }
}

/// The best fit in the pool of a ResNet-32 needs 195 MiB, of which up to 9 MiB are workspaces.
#[test]
fn workspaces_are_recorded_or_less() {
    let run = |rule: &str, more: &[&str]| {
        let given = ["offload", RESNET, "--device", "p100-16g", "--placement", "pool-best-fit"];
        let rest = ["--policy", "vdnn-all,vdnn-dyn", "--workspace", rule, "--format", "json"];
        valid(&xmem(given.into_iter().chain(rest).chain(more.iter().copied())))
    };
    let recorded = run("recorded", &[]);
    assert_eq!(recorded["workspaces"], "recorded");
    let all = &row(&recorded, "none", "pool-best-fit")["workspaces"];
    assert!(all["whole"].as_u64() > Some(30), "{all}");
    assert_eq!((&all["smaller"], &all["without"]), (&Value::from(0), &Value::from(0)));
    let none = run("none", &[]);
    assert_eq!(row(&none, "vdnn-all", "pool-best-fit")["workspaces"]["without"], all["whole"]);
    let peak = |document: &Value| row(document, "none", "pool-best-fit")["peak_bytes"].as_u64();
    assert!(peak(&none) <= peak(&recorded));
    // Convolutions without their workspaces are slower; other layers are not.
    let step = |document: &Value| {
        row(document, "none", "pool-best-fit")["step_us"].as_f64().expect("a time")
    };
    let slower = step(&none) / step(&recorded);
    assert!((1.1..1.6).contains(&slower), "{slower}");
    let fixed = run("fixed:1KiB", &[]);
    assert_eq!(fixed["workspaces"], "fixed:1024");
    assert!(
        row(&fixed, "none", "pool-best-fit")["workspaces"]["largest_bytes"].as_u64() <= Some(4096)
    );
}

#[test]
fn steps_whose_sizes_differ_are_tried() {
    let given = ["offload", RESNET, "--device", "p100-16g", "--policy", "dymem", "--jitter", "5%"];
    let rest = ["--placement", "gtbm,bestfit"];
    let ran = xmem(given.into_iter().chain(rest).chain(["--format", "json"]));
    let document = valid(&ran);
    assert_eq!(document["jitter"], serde_json::json!({"share": 0.05, "runs": 100, "seed": 1}));
    let jittered = &row(&document, "dymem", "gtbm")["jittered"];
    let failures = jittered["failures"].as_array().expect("margins");
    let runs: Vec<u64> = failures.iter().map(|f| f["runs"].as_u64().expect("runs")).collect();
    assert!(runs.len() == 4 && runs[0] > 0 && runs[3] == 0, "{runs:?}");
    assert!(runs.is_sorted_by(|more, fewer| more >= fewer));
    assert!(row(&document, "dymem", "bestfit")["jittered"].is_null());
    let page = xmem(given.into_iter().chain(rest)).stdout;
    assert!(page.contains("Steps whose sizes differ by up to 5 %, 100 of them"), "{page}");
    let refused = xmem(["offload", RESNET, "--jitter", "0"]);
    assert_eq!(refused.code, 2);
    assert!(refused.stderr.contains("expected a share above 0 and up to 1"));
}

#[test]
fn vdnn_dyn_keeps_the_workspaces_that_fit() {
    let alexnet = RESNET.replace("resnet32", "alexnet");
    let given = ["offload", &alexnet, "--device", "p100-16g", "--placement", "pool-best-fit"];
    let rest = ["--policy", "vdnn-dyn", "--capacity", "1000MiB"];
    let given = given.into_iter().chain(rest);
    let document = valid(&xmem(given.clone().chain(["--format", "json"])));
    let dynamic = row(&document, "vdnn-dyn", "pool-best-fit");
    assert_eq!(dynamic["chosen"]["policy"], "vdnn-all");
    assert_eq!(dynamic["chosen"]["workspaces"], false);
    let counts = &dynamic["workspaces"];
    let count = |of: &str| counts[of].as_u64().expect("a number");
    assert!(count("without") > 0 && count("whole") > count("without"), "{counts}");
    assert_eq!(count("smaller"), 0);
    let page = xmem(given).stdout;
    let remark = page.lines().skip_while(|line| !line.starts_with("  vdnn-dyn (pool-best-fit) is"));
    let expected = "  vdnn-dyn (pool-best-fit) is vdnn-all without the workspaces of 1 of 10 passes of convolutions";
    assert_eq!(remark.take(1).collect::<Vec<_>>(), [expected]);
}

#[test]
fn policies_without_anything_to_move_say_so() {
    let trace = concat!(env!("CARGO_MANIFEST_DIR"), "/../../traces/gpt2_adamw/trace.json.zst");
    let given = ["offload", trace, "--policy", "vdnn-conv,vdnn-all,dymem", "--move", "paper"];
    let page = xmem(given).stdout;
    assert!(page.contains("  vdnn-conv, vdnn-all move nothing here: only inputs of"), "{page}");
    assert!(page.contains("iteration 2 on a100-40g"), "{page}");
}

/// GPT-2 moved 56 of 922 MiB: the layers of Transformers were of no kind that a policy moves.
#[test]
fn transformers_have_kinds_of_their_own_that_policies_move() {
    let trace = concat!(env!("CARGO_MANIFEST_DIR"), "/../../traces/gpt2_adamw/trace.json.zst");
    let ran = xmem(["offload", trace, "--policy", "vdnn-all,dymem", "--format", "json"]);
    let document = valid(&ran);
    let kinds = document["graph"]["layers"].as_array().expect("layers");
    for kind in ["attention", "norm", "mlp"] {
        assert!(kinds.iter().any(|layer| layer["kind"] == kind), "{kind}");
    }
    let moved = |policy: &str| row(&document, policy, "caching")["to_host_bytes"].as_u64();
    assert!(moved("dymem") > Some(0) && moved("dymem") == moved("vdnn-all"));
}

#[test]
fn a_budget_is_kept_and_one_that_cannot_be_is_said() {
    let trace = concat!(env!("CARGO_MANIFEST_DIR"), "/../../traces/gpt2_adamw/trace.json.zst");
    let given = ["offload", trace, "--policy", "offload-activations,checkpoint", "--budget", "25%"];
    let document = valid(&xmem(given.into_iter().chain(["--format", "json"])));
    let budget = document["budget_bytes"].as_u64();
    let waiting = |policy: &str| row(&document, policy, "caching")["waiting_bytes"].as_u64();
    assert!(waiting("offload-activations") <= budget && waiting("checkpoint") > budget);
    let page = xmem(given).stdout;
    assert!(page.contains("more than its budget of"), "{page}");
    assert_eq!(xmem(["offload", trace, "--budget", "101%"]).code, 2);
}

#[test]
fn the_setting_of_the_paper_excludes_its_parts() {
    let given = ["offload", RESNET, "--policy", "dymem", "--paper"];
    let document = valid(&xmem(given.into_iter().chain(["--format", "json"])));
    assert_eq!(
        (&document["gradients"], &document["workspaces"]),
        (&"preallocated".into(), &"grow".into())
    );
    assert_eq!(xmem(given.into_iter().chain(["--workspace", "none"])).code, 2);
}

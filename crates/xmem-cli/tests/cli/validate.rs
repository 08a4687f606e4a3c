//! Estimates held against memory snapshots.

use crate::job::Folder;
use crate::schema_check::check;
use crate::shell::{Ran, xmem};
use expect_test::expect;
use serde_json::Value;

const SCHEMA: &str = include_str!("../../../../docs/schema/xmem.validate.1.schema.json");
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

fn trace(name: &str) -> String {
    format!("{ROOT}/traces/{name}/trace.json.zst")
}

/// `xmem validate` of the recorded job `mlp_adam`.
fn mlp(more: &[&str]) -> Ran {
    let (trace, snapshot) = (trace("mlp_adam"), recording());
    let args = ["validate", &trace, "--snapshot", &snapshot, "-d", "rtx3060-12g"];
    xmem(args.iter().chain(more))
}

fn recording() -> String {
    format!("{ROOT}/crates/xmem-eval/tests/data/mlp_adam.pickle.zst")
}

fn valid(ran: &Ran) -> Value {
    let document = ran.json();
    check(&serde_json::from_str(SCHEMA).expect("schema"), &document).expect("valid");
    document
}

/// The page without the lines that name files.
fn page(ran: &Ran) -> String {
    let named = |line: &&str| !line.contains(".zst");
    ran.stdout.lines().filter(named).map(|line| format!("{line}\n")).collect()
}

#[test]
fn a_recorded_job_is_estimated_exactly() {
    let ran = mlp(&[]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    expect![[r#"
        EXACT  peak reserved equal to the recording

                            estimate    recorded  error
          peak allocated  218.26 MiB  218.26 MiB      0
          peak requested  218.26 MiB  218.26 MiB      0
          peak reserved   250.00 MiB  250.00 MiB      0

          blocks              156 estimated, 156 recorded: 156 equal

        Peak allocated memory by phase: equal in all 13

        Peak of the recording
          event               136
          estimated place     iteration 0, optimizer step, ## step ## > Optimizer.step#Adam.step >
                              aten::sqrt
          line                train.py(86): job
          recorded place      torch/optim/adam.py:791 _multi_tensor_adam
                              from train.py:118 job
          allocated           218.26 MiB recorded, 218.26 MiB estimated

        Memory at the peak of the recording by role
          role               estimate    recorded  error
          parameter         40.10 MiB   40.10 MiB      0
          gradient          40.10 MiB   40.10 MiB      0
          optimizer state   80.20 MiB   80.20 MiB      0
          activation            512 B       512 B      0
          input            513.00 KiB  513.00 KiB      0
          temporary         40.10 MiB   40.10 MiB      0
          workspace         17.25 MiB   17.25 MiB      0

        Causes of the differences: no differences
    "#]]
    .assert_eq(&page(&ran));
    let document = valid(&mlp(&["-f", "json"]));
    assert_eq!(document["differences"], Value::Array(Vec::new()));
    assert_eq!(document["blocks"]["same"], document["blocks"]["recorded"]);
    assert_eq!(document["recording_reproduced"], true);
}

#[test]
fn the_figure_has_the_curves_of_both_sides() {
    let folder = Folder::empty();
    let figure = folder.path("curves.svg");
    let ran = mlp(&["--figure", &figure, "--quiet"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    let figure = folder.read("curves.svg");
    for part in [
        "<svg",
        ">recorded reserved<",
        ">recorded allocated<",
        ">estimated reserved<",
        ">estimated allocated<",
        ">Peak reserved: 250.00 MiB estimated, 250.00 MiB recorded (+0.00 %)<",
    ] {
        assert!(figure.contains(part), "{part}: {figure}");
    }
    // Each line runs along the edge of its area, which goes down to the axis and back.
    let path = |class: &str| {
        let (before, _) = figure.split_once(&format!("\" class=\"{class}\"/>\n<")).expect(class);
        let path = before.rsplit_once("<path d=\"M").expect("a path").1;
        path.split_once('H').expect("steps").1.to_owned()
    };
    assert!(path("mid").starts_with(&path("reserved")), "an estimate without error");
}

#[test]
fn what_a_rule_would_have_added_is_shown() {
    let ran = mlp(&["--no-rule", "cublas-workspace", "--tolerance", "0.2"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    expect![[r#"
        CLOSE  peak reserved 8.00 % too low

                            estimate    recorded       error
          peak allocated  202.01 MiB  218.26 MiB  -16.25 MiB  -7.45 %
          peak requested  202.01 MiB  218.26 MiB  -16.25 MiB  -7.45 %
          peak reserved   230.00 MiB  250.00 MiB  -20.00 MiB  -8.00 %

          blocks              154 estimated, 156 recorded: 154 equal, 2 only recorded

        Peak allocated memory by phase
          phase               estimate    recorded       error
          0 forward          47.11 MiB   55.24 MiB   -8.12 MiB  -14.71 %
          0 backward         82.71 MiB   98.96 MiB  -16.25 MiB  -16.42 %
          0 optimizer step  202.01 MiB  218.26 MiB  -16.25 MiB   -7.45 %
          1 data loading    162.41 MiB  178.66 MiB  -16.25 MiB   -9.10 %
          1 forward         127.32 MiB  143.57 MiB  -16.25 MiB  -11.32 %
          1 backward        162.91 MiB  179.16 MiB  -16.25 MiB   -9.07 %
          1 optimizer step  202.01 MiB  218.26 MiB  -16.25 MiB   -7.45 %
          2 data loading    162.41 MiB  178.66 MiB  -16.25 MiB   -9.10 %
          2 forward         127.32 MiB  143.57 MiB  -16.25 MiB  -11.32 %
          2 backward        162.91 MiB  179.16 MiB  -16.25 MiB   -9.07 %
          2 optimizer step  202.01 MiB  218.26 MiB  -16.25 MiB   -7.45 %
          equal in 2 other phases

        Peak of the recording
          event               136
          estimated place     iteration 0, optimizer step, ## step ## > Optimizer.step#Adam.step >
                              aten::sqrt
          line                train.py(86): job
          recorded place      torch/optim/adam.py:791 _multi_tensor_adam
                              from train.py:118 job
          allocated           218.26 MiB recorded, 202.01 MiB estimated

        Memory at the peak of the recording by role
          role                     estimate    recorded       error
          parameter               40.10 MiB   40.10 MiB           0
          gradient                40.10 MiB   40.10 MiB           0
          optimizer state         80.20 MiB   80.20 MiB           0
          activation                  512 B       512 B           0
          input                  513.00 KiB  513.00 KiB           0
          temporary               40.10 MiB   40.10 MiB           0
          workspace                1.00 MiB    1.00 MiB           0
          (not in the estimate)         0 B   16.25 MiB  -16.25 MiB  -100.00 %

        Causes of the differences
             -8.12 MiB  1 × only in the recording: 8.12 MiB
                        after 0 forward: ## forward ## > aten::linear > aten::addmm
                        Sequential_0 > Linear_0, train.py(86): job
                        recorded: torch/nn/modules/linear.py:134 forward from train.py:114 job
             -8.12 MiB  1 × only in the recording: 8.12 MiB
                        after 0 backward: ## backward ## > AddmmBackward0 > aten::mm
                        Sequential_0 > Linear_3, train.py(86): job
    "#]]
    .assert_eq(&page(&ran));
    let document = valid(&mlp(&["--no-rule", "cublas-workspace", "-f", "json"]));
    assert_eq!(document["differences"][0]["kind"], "missing");
}

#[test]
fn an_error_beyond_the_tolerance_ends_with_exit_code_1() {
    let rule = ["--no-rule", "cublas-workspace"];
    let within = |tolerance: &str| mlp(&[&rule[..], &["--tolerance", tolerance, "-q"]].concat());
    let strict = within("0");
    assert_eq!(strict.code, 1);
    assert!(strict.stdout.starts_with("OFF  peak reserved 8.00 % too low"), "{}", strict.stdout);
    assert_eq!(strict.stdout.lines().count(), 1);
    assert_eq!(within("0.5").code, 0);
    assert_eq!((within("7.9%").code, within("8.1%").code), (1, 0));
    assert_eq!(mlp(&["--tolerance", "0"]).code, 0, "nothing is off without that");
    assert_eq!(mlp(&["--tolerance", "5"]).code, 2, "it is a part, not a percentage");
}

/// A prediction written as a snapshot is a recording of itself.
#[test]
fn predictions_written_as_snapshots_agree_with_themselves() {
    for (name, conf) in [
        ("mlp_adam", ""),
        ("gpt2_adamw", ""),
        ("mlp_adam", "expandable_segments:True"),
        ("gpt2_adamw", "max_split_size_mb:21,roundup_power2_divisions:4"),
    ] {
        let folder = Folder::new();
        let (trace, written) = (trace(name), folder.path("run.pickle"));
        let device = ["-d", "rtx3060-12g", "--alloc-conf", conf];
        let run = xmem(["replay", &trace, "--snapshot", &written].iter().chain(&device));
        assert_eq!(run.code, 0, "{name} {conf}: {}", run.stderr);
        let again = xmem(["snapshot", "replay", &written, "-f", "json"]);
        assert_eq!(again.code, 0, "{name} {conf}: {}", again.stdout);
        let judged = ["validate", &trace, "--snapshot", &written, "-f", "json"];
        let judged = valid(&xmem(judged.iter().chain(&device)));
        assert_eq!(judged["differences"], Value::Array(Vec::new()), "{name} {conf}");
        assert_eq!(judged["peaks"]["reserved"]["error_bytes"], 0, "{name} {conf}");
        assert_eq!(judged["peaks"]["allocated"]["error_bytes"], 0, "{name} {conf}");
    }
}

#[test]
fn what_cannot_be_compared_is_refused_with_a_way_out() {
    let folder = Folder::new();
    let (trace, bad, good) = (trace("mlp_adam"), folder.path("bad.json"), recording());
    for (args, code, words) in [
        (vec![trace.as_str(), "--snapshot", good.as_str()], 2, "no device given"),
        (vec![trace.as_str(), "-d", "t4-16g"], 2, "--snapshot"),
        (vec![trace.as_str(), "--snapshot", bad.as_str(), "-d", "t4-16g"], 3, "not a memory"),
        (vec![bad.as_str(), "--snapshot", good.as_str(), "-d", "t4-16g"], 3, "bad.json"),
        (
            vec![
                trace.as_str(),
                "--snapshot",
                good.as_str(),
                "-d",
                "t4-16g",
                "--device-index",
                "2",
            ],
            3,
            "_record_memory_history",
        ),
        (
            vec![trace.as_str(), "--snapshot", good.as_str(), "-d", "t4-16g", "--no-rule", "x"],
            2,
            "unknown rule",
        ),
    ] {
        let ran = xmem(["validate"].iter().chain(&args));
        assert_eq!((ran.code, ran.stdout.as_str()), (code, ""), "{args:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(words), "{args:?}: {}", ran.stderr);
    }
}

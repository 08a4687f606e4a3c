//! `xmem check` and `xmem config`.

use crate::job::Folder;
use crate::recorded;
use crate::schema_check::check;
use crate::shell::{Ran, command};
use expect_test::expect;
use serde_json::Value;
use std::process::Stdio;

const CHECK: &str = include_str!("../../../../docs/schema/xmem.check.1.schema.json");
const BASELINE: &str = include_str!("../../../../docs/schema/xmem.baseline.1.schema.json");

const SITE: &str = r#"
policy = "reject"
# A busy machine takes longer than the two seconds that are the default.
timeout = 60
margin = "5%"
help = "see https://hpc.example.org/gpu-memory"

[[gpu]]
device = "v100-16g"
memory = "600MiB"
gres = ["v100"]
features = ["volta"]

[[gpu]]
device = "t4-16g"
gres = ["t4"]

[[gpu]]
device = "a100-40g"
gres = ["a100"]
features = ["ampere"]

[partition.soft]
policy = "warn"

[partition.closed]
fail-closed = true
"#;

/// A folder with a site file, in which the command runs.
struct Place(Folder);

impl Place {
    fn new() -> Self {
        let place = Self(Folder::empty());
        place.0.put("site.toml", SITE.as_bytes());
        place
    }

    fn run_with(&self, args: &[&str], variables: &[(&str, &str)], input: &str) -> Ran {
        let mut command = command(args.iter().copied());
        command
            .current_dir(self.0.path("."))
            .env("XDG_CACHE_HOME", self.0.path("cache"))
            .env("XDG_CONFIG_HOME", self.0.path("config"))
            .env("XMEM_SITE", self.0.path("none.toml"))
            .envs(variables.iter().copied());
        if !std::path::Path::new(&self.0.path("none.toml")).exists() {
            self.0.put("none.toml", b"");
        }
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("runs");
        // A command that reads nothing may have ended.
        let _ =
            std::io::Write::write_all(&mut child.stdin.take().expect("piped"), input.as_bytes());
        child.wait_with_output().expect("ends").into()
    }

    fn run(&self, args: &[&str]) -> Ran {
        self.run_with(args, &[], "")
    }

    /// Checks a recorded job, with the site file.
    fn check(&self, trace: &str, args: &[&str]) -> Ran {
        let trace = recorded::trace(trace);
        self.run(&[&["check", trace.as_str(), "--site", "site.toml"], args].concat())
    }
}

fn json(ran: &Ran) -> Value {
    let document = ran.json();
    check(&serde_json::from_str(CHECK).expect("schema"), &document).expect("valid");
    document
}

/// The smallest memory in MiB in which a recorded job runs.
fn need_mib(trace: &str) -> u64 {
    let trace = recorded::trace(trace);
    let args = ["replay", trace.as_str(), "--capacity", "64GiB", "--min-capacity", "-f", "json"];
    let answer = crate::shell::xmem(args).json();
    answer["min_capacity_bytes"].as_u64().expect("bytes").div_ceil(1 << 20)
}

#[test]
fn what_fits_into_the_smallest_capacity_is_decided_as_replay_does() {
    let place = Place::new();
    // Convolutions have a range, other jobs have none.
    for trace in ["mlp_adam", "gpt2_adamw"] {
        let need = need_mib(trace);
        for (capacity, margin, decision, by, code) in [
            (need - 1, "0%", "does_not_fit", None, 1),
            (need, "0%", "fits", None, 0),
            (need + 1, "2MiB", "tight", Some("margin"), 0),
            (need + 2, "2MiB", "fits", None, 0),
            (need * 2, "49%", "fits", None, 0),
            (need * 2, "51%", "tight", Some("margin"), 0),
        ] {
            let capacity = format!("{capacity}MiB");
            let path = recorded::trace(trace);
            let args = ["check", &path, "--capacity", &capacity, "--margin", margin, "-f", "json"];
            let ran = place.run(&args);
            let found = json(&ran);
            let by: Value = by.into();
            assert_eq!(
                (&found["decision"], &found["tight_by"], ran.code),
                (&Value::from(decision), &by, code),
                "{trace} {capacity} {margin}: {}{}",
                ran.stdout,
                ran.stderr,
            );
        }
    }
}

#[test]
fn the_range_of_convolutions_makes_a_job_tight() {
    let place = Place::new();
    let trace = recorded::trace("resnet18_sgdm");
    let answer = place.run(&["replay", &trace, "--capacity", "4GiB", "-f", "json"]).json();
    let of = |key: &str| answer["range"]["device_bytes"][key].as_u64().expect("bytes");
    assert!(of("low") < of("high"));
    let between = (of("low") + of("high")) / 2;
    let ran = place.run(&["check", &trace, "--capacity", &between.to_string(), "-f", "json"]);
    let found = json(&ran);
    let by = found["tight_by"].as_str().expect("a reason");
    assert_eq!((&found["decision"], ran.code), (&Value::from("tight"), 0));
    assert!(["may_fail", "may_fit"].contains(&by), "{by}");
}

#[test]
fn requests_are_judged_by_the_site() {
    let place = Place::new();
    for (request, more, decision, device, code) in [
        ("gres/gpu:a100:1", &[][..], "over_requested", "a100-40g", 0),
        ("gpu:t4:2", &[], "fits", "t4-16g", 0),
        ("gpu:v100:1", &[], "does_not_fit", "v100-16g", 1),
        ("gpu:1", &["--constraint", "volta"], "does_not_fit", "v100-16g", 1),
        ("gpu:1", &["--constraint", "volta|ampere"], "tight", "v100-16g", 0),
        ("gpu:h100:1", &[], "over_requested", "h100-80g", 0),
        ("gpu:v100:1", &["--partition", "soft"], "does_not_fit", "v100-16g", 0),
        ("gpu:v100:1", &["--policy", "warn"], "does_not_fit", "v100-16g", 0),
    ] {
        let args = [&["--request", request, "-f", "json"], more].concat();
        let ran = place.check("vgg11_adagrad", &args);
        let found = json(&ran);
        assert_eq!(
            (&found["decision"], &found["device"]["name"], ran.code),
            (&decision.into(), &device.into(), code),
            "{request} {more:?}",
        );
    }
    for (request, text) in [
        ("gpu:radeon:1", "the GPU type `radeon` is not known"),
        ("gpu:1", "names no type of GPU, and the site has several"),
        ("gpu:0", "the job asks for no GPU"),
        ("cpu=4", "it names no GPU"),
    ] {
        let ran = place.check("mlp_adam", &["--request", request]);
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{request}");
        let words = ran.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.replace(" │", "").contains(text), "{request}: {words}");
    }
}

#[test]
fn advice_is_replayed_and_holds() {
    let place = Place::new();
    let trace = recorded::trace("vgg11_adagrad");
    let need = need_mib("vgg11_adagrad");
    // Enough without the temporaries of the optimizer's foreach implementation.
    let capacity = format!("{}MiB", need * 9 / 10);
    let check = |more: &[&str]| {
        let args = [&["check", &trace, "--capacity", &capacity, "-f", "json"], more].concat();
        json(&place.run(&args))
    };
    let found = check(&[]);
    assert_eq!(found["decision"], "does_not_fit");
    let advice = found["advice"].as_array().expect("list");
    let of = |change: &str| advice.iter().find(|advice| advice["change"] == change);
    assert_eq!(of("device").map(|a| &a["value"]), Some(&"gtx1650-4g".into()));
    let optimizer = of("optimizer_impl").expect("foreach takes most of it");
    assert_eq!((&optimizer["value"], &optimizer["fits"]), (&"for-loop".into(), &true.into()));
    assert_eq!(check(&["--optimizer-impl", "for-loop"])["decision"], "fits");
}

#[test]
fn the_first_line_is_complete_and_has_at_most_100_columns() {
    let place = Place::new();
    let long = format!("{}/trace.json.zst", "deep/".repeat(40));
    let trace = std::fs::read(recorded::trace("mlp_adam")).expect("recorded");
    place.0.put(&long, &trace);
    let check = |args: &[&str]| {
        let ran = place.run(&[&["check", long.as_str(), "--site", "site.toml"], args].concat());
        let (first, rest) = ran.stdout.split_once('\n').expect("a line");
        assert!(first.chars().count() <= 100, "{first}");
        assert!(
            first.ends_with("deep/trace.json.zst") || first.ends_with("trace.json.zst"),
            "{first}"
        );
        let brief =
            place.run(&[&["check", long.as_str(), "-q", "--site", "site.toml"], args].concat());
        assert_eq!(brief.stdout, format!("{first}\n"));
        format!("{}\n{rest}", first.split("  ").take(2).collect::<Vec<_>>().join("  "))
    };
    expect![[r#"
        OVER-REQUESTED  needs 700.00 MiB of 39.49 GiB on a100-40g: t4-16g is enough
          peaks at train.py(86): job, iteration 0, optimizer step, aten::sqrt
    "#]]
    .assert_eq(&check(&["--device", "a100-40g"]));
    expect![[r#"
        DOES NOT FIT  needs at least 694.00 MiB of 500.00 MiB: 194.00 MiB too much
          takes 700.00 MiB where there is room
          runs out of memory at train.py(36): build, before iteration 0, aten::empty
          fits on t4-16g
          needs 646.00 MiB with fused=True in the optimizer
          needs 678.00 MiB with foreach=False in the optimizer
          no change of settings that was replayed makes it fit; `xmem fit` tries changes to the job
    "#]]
    .assert_eq(&check(&["--capacity", "500MiB"]));
}

#[test]
fn a_damaged_trace_gets_no_verdict() {
    let place = Place::new();
    let trace = std::fs::read(recorded::trace("mlp_adam")).expect("recorded");
    place.0.put("cut.json.zst", &trace[..trace.len() / 2]);
    for (args, code) in [(&[][..], 4), (&["--policy", "warn"], 0), (&["--strict"], 4)] {
        let ran = place.run(&[&["check", "cut.json.zst", "--device", "a100-40g"], args].concat());
        assert_eq!(ran.code, code, "{}", ran.stderr);
        let first = ran.stdout.lines().next().unwrap_or_default();
        assert!(first.starts_with("NO VERDICT  the trace is damaged  cut.json.zst  ("), "{first}");
        assert!(first.ends_with(" warnings)"), "{first}");
    }
}

/// Three steps that fit say nothing about an evaluation; three that do not fit do.
#[test]
fn a_script_that_was_not_recorded_to_its_end_gets_no_verdict_where_that_is_required() {
    let place = Place::new();
    let whole = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../traces/whole_runs/evaluation.json.zst");
    place.0.put("whole.json.zst", &std::fs::read(whole).expect("recorded"));
    place.0.put("steps.json.zst", &std::fs::read(recorded::trace("mlp_adam")).expect("recorded"));
    for (trace, capacity, option, code) in [
        ("whole.json.zst", "40GiB", "--require-coverage", 0),
        ("steps.json.zst", "40GiB", "--strict", 0),
        ("steps.json.zst", "40GiB", "--require-coverage", 4),
        ("steps.json.zst", "100MiB", "--require-coverage", 1),
    ] {
        let ran = place.run(&["check", trace, "--capacity", capacity, option]);
        assert_eq!(ran.code, code, "{trace} {capacity}: {}{}", ran.stdout, ran.stderr);
        let says = "NO VERDICT  the script was not recorded to its end";
        assert_eq!(ran.stdout.starts_with(says), code == 4, "{}", ran.stdout);
    }
}

#[test]
fn a_job_script_names_gpus_and_traces() {
    let place = Place::new();
    let trace = std::fs::read(recorded::trace("vgg11_adagrad")).expect("recorded");
    place.0.put("jobs/runs/trace.json.zst", &trace);
    let script = |gres: &str| {
        let text = format!(
            "#!/bin/bash\n#SBATCH --gres={gres} -p closed\n#XMEM --trace runs/trace.json.zst\nsrun true\n"
        );
        place.0.put("jobs/train.sh", text.as_bytes());
        place.run(&["check", "--slurm-job", "jobs/train.sh", "--site", "site.toml", "-f", "json"])
    };
    let ran = script("gpu:v100:1");
    assert_eq!((json(&ran)["decision"].as_str(), ran.code), (Some("does_not_fit"), 1));
    let ran = script("gpu:t4:4");
    let found = json(&ran);
    assert_eq!((found["decision"].as_str(), ran.code), (Some("fits"), 0));
    assert_eq!(found["gpus"], 4);
    place.0.put("jobs/train.sh", b"#SBATCH --gres=gpu:t4:1\n");
    let ran = place.run(&["check", "--slurm-job", "jobs/train.sh", "--site", "site.toml"]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("names no trace"), "{}", ran.stderr);
}

/// Each row: the submission, the lines that the answer must begin with, and a text in its messages.
#[test]
fn slurm_gets_lines_whatever_happens() {
    let place = Place::new();
    let trace = std::fs::read(recorded::trace("vgg11_adagrad")).expect("recorded");
    place.0.put("trace.json.zst", &trace);
    place.0.put("cut.json.zst", &trace[..trace.len() / 2]);
    place.0.put("job.sh", b"#SBATCH --gres=gpu:v100:1\n#XMEM --trace trace.json.zst\n");
    place.0.put("wrong.sh", b"#SBATCH --gres=gpu:v100:1\n#XMEM --trce trace.json.zst\n");
    let folder = place.0.path(".");
    let with = |options: &str, rest: &str| {
        format!(r#"{{"type": "sbatch", "options": {{{options}}}, "directory": "{folder}"{rest}}}"#)
    };
    let env = r#", "environment": {"XMEM_TRACE": "trace.json.zst"}"#;
    let rows = [
        (
            with(r#""gres": "gres:gpu:v100:1""#, env),
            "does_not_fit",
            "reject",
            "DOES NOT FIT  needs",
        ),
        (
            with(r#""gres": "gpu:v100:1", "partition": "soft""#, env),
            "does_not_fit",
            "warn",
            "hpc.example",
        ),
        (with(r#""gpus": "t4:2""#, env), "fits", "admit", ""),
        (with(r#""gres": "gpu:a100:1""#, env), "over_requested", "warn", "t4-16g is enough"),
        (with("", r#", "script": "job.sh""#), "does_not_fit", "reject", "fits on t4-16g"),
        (with("", r#", "script": "wrong.sh""#), "not_checked", "warn", "line 2: `--trce`"),
        (with("", r#", "script": "missing.sh""#), "not_checked", "warn", "missing.sh"),
        (with(r#""gres": "gpu:t4:1""#, ""), "not_checked", "warn", "the job names no trace"),
        (
            with(r#""gres": "gpu:t4:1", "partition": "closed""#, ""),
            "not_checked",
            "reject",
            "names no trace",
        ),
        (with(r#""ntasks": "4""#, ""), "not_checked", "admit", ""),
        (with(r#""gres": "gpu:voodoo:1""#, env), "not_checked", "warn", "`voodoo` is not known"),
        // The rules of the site counted here, and not those of the partition.
        (
            with(r#""gres": "gpu:voodoo:1", "partition": "closed""#, env),
            "not_checked",
            "reject",
            "`voodoo` is not known",
        ),
        (
            with(r#""gres": "gpu:t4:1", "partition": "soft,closed""#, ""),
            "not_checked",
            "reject",
            "names no trace",
        ),
        (
            with(r#""gres": "gpu:v100:1", "partition": "soft,closed""#, env),
            "does_not_fit",
            "reject",
            "DOES NOT FIT  needs",
        ),
        (
            with(r#""gres": "gpu:t4:1", "partition": "closed""#, r#", "script": "wrong.sh""#),
            "not_checked",
            "reject",
            "line 2: `--trce`",
        ),
        (
            with(r#""gres": "gpu:t4:1""#, r#", "environment": {"XMEM_TRACE": "none.json"}"#),
            "not_checked",
            "warn",
            "none.json",
        ),
        (
            with(r#""gres": "gpu:t4:1""#, r#", "environment": {"XMEM_TRACE": "cut.json.zst"}"#),
            "no_verdict",
            "warn",
            "the trace is damaged",
        ),
        (
            with(
                r#""gres": "gpu:t4:1", "partition": "closed""#,
                r#", "environment": {"XMEM_TRACE": "cut.json.zst"}"#,
            ),
            "no_verdict",
            "reject",
            "the trace is damaged",
        ),
        ("nonsense".to_owned(), "not_checked", "warn", "cannot read the submission"),
        (String::new(), "not_checked", "warn", ""),
    ];
    for (submission, decision, action, text) in rows {
        let args = ["check", "--format", "slurm", "--slurm-options", "-", "--site", "site.toml"];
        let ran = place.run_with(&args, &[], &submission);
        assert_eq!(ran.code, 0, "{submission}: {}", ran.stderr);
        let start = format!("decision={decision}\naction={action}\n");
        assert!(ran.stdout.starts_with(&start), "{submission}: {}", ran.stdout);
        assert!(ran.stdout.contains(text), "{submission}: {}", ran.stdout);
        assert!(ran.stdout.lines().all(|line| line.contains('=') && line.chars().count() < 240));
    }
    let ran = place.run_with(
        &["check", "--format", "slurm", "--slurm-options", "-", "--site", "site.toml"],
        &[],
        &with(r#""gres": "gpu:t4:1""#, env),
    );
    expect![[r#"
        decision=fits
        action=admit
        device=t4-16g
        peak_mib=2772
        room_mib=14183
        stamp=xmem:v1:need_mib=2772:device=t4-16g:decision=fits
    "#]]
    .assert_eq(&sorted(&ran.stdout));
}

/// The lines with those of figures in a fixed order.
fn sorted(page: &str) -> String {
    let mut lines: Vec<&str> = page.lines().collect();
    lines[2..].sort_unstable();
    lines.join("\n") + "\n"
}

/// Each row: the arguments behind `xmem submit`, whether the command runs, and a text of the message.
#[cfg(unix)]
#[test]
fn submit_checks_and_then_runs_the_command_as_it_was_given() {
    let place = Place::new();
    let trace = std::fs::read(recorded::trace("vgg11_adagrad")).expect("recorded");
    place.0.put("trace.json.zst", &trace);
    place.0.put("job.sh", b"#SBATCH --gres=gpu:v100:1\n#XMEM --trace trace.json.zst\n");
    for program in ["sbatch", "srun"] {
        let script = "#!/bin/sh\necho ran \"$(basename $0)\" \"$@\"\nexit 7\n";
        place.0.put_program(&format!("bin/{program}"), script);
    }
    let path = format!("{}:{}", place.0.path("bin"), std::env::var("PATH").expect("a path"));
    let rows: [(&[&str], bool, &str); 7] = [
        (&["--", "sbatch", "job.sh"], false, "xmem: error: DOES NOT FIT  needs 2."),
        (&["--", "sbatch", "--gres=gpu:t4:1", "job.sh", "--lr", "0.1"], true, ""),
        (&["--", "sbatch", "-p", "soft", "job.sh"], true, "xmem: DOES NOT FIT"),
        (&["--", "sbatch", "-n", "4", "--wrap", "true"], true, ""),
        (&["--", "sbatch", "-G", "t4:1", "--wrap=true"], true, "the job names no trace"),
        (
            &["--trace", "trace.json.zst", "--", "srun", "--gpus=v100:1", "python", "train.py"],
            false,
            "xmem: error: runs out of memory at torchvision/",
        ),
        (&["--trace", "trace.json.zst", "--", "srun", "--gpus=t4:1", "true"], true, ""),
    ];
    for (args, runs, text) in rows {
        let given = [&["submit", "--site", "site.toml"], args].concat();
        let ran = place.run_with(&given, &[("PATH", &path)], "");
        assert_eq!(ran.code, if runs { 7 } else { 1 }, "{args:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(text), "{args:?}: {}", ran.stderr);
        assert!(!text.is_empty() || ran.stderr.is_empty(), "{args:?}: {}", ran.stderr);
        let command = args.iter().skip_while(|&&word| word != "--").skip(1);
        let command = command.copied().collect::<Vec<_>>().join(" ");
        assert_eq!(ran.stdout, if runs { format!("ran {command}\n") } else { String::new() });
    }
    // A step of a job that was checked.
    let step = ["submit", "--site", "site.toml", "--trace", "trace.json.zst", "--"];
    let step = [&step[..], &["srun", "--gpus=v100:1", "true"]].concat();
    let ran = place.run_with(&step, &[("PATH", &path), ("SLURM_JOB_ID", "7")], "");
    assert_eq!((ran.code, ran.stderr.as_str()), (7, ""));
    for (args, text) in [
        (["submit", "--", "python"], "does not submit jobs to Slurm"),
        (["submit", "--", "salloc"], "cannot run `salloc`"),
    ] {
        let ran = place.run_with(&args, &[("PATH", place.0.path("bin").as_str())], "");
        assert_eq!(ran.code, 2, "{args:?}");
        assert!(ran.stderr.contains(text), "{args:?}: {}", ran.stderr);
    }
}

#[test]
fn what_grew_is_named_and_the_file_is_the_same_to_the_byte() {
    let place = Place::new();
    for trace in ["mlp_adam", "vgg11_adagrad"] {
        let trace_file = std::fs::read(recorded::trace(trace)).expect("recorded");
        place.0.put(&format!("runs/{trace}.json.zst"), &trace_file);
    }
    let with = |more: &[&str]| {
        let args = ["check", "runs", "--device", "t4-16g", "--baseline", ".xmem/baseline.json"];
        place.run(&[&args[..], more].concat())
    };
    let ran = with(&[]);
    assert_eq!(ran.code, 3, "there is no baseline yet");
    // The optimizer's other implementation takes more.
    let ran = with(&["--update-baseline", "--optimizer-impl", "for-loop"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, "wrote `.xmem/baseline.json`: 2 jobs\n"));
    let first = place.0.read(".xmem/baseline.json");
    with(&["--update-baseline", "--optimizer-impl", "for-loop", "--no-cache"]);
    assert_eq!(place.0.read(".xmem/baseline.json"), first);
    let document: Value = serde_json::from_str(&first).expect("JSON");
    check(&serde_json::from_str(BASELINE).expect("schema"), &document).expect("valid");

    assert_eq!(with(&["--optimizer-impl", "for-loop"]).code, 0);
    let ran = with(&[]);
    assert_eq!(ran.code, 1);
    assert_eq!(ran.stdout.matches("beyond the tolerance of the baseline").count(), 2);
    assert!(ran.stdout.contains("    temporary +"), "{}", ran.stdout);
    assert_eq!(with(&["--tolerance", "99%"]).code, 0);
    assert_eq!(with(&["--tolerance", "0.99"]).code, 0);
    // One trace is taken over, the other stays.
    let args = ["check", "runs/mlp_adam.json.zst", "--device", "t4-16g", "--update-baseline"];
    place.run(&[&args[..], &["--baseline", ".xmem/baseline.json"]].concat());
    let ran = with(&[]);
    assert_eq!(ran.stdout.matches("beyond the tolerance of the baseline").count(), 1);
    let ran = with(&["--format", "json"]);
    let answers = ran.json();
    assert_eq!(answers[1]["baseline"]["beyond_tolerance"], true);
    assert_eq!(answers[1]["baseline"]["roles"][0]["name"], "temporary");

    place.0.put(".xmem/baseline.json", b"{\"schema\": \"other\", \"entries\": []}");
    let ran = with(&[]);
    assert_eq!(ran.code, 3);
    assert!(ran.stderr.contains("not a baseline of xmem"), "{}", ran.stderr);
}

#[test]
fn every_format_says_the_same() {
    let place = Place::new();
    let trace = std::fs::read(recorded::trace("mlp_adam")).expect("recorded");
    place.0.put("a|b%0A.json.zst", &trace);
    let run = |format: &str| {
        let args = ["check", "a|b%0A.json.zst", "--capacity", "500MiB", "-f", format];
        let ran = place.run(&args);
        assert_eq!(ran.code, i32::from(format != "slurm"), "{format}: {}", ran.stderr);
        ran.stdout
    };
    expect![[r#"
        ::error file=train.py,line=36,title=xmem%3A DOES NOT FIT::DOES NOT FIT  needs at least 694.00 MiB of 500.00 MiB: 194.00 MiB too much  a|b%250A.json.zst%0Atakes 700.00 MiB where there is room%0Aruns out of memory at train.py(36): build, before iteration 0, aten::empty%0Afits on gtx1650-4g%0Aneeds 646.00 MiB with fused=True in the optimizer%0Aneeds 678.00 MiB with foreach=False in the optimizer%0Ano change of settings that was replayed makes it fit; `xmem fit` tries changes to the job
    "#]]
    .assert_eq(&run("github"));
    expect![[r#"
        | job | decision | needs | of | on |
        |---|---|--:|--:|---|
        | a\|b%0A.json.zst | **does not fit** | 694.00 MiB | 500.00 MiB | custom |

        **a\|b%0A.json.zst**: needs at least 694.00 MiB of 500.00 MiB: 194.00 MiB too much

        - takes 700.00 MiB where there is room
        - runs out of memory at train.py(36): build, before iteration 0, aten::empty
        - fits on gtx1650-4g
        - needs 646.00 MiB with fused=True in the optimizer
        - needs 678.00 MiB with foreach=False in the optimizer
        - no change of settings that was replayed makes it fit; \`xmem fit\` tries changes to the job
    "#]]
    .assert_eq(&run("markdown"));
    expect![[r#"
        <?xml version="1.0" encoding="UTF-8"?>
        <testsuites tests="1" failures="1" errors="0">
          <testsuite name="xmem check" tests="1" failures="1" errors="0">
            <testcase classname="xmem.custom" name="a|b%0A.json.zst">
              <failure message="DOES NOT FIT  needs at least 694.00 MiB of 500.00 MiB: 194.00 MiB too much  a|b%0A.json.zst">takes 700.00 MiB where there is room
        runs out of memory at train.py(36): build, before iteration 0, aten::empty
        fits on gtx1650-4g
        needs 646.00 MiB with fused=True in the optimizer
        needs 678.00 MiB with foreach=False in the optimizer
        no change of settings that was replayed makes it fit; `xmem fit` tries changes to the job</failure>
            </testcase>
          </testsuite>
        </testsuites>
    "#]]
    .assert_eq(&run("junit"));
}

#[test]
fn answers_are_kept_and_believed_only_if_nobody_else_can_write_them() {
    let place = Place::new();
    let trace = std::fs::read(recorded::trace("mlp_adam")).expect("recorded");
    place.0.put("trace.json.zst", &trace);
    let decision = |more: &[&str]| {
        let args = ["check", "trace.json.zst", "--capacity", "500MiB", "-f", "json"];
        let ran = place.run(&[&args[..], more].concat());
        json(&ran)["decision"].as_str().expect("text").to_owned()
    };
    let kept = || {
        let entries = std::fs::read_dir(place.0.path("cache/xmem/checks")).expect("a folder");
        let mut paths: Vec<_> = entries.map(|entry| entry.expect("entry").path()).collect();
        paths.sort();
        paths
    };
    assert_eq!(decision(&["--no-cache"]), "does_not_fit");
    assert!(!std::path::Path::new(&place.0.path("cache")).exists());
    assert_eq!(decision(&[]), "does_not_fit");
    let [entry] = &kept()[..] else { panic!("one answer is kept: {:?}", kept()) };
    // What is kept is checked again: a decision must follow from the figures.
    let text = std::fs::read_to_string(entry).expect("text");
    for (old, new) in [
        ("\"does_not_fit\"", "\"fits\""),
        ("\"does_not_fit\"", "\"tight\""),
        ("\"does_not_fit\"", "\"no_verdict\""),
        ("\"does_not_fit\"", "\"none\""),
        ("\"memory_bytes\":524288000", "\"memory_bytes\":99524288000"),
        ("\"margin_bytes\":0", "\"margin_bytes\":1"),
    ] {
        let poisoned = text.replacen(old, new, 1);
        assert_ne!(poisoned, text, "{old}");
        std::fs::write(entry, poisoned).expect("written");
        assert_eq!(decision(&[]), "does_not_fit", "{new}");
    }
    // One whose figures go together is found again, as a figure that decides nothing shows.
    let marked = text.replacen("\"gpus\":1", "\"gpus\":7", 1);
    assert_ne!(marked, text);
    std::fs::write(entry, marked).expect("written");
    let args = ["check", "trace.json.zst", "--capacity", "500MiB", "-f", "json"];
    assert_eq!(json(&place.run(&args))["gpus"], 7);
    assert_eq!(decision(&["--margin", "1%"]), "does_not_fit", "other settings");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = |path: &std::path::Path| {
            std::fs::metadata(path).expect("there").permissions().mode() & 0o777
        };
        assert_eq!(mode(entry), 0o600);
        assert_eq!(mode(entry.parent().expect("folder")), 0o700);
        std::fs::set_permissions(entry, PermissionsExt::from_mode(0o620)).expect("changed");
        assert_eq!(decision(&[]), "does_not_fit", "others can write to it");
        std::fs::set_permissions(entry, PermissionsExt::from_mode(0o600)).expect("changed");
    }
    std::fs::write(entry, "{}").expect("written");
    assert_eq!(decision(&[]), "does_not_fit", "not an answer");

    // By path, size and time: content of the same size and time is taken for the same.
    assert_eq!(decision(&["--trust-mtime"]), "does_not_fit");
    let time = std::fs::metadata(place.0.path("trace.json.zst")).expect("there").modified();
    let file = std::fs::File::create(place.0.path("trace.json.zst")).expect("made");
    file.set_len(trace.len() as u64).expect("grown");
    file.set_modified(time.expect("a time")).expect("set");
    assert_eq!(decision(&["--trust-mtime"]), "does_not_fit");
    let ran = place.run(&["check", "trace.json.zst", "--capacity", "500MiB"]);
    assert_eq!(ran.code, 3, "zeros are not a trace");
}

#[test]
fn settings_have_one_precedence() {
    let place = Place::new();
    place.0.put("xmem.toml", b"margin = '1%'\ntolerance = '3%'\n");
    place.0.put("pyproject.toml", b"[tool.xmem]\nmargin = '2%'\ndevice = 't4-16g'\n");
    place.0.put("config/xmem/config.toml", b"device = 'l4-24g'\ntorch = '2.6'\n");
    let ran = place.run_with(
        &["config", "--site", "site.toml"],
        &[("XMEM_TOLERANCE", "4%"), ("XMEM_CUDNN", "")],
        "",
    );
    let shown = ran
        .stdout
        .replace(&place.0.path("."), "FOLDER")
        .replace(place.0.path("").trim_end_matches('/'), "FOLDER");
    expect![[r#"
        setting     value                     from
        device      t4-16g                    `FOLDER/pyproject.toml` [tool.xmem]
        budget      –                         not set
        margin      1%                        `FOLDER/xmem.toml`
        policy      reject                    `site.toml`
        baseline    –                         not set
        tolerance   4%                        XMEM_TOLERANCE
        torch       2.6                       `FOLDER/config/xmem/config.toml`
        alloc-conf  –                         not set
        cudnn       auto                      default
        cache       true                      default
        site        v100-16g, t4-16g, a100-40g `site.toml`
    "#]]
    .assert_eq(&shown);
    let checks = place.check("mlp_adam", &["-f", "json"]);
    assert_eq!(json(&checks)["device"]["name"], "t4-16g");
    let checks = place.check("mlp_adam", &["-f", "json", "--no-config"]);
    assert_eq!(checks.code, 2, "no device is given");

    place.0.put("xmem.toml", b"margn = '1%'\n");
    let ran = place.check("mlp_adam", &[]);
    assert_eq!(ran.code, 2);
    let words = ran.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("did you mean `margin`?"), "{words}");
}

#[test]
fn the_schema_of_the_site_file_knows_the_same_keys() {
    let place = Place::new();
    let schema = place.run(&["config", "--format", "schema"]).json();
    let names = |pointer: &str| {
        let table = schema.pointer(pointer).and_then(Value::as_object).expect(pointer);
        table.keys().cloned().collect::<Vec<_>>()
    };
    let known = |text: &str| {
        place.0.put("odd.toml", text.as_bytes());
        let ran = place.run(&["config", "--site", "odd.toml"]);
        assert_eq!(ran.code, 2, "{text}");
        let flat = ran.stderr.split_whitespace().collect::<Vec<_>>().join(" ").replace("│ ", "");
        let (_, list) = flat.split_once("expected one of ").expect("a list");
        let list = list.split(" help:").next().unwrap_or_default();
        list.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>()
    };
    for (pointer, text) in [
        ("/properties", "zzz = 1"),
        ("/properties/gpu/items/properties", "[[gpu]]\nzzz = 1"),
        ("/$defs/rules/properties", "[partition.a]\nzzz = 1"),
    ] {
        let (mut listed, mut taken) = (names(pointer), known(text));
        listed.sort();
        taken.sort();
        taken.dedup();
        assert_eq!(listed, taken, "{pointer}");
    }
}

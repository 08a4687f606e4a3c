//! One verdict for one trace: every form of output says the same about it.

use crate::recorded;
use crate::shell::{Ran, xmem};
use serde_json::Value;

/// Jobs with convolutions, whose peaks have a range, and without.
const TRACES: [&str; 3] = ["resnet18_sgdm", "vgg11_adagrad", "gpt2_adamw"];

const MIB: u64 = 1 << 20;

fn run(command: &str, trace: &str, capacity: u64, options: &[&str]) -> Ran {
    let capacity = format!("{capacity}MiB");
    let device = ["--device", "rtx3060-12g", "--capacity", &capacity, "--cudnn", "model"];
    xmem([&[command, trace][..], &device, options].concat())
}

fn number(answer: &Value, path: &str) -> u64 {
    answer.pointer(path).and_then(Value::as_u64).unwrap_or_else(|| panic!("{path}: {answer}"))
}

/// Capacities in MiB from below what the job allocates to above what it reserves: over its range, and that of the memory
/// that the driver takes.
fn capacities(trace: &str) -> Vec<u64> {
    let ample = run("replay", trace, 64 << 10, &["-f", "json"]).json();
    let context = number(&ample, "/device/context_bytes");
    let low =
        number(&ample, "/peak/allocated_bytes").min(number(&ample, "/range/reserved_bytes/low"));
    let high = number(&ample, "/range/reserved_bytes/high");
    let (low, high) = ((low + context) / MIB - 100, (high + context).div_ceil(MIB) + 200);
    let step = (high - low) / 7 + 1;
    (0..8).map(|at| low + at * step).collect()
}

#[test]
fn one_trace_had_three_verdicts_two_shortfalls_and_two_exit_codes() {
    let mut seen = std::collections::BTreeSet::new();
    for name in TRACES {
        let trace = recorded::trace(name);
        for capacity in capacities(&trace) {
            let about = format!("{name} in {capacity} MiB");
            let replayed = run("replay", &trace, capacity, &["-f", "json"]);
            let answer = replayed.json();
            let checked =
                run("check", &trace, capacity, &["--no-config", "--no-cache", "-f", "json"]);
            let document = checked.json();
            for key in ["decision", "tight_by", "need_bytes", "ample_bytes"] {
                assert_eq!(answer[key], document[key], "{about}: {key}");
            }
            assert_eq!(replayed.code, checked.code, "{about}: exit code");
            let is_expected = answer["verdict"] == "fits";
            assert_eq!(replayed.code, i32::from(!is_expected), "{about}");

            // The same words, in the same order: the decision, and need against room.
            let words =
                answer["decision"].as_str().expect("a name").replace('_', " ").to_uppercase();
            let said = format!("{words}  {}", answer["summary"].as_str().expect("words"));
            for (command, options) in
                [("replay", &["-q"][..]), ("check", &["-q", "--no-config", "--no-cache"])]
            {
                let line = run(command, &trace, capacity, options).stdout;
                assert!(line.starts_with(&format!("{said}  ")), "{about}: {command}: {line}{said}");
            }
            let page = run("replay", &trace, capacity, &[]).stdout;
            assert!(page.starts_with(&format!("{words}  ")), "{about}: {page}");
            let picture = run("report", &trace, capacity, &["--format", "svg"]).stdout;
            let lower = words.to_lowercase();
            assert!(picture.contains(&format!("with the context: {lower}")), "{about}: {lower}");

            if let Some(short) = answer["shortfall_bytes"].as_u64() {
                let need = number(&answer, "/need_bytes");
                assert_eq!(short, need - capacity * MIB, "{about}");
                assert!(
                    need > capacity * MIB && need <= number(&answer, "/ample_bytes"),
                    "{about}"
                );
            }
            seen.insert((words, answer["tight_by"].as_str().map(str::to_owned)));
        }
    }
    // The sweep meets every verdict that a recording of this repository can have.
    let found: Vec<_> = seen.iter().map(|(words, by)| (words.as_str(), by.as_deref())).collect();
    let expected = [
        ("DOES NOT FIT", None),
        ("FITS", None),
        ("TIGHT", Some("may_fail")),
        ("TIGHT", Some("may_fit")),
    ];
    assert_eq!(found, expected);
}

#[test]
fn an_answer_had_more_lines_than_a_screen_and_no_way_to_go_on() {
    for name in [
        "big_gpt2s_adam_b6",
        "resnet18_sgdm",
        "vgg11_adagrad",
        "moe_clip_adamw",
        "mlp_adam",
        "dlrm_adagrad",
    ] {
        let trace = recorded::trace(name);
        let ample = run("replay", &trace, 64 << 10, &["-f", "json"]).json();
        let reserved = number(&ample, "/peak/device_bytes") / MIB;
        for capacity in [64 << 10, reserved - reserved / 8] {
            let page = run("replay", &trace, capacity, &[]).stdout;
            let lines: Vec<&str> = page.lines().collect();
            assert!(lines.len() <= 30, "{name}: {} lines: {page}", lines.len());
            let word = lines[0].split("  ").next().expect("a word");
            let is_said_last = lines.last().is_some_and(|line| line.starts_with(word));
            assert!(is_said_last || lines.len() <= 24, "{name}: {page}");
            if word == "FITS" {
                assert!(!page.contains("What next"), "{name}: {page}");
                continue;
            }
            // Each of the commands runs.
            let (_, next) = page.split_once("What next\n").expect("commands");
            let rows = next.lines().take_while(|line| !line.is_empty());
            let commands: Vec<Vec<&str>> = rows
                .filter_map(|row| Some(row.split_once("  xmem ")?.1.split(' ').collect()))
                .collect();
            assert!(commands.len() >= 4, "{name}: {page}");
            let larger =
                commands.iter().find(|command| command[0] == "replay").expect("a larger device");
            assert_eq!(xmem(larger).code, 0, "{larger:?}");
            if name == "mlp_adam" {
                for command in commands.iter().filter(|command| command[0] != "fit") {
                    let ran = xmem(command);
                    assert!(ran.code <= 1, "{command:?}: {}", ran.stderr);
                }
            }
        }
    }
}

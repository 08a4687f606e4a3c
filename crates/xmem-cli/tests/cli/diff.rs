//! `xmem diff` on recorded traces, on answers and on jobs written by hand.

use crate::job::{self, Folder};
use crate::schema_check::check;
use crate::shell::{Ran, command, xmem, xmem_with_input};
use expect_test::expect;
use serde_json::Value;

const SCHEMA: &str = include_str!("../../../../docs/schema/xmem.diff.1.schema.json");
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
const KEYS: [&str; 4] = ["role", "module", "line", "op"];

fn trace(name: &str) -> String {
    format!("{ROOT}/traces/{name}/trace.json.zst")
}

/// Compares on an A100.
fn diff(a: &str, b: &str, more: &[&str]) -> Ran {
    xmem(["diff", a, b, "--device", "a100-40g"].iter().chain(more))
}

/// A comparison in JSON that keeps to the schema and adds up.
fn document(ran: &Ran) -> Value {
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    let document = ran.json();
    check(&serde_json::from_str(SCHEMA).expect("schema"), &document).expect("valid");
    let number = |value: &Value| value.as_i64().expect("a number");
    for (side, key) in [("a", "allocated_bytes"), ("b", "allocated_bytes")] {
        let bytes = |of: &Value| number(&of[side]["bytes"]);
        let rows = document["rows"].as_array().expect("rows").iter();
        let sum = rows.map(bytes).sum::<i64>() + bytes(&document["rest"]);
        assert_eq!(sum, number(&document[side]["peak"][key]), "rows and rest of {side}");
        assert_eq!(sum, bytes(&document["total"]), "total of {side}");
    }
    let rows = document["rows"].as_array().expect("rows").iter();
    let sum: i64 = rows.map(|row| number(&row["difference_bytes"])).sum();
    let allocated = number(&document["difference"]["allocated_bytes"]);
    assert_eq!(sum + number(&document["rest"]["difference_bytes"]), allocated);
    assert_eq!(number(&document["total"]["difference_bytes"]), allocated);
    document
}

/// The job written by hand, with other names and sizes.
fn changed(changes: &[(&str, &str)]) -> Vec<u8> {
    let text = String::from_utf8(job::trace()).expect("UTF-8");
    let change = |text: String, (from, to): &(&str, &str)| {
        assert!(text.contains(from), "{from}");
        text.replace(from, to)
    };
    let text = changes.iter().fold(text, change);
    let mut trace: Value = serde_json::from_str(&text).expect("JSON");
    // The profiler's sums are those of the other sizes.
    let mut total = 0;
    for event in trace["traceEvents"].as_array_mut().expect("events") {
        let args = &mut event["args"];
        if let Some(bytes) = args["Bytes"].as_i64() {
            total += bytes;
            args["Total Allocated"] = total.into();
        }
    }
    serde_json::to_vec(&trace).expect("JSON")
}

const LARGER: (&str, &str) = ("67108864", "100663296");

#[test]
fn two_recordings_of_a_model_as_text() {
    let a = Folder::new();
    for name in ["gpt2_adamw", "gpt2_ampbf16_adamw"] {
        a.put(&format!("{name}.json.zst"), &std::fs::read(trace(name)).expect("a trace"));
    }
    let args = ["diff", "gpt2_adamw.json.zst", "gpt2_ampbf16_adamw.json.zst", "-d", "a100-40g"];
    let by_op = ["--by", "op", "--top", "3"];
    let mut command = command(args.into_iter().chain(by_op));
    let ran: Ran = command.current_dir(a.path(".")).output().expect("runs").into();
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    expect![[r#"
        peak reserved shrank by 18.00 MiB (-8.57 %)
          A  gpt2_adamw.json.zst
          B  gpt2_ampbf16_adamw.json.zst

          peak                A           B  difference
          allocated  186.89 MiB  180.90 MiB   -6.00 MiB  -3.21 %
          reserved   210.00 MiB  192.00 MiB  -18.00 MiB  -8.57 %
          device     660.00 MiB  642.00 MiB  -18.00 MiB  -2.73 %
          allocated peaks in backward of iteration 2 (A), backward of iteration 1 (B)

        Allocated at the peak, by operator
          difference           A  blocks           B  blocks  op
          +13.25 MiB         0 B       0   13.25 MiB      30  aten::_to_copy
          -12.50 MiB   17.00 MiB       9    4.50 MiB       5  aten::mul
           +8.00 MiB         0 B       0    8.00 MiB       4  aten::pow
          -14.75 MiB  169.89 MiB     246  155.15 MiB     241  5 others, and what is unchanged
           -6.00 MiB  186.89 MiB     255  180.90 MiB     280  all

        The runs part at request 82 (2231 requests in A, 2861 in B)
          A  allocates 1.50 MiB at aten::addmm, GPT2LMHeadModel_0 > GPT2Model_0 > GPT2Block_0 >
             GPT2Attention_0 > Conv1D_0, transformers/pytorch_utils.py(117): forward (forward of iteration
             0; then 23.75 MiB allocated)
          B  allocates 384.00 KiB at aten::_to_copy, GPT2LMHeadModel_0 > GPT2Model_0 > GPT2Block_0 >
             GPT2Attention_0 > Conv1D_0, transformers/pytorch_utils.py(117): forward (forward of iteration
             0; then 22.62 MiB allocated)
    "#]].assert_eq(&ran.stdout);
}

#[test]
fn rows_add_up_whatever_they_are_by() {
    for (a, b) in [("gpt2_adamw", "gpt2_ampbf16_adamw"), ("resnet18_sgdm", "gpt2_adamw")] {
        // By role, two groups of the first pair differ.
        for key in KEYS.into_iter().filter(|key| *key != "role" || a == "gpt2_adamw") {
            for top in ["0", "2", "1000"] {
                let ran =
                    diff(&trace(a), &trace(b), &["--by", key, "--top", top, "--format", "json"]);
                let document = document(&ran);
                assert_eq!(document["same_requests"], false);
                let rows = document["rows"].as_array().expect("rows").len();
                assert!(rows <= top.parse().expect("a number"), "{a} {b} {key} {top}");
                let hidden = document["rest"]["groups"].as_u64().expect("a number");
                assert_eq!(
                    hidden > 0,
                    top == "0" || (top == "2" && key != "role"),
                    "{a} {b} {key}"
                );
            }
        }
    }
}

#[test]
fn nothing_differs_from_itself() {
    for name in ["gpt2_adamw", "resnet18_sgdm", "bert_fp16_scaler_adamw"] {
        let trace = trace(name);
        for key in KEYS {
            let ran = diff(&trace, &trace, &["--by", key, "--format", "json", "--fail-over", "0%"]);
            let document = document(&ran);
            for part in ["rows", "settings"] {
                assert_eq!(document[part].as_array().map(Vec::len), Some(0), "{name} {key} {part}");
            }
            assert_eq!(document["divergence"], Value::Null, "{name} {key}");
            assert_eq!(document["same_requests"], true, "{name} {key}");
            assert_eq!(document["rest"]["a"], document["rest"]["b"], "{name} {key}");
        }
    }
}

#[test]
fn sides_that_are_swapped_negate_every_difference() {
    let (a, b) = (trace("gpt2_adamw"), trace("gpt2_ampbf16_adamw"));
    for key in KEYS {
        let there = document(&diff(&a, &b, &["--by", key, "--format", "json"]));
        let back = document(&diff(&b, &a, &["--by", key, "--format", "json"]));
        let rows = |document: &Value, names: [&str; 2], sign: i64| {
            let rows = document["rows"].as_array().expect("rows").iter();
            let mut rows: Vec<(String, String, i64)> = rows
                .map(|row| {
                    let difference = row["difference_bytes"].as_i64().expect("a number");
                    (row[names[0]].to_string(), row[names[1]].to_string(), sign * difference)
                })
                .collect();
            rows.sort();
            rows
        };
        let forth = rows(&there, ["name_a", "name_b"], 1);
        assert!(!forth.is_empty());
        assert_eq!(forth, rows(&back, ["name_b", "name_a"], -1), "{key}");
        for figure in ["allocated_bytes", "reserved_bytes", "device_bytes"] {
            let of = |document: &Value| document["difference"][figure].as_i64().expect("a number");
            assert_eq!(of(&there), -of(&back), "{key} {figure}");
        }
        assert_eq!(there["divergence"]["request"], back["divergence"]["request"]);
        assert_eq!(there["divergence"]["a"], back["divergence"]["b"]);
    }
}

#[test]
fn names_are_matched_across_versions_of_a_script() {
    let folder = Folder::new();
    let edited = [LARGER, ("train.py(7)", "train.py(19)"), ("Net_0", "Model_0")];
    folder.put("edited.json", &changed(&edited));
    let (before, after) = (folder.path("job.json"), folder.path("edited.json"));
    for (key, name_a, name_b, matched) in [
        ("line", "train.py(7): forward", "train.py(19): forward", "shifted"),
        ("op", "aten::relu", "aten::relu", "same"),
        ("role", "activation", "activation", "same"),
    ] {
        let document = document(&diff(&before, &after, &["--by", key, "--format", "json"]));
        let rows = document["rows"].as_array().expect("rows");
        let row = &rows[0];
        assert_eq!(
            (&row["name_a"], &row["name_b"], &row["matched"], &row["difference_bytes"]),
            (&name_a.into(), &name_b.into(), &matched.into(), &(32 << 20).into()),
            "{document}"
        );
        assert_eq!(rows.len(), 1, "{key}");
    }
    folder.put("renamed.json", &changed(&[("Net_0", "Model_0")]));
    let renamed = folder.path("renamed.json");
    let document = document(&diff(&before, &renamed, &["--by", "module", "--format", "json"]));
    assert_eq!(document["rows"].as_array().map(Vec::len), Some(0), "{document}");
}

#[test]
fn the_exit_code_says_whether_it_grew_beyond_the_limit() {
    let folder = Folder::new();
    folder.put("larger.json", &changed(&[LARGER]));
    let (before, after) = (folder.path("job.json"), folder.path("larger.json"));
    for (a, b, options, code) in [
        (&before, &after, &[][..], 0),
        (&before, &after, &["--fail-over", "1%"], 1),
        (&before, &after, &["--fail-over", "1%", "--figure", "allocated"], 1),
        (&before, &after, &["--fail-over", "1%", "--figure", "device", "--format", "html"], 1),
        (&before, &after, &["--fail-over", "10MiB", "--format", "json"], 1),
        (&before, &after, &["--fail-over", "32MiB"], 0),
        (&before, &after, &["--fail-over", "200%", "--format", "markdown"], 0),
        (&after, &before, &["--fail-over", "0%"], 0),
        (&before, &before, &["--fail-over", "0%"], 0),
        (&before, &after, &["--figure", "device"], 2),
        (&before, &after, &["--fail-over", "some"], 2),
    ] {
        assert_eq!(diff(a, b, options).code, code, "{options:?}");
    }
    let ran = diff(&before, &after, &["--fail-over", "1%", "-q"]);
    assert!(ran.stdout.starts_with("peak reserved grew by 32.00 MiB (+"), "{}", ran.stdout);
    assert!(ran.stdout.contains("), more than 1%  "), "{}", ran.stdout);
}

#[test]
fn answers_have_roles_and_say_what_to_do_for_more() {
    let folder = Folder::new();
    folder.put("larger.json", &changed(&[LARGER]));
    let on = ["--device", "a100-40g", "--format", "json"];
    for (name, answer) in [("job.json", "before.answer"), ("larger.json", "after.answer")] {
        let trace = folder.path(name);
        let ran = xmem(["replay", trace.as_str()].into_iter().chain(on));
        folder.put(answer, ran.stdout.as_bytes());
    }
    let (before, after) = (folder.path("before.answer"), folder.path("after.answer"));
    let of_answers = xmem(["diff", &before, &after, "--format", "json"]);
    let document_of_answers = document(&of_answers);
    let of_traces = document(&diff(
        &folder.path("job.json"),
        &folder.path("larger.json"),
        &["--format", "json"],
    ));
    for part in ["difference", "settings"] {
        assert_eq!(document_of_answers[part], of_traces[part], "{part}");
    }
    let bytes = |document: &Value| -> Vec<Value> {
        let rows = document["rows"].as_array().expect("rows").iter();
        rows.map(|row| row["difference_bytes"].clone()).collect()
    };
    assert_eq!(bytes(&document_of_answers), bytes(&of_traces));
    assert_eq!(document_of_answers["same_requests"], Value::Null);
    // An answer and the trace that it is about.
    let mixed = document(&diff(&before, &folder.path("job.json"), &["--format", "json"]));
    for part in ["rows", "settings"] {
        assert_eq!(mixed[part].as_array().map(Vec::len), Some(0), "{part}: {mixed}");
    }
    let input = std::fs::read(&after).expect("an answer");
    let ran = xmem_with_input(["diff", &before, "-", "--format", "json"], &input);
    assert_eq!(document(&ran)["rows"], document_of_answers["rows"]);
    for key in ["module", "line", "op"] {
        let ran = xmem(["diff", &before, &after, "--by", key]);
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{key}");
        let words: String = ran.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains("is a JSON answer"), "{words}");
        assert!(words.contains("use --by role"), "{words}");
    }
}

#[test]
fn what_cannot_be_compared_says_so() {
    let folder = Folder::new();
    folder.put("other.answer", br#"{"schema": "xmem.plan/1"}"#);
    folder.put("cut.answer", br#"{"schema": "xmem.replay/2", "verdict": "fits""#);
    folder.put("two.answer", br#"[{"schema": "xmem.replay/2"}, {"schema": "xmem.replay/2"}]"#);
    let job = folder.path("job.json");
    for (b, code, message) in [
        ("other.answer", 3, "its schema is `xmem.plan/1`, expected `xmem.replay/2`"),
        ("cut.answer", 3, "the document is not complete"),
        ("two.answer", 3, "it holds 2 answers"),
        ("bad.json", 3, ""),
        ("missing.json", 3, ""),
        // Nothing is known of its memory.
        ("silent.json", 4, ""),
    ] {
        let ran = diff(&job, &folder.path(b), &[]);
        assert_eq!(ran.code, code, "{b}: {}", ran.stderr);
        let words: String = ran.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains(message), "{b}: {words}");
    }
    assert_eq!(xmem(["diff", &job, &job]).code, 2, "no device");
    assert_eq!(xmem_with_input(["diff", "-", "-", "--device", "a100-40g"], b"").code, 2);
    assert_eq!(diff(&job, &job, &["-o", &job]).code, 2, "an output that is an input");
}

#[test]
fn settings_of_answers_that_differ_are_listed() {
    let folder = Folder::new();
    let job = folder.path("job.json");
    for (device, conf, answer) in
        [("a100-40g", "", "a.answer"), ("t4-16g", "expandable_segments:True", "b.answer")]
    {
        let ran = xmem([
            "replay",
            &job,
            "--device",
            device,
            "--alloc-conf",
            conf,
            "--format",
            "json",
            "-o",
            &folder.path(answer),
        ]);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
    }
    let ran =
        xmem(["diff", &folder.path("a.answer"), &folder.path("b.answer"), "--format", "json"]);
    let document = document(&ran);
    let settings = document["settings"].as_array().expect("settings").iter();
    let names: Vec<&str> =
        settings.map(|other| other["setting"].as_str().expect("a name")).collect();
    assert_eq!(names, ["device", "device_memory", "alloc_conf"]);
}

#[test]
fn a_comment_for_a_pull_request() {
    let folder = Folder::new();
    folder.put("larger.json", &changed(&[LARGER, ("train.py(7)", "train.py(19)")]));
    let more = ["--by", "line", "--format", "markdown", "--fail-over", "1%", "-d", "a100-40g"];
    let mut command = command(["diff", "job.json", "larger.json"].into_iter().chain(more));
    let ran: Ran = command.current_dir(folder.path(".")).output().expect("runs").into();
    assert_eq!((ran.code, ran.stderr.as_str()), (1, ""));
    expect![[r#"
        ### ❌ GPU memory: peak reserved grew by 32.00 MiB (+38.10 %), more than 1%

        A: job.json  
        B: larger.json

        | peak | A | B | difference | |
        |---|--:|--:|--:|--:|
        | allocated | 80.00 MiB | 112.00 MiB | **+32.00 MiB** | +40.00 % |
        | reserved | 84.00 MiB | 116.00 MiB | **+32.00 MiB** | +38.10 % |
        | device | 534.00 MiB | 566.00 MiB | **+32.00 MiB** | +5.99 % |

        <details><summary>Allocated at the peak, by line</summary>

        | line | A | blocks | B | blocks | difference |
        |---|--:|--:|--:|--:|--:|
        | train.py(19): forward (in A: train.py(7): forward) | 72.00 MiB | 2 | 104.00 MiB | 2 | +32.00 MiB |
        | unchanged | 8.00 MiB | 1 | 8.00 MiB | 1 | 0 B |
        | **all** | 80.00 MiB | 3 | 112.00 MiB | 3 | +32.00 MiB |

        </details>

        The runs part at request 2 (9 requests in A, 9 in B)

        - A allocates 64.00 MiB at aten::relu, Net\_0, train.py(7): forward (forward of iteration 0; then 72.00 MiB allocated)
        - B allocates 96.00 MiB at aten::relu, Net\_0, train.py(19): forward (forward of iteration 0; then 104.00 MiB allocated)
    "#]].assert_eq(&ran.stdout);
}

#[test]
fn a_page_is_one_file_whose_names_are_text() {
    let folder = Folder::new();
    folder.put("odd.json", &changed(&[LARGER, ("aten::relu", "aten::<b>relu\\u001b[2J")]));
    let ran = diff(
        &folder.path("job.json"),
        &folder.path("odd.json"),
        &["--by", "op", "--format", "html"],
    );
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    let page = &ran.stdout;
    assert!(page.starts_with("<!doctype html>") && page.ends_with("</html>\n"), "{page}");
    for absent in ["<script", "http:", "https:", "<link", "<img", "<b>relu", "\u{1b}"] {
        assert!(!page.contains(absent), "{absent}");
    }
    for present in [
        "content=\"default-src 'none'; style-src",
        "prefers-color-scheme:dark",
        "aten::&lt;b&gt;relu\\u001b[2J",
        "+32.00 MiB",
    ] {
        assert!(page.contains(present), "{present}: {page}");
    }
}

//! Workspaces of CUDA's libraries as the stand-ins give them, compared with those that an H100 was asked for
//! (`traces/measured/h100-80g/libraries.jsonl.zst`, made by `traces/measured/libraries.py`).
#![cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]
#![allow(clippy::disallowed_methods, reason = "tests write and run a program")]

use expect_test::{Expect, expect};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use tempfile::tempdir;

/// What was asked for: the function, the line of input of `programs/workspaces.c` for it, and the answer.
struct Question {
    function: String,
    line: String,
    measured: u64,
}

fn rows() -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../traces/measured/h100-80g/libraries.jsonl.zst");
    let file = fs::File::open(path).expect("the table");
    let text = zstd::decode_all(file).expect("zstd");
    let text = String::from_utf8(text).expect("UTF-8");
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

fn numbers(row: &Value) -> Vec<u64> {
    let list = row["size"].as_array().expect("a list");
    list.iter().map(|number| number.as_u64().expect("a number")).collect()
}

/// Questions to cuSOLVER. Functions of the same name but for the type are one.
fn of_solver(row: &Value) -> Option<Question> {
    let name = row["function"].as_str()?;
    let (function, letter, measured) = match (row["elements"].as_u64(), row["type"].as_str()) {
        (Some(elements), _) => {
            let (letter, rest) = name.split_at(1);
            let real = |prefix: &str, real: &str| {
                rest.strip_prefix(prefix).map(|end| real.to_owned() + end)
            };
            let rest =
                real("he", "sy").or_else(|| real("un", "or")).unwrap_or_else(|| rest.to_owned());
            (rest, letter.to_owned(), elements)
        }
        (None, Some(letter)) if name.starts_with('X') => {
            (name.to_owned(), letter.to_owned(), row["device"].as_u64()?)
        }
        _ => return None,
    };
    let mut sizes = numbers(row);
    sizes.resize(4, 0);
    let sizes: Vec<String> = sizes.iter().map(u64::to_string).collect();
    let line = format!("{function} {letter} {}", sizes.join(" "));
    Some(Question { function, line, measured })
}

/// Questions to cuFFT. Lines, planes and cubes are functions of their own.
fn of_fft(row: &Value) -> Option<Question> {
    if row["function"] != "cufft" {
        return None;
    }
    let (kind, kind_of_number) = (row["kind"].as_str()?, row["type"].as_str()?);
    let mut sizes = numbers(row);
    let shape = ["line", "plane", "cube"][sizes.len() - 1];
    sizes.resize(3, 0);
    sizes.push(row["batch"].as_u64()?);
    let sizes: Vec<String> = sizes.iter().map(u64::to_string).collect();
    let line = format!("{kind} {} {}", &kind_of_number[..1], sizes.join(" "));
    let function = format!("{kind} {kind_of_number} {shape}");
    Some(Question { function, line, measured: row["device"].as_u64()? })
}

/// Questions to cuDNN, answered by the last allocation that a call of PyTorch makes before its results.
fn of_cudnn(row: &Value) -> Vec<Question> {
    let sizes = row["function"].as_str().map(|_| numbers(row)).unwrap_or_default();
    let allocation = |phase: &str, at: usize| row[phase].get(at).and_then(Value::as_u64);
    let question = |function: &str, line: String, measured: Option<u64>| Question {
        function: function.to_owned(),
        line: format!("{function} {line}"),
        measured: measured.expect("a workspace"),
    };
    match (row["function"].as_str(), row["type"].as_str()) {
        // bfloat16 takes kernels of PyTorch's.
        (Some("batch_norm"), Some(kind @ ("float32" | "float16"))) => {
            let letter = if kind == "float16" { 'h' } else { 's' };
            let [batch, channels, height, width] = sizes[..] else {
                unreachable!("four dimensions")
            };
            let line = format!("{letter} {} {channels} 0 0", batch * height * width);
            let last = row["backward"].as_array().map_or(0, Vec::len) - 1;
            vec![
                question("batch-norm-forward", line.clone(), allocation("forward", 3)),
                question("batch-norm-backward", line, allocation("backward", last)),
            ]
        }
        (Some("ctc"), _) => {
            let line = format!("s {} {} {} 0", sizes[0], sizes[1], sizes[2]);
            vec![question("ctc", line, allocation("forward", 2))]
        }
        (Some(cell @ ("LSTM" | "GRU" | "RNN")), _) => {
            let directions = 1 + u8::from(row["both"] == true);
            let words: Vec<String> = sizes.iter().map(u64::to_string).collect();
            let line = format!("{directions} {}", words.join(" "));
            let last = row["forward"].as_array().map_or(0, Vec::len) - 1;
            vec![
                question(
                    &format!("{cell}-workspace"),
                    line.clone(),
                    allocation("forward", last - 1),
                ),
                question(&format!("{cell}-reserve"), line, allocation("forward", last)),
            ]
        }
        _ => Vec::new(),
    }
}

/// The program's answer to each question.
fn answers(questions: &[Question]) -> Vec<u64> {
    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = tempdir().expect("a folder");
    let program = folder.path().join("workspaces");
    let result = Command::new("cc")
        .args(["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-O1", "-o"])
        .arg(&program)
        .arg(crate_folder.join("tests/programs/workspaces.c"))
        .arg(format!("-I{}", crate_folder.join("native").display()))
        .output()
        .expect("a C compiler");
    assert!(result.status.success(), "{}", String::from_utf8_lossy(&result.stderr));
    let input = folder.path().join("input");
    // Five numbers each.
    let line = |question: &Question| {
        let missing = 7_usize.saturating_sub(question.line.split(' ').count());
        question.line.clone() + &" 0".repeat(missing) + "\n"
    };
    let lines: String = questions.iter().map(line).collect();
    fs::File::create(&input)
        .and_then(|mut file| file.write_all(lines.as_bytes()))
        .expect("written");
    let output = Command::new(&program)
        .stdin(Stdio::from(fs::File::open(&input).expect("readable")))
        .output()
        .expect("started");
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    text.lines().map(|line| line.parse().expect("a number")).collect()
}

/// Of each function: how many sizes are exact, and the largest relative error.
fn compare<Q: IntoIterator<Item = Question>>(choose: impl Fn(&Value) -> Q, expected: &Expect) {
    let questions: Vec<Question> = rows().iter().flat_map(choose).collect();
    let answers = answers(&questions);
    assert_eq!(answers.len(), questions.len());
    let mut functions: BTreeMap<&str, (usize, usize, f64)> = BTreeMap::new();
    for (question, answer) in questions.iter().zip(answers) {
        let (exact, all, worst) = functions.entry(&question.function).or_default();
        *exact += usize::from(answer == question.measured);
        *all += 1;
        let error = answer.abs_diff(question.measured) as f64 / question.measured.max(1) as f64;
        *worst = worst.max(error);
    }
    let mut text = String::new();
    for (function, (exact, all, worst)) in functions {
        write!(text, "{function}: {exact} of {all}").expect("memory");
        if exact < all {
            write!(text, ", largest error {:.3} %", 100.0 * worst).expect("memory");
        }
        text.push('\n');
    }
    expected.assert_eq(&text);
}

#[test]
fn cusolver_asks_for_what_was_measured() {
    compare(
        of_solver,
        &expect![[r#"
        Xgeev: 186 of 528, largest error 0.413 %
        Xgeqrf: 908 of 908
        Xpotrf: 284 of 284
        XsyevBatched: 2104 of 2448, largest error 0.023 %
        Xsyevd: 568 of 568
        Xsytrs: 852 of 852
        geqrf: 908 of 908
        gesvd: 312 of 596, largest error 8.595 %
        gesvdaStridedBatched: 3124 of 3744, largest error 0.338 %
        gesvdj: 3632 of 3632
        gesvdjBatched: 1000 of 1000
        getrf: 908 of 908
        orgqr: 1220 of 1220
        ormqr: 3632 of 3632
        potrf: 284 of 284
        syevd: 568 of 568
        syevj: 568 of 568
        syevjBatched: 1920 of 1920
        sytrf: 284 of 284
    "#]],
    );
}

#[test]
fn cufft_asks_for_what_was_measured() {
    compare(
        of_fft,
        &expect![[r#"
        c2c double line: 306 of 306
        c2c half line: 19 of 19
        c2c single cube: 44 of 44
        c2c single line: 452 of 452
        c2c single plane: 239 of 239
        c2r double line: 306 of 306
        c2r half line: 19 of 19
        c2r single cube: 44 of 44
        c2r single line: 449 of 452, largest error 0.004 %
        c2r single plane: 237 of 239, largest error 0.550 %
        r2c double line: 306 of 306
        r2c half line: 19 of 19
        r2c single cube: 44 of 44
        r2c single line: 449 of 452, largest error 0.004 %
        r2c single plane: 239 of 239
    "#]],
    );
}

#[test]
fn cudnn_asks_for_what_was_measured() {
    compare(
        of_cudnn,
        &expect![[r#"
            GRU-reserve: 216 of 216
            GRU-workspace: 215 of 216, largest error 0.818 %
            LSTM-reserve: 216 of 216
            LSTM-workspace: 176 of 216, largest error 0.614 %
            RNN-reserve: 216 of 216
            RNN-workspace: 214 of 216, largest error 1.486 %
            batch-norm-backward: 1172 of 1172
            batch-norm-forward: 1172 of 1172
            ctc: 626 of 626
        "#]],
    );
}

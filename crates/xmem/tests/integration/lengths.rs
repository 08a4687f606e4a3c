//! Lengths that vary, judged by recordings of a small language model: on the CPU, and with PyTorch's CUDA
//! build, kernels stubbed.
#![expect(clippy::disallowed_methods, reason = "tests read recordings")]

use std::path::{Path, PathBuf};
use xmem::predict::{Dimension, LengthRun, LengthSettings, LengthsError};
use xmem::{Bytes, Estimate, EstimateError, Job, LengthsAnswer, ReadOptions, find};

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../traces/lengths").join(name)
}

fn job(name: &str) -> Job {
    Job::from_path(file(name), &ReadOptions::default()).expect("a trace")
}

fn estimate() -> Estimate {
    Estimate::builder(find("a100-40g").expect("known").clone()).build()
}

fn settings(varying: &str, iterations: usize, exact: Option<&[u64]>) -> LengthSettings {
    LengthSettings {
        varying: varying.parse().expect(varying),
        iterations,
        orders: 6,
        seed: 3,
        exact: exact.map(<[u64]>::to_vec),
    }
}

fn ask(name: &str, settings: &LengthSettings) -> LengthsAnswer {
    estimate().predict(&job(name)).expect("a prediction").lengths(settings).expect("an answer")
}

const RECORDINGS: [&str; 2] = ["cpu.json.zst", "virtual_gpu.json.zst"];

/// A run of PyTorch's CUDA build, kernels stubbed.
struct Recorded {
    lengths: Vec<u64>,
    expandable: bool,
    reserved: Bytes,
    allocated: Bytes,
}

fn recorded() -> Vec<Recorded> {
    let text = std::fs::read_to_string(file("recorded.toml")).expect("readable");
    let table: toml::Table = text.parse().expect("TOML");
    let run = |run: &toml::Value| {
        let bytes = |key: &str| Bytes(run[key].as_integer().expect("bytes").unsigned_abs());
        let lengths = run["lengths"].as_array().expect("lengths").iter();
        let lengths = lengths.map(|l| l.as_integer().expect("a length").unsigned_abs()).collect();
        let expandable = run["conf"].as_str() == Some("expandable_segments:True");
        Recorded { lengths, expandable, reserved: bytes("reserved"), allocated: bytes("allocated") }
    };
    table["run"].as_array().expect("runs").iter().map(run).collect()
}

#[test]
fn orders_that_were_not_recorded_have_the_peaks_of_pytorch() {
    let runs = recorded();
    assert_eq!(runs.len(), 8);
    for name in RECORDINGS {
        for Recorded { lengths, expandable, reserved, allocated } in &runs {
            let answer = ask(name, &settings("seq=64..128", 1, Some(lengths)));
            let is_asked = |run: &&LengthRun| run.setup.has_expandable_segments() == *expandable;
            let run = answer.runs.iter().find(is_asked).expect("with and without");
            let is_close =
                |found: Bytes, truth: Bytes| found.get().abs_diff(truth.get()) * 50 <= truth.get();
            let found = (run.reserved.max, run.allocated.max);
            let about = format!("{name} {lengths:?} {expandable}");
            assert!(is_close(found.0, *reserved), "{about}: {found:?} for {reserved}");
            assert!(is_close(found.1, *allocated), "{about}: {found:?} for {allocated}");
        }
    }
}

#[test]
fn the_recorded_order_has_the_recorded_peaks() {
    for name in RECORDINGS {
        let answer = estimate().job(&job(name)).expect("an answer");
        let lengths = [128, 64, 96, 128, 64, 96];
        let again = ask(name, &settings("seq=64..128", 1, Some(&lengths)));
        assert_eq!(again.recorded, lengths.map(Some), "{name}");
        assert_eq!(again.runs[0].reserved.max, answer.memory.peak.reserved, "{name}");
        assert_eq!(again.runs[0].allocated.max, answer.memory.peak.allocated, "{name}");
    }
}

#[test]
fn sizes_follow_from_the_length_by_simple_laws() {
    for name in RECORDINGS {
        let fit = ask(name, &settings("seq=64..128", 2, None)).fit;
        assert_eq!(fit.lengths, [64, 96, 128], "{name}");
        // Sums over 8 x 128 rows are done in two stages on this device; shorter ones need no buffer.
        assert_eq!((fit.unmatched, fit.interpolated), (16, 0), "{name}: {fit:?}");
        assert!(fit.square >= 20 && fit.affine >= 50 && fit.constant >= 30, "{name}: {fit:?}");
    }
}

#[test]
fn memory_settles_where_lengths_do_not_vary() {
    for name in RECORDINGS {
        let run = |iterations| ask(name, &settings("seq=128", iterations, None)).runs.remove(0);
        let (short, long) = (run(5), run(200));
        assert_eq!(short.reserved, long.reserved, "{name}");
        assert_eq!(short.allocated, long.allocated, "{name}");
        assert_eq!(long.all_longest, long.reserved.max, "{name}");
        assert!(long.settled.max <= 3, "{name}: {:?}", long.settled);
    }
}

#[test]
fn expandable_segments_need_less_and_random_orders_more() {
    for name in RECORDINGS {
        let answer = ask(name, &settings("seq=64..128", 100, None));
        let [default, expandable] = answer.runs.as_slice() else { panic!("two runs") };
        assert!(expandable.setup.has_expandable_segments());
        assert!(!default.setup.has_expandable_segments());
        assert!(expandable.reserved.median < default.reserved.median, "{name}");
        assert!(default.reserved.median > default.all_longest, "{name}");
        assert!(default.growth.is_sorted_by_key(|point| point.median), "{name}");
        assert_eq!(default.growth.last().map(|point| point.max), Some(default.reserved.max));
    }
}

#[test]
fn the_same_seed_gives_the_same_answer() {
    let asked = settings("seq=64..128", 30, None);
    let name = RECORDINGS[0];
    assert_eq!(ask(name, &asked).runs, ask(name, &asked).runs);
    let other = LengthSettings { seed: 99, ..asked.clone() };
    assert_ne!(ask(name, &asked).runs, ask(name, &other).runs);
}

#[test]
fn a_recording_of_one_batch_size_does_not_show_how_memory_depends_on_it() {
    for name in RECORDINGS {
        let error = estimate().predict(&job(name)).expect("a prediction").lengths(&settings(
            "batch=4..8",
            2,
            None,
        ));
        let Err(EstimateError::Lengths(error)) = error else { panic!("{error:?}") };
        let one = LengthsError::OneLength { dimension: Dimension::Batch, length: 8, iterations: 6 };
        assert_eq!(error, one, "{name}");
    }
}

#[test]
fn lengths_beyond_those_recorded_are_noted() {
    let code = "lengths-extrapolated";
    for (varying, noted) in [("seq=64..128", false), ("seq=64..160:32", true), ("seq=32", true)] {
        let answer = ask(RECORDINGS[0], &settings(varying, 2, None));
        let found = answer.findings.iter().any(|finding| finding.code == code);
        assert_eq!(found, noted, "{varying}");
    }
}

/// Cases of `traces` that learn from text, or from speech with its text, in batches of one length.
const LANGUAGE_MODELS: [&str; 24] = [
    "bert_adamw_pos0",
    "bert_fp16_scaler_adamw",
    "big_bertbase_sgd_b16",
    "big_gpt2_fused_adamw_b4",
    "big_gpt2s_adam_b6",
    "big_llama_bf16_adamw_b4",
    "big_opt125m_adamw_b12",
    "big_qwen2_ampbf16_adamw_b4",
    "big_qwen3_bf16_adamw_b2",
    "gpt2_adamw",
    "gpt2_ampbf16_adamw",
    "gpt2_eager_adam",
    "gpt2_tok4k_sgd",
    "gru_seq2seq_nadam",
    "llama_sgd_pos0",
    "lora_llama_bf16_adamw",
    "moe_clip_adamw",
    "nanogpt_accumulate_fused",
    "pythia_ckpt_ampbf16_adafactor",
    "qwen3_adamw_ckpt",
    "t5_bf16_adafactor",
    "t5_hfadafactor",
    "translator_adam",
    "whisper_ampbf16_adamw",
];

#[test]
fn only_language_models_of_one_length_are_noted() {
    let has_note = |job: &Job| {
        let answer = estimate().job(job).expect("an answer");
        answer.findings.iter().any(|finding| finding.code == "one-sequence-length")
    };
    let mut noted = Vec::new();
    let folder = file("..");
    for entry in std::fs::read_dir(&folder).expect("traces") {
        let path = entry.expect("an entry").path();
        let Ok(job) = Job::from_path(path.join("trace.json.zst"), &ReadOptions::default()) else {
            continue;
        };
        if has_note(&job) {
            noted.push(path.file_name().expect("a name").to_string_lossy().into_owned());
        }
    }
    noted.sort();
    assert_eq!(noted, LANGUAGE_MODELS);
    for name in RECORDINGS {
        assert!(!has_note(&job(name)), "{name} has several lengths");
    }
}

//! What-ifs, judged by recordings of the changed job: PyTorch's CUDA build, kernels stubbed.

#![expect(clippy::disallowed_methods, reason = "tests read recordings")]

use std::path::{Path, PathBuf};
use xmem::orchestrator::{ChosenWhatIf, OptimizerImpl, ZeroGradPlace};
use xmem::predict::Confidence;
use xmem::{Answer, Bytes, Estimate, EstimateError, find};

fn traces() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../traces")
}

fn answer(trace: &str, what_if: Option<&str>) -> Result<Answer, EstimateError> {
    let mut builder = Estimate::builder(find("a100-40g").expect("known").clone());
    if let Some(text) = what_if {
        builder = builder.what_if(text.parse::<ChosenWhatIf>().expect("a what-if"));
    }
    builder.build().path(traces().join(trace))
}

/// Each job of traces/what_ifs, recorded on a CPU and on a virtual GPU, as it is and with each what-if.
#[test]
fn a_what_if_has_the_peaks_of_a_job_that_was_recorded_with_it() {
    let text = std::fs::read_to_string(traces().join("what_ifs/recorded.toml")).expect("readable");
    let jobs: toml::Table = text.parse().expect("TOML");
    for (job, settings) in &jobs {
        for (setting, peaks) in settings.as_table().expect("settings") {
            let bytes = |key: &str| Bytes(peaks[key].as_integer().expect("bytes").unsigned_abs());
            for engine in ["cpu", "virtual_gpu"] {
                let what_if = (setting != "without").then_some(setting.as_str());
                let trace = format!("what_ifs/{job}_{engine}.json.zst");
                let answer = answer(&trace, what_if).expect("an answer");
                let peak = &answer.memory.peak;
                let recorded = (bytes("allocated"), bytes("reserved"));
                assert_eq!((peak.allocated, peak.reserved), recorded, "{trace}: {setting}");
                // Another job than the recorded one is not known for certain.
                if what_if.is_some() {
                    assert_eq!(answer.memory.range.confidence, Confidence::Likely, "{trace}");
                }
            }
        }
    }
}

#[test]
fn a_setting_that_the_recorded_optimizer_does_not_have_is_refused() {
    for (trace, what_if, message) in [
        (
            "resnet18_sgdm/trace.json.zst",
            "amsgrad=true",
            "amsgrad is a setting of Adam and AdamW, and the recorded optimizer is SGD",
        ),
        (
            "what_ifs/adamw_cpu.json.zst",
            "momentum=true",
            "momentum is a setting of SGD, and the recorded optimizer is AdamW",
        ),
        (
            "resnet18_sgdm/trace.json.zst",
            "momentum=true",
            "momentum: the recorded optimizer has it",
        ),
    ] {
        let refused = answer(trace, Some(what_if)).expect_err("refused");
        let EstimateError::WhatIf(error) = refused else { panic!("{refused:?}") };
        assert_eq!(error.to_string(), message);
    }
}

/// `xmem check --zero-grad pos0` did not say that a job needs less with pos1: what it tried was pos0 again.
#[test]
fn a_setting_after_a_what_if_of_its_name_was_ignored() {
    let what_if = |text: &str| text.parse::<ChosenWhatIf>().expect("a what-if");
    let builder = || Estimate::builder(find("a100-40g").expect("known").clone());
    let target = |estimate: Estimate| {
        let answer = estimate.path(traces().join("what_ifs/adamw_cpu.json.zst"));
        answer.expect("an answer").target
    };
    let chosen =
        builder().what_if(what_if("zero-grad=pos1")).what_if(what_if("optimizer-impl=fused"));
    let last = target(
        chosen
            .clone()
            .zero_grad(ZeroGradPlace::BeforeBackward)
            .optimizer(OptimizerImpl::ForLoop)
            .build(),
    );
    assert_eq!(last.zero_grad, Some(ZeroGradPlace::BeforeBackward));
    assert_eq!(last.optimizer, Some(OptimizerImpl::ForLoop));
    let first = target(chosen.build());
    assert_eq!(first.zero_grad, Some(ZeroGradPlace::IterationStart));
    assert_eq!(first.optimizer, Some(OptimizerImpl::Fused));
}

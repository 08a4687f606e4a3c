//! Notes on a choice: approximations, and settings that change nothing.

use super::{AllocatorKind, JobEnvironment};
use xmem_simulator::{
    AllocConf, AllocatorConfig, OnExcess, PowerOfTwoDivisions, alloc_conf_variables,
};
use xmem_types::{Diagnostics, Severity, TorchVersion};

/// Variables of the input that are not looked at.
pub(super) fn about_unread_variables(
    environment: &JobEnvironment,
    release: TorchVersion,
    notes: &mut Diagnostics,
) {
    for name in environment.unread(release) {
        notes.report("allocator-variable-unread", Severity::Warning, None, || {
            let read = alloc_conf_variables(release).join(", ");
            format!("PyTorch {release} does not read {name}, only {read}")
        });
    }
}

/// Options that change nothing about device memory, by themselves or in this company.
pub(super) fn about_options(conf: &AllocConf, kind: AllocatorKind, notes: &mut Diagnostics) {
    if !conf.without_effect.is_empty() {
        notes.report("host-allocator-options", Severity::Note, None, || {
            let names = conf.without_effect.join(", ");
            format!("{names}: for pinned host memory or locks; no effect on device memory")
        });
    }
    let config = &conf.config;
    let why = match kind {
        AllocatorKind::Native => without_companion(config),
        _ => ignored_by(config, kind).map(str::to_owned),
    };
    if let Some(why) = why {
        notes.report("allocator-options-without-effect", Severity::Warning, None, || why);
    }
    let options = without_fraction(config);
    if kind == AllocatorKind::Native && !options.is_empty() {
        notes.report(WITHOUT_FRACTION, Severity::Warning, None, || {
            format!("{}: no effect without a memory fraction", options.join(", "))
        });
    }
}

/// The code of the note about [`without_fraction`]; not true of programs that set a fraction while
/// they run.
pub(crate) const WITHOUT_FRACTION: &str = "allocator-options-without-fraction";

/// Options that need a memory fraction, which is missing.
fn without_fraction(config: &AllocatorConfig) -> Vec<&'static str> {
    let collects = config.garbage_collection_threshold.is_some();
    let refuses = config.on_excess == OnExcess::Refuse;
    [(collects, "garbage_collection_threshold"), (refuses, "throw_on_cudamalloc_oom")]
        .into_iter()
        .filter(|(given, _)| *given && config.memory_fraction.is_none())
        .map(|(_, option)| option)
        .collect()
}

/// Options that need another one, which is missing.
fn without_companion(config: &AllocatorConfig) -> Option<String> {
    let mut missing = Vec::new();
    let plain = AllocatorConfig::of(config.release);
    let slack = plain.max_non_split_rounding;
    let follows_segments = config.max_non_split_rounding == config.large_buffer;
    if config.max_non_split_rounding != slack
        && !follows_segments
        && config.max_split_size.is_none()
    {
        missing.push("max_non_split_rounding_mb has no effect without max_split_size_mb");
    }
    let divides = config.roundup_power2_divisions != PowerOfTwoDivisions::OFF;
    if config.roundup_bypass_threshold.is_some() && !divides {
        missing.push("roundup_bypass_threshold_mb has no effect without roundup_power2_divisions");
    }
    if config.expandable_reserve.is_some() && !config.expandable_segments {
        missing.push("expandable_segments_reserve has no effect without expandable_segments:True");
    }
    (!missing.is_empty()).then(|| missing.join("; "))
}

/// The effect of the caching allocator's options on another allocator.
fn ignored_by(config: &AllocatorConfig, kind: AllocatorKind) -> Option<&'static str> {
    let takes_fraction = kind != AllocatorKind::Uncached;
    let mut plain = AllocatorConfig::of(config.release);
    if takes_fraction {
        plain.memory_fraction = config.memory_fraction;
    }
    if *config == plain {
        return None;
    }
    Some(match kind {
        AllocatorKind::Native => return None,
        AllocatorKind::Uncached => "options and a memory fraction have no effect without caching",
        AllocatorKind::MallocAsync => {
            "of the options, only backend and a memory fraction have an effect on cudaMallocAsync"
        }
        AllocatorKind::Bfc | AllocatorKind::BfcGrowth => {
            "of PyTorch's options, only a memory fraction has an effect on TensorFlow's allocator"
        }
    })
}

/// Notes the meaning of the figures of an allocator other than the caching one.
pub(super) fn about_kind(kind: AllocatorKind, notes: &mut Diagnostics) {
    match kind {
        AllocatorKind::Native => {}
        AllocatorKind::Uncached => {
            notes.report("uncached-figures", Severity::Note, None, || {
                "PyTorch has no statistics without caching: `allocated` is the memory that the \
                 program requested, `reserved` that of the device, in whole pages"
                    .to_owned()
            });
        }
        AllocatorKind::MallocAsync => {
            notes.report("allocator-approximate", Severity::Warning, None, || {
                "cudaMallocAsync is simulated approximately, as the CUDA driver's pools are not \
                 documented; reserved memory is a lower bound"
                    .to_owned()
            });
        }
        AllocatorKind::Bfc | AllocatorKind::BfcGrowth => {
            notes.report("allocator-of-tensorflow", Severity::Note, None, || {
                "the allocator is TensorFlow's, which leaves a part of the device free; the \
                 requests are those of the input"
                    .to_owned()
            });
        }
    }
}

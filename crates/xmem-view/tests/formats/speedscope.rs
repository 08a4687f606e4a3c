//! The file for speedscope.

use crate::run::Recorded;
use serde_json::Value;

fn numbers(value: &Value) -> Vec<u64> {
    value.as_array().expect("a list").iter().map(|n| n.as_u64().expect("a number")).collect()
}

#[test]
fn profiles_add_up_to_the_peak_and_to_all_allocations() {
    let recorded = Recorded::trace("gpt2_adamw/trace.json.zst");
    let run = recorded.run();
    let file: Value = serde_json::from_slice(&xmem_view::speedscope(&run)).expect("JSON");
    let frames = file["shared"]["frames"].as_array().expect("frames").len();
    let profiles = file["profiles"].as_array().expect("profiles");
    let all: u64 = run.timeline.blocks.iter().map(|block| block.size.get()).sum();
    let peak = run.answer.memory.peak.allocated.get();
    let names: Vec<_> = profiles.iter().map(|profile| profile["name"].as_str()).collect();
    assert_eq!(
        names,
        [
            Some("memory at the peak, by stack"),
            Some("memory at the peak, by module"),
            Some("memory at the peak, by line"),
            Some("all allocations, by stack"),
        ]
    );
    for (profile, sum) in profiles.iter().zip([peak, peak, peak, all]) {
        assert_eq!(profile["unit"], "bytes");
        let weights = numbers(&profile["weights"]);
        assert_eq!(weights.iter().sum::<u64>(), sum);
        assert_eq!(profile["endValue"], sum);
        let samples = profile["samples"].as_array().expect("samples");
        assert_eq!(samples.len(), weights.len());
        for sample in samples {
            let stack = numbers(sample);
            assert!(!stack.is_empty() && stack.iter().all(|&frame| frame < frames as u64));
        }
    }
}

#[test]
fn a_run_without_memory_is_a_file() {
    let recorded = Recorded::text(r#"{"traceEvents": []}"#);
    let file: Value =
        serde_json::from_slice(&xmem_view::speedscope(&recorded.run())).expect("JSON");
    assert_eq!(file["profiles"][0]["endValue"], 0);
}

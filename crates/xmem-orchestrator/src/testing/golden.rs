//! The effect of each rule on recordings, as in `--explain`.

use super::recordings;
use crate::Schedule;
use crate::testing::case::scheduled;
use crate::testing::target;
use expect_test::{ExpectFile, expect_file};
use std::fmt::Write as _;
use xmem_analyzer::Profile;
use xmem_types::Bytes;

#[test]
fn effects_on_recordings() {
    let expected: [ExpectFile; 5] = [
        expect_file!["../../tests/golden/mlp_adam.txt"],
        expect_file!["../../tests/golden/vgg11_sgd_pos0.txt"],
        expect_file!["../../tests/golden/gpt2_tok4k_sgd.txt"],
        expect_file!["../../tests/golden/resnet18_sgdm.txt"],
        expect_file!["../../tests/golden/gpt2_ampbf16_adamw.txt"],
    ];
    for (name, expected) in recordings::NAMES.into_iter().zip(expected) {
        let profile = recordings::profile(name);
        let (plan, _) = scheduled(&profile, &target());
        expected.assert_eq(&table(&profile, &plan));
    }
}

/// Blocks and bytes by rule; rules that did nothing are left out.
fn table(profile: &Profile, plan: &Schedule) -> String {
    let recorded: Bytes = profile.blocks.iter().map(|b| b.size).sum();
    let scheduled: Bytes = plan.blocks.iter().map(|b| b.size).sum();
    let mut text = format!(
        "recorded  {:6} blocks {:14} bytes\nscheduled {:6} blocks {:14} bytes\n\n",
        profile.blocks.len(),
        recorded.get(),
        plan.blocks.len(),
        scheduled.get()
    );
    let _ = writeln!(
        text,
        "{:19}{:>20}{:>20}{:>33}{:>20}",
        "rule", "dropped", "added", "resized", "retimed"
    );
    let pair = |(count, bytes): (u64, Bytes)| match count {
        0 => String::new(),
        _ => format!("{count} / {}", bytes.get()),
    };
    for effect in plan.effects.iter().filter(|e| !e.is_empty()) {
        let (count, before, after) = effect.resized;
        let resized = match count {
            0 => String::new(),
            _ => format!("{count} / {} > {}", before.get(), after.get()),
        };
        let line = format!(
            "{:19}{:>20}{:>20}{resized:>33}{:>20}",
            effect.rule.name,
            pair(effect.dropped),
            pair(effect.added),
            pair(effect.retimed)
        );
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text
}

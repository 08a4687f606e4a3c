//! One case of one rule: a trace, a target, and the schedule with the rule on and off.

use super::Script;
use super::listing::{compare, requests};
use crate::{RuleEffect, Schedule, Target, convolution_questions, schedule};
use expect_test::Expect;
use xmem_analyzer::Profile;
use xmem_convolutions::{ConvolutionSource as _, FittedModel};
use xmem_types::{Diagnostics, TorchVersion};

/// A rule at work on a hand-made trace.
pub(crate) struct Case {
    /// The rule that is switched on and off.
    pub(crate) rule: &'static str,
    /// The behavior that the case shows.
    pub(crate) shows: &'static str,
    pub(crate) script: Script,
    pub(crate) target: Target,
    /// Every request: lines under `on` are there with the rule only, lines under `off` without it.
    pub(crate) requests: Expect,
}

/// An RTX 3060 (compute capability 8.6, 28 multiprocessors) with PyTorch 2.11.
pub(crate) fn target() -> Target {
    on("rtx3060-12g", 11)
}

/// A built-in device with PyTorch 2.`minor`.
pub(crate) fn on(device: &str, minor: u16) -> Target {
    let device = xmem_devices::find(device).expect("a built-in device").clone();
    Target { torch: TorchVersion::new(2, minor), ..Target::new(device) }
}

/// Lowers a profile with the answers of the fitted model about its convolutions.
pub(crate) fn scheduled(profile: &Profile, target: &Target) -> (Schedule, Diagnostics) {
    let questions = convolution_questions(profile, target);
    schedule(profile, target, &FittedModel.answer(&target.device, &questions))
}

/// Reads, analyzes and lowers a script.
pub(crate) fn lowered(script: &Script, target: &Target) -> (Schedule, Diagnostics) {
    let options = xmem_trace::ReadOptions::default();
    let (trace, notes) =
        xmem_trace::read_bytes(script.json().as_bytes(), &options).expect("a valid trace");
    let odd: Vec<_> = notes.iter().collect();
    assert!(odd.is_empty(), "the script is read without complaint: {odd:?}");
    let (profile, _) = xmem_analyzer::analyze(trace);
    assert_eq!(profile.blocks.len(), script.names.len(), "each allocation is one block");
    scheduled(&profile, target)
}

impl Case {
    fn without(&self) -> Target {
        let mut target = self.target.clone();
        target.disabled.insert(self.rule.into());
        target
    }

    /// The rule's effect, and whether the schedule is another one without it.
    pub(crate) fn effect(&self) -> (RuleEffect, bool) {
        let (on, _) = lowered(&self.script, &self.target);
        let (off, _) = lowered(&self.script, &self.without());
        let effect = |s: &Schedule| {
            *s.effects.iter().find(|e| e.rule.name == self.rule).expect("the rule is in the table")
        };
        assert!(effect(&off).is_empty(), "{}: {}: switched off, it acts", self.rule, self.shows);
        let names = &self.script.names;
        (effect(&on), requests(&on, names) != requests(&off, names))
    }
}

/// Compares each case with its expectation.
pub(crate) fn check(cases: Vec<Case>) {
    for case in cases {
        let (on, _) = lowered(&case.script, &case.target);
        let (off, _) = lowered(&case.script, &case.without());
        let names = &case.script.names;
        let found = compare(&requests(&on, names), &requests(&off, names));
        case.requests.assert_eq(&format!("{}\n{found}", case.shows));
    }
}

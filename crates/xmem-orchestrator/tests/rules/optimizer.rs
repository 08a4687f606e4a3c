//! The optimizer's step: lists of tensors instead of one parameter after the other.

use crate::support::job::{Begin, Clear, PARAMETERS, adam, adam_after, train};
use crate::support::{Case, Script, check, lowered, target};
use expect_test::expect;
use std::fmt::Write as _;
use xmem_orchestrator::{OptimizerImpl, Schedule, Target};
use xmem_types::{RequestKind, Severity};

const RULE: &str = "optimizer-step";

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case {
            rule: RULE,
            shows: "Adam: the square roots of all parameters are alive together",
            script: steps("Adam", 2, adam),
            target: target(),
            requests: expect![[r#"
                Adam: the square roots of all parameters are alive together
                    + w 4096 parameter model-placement
                    + b 128 parameter model-placement
                    + x0 1024 input
                    + h 1024 temporary
                    + y 1024 activation
                    - h
                    + loss 4 activation
                    + seed 4 temporary
                    + gy 1024 temporary
                    - y
                    + gb0 128 gradient
                    + gw0 4096 gradient
                    - gy
                    - seed
                    - loss
                    + w.exp_avg 4096 optimizer_state
                    + w.exp_avg_sq 4096 optimizer_state
                    + b.exp_avg 128 optimizer_state
                    + b.exp_avg_sq 128 optimizer_state
                on  + optimizer-step#1 4096 temporary
                on  + optimizer-step#2 128 temporary
                on  - optimizer-step#1
                on  - optimizer-step#2
                off + sqrt 4096 temporary
                off + denom 4096 temporary
                off - sqrt
                off - denom
                off + sqrt 128 temporary
                off + denom 128 temporary
                off - sqrt
                off - denom
                    - gw0
                    - gb0
                    + x1 1024 input
                    - x0
                    + h 1024 temporary
                    + y 1024 activation
                    - h
                    + loss 4 activation
                    + seed 4 temporary
                    + gy 1024 temporary
                    - y
                    + gb1 128 gradient
                    + gw1 4096 gradient
                    - gy
                    - seed
                    - loss
                on  + optimizer-step#3 4096 temporary
                on  + optimizer-step#4 128 temporary
                on  - optimizer-step#3
                on  - optimizer-step#4
                off + sqrt 4096 temporary
                off + denom 4096 temporary
                off - sqrt
                off - denom
                off + sqrt 128 temporary
                off + denom 128 temporary
                off - sqrt
                off - denom
            "#]],
        },
        Case {
            rule: RULE,
            shows: "Adam with weight decay: the copies of the gradients go before the square roots",
            script: steps("Adam", 1, |t, i| adam_after(t, i, &["aten::add"])),
            target: target(),
            requests: expect![[r#"
                Adam with weight decay: the copies of the gradients go before the square roots
                    + w 4096 parameter model-placement
                    + b 128 parameter model-placement
                    + x0 1024 input
                    + h 1024 temporary
                    + y 1024 activation
                    - h
                    + loss 4 activation
                    + seed 4 temporary
                    + gy 1024 temporary
                    - y
                    + gb0 128 gradient
                    + gw0 4096 gradient
                    - gy
                    - seed
                    - loss
                    + w.exp_avg 4096 optimizer_state
                    + w.exp_avg_sq 4096 optimizer_state
                    + b.exp_avg 128 optimizer_state
                    + b.exp_avg_sq 128 optimizer_state
                on  + optimizer-step#1 4096 temporary
                on  + optimizer-step#2 128 temporary
                on  - optimizer-step#1
                on  - optimizer-step#2
                on  + optimizer-step#3 4096 temporary
                on  + optimizer-step#4 128 temporary
                on  - optimizer-step#3
                on  - optimizer-step#4
                off + aten::add 4096 temporary
                off + sqrt 4096 temporary
                off + denom 4096 temporary
                off - sqrt
                off - denom
                off - aten::add
                off + aten::add 128 temporary
                off + sqrt 128 temporary
                off + denom 128 temporary
                off - sqrt
                off - denom
                off - aten::add
            "#]],
        },
        Case {
            rule: RULE,
            shows: "Adagrad: twice the parameters",
            script: steps("Adagrad", 1, |t, _| plain(t, &[("aten::sqrt", 1)])),
            target: target(),
            requests: expect![[r#"
                Adagrad: twice the parameters
                    + w 4096 parameter model-placement
                    + b 128 parameter model-placement
                    + x0 1024 input
                    + h 1024 temporary
                    + y 1024 activation
                    - h
                    + loss 4 activation
                    + seed 4 temporary
                    + gy 1024 temporary
                    - y
                    + gb0 128 gradient
                    + gw0 4096 gradient
                    - gy
                    - seed
                    - loss
                on  + optimizer-step#1 4096 temporary
                on  + optimizer-step#2 128 temporary
                on  + optimizer-step#3 4096 temporary
                on  + optimizer-step#4 128 temporary
                on  - optimizer-step#1
                on  - optimizer-step#2
                on  - optimizer-step#3
                on  - optimizer-step#4
                off + aten::sqrt#0 4096 temporary
                off - aten::sqrt#0
                off + aten::sqrt#0 128 temporary
                off - aten::sqrt#0
            "#]],
        },
        Case {
            rule: RULE,
            shows: "SGD: nothing",
            script: steps("SGD", 1, |t, _| plain(t, &[])),
            target: target(),
            requests: expect![[r#"
                SGD: nothing
                    + w 4096 parameter model-placement
                    + b 128 parameter model-placement
                    + x0 1024 input
                    + h 1024 temporary
                    + y 1024 activation
                    - h
                    + loss 4 activation
                    + seed 4 temporary
                    + gy 1024 temporary
                    - y
                    + gb0 128 gradient
                    + gw0 4096 gradient
                    - gy
                    - seed
                    - loss
            "#]],
        },
        Case {
            rule: RULE,
            shows: "fused Adam: no temporaries at all",
            script: steps("Adam", 1, adam),
            target: implemented(OptimizerImpl::Fused),
            requests: expect![[r#"
                fused Adam: no temporaries at all
                    + w 4096 parameter model-placement
                    + b 128 parameter model-placement
                    + x0 1024 input
                    + h 1024 temporary
                    + y 1024 activation
                    - h
                    + loss 4 activation
                    + seed 4 temporary
                    + gy 1024 temporary
                    - y
                    + gb0 128 gradient
                    + gw0 4096 gradient
                    - gy
                    - seed
                    - loss
                    + w.exp_avg 4096 optimizer_state
                    + w.exp_avg_sq 4096 optimizer_state
                    + b.exp_avg 128 optimizer_state
                    + b.exp_avg_sq 128 optimizer_state
                off + sqrt 4096 temporary
                off + denom 4096 temporary
                off - sqrt
                off - denom
                off + sqrt 128 temporary
                off + denom 128 temporary
                off - sqrt
                off - denom
            "#]],
        },
        Case {
            rule: RULE,
            shows: "foreach=False: as on the CPU",
            script: steps("Adam", 1, adam),
            target: implemented(OptimizerImpl::ForLoop),
            requests: expect![[r#"
                foreach=False: as on the CPU
                    + w 4096 parameter model-placement
                    + b 128 parameter model-placement
                    + x0 1024 input
                    + h 1024 temporary
                    + y 1024 activation
                    - h
                    + loss 4 activation
                    + seed 4 temporary
                    + gy 1024 temporary
                    - y
                    + gb0 128 gradient
                    + gw0 4096 gradient
                    - gy
                    - seed
                    - loss
                    + w.exp_avg 4096 optimizer_state
                    + w.exp_avg_sq 4096 optimizer_state
                    + b.exp_avg 128 optimizer_state
                    + b.exp_avg_sq 128 optimizer_state
                    + sqrt 4096 temporary
                    + denom 4096 temporary
                    - sqrt
                    - denom
                    + sqrt 128 temporary
                    + denom 128 temporary
                    - sqrt
                    - denom
            "#]],
        },
        Case {
            rule: RULE,
            shows: "an optimizer that the table lacks: as on the CPU",
            script: steps("Lion", 1, |t, _| plain(t, &[("aten::mul", 1)])),
            target: target(),
            requests: expect![[r#"
                an optimizer that the table lacks: as on the CPU
                    + w 4096 parameter model-placement
                    + b 128 parameter model-placement
                    + x0 1024 input
                    + h 1024 temporary
                    + y 1024 activation
                    - h
                    + loss 4 activation
                    + seed 4 temporary
                    + gy 1024 temporary
                    - y
                    + gb0 128 gradient
                    + gw0 4096 gradient
                    - gy
                    - seed
                    - loss
                    + aten::mul#0 4096 temporary
                    - aten::mul#0
                    + aten::mul#0 128 temporary
                    - aten::mul#0
            "#]],
        },
    ]
}

fn steps(class: &str, iterations: u32, step: impl Fn(&mut Script, u32)) -> Script {
    train(Begin::Model, iterations, class, Clear::IterationStart, step)
}

fn implemented(optimizer: OptimizerImpl) -> Target {
    Target { optimizer, ..target() }
}

/// A loop that makes these temporaries of each parameter, each as often as said, and releases them
/// before the next parameter.
fn plain(t: &mut Script, temporaries: &[(&str, u32)]) {
    for (_, shape, bytes) in PARAMETERS {
        let mut made = Vec::new();
        for &(operator, times) in temporaries {
            for n in 0..times {
                let name = format!("{operator}#{n}");
                t.makes(operator, shape, &name, bytes);
                made.push(name);
            }
        }
        t.op("aten::add_", &format!("{shape} {shape} -0.1"), |_| ());
        t.free(&made.join(" "));
    }
}

#[test]
fn schedules_are_as_expected() {
    check(cases());
}

#[test]
fn an_optimizer_without_a_rule_is_reported() {
    let lion = steps("Lion", 2, |t, _| plain(t, &[("aten::mul", 1)]));
    let (_, notes) = lowered(&lion, &target());
    let note = notes.get("optimizer-as-recorded").expect("reported");
    assert_eq!((note.severity, note.count), (Severity::Note, 2));
    assert!(note.message.contains("Optimizer.step#Lion.step"), "{}", note.message);
    let adam = steps("Adam", 1, adam);
    assert!(lowered(&adam, &target()).1.is_empty());
}

/// What the step takes beside the state, at most, in bytes of all parameters. Operators that the
/// CPU's loops run (torch/optim/*.py, `_single_tensor_*`); the figures of the plain optimizers were
/// recorded with PyTorch 2.11's CUDA build, kernels stubbed.
#[test]
fn transient_bytes_of_each_optimizer() {
    type Temporaries = &'static [(&'static str, u32)];
    let loops: &[(&str, &str, Temporaries)] = &[
        ("SGD", "", &[]),
        ("SGD", "weight decay", &[("aten::add", 1)]),
        ("SGD", "maximize", &[("aten::neg", 1)]),
        ("Adam", "", &[("aten::sqrt", 1), ("aten::div", 1)]),
        ("Adam", "weight decay", &[("aten::add", 1), ("aten::sqrt", 1), ("aten::div", 1)]),
        ("AdamW", "", &[("aten::sqrt", 1), ("aten::div", 1)]),
        ("NAdam", "", &[("aten::div", 1), ("aten::sqrt", 1)]),
        ("NAdam", "weight decay", &[("aten::add", 1), ("aten::div", 1), ("aten::sqrt", 1)]),
        ("RAdam", "", &[("aten::div", 1), ("aten::sqrt", 1)]),
        ("Adamax", "", &[("aten::abs", 1)]),
        ("RMSprop", "", &[("aten::sqrt", 1)]),
        ("RMSprop", "weight decay", &[("aten::add", 1), ("aten::sqrt", 1)]),
        ("Adagrad", "", &[("aten::sqrt", 1)]),
        ("Adadelta", "", &[("aten::add", 2)]),
        ("ASGD", "", &[("aten::sub", 1)]),
        ("Rprop", "", &[("aten::mul", 1)]),
    ];
    let parameters: u64 = PARAMETERS.iter().map(|p| p.2).sum();
    let mut table = String::new();
    for &(class, option, temporaries) in loops {
        let script = steps(class, 1, |t, _| plain(t, temporaries));
        let (schedule, notes) = lowered(&script, &target());
        assert!(notes.is_empty(), "{class} is in the table");
        let peak = peak_of_rule(&schedule);
        assert_eq!(peak % parameters, 0, "{class}: whole lists of all parameters");
        let _ = writeln!(table, "{}P  {class} {option}", peak / parameters);
    }
    let lines: Vec<&str> = table.lines().map(str::trim_end).collect();
    expect![[r#"
        0P  SGD
        1P  SGD weight decay
        1P  SGD maximize
        1P  Adam
        1P  Adam weight decay
        1P  AdamW
        1P  NAdam
        2P  NAdam weight decay
        1P  RAdam
        1P  Adamax
        1P  RMSprop
        2P  RMSprop weight decay
        2P  Adagrad
        2P  Adadelta
        1P  ASGD
        1P  Rprop"#]]
    .assert_eq(&lines.join("\n"));
}

/// The loop of SGD with weight decay and Nesterov momentum makes two sums of each parameter; foreach
/// makes a list of the first alone and adds into it for the second (torch/optim/sgd.py).
#[test]
fn nesterov_sums_were_taken_for_copies_of_the_gradients() {
    let script = steps("SGD", 1, |t, _| {
        for (_, shape, bytes) in PARAMETERS {
            t.makes("aten::add", &format!("{shape} {shape} 0.1"), "decayed", bytes);
            t.op("aten::mul_", &format!("{shape} -"), |_| ());
            t.op("aten::add_", &format!("{shape} {shape} 1"), |_| ());
            t.makes("aten::add", &format!("{shape} {shape} 0.9"), "ahead", bytes);
            t.op("aten::add_", &format!("{shape} {shape} -0.1"), |_| ());
            t.free("decayed ahead");
        }
    });
    let (schedule, _) = lowered(&script, &target());
    let parameters: u64 = PARAMETERS.iter().map(|p| p.2).sum();
    assert_eq!(peak_of_rule(&schedule), parameters);
}

/// RAdam's loop takes roots only once the variance is rectified, after five steps; foreach always
/// does (torch/optim/radam.py).
#[test]
fn radam_took_nothing_in_its_first_steps() {
    let script = steps("RAdam", 1, |t, _| {
        for (_, shape, _) in PARAMETERS {
            t.op("aten::lerp_", &format!("{shape} {shape} 0.1"), |_| ());
            t.op("aten::mul_", &format!("{shape} -"), |_| ());
            t.op("aten::addcmul_", &format!("{shape} {shape} {shape} 0.001"), |_| ());
            t.op("aten::add_", &format!("{shape} {shape} -0.1"), |_| ());
        }
    });
    let (schedule, _) = lowered(&script, &target());
    let parameters: u64 = PARAMETERS.iter().map(|p| p.2).sum();
    assert_eq!(peak_of_rule(&schedule), parameters);
}

/// The most bytes of blocks that the rule added and that are alive at once.
fn peak_of_rule(schedule: &Schedule) -> u64 {
    let (mut now, mut peak) = (0, 0);
    for request in &schedule.requests {
        let block = schedule.block(request.block);
        if block.rule != Some(RULE) {
            continue;
        }
        match request.kind {
            RequestKind::Alloc { size, .. } => now += size.get(),
            RequestKind::Free => now -= block.size.get(),
        }
        peak = peak.max(now);
    }
    assert_eq!(now, 0, "nothing outlives the step");
    peak
}

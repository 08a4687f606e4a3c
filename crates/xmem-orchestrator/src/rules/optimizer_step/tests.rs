//! The optimizer's step: lists of tensors instead of one parameter after the other.

use super::RULE;
use crate::testing::job::{Begin, Clear, PARAMETERS, adam, adam_after, train};
use crate::testing::{Case, Script, lowered, target};
use crate::{OptimizerImpl, Schedule, Target};
use expect_test::expect;
use std::fmt::Write as _;
use xmem_analyzer::Role;
use xmem_types::{RequestKind, Severity};

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case {
            rule: RULE.name,
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
                    + loss-buffers#1 1024 workspace
                    + loss 4 activation
                    - loss-buffers#1
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
                on  - optimizer-step#2
                on  - optimizer-step#1
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
                    + loss-buffers#2 1024 workspace
                    + loss 4 activation
                    - loss-buffers#2
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
                on  - optimizer-step#4
                on  - optimizer-step#3
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
            rule: RULE.name,
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
                    + loss-buffers#1 1024 workspace
                    + loss 4 activation
                    - loss-buffers#1
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
                on  - optimizer-step#2
                on  - optimizer-step#1
                on  + optimizer-step#3 4096 temporary
                on  + optimizer-step#4 128 temporary
                on  - optimizer-step#4
                on  - optimizer-step#3
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
            rule: RULE.name,
            shows: "Adagrad: twice the parameters",
            script: steps("Adagrad", 1, |t, _| {
                update_each(t, "counter item addcmul_ +sqrt add_ addcdiv_");
            }),
            target: target(),
            requests: expect![[r#"
                Adagrad: twice the parameters
                    + w 4096 parameter model-placement
                    + b 128 parameter model-placement
                    + x0 1024 input
                    + h 1024 temporary
                    + y 1024 activation
                    - h
                    + loss-buffers#1 1024 workspace
                    + loss 4 activation
                    - loss-buffers#1
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
                on  - optimizer-step#2
                on  - optimizer-step#1
                on  - optimizer-step#4
                on  - optimizer-step#3
                off + sqrt#3 4096 temporary
                off - sqrt#3
                off + sqrt#3 128 temporary
                off - sqrt#3
            "#]],
        },
        Case {
            rule: RULE.name,
            shows: "SGD: nothing",
            script: steps("SGD", 1, |t, _| update_each(t, "add_")),
            target: target(),
            requests: expect![[r#"
                SGD: nothing
                    + w 4096 parameter model-placement
                    + b 128 parameter model-placement
                    + x0 1024 input
                    + h 1024 temporary
                    + y 1024 activation
                    - h
                    + loss-buffers#1 1024 workspace
                    + loss 4 activation
                    - loss-buffers#1
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
            rule: RULE.name,
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
                    + loss-buffers#1 1024 workspace
                    + loss 4 activation
                    - loss-buffers#1
                    + seed 4 temporary
                    + gy 1024 temporary
                    - y
                    + gb0 128 gradient
                    + gw0 4096 gradient
                    - gy
                    - seed
                    - loss
                on  + optimizer-step#1 4 optimizer_state
                    + w.exp_avg 4096 optimizer_state
                    + w.exp_avg_sq 4096 optimizer_state
                on  + optimizer-step#2 4 optimizer_state
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
            rule: RULE.name,
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
                    + loss-buffers#1 1024 workspace
                    + loss 4 activation
                    - loss-buffers#1
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
            rule: RULE.name,
            shows: "an optimizer that the table lacks: as on the CPU",
            script: steps("Lion", 1, |t, _| update_each(t, "+mul add_")),
            target: target(),
            requests: expect![[r#"
                an optimizer that the table lacks: as on the CPU
                    + w 4096 parameter model-placement
                    + b 128 parameter model-placement
                    + x0 1024 input
                    + h 1024 temporary
                    + y 1024 activation
                    - h
                    + loss-buffers#1 1024 workspace
                    + loss 4 activation
                    - loss-buffers#1
                    + seed 4 temporary
                    + gy 1024 temporary
                    - y
                    + gb0 128 gradient
                    + gw0 4096 gradient
                    - gy
                    - seed
                    - loss
                    + mul#0 4096 temporary
                    - mul#0
                    + mul#0 128 temporary
                    - mul#0
            "#]],
        },
    ]
}

fn steps(class: &str, iterations: u32, step: impl Fn(&mut Script, u32)) -> Script {
    train(Begin::Model, iterations, class, Clear::IterationStart, step)
}

fn implemented(optimizer: OptimizerImpl) -> Target {
    Target { optimizer: Some(optimizer), ..target() }
}

/// A loop over the parameters, each updated by these operators of `aten::`. `+NAME` makes a
/// temporary of the parameter's size, `counter` updates the number of steps.
fn update_each(t: &mut Script, operators: &str) {
    for (_, shape, bytes) in PARAMETERS {
        update(t, shape, bytes, operators);
    }
}

fn update(t: &mut Script, shape: &str, bytes: u64, operators: &str) {
    let mut made = Vec::new();
    for (n, operator) in operators.split_whitespace().enumerate() {
        if operator == "counter" {
            t.op("aten::add_", "f32[] 1 1", |_| ());
        } else if let Some(operator) = operator.strip_prefix('+') {
            let name = format!("{operator}#{n}");
            t.makes(&format!("aten::{operator}"), &format!("{shape} {shape} 0.1"), &name, bytes);
            made.push(name);
        } else if operator == "maximum" {
            t.op("aten::maximum", &format!("{shape} {shape} {shape}"), |_| ());
        } else {
            t.op(&format!("aten::{operator}"), &format!("{shape} {shape} 0.1"), |_| ());
        }
    }
    t.free(&made.join(" "));
}

#[test]
fn an_optimizer_without_a_rule_is_reported() {
    let lion = steps("Lion", 2, |t, _| update_each(t, "+mul add_"));
    let (_, notes) = lowered(&lion, &target());
    let note = notes.get("optimizer-as-recorded").expect("reported");
    assert_eq!((note.severity, note.count), (Severity::Warning, 2));
    assert!(note.message.contains("Optimizer.step#Lion.step"), "{}", note.message);
    let adam = steps("Adam", 1, adam);
    assert!(lowered(&adam, &target()).1.is_empty());
}

/// The loops of the CPU (torch/optim/*.py, `_single_tensor_*`) on CUDA: each request of
/// `_multi_tensor_*` beside the state, as recorded with PyTorch 2.11's CUDA build, kernels stubbed.
#[test]
fn lists_of_each_optimizer() {
    let loops = [
        ("SGD", "", "add_"),
        ("SGD", "weight decay", "+add add_"),
        ("SGD", "maximize", "+neg add_"),
        ("SGD", "momentum", "mul_ add_ add_"),
        ("SGD", "momentum, weight decay, Nesterov", "+add mul_ add_ +add add_"),
        ("Adam", "", "counter item lerp_ mul_ addcmul_ +sqrt +div add_ addcdiv_"),
        ("Adam", "weight decay", "counter +add item lerp_ mul_ addcmul_ +sqrt +div add_ addcdiv_"),
        ("Adam", "both", "+neg counter +add item lerp_ mul_ addcmul_ +sqrt +div add_ addcdiv_"),
        ("AdamW", "", "counter mul_ item lerp_ mul_ addcmul_ +sqrt +div add_ addcdiv_"),
        ("NAdam", "", "counter item mul_ lerp_ mul_ addcmul_ +div +sqrt add_ addcdiv_ addcdiv_"),
        (
            "NAdam",
            "weight decay",
            "counter item +add mul_ lerp_ mul_ addcmul_ +div +sqrt add_ addcdiv_ addcdiv_",
        ),
        ("RAdam", "not rectified", "counter item lerp_ mul_ addcmul_ +div +mul add_"),
        (
            "RAdam",
            "weight decay, rectified",
            "counter item +add lerp_ mul_ addcmul_ +div +mul +sqrt add_ +reciprocal +mul +mul +mul add_",
        ),
        ("Adamax", "", "counter lerp_ mul_ +abs add_ maximum item addcdiv_"),
        ("Adamax", "weight decay", "counter +add lerp_ mul_ +abs add_ maximum item addcdiv_"),
        ("RMSprop", "", "counter mul_ addcmul_ +sqrt add_ addcdiv_"),
        (
            "RMSprop",
            "weight decay, momentum, centered",
            "counter +add mul_ addcmul_ lerp_ +addcmul sqrt_ add_ mul_ addcdiv_ add_",
        ),
        ("Adagrad", "", "counter item addcmul_ +sqrt add_ addcdiv_"),
        ("Adagrad", "weight decay", "counter item +add addcmul_ +sqrt add_ addcdiv_"),
        (
            "Adadelta",
            "",
            "counter mul_ addcmul_ +add sqrt_ +add sqrt_ div_ mul_ mul_ addcmul_ add_",
        ),
        (
            "Adadelta",
            "weight decay",
            "counter +add mul_ addcmul_ +add sqrt_ +add sqrt_ div_ mul_ mul_ addcmul_ add_",
        ),
        ("ASGD", "", "counter item mul_ add_ item copy_ item copy_ copy_"),
        ("ASGD", "both", "+neg counter +add item mul_ add_ item copy_ item copy_ copy_"),
        ("Rprop", "", "counter +mul +sign +gt mul_ clamp_ +clone +eq +sign addcmul_ copy_"),
    ];
    let mut table = String::new();
    for (class, option, operators) in loops {
        let script = steps(class, 1, |t, _| update_each(t, operators));
        let (schedule, notes) = lowered(&script, &target());
        assert!(notes.is_empty(), "{class} is in the table");
        let _ = writeln!(table, "{class} {option}: {}", added(&schedule));
    }
    expect![[r#"
        SGD : 
        SGD weight decay: +4096 +128 -128 -4096
        SGD maximize: +4096 +128 -128 -4096
        SGD momentum: 
        SGD momentum, weight decay, Nesterov: +4096 +128 -128 -4096
        Adam : +4096 +128 -128 -4096
        Adam weight decay: +4096 +128 -128 -4096 +4096 +128 -128 -4096
        Adam both: +4096 +128 -128 -4096 +4096 +128 -128 -4096
        AdamW : +4096 +128 -128 -4096
        NAdam : +4096 +128 -128 -4096
        NAdam weight decay: +4096 +128 +4096 +128 -128 -4096 -128 -4096
        RAdam not rectified: +4096 +128 -128 -4096
        RAdam weight decay, rectified: +4096 +128 -128 -4096 +4096 +128 -128 -4096
        Adamax : +4096 +128 -128 -4096
        Adamax weight decay: +4096 +128 -128 -4096
        RMSprop : +4096 +128 -128 -4096
        RMSprop weight decay, momentum, centered: +4096 +128 +4096 +128 -128 -4096 -128 -4096
        Adagrad : +4096 +128 +4096 +128 -128 -4096 -128 -4096
        Adagrad weight decay: +4096 +128 +4096 +128 -128 -4096 -128 -4096
        Adadelta : +4096 +128 +4096 +128 -128 -4096 -128 -4096
        Adadelta weight decay: +4096 +128 +4096 +128 +4096 +128 -128 -4096 -128 -4096 -128 -4096
        ASGD : +4096 +128 -128 -4096 +4096 +128 -128 -4096 +4 +4 -4 +4 -4 +4 +4 -4 -4 +4 +4 -4 +4 -4 +4 +4 -4 -4 +4 +4 -4 -4 -4 -4
        ASGD both: +4096 +128 +4096 +128 -128 -4096 +4 +4 -4 +4 -4 +4 +4 -4 -4 +4 +4 -4 +4 -4 +4 +4 -4 -4 +4 +4 -128 -4096 -4 -4 -4 -4
        Rprop : +4096 +128 +1024 -1024 +1024 -1024 +1024 -1024 +32 -32 +32 -32 +32 -32 +1024 +4 +4096 -4 -1024 -4096 +32 +4 +128 -4 -32 -128 -4096 +4096 +128 -128 -128 -4096
    "#]].assert_eq(&table);
}

/// Weight decay for weights alone, as it is usual: two parameter groups, one after the other. The
/// first step shows the groups by the state that each makes; later ones look alike.
#[test]
fn parameter_groups_take_turns() {
    let loop_of =
        |decay: &str| format!("counter {decay} item lerp_ mul_ addcmul_ +sqrt +div add_ addcdiv_");
    let by_state = steps("Adam", 2, |t, i| {
        for (name, shape, bytes) in PARAMETERS {
            if i == 0 {
                t.makes("aten::zeros_like", shape, &format!("{name}.exp_avg"), bytes);
            }
            update(t, shape, bytes, &loop_of(""));
        }
    });
    let by_decay = steps("Adam", 1, |t, _| {
        for ((_, shape, bytes), decay) in PARAMETERS.into_iter().zip(["+add", ""]) {
            update(t, shape, bytes, &loop_of(decay));
        }
    });
    let lists = |script| added(&lowered(script, &target()).0);
    expect!["+4096 -4096 +128 -128 +4096 -4096 +128 -128"].assert_eq(&lists(&by_state));
    expect!["+4096 -4096 +4096 -4096 +128 -128"].assert_eq(&lists(&by_decay));
}

/// Lists hold one type each. Variables of the first keep their lists until they are bound again
/// for the second; the type that comes last goes first.
#[test]
fn types_take_turns() {
    let mixed = steps("RMSprop", 1, |t, _| {
        for (shape, bytes) in [("f32[32,32]", 4096), ("bf16[32]", 64), ("f32[32]", 128)] {
            update(t, shape, bytes, "counter +add mul_ addcmul_ +sqrt add_ addcdiv_");
        }
    });
    expect!["+64 +64 -64 +4096 +128 +4096 +128 -64 -128 -4096 -128 -4096"]
        .assert_eq(&added(&lowered(&mixed, &target()).0));
}

/// SGD's first step copies the gradients into its buffers, type by type.
#[test]
fn momentum_buffers_are_made_between_the_lists() {
    let script = steps("SGD", 1, |t, _| {
        for (name, shape, bytes) in [("w", "f32[32,32]", 4096), ("b", "bf16[32]", 64)] {
            t.makes(
                "aten::add",
                &format!("{shape} {shape} 0.1"),
                &format!("{name}.decayed"),
                bytes,
            );
            t.makes("aten::clone", shape, &format!("{name}.momentum"), bytes);
            t.op("aten::add_", &format!("{shape} {shape} -0.1"), |_| ());
            t.free(&format!("{name}.decayed"));
        }
    });
    expect!["+64 +64 -64 +4096 +4096 -4096"].assert_eq(&added(&lowered(&script, &target()).0));
}

/// Counters are tensors on the GPU if the kernels read them: always for ASGD, with `fused=True` for
/// Adam. Others have no fused kernel and run on lists.
#[test]
fn counters_on_the_gpu() {
    let script = |class: &str, operators: &'static str| {
        steps(class, 1, move |t, i| {
            for (name, shape, bytes) in PARAMETERS {
                if i == 0 {
                    t.counter(&format!("{name}.step"));
                    t.makes("aten::zeros_like", shape, &format!("{name}.state"), bytes);
                }
            }
            update_each(t, operators);
        })
    };
    let adam = "counter item lerp_ mul_ addcmul_ +sqrt +div add_ addcdiv_";
    let asgd = "counter item mul_ add_ item copy_ item copy_ copy_";
    let lists = |script, run| added(&lowered(&script, &implemented(run)).0);
    use OptimizerImpl::{ForLoop, Foreach, Fused};
    let rows = [
        ("Adam", Foreach, adam),
        ("Adam", Fused, adam),
        ("Adam", ForLoop, adam),
        ("NAdam", Fused, "counter item mul_ lerp_ mul_ addcmul_ +div +sqrt add_ addcdiv_ addcdiv_"),
        ("ASGD", ForLoop, asgd),
    ];
    let mut table = String::new();
    for (class, run, operators) in rows {
        let _ = writeln!(table, "{class} {run:?}: {}", lists(script(class, operators), run));
    }
    expect![[r#"
        Adam Foreach: +4096 +128 -128 -4096
        Adam Fused: +4 +4
        Adam ForLoop: 
        NAdam Fused: +4096 +128 -128 -4096
        ASGD ForLoop: +4 +4
    "#]]
    .assert_eq(&table);
}

/// An Adam that makes counters and state, with what `xmem profile` noted of the optimizers.
fn noted(optimizers: &str) -> Script {
    let mut script = steps("Adam", 1, |t, _| {
        for (name, shape, bytes) in PARAMETERS {
            t.counter(&format!("{name}.step"));
            t.makes("aten::zeros_like", shape, &format!("{name}.state"), bytes);
        }
        update_each(t, "counter item lerp_ mul_ addcmul_ +sqrt +div add_ addcdiv_");
    });
    script.recording(&format!(r#""optimizers": [{optimizers}]"#));
    script
}

#[test]
fn what_the_script_asked_of_its_optimizer_counts() {
    let adam = |asked: &str, arguments: &str| {
        noted(&format!(
            r#"{{"class": "torch.optim.adam.Adam", "implementation": "{asked}",
                "arguments": {{{arguments}}}}}"#
        ))
    };
    let mut table = String::new();
    for (asked, arguments) in [
        ("default", ""),
        ("foreach", ""),
        ("fused", ""),
        ("for-loop", ""),
        ("default", r#""differentiable": true"#),
        ("foreach", r#""capturable": true"#),
    ] {
        let (schedule, notes) = lowered(&adam(asked, arguments), &target());
        assert!(notes.is_empty(), "{asked}: {notes:?}");
        let _ = writeln!(table, "{asked} {arguments}: {}", added(&schedule));
    }
    expect![[r#"
        default : +4096 +128 -128 -4096
        foreach : +4096 +128 -128 -4096
        fused : +4 +4
        for-loop : 
        default "differentiable": true: 
        foreach "capturable": true: +4 +4 +4096 +128 -128 -4096
    "#]]
    .assert_eq(&table);
    let told = implemented(OptimizerImpl::ForLoop);
    assert_eq!(added(&lowered(&adam("fused", ""), &told).0), "", "the caller's word comes first");
}

#[test]
fn a_namesake_is_not_torchs() {
    let (_, notes) = lowered(&noted(r#"{"class": "job.Adam"}"#), &target());
    assert!(notes.get("optimizer-as-recorded").is_some());
}

/// `step(closure)` has a forward and a backward inside, which were dropped with the loop.
#[test]
fn a_closure_is_no_part_of_the_loop() {
    let script = steps("Adam", 1, |t, _| {
        t.makes_seq(9, "aten::mul", "f32[8,32] f32[32,32]", "again", 1024);
        t.node(9, "MulBackward0", |t| t.free("again"));
        update_each(t, "counter item lerp_ mul_ addcmul_ +sqrt +div add_ addcdiv_");
    });
    let (schedule, _) = lowered(&script, &target());
    let again = script.names.iter().position(|n| n == "again");
    let kept = schedule
        .blocks
        .iter()
        .any(|b| b.origin.recorded().map(xmem_types::BlockId::index) == again);
    assert!(kept, "the closure's activation is in the schedule");
    expect!["+4096 +128 -128 -4096"].assert_eq(&added(&schedule));
}

/// A recording with `foreach=True` has the lists already.
#[test]
fn recorded_lists_stay() {
    let script = steps("Adam", 1, |t, _| {
        t.op("aten::_foreach_sqrt", "", |t| {
            for (name, shape, bytes) in PARAMETERS {
                t.makes("aten::sqrt", shape, &format!("{name}.sqrt"), bytes);
            }
        });
        t.op("aten::_foreach_addcdiv_", "", |_| ());
        t.free("w.sqrt b.sqrt");
    });
    let (schedule, notes) = lowered(&script, &target());
    assert!(notes.is_empty(), "nothing is missing");
    let roots =
        schedule.blocks.iter().filter(|b| b.role == Role::Temporary && b.size.get() == 4096);
    assert_eq!((roots.count(), added(&schedule).as_str()), (1, ""));
}

/// A class of one's own with a known name, that does something else.
#[test]
fn a_namesake_is_kept_as_recorded() {
    let script = steps("Adam", 1, |t, _| update_each(t, "+mul sub_"));
    let (schedule, notes) = lowered(&script, &target());
    assert!(notes.get("optimizer-as-recorded").is_some());
    assert_eq!(added(&schedule), "");
}

/// A recording that starts after the first step shows state by its updates alone. Tensors for each
/// parameter, as the first step makes them with PyTorch 2.11.
#[test]
fn state_made_before_the_recording() {
    let loops = [
        ("SGD", "add_", 0),
        ("SGD", "+add mul_ add_ +add add_", 1),
        ("Adam", "counter item lerp_ mul_ addcmul_ +sqrt +div add_ addcdiv_", 2),
        // amsgrad, whose largest second moment was missed
        ("Adam", "counter item lerp_ mul_ addcmul_ maximum +sqrt +div add_ addcdiv_", 3),
        ("Adamax", "counter lerp_ mul_ +abs add_ maximum item addcdiv_", 2),
        ("RMSprop", "counter mul_ addcmul_ +sqrt add_ addcdiv_", 1),
        ("RMSprop", "counter mul_ addcmul_ lerp_ +addcmul sqrt_ add_ mul_ addcdiv_ add_", 3),
        // whose step sizes were missed
        ("Rprop", "counter +mul +sign +gt mul_ clamp_ +clone +eq +sign addcmul_ copy_", 2),
        // whose decay of the parameter was taken for a buffer's
        ("Muon", "lerp_ +lerp mul_ add_", 1),
        // of torch, without momentum; of transformers, without and with
        ("Adafactor", "counter +mul clamp_ rsqrt_ mul_ add_", 0),
        ("Adafactor", "+pow add_ +rsqrt mul_ div_ mul_ add_", 0),
        ("Adafactor", "+pow add_ +rsqrt mul_ div_ mul_ mul_ add_ add_", 1),
    ];
    for (class, operators, count) in loops {
        let clear = Clear::IterationStart;
        let script = train(Begin::Later, 2, class, clear, |t, _| {
            update(t, "f32[32,32]", 4096, operators);
        });
        let (schedule, _) = lowered(&script, &target());
        let put_in = schedule
            .blocks
            .iter()
            .filter(|b| b.rule.is_some_and(|rule| rule.name == "preexisting"));
        let state = put_in.filter(|b| b.role == Role::OptimizerState && b.size.get() == 4096);
        assert_eq!(state.count(), count, "{class}: {operators}");
    }
}

/// If shapes were not recorded, each parameter's temporaries tell its size. State that the first
/// step makes of all parameters was taken for the first one's.
#[test]
fn sizes_without_shapes() {
    let script = steps("Adam", 1, |t, _| {
        for (name, bytes) in [("b", 128), ("w", 4096)] {
            t.makes("aten::zeros_like", "", &format!("{name}.state"), bytes);
        }
        for bytes in [128, 4096] {
            for operator in ["add_", "item", "lerp_", "mul_", "addcmul_"] {
                t.op(&format!("aten::{operator}"), "", |_| ());
            }
            t.makes("aten::sqrt", "", "sqrt", bytes);
            t.op("aten::addcdiv_", "", |_| ());
            t.free("sqrt");
        }
    });
    assert_eq!(added(&lowered(&script, &target()).0), "+128 +4096 -4096 -128");
}

/// Recorded Python calls tell: torch's loop did not run under a class of one's own with a known name,
/// and it did under one that inherits it.
#[test]
fn python_calls_tell_whose_loop_it_is() {
    let lists = |class: &str, call: &str| {
        let adam = "counter item lerp_ mul_ addcmul_ +sqrt +div add_ addcdiv_";
        let script = steps(class, 1, |t, _| {
            t.python("torch/optim/optimizer.py(485): wrapper", |t| {
                t.python(call, |t| update_each(t, adam));
            });
        });
        let (schedule, notes) = lowered(&script, &target());
        (added(&schedule), notes.get("optimizer-as-recorded").is_some())
    };
    let torch = "torch/optim/adam.py(345): _single_tensor_adam";
    let foreach = "+4096 +128 -128 -4096".to_owned();
    assert_eq!(lists("Adam", torch), (foreach.clone(), false));
    assert_eq!(lists("MyAdam", torch), (foreach, false));
    let before_2_7 = "torch/optim/adamw.py(339): _single_tensor_adamw";
    assert!(!lists("AdamW", before_2_7).1);
    assert_eq!(lists("Adam", "train.py(20): step"), (String::new(), true));
    assert_eq!(lists("MyAdam", "train.py(20): step"), (String::new(), true));
}

/// The numbers that Python wraps for one operator were taken for memory of the GPU where an
/// optimizer runs as recorded.
#[test]
fn wrapped_numbers_of_a_loop_stay_on_the_host() {
    let script = steps("Lion", 1, |t, _| {
        t.alloc("number", 8);
        t.op("aten::add_", "f32[] 1 1", |_| ());
        t.free("number");
    });
    let (schedule, _) = lowered(&script, &target());
    assert!(schedule.blocks.iter().all(|b| b.size.get() != 8));
}

/// The requests of blocks that the rule added or moved, in order.
fn added(schedule: &Schedule) -> String {
    let of_rule = |id| schedule.block(id).rule == Some(&RULE.rule);
    let requests = schedule.requests.iter().filter(|r| of_rule(r.block));
    let texts: Vec<String> = requests
        .map(|request| match request.kind {
            RequestKind::Alloc { size, .. } => format!("+{}", size.get()),
            RequestKind::Free => format!("-{}", schedule.block(request.block).size.get()),
        })
        .collect();
    texts.join(" ")
}

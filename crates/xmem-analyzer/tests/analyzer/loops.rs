//! Training loops of every shape, built event by event: phases, iterations and roles.

use crate::support::*;
use expect_test::expect;
use xmem_analyzer::{Phase, Residency, Role};
use xmem_types::Bytes;

fn plain(detail: Detail) -> Recorder {
    plain_loop(detail, By::Profiler)
}

#[test]
fn a_plain_loop() {
    let (p, notes) = done(plain(Detail::Everything));
    check(
        &phases(&p),
        expect![[r#"
        init
        data zero_grad data forward backward backward optimizer_step data
        data zero_grad data forward backward backward optimizer_step data
        data zero_grad data forward backward backward optimizer_step data
    "#]],
    );
    check(
        &roles(&p),
        expect![[r#"
        init           parameter       model       2   1200  wrapped as nn.Parameter, never freed, and a gradient of its size is accumulated
        data           input           batch       3    600  made while data is loaded, alive when forward begins
        forward        activation      device      6   1200  made in forward and freed in backward
        forward        temporary       device      6    168  made and freed within forward
        backward       gradient        device      6   3600  taken over by AccumulateGrad
        backward       temporary       device      3     12  made in backward outside of its nodes
        backward       temporary       device      6   1200  made and freed within backward
        optimizer_step optimizer_state device      2   1200  made in the optimizer's step and kept beyond it
        optimizer_step optimizer_state host_only   2      8  a counter: made from a Python number in the optimizer's step and kept beyond it
        optimizer_step temporary       device      6   3600  made and freed within the optimizer's step
    "#]],
    );
    assert_eq!(preexisting(&p), "");
    assert!(notes.get("made-before-trace").is_none());
}

#[test]
fn missing_shapes_and_stacks_cost_words_not_answers() {
    let (whole, _) = done(plain(Detail::Everything));
    for detail in Detail::ALL {
        let (p, notes) = done(plain(detail));
        assert_eq!(p.blocks.len(), whole.blocks.len());
        for (a, b) in p.blocks.iter().zip(&whole.blocks) {
            assert_eq!(
                (a.role, a.residency, a.phase, a.iteration),
                (b.role, b.residency, b.phase, b.iteration),
                "{detail:?}: {a:?}"
            );
        }
        let lacks_shapes = matches!(detail, Detail::NoShapes | Detail::Neither);
        let lacks_python = matches!(detail, Detail::NoPython | Detail::Neither);
        assert_eq!(notes.get("no-shapes").is_some(), lacks_shapes, "{detail:?}");
        assert_eq!(notes.get("no-python-stacks").is_some(), lacks_python, "{detail:?}");
    }
}

#[test]
fn a_first_iteration_without_a_mark_of_the_profiler_is_an_iteration() {
    for unmarked in [0, 1, 2] {
        let mut r = Recorder::new(Detail::Everything);
        let net = layers(&mut r, &[100, 200]);
        for iteration in 0..4 {
            let run = |r: &mut Recorder| {
                let x = batch(r);
                let saved = forward(r, &net, x);
                let mut gradients = backward(r, &net, saved, &[]);
                step(r, "Adam", &net, iteration == 0);
                free_all(r, &mut gradients);
                r.free(x);
            };
            if iteration < unmarked {
                run(&mut r);
            } else {
                r.annotation(&format!("ProfilerStep#{iteration}"), run);
            }
        }
        assert_eq!(done(r).0.iterations.len(), 4, "{unmarked}");
    }
}

/// PyTorch Lightning hands forward and backward to the optimizer's step; the batch is loaded before.
#[test]
fn a_closure_runs_forward_and_backward_within_the_step() {
    let mut r = Recorder::new(Detail::Everything);
    let net = layers(&mut r, &[100, 200]);
    let mut gradients = Vec::new();
    let mut previous: Option<Tensor> = None;
    for iteration in 0..3 {
        let x = batch(&mut r);
        if let Some(x) = previous.replace(x) {
            r.free(x);
        }
        r.annotation("Optimizer.step#Adam.step", |r| {
            zero_grad(r, &mut gradients);
            let saved = forward(r, &net, x);
            gradients = backward(r, &net, saved, &[]);
            adam(r, &net, iteration == 0);
        });
        r.op("aten::item", &[], |_| {});
    }
    let (p, _) = done(r);
    check(
        &phases(&p),
        expect![[r#"
        init
        data zero_grad data forward backward optimizer_step data
        data zero_grad data forward backward optimizer_step data
        data zero_grad data forward backward optimizer_step data
    "#]],
    );
    check(
        &roles(&p),
        expect![[r#"
        init           parameter       model       2   1200  wrapped as nn.Parameter, never freed, and a gradient of its size is accumulated
        data           input           batch       3    600  made while data is loaded, alive when forward begins
        forward        activation      device      6   1200  made in forward and freed in backward
        forward        temporary       device      6    168  made and freed within forward
        backward       gradient        device      6   3600  taken over by AccumulateGrad
        backward       temporary       device      3     12  made in backward outside of its nodes
        backward       temporary       device      6   1200  made and freed within backward
        optimizer_step optimizer_state device      2   1200  made in the optimizer's step and kept beyond it
        optimizer_step optimizer_state host_only   2      8  a counter: made from a Python number in the optimizer's step and kept beyond it
        optimizer_step temporary       device      6   3600  made and freed within the optimizer's step
    "#]],
    );
}

/// FSDP2 gathers the parameters of its root before forward, those of other modules within it, and again in backward.
#[test]
fn parameters_that_fsdp_gathers_are_no_batch() {
    let gather = |r: &mut Recorder, elements: u64, of: &str| {
        let buffer = r.annotation(&format!("FSDP::all_gather{of}"), |r| r.alloc(elements));
        let whole = r.annotation(&format!("FSDP::all_gather_copy_out{of}"), |r| r.alloc(elements));
        r.free(buffer);
        whole
    };
    let mut r = Recorder::new(Detail::Everything);
    let net = layers(&mut r, &[100, 200]);
    for iteration in 0..3 {
        r.annotation(&format!("ProfilerStep#{iteration}"), |r| {
            let x = batch(r);
            let root = gather(r, 800, "");
            let saved = forward(r, &net, x);
            let mut gradients = backward(r, &net, saved, &[]);
            let again = r.node("ViewBackward0", 1000, |r| gather(r, 500, " (blocks.0)"));
            r.free(again);
            r.free(root);
            step(r, "Adam", &net, iteration == 0);
            free_all(r, &mut gradients);
            r.free(x);
        });
    }
    let (p, _) = done(r);
    let of_interest = |line: &&str| line.starts_with("data") || line.contains("FSDP");
    let found: Vec<_> = roles(&p).lines().filter(of_interest).map(str::to_owned).collect();
    check(
        &found.join("\n"),
        expect![[r#"
            data           parameter       device      3   9600  gathered by FSDP from the shards of all ranks
            data           input           batch       3    600  made while data is loaded, alive when forward begins
            data           temporary       device      3   9600  made by FSDP before forward
            backward       parameter       device      3   6000  gathered by FSDP from the shards of all ranks"#]],
    );
}

#[test]
fn gradients_accumulate_over_two_backward_passes() {
    let mut r = Recorder::new(Detail::Everything);
    let net = layers(&mut r, &[100, 200]);
    for iteration in 0..2 {
        let mut gradients: Vec<Tensor> = Vec::new();
        for _ in 0..2 {
            let x = batch(&mut r);
            let saved = forward(&mut r, &net, x);
            let new = backward(&mut r, &net, saved, &gradients);
            gradients.extend(new);
            r.free(x);
        }
        step(&mut r, "Adam", &net, iteration == 0);
        zero_grad(&mut r, &mut gradients);
    }
    let (p, _) = done(r);
    check(
        &phases(&p),
        expect![[r#"
        init
        data forward backward data forward backward backward optimizer_step data zero_grad
        data forward backward data forward backward backward optimizer_step data zero_grad data
    "#]],
    );
    let gradients: Vec<_> = p.blocks.iter().filter(|b| b.role == Role::Gradient).collect();
    assert_eq!(gradients.len(), 4, "one per parameter and iteration");
    assert!(gradients.iter().all(|b| b.free.is_some()));
    assert_eq!(preexisting(&p), "");
}

#[test]
fn two_optimizers_of_one_class_alternate() {
    for detail in [Detail::Everything, Detail::NoPython] {
        let mut r = Recorder::new(detail);
        let generator = layers(&mut r, &[100]);
        let critic = layers(&mut r, &[300]);
        for iteration in 0..3 {
            for net in [&critic, &generator] {
                let x = batch(&mut r);
                let saved = forward(&mut r, net, x);
                let mut gradients = backward(&mut r, net, saved, &[]);
                step(&mut r, "Adam", net, iteration == 0);
                free_all(&mut r, &mut gradients);
                r.free(x);
            }
        }
        let (p, _) = done(r);
        assert_eq!(p.iterations.len(), 3, "{detail:?}");
        let steps = p.phases.iter().filter(|s| s.phase == Phase::OptimizerStep).count();
        assert_eq!(steps, 6);
        let parameters: Bytes =
            p.blocks.iter().filter(|b| b.role == Role::Parameter).map(|b| b.size).sum();
        assert_eq!(parameters, Bytes(1600));
        assert_eq!(preexisting(&p), "");
    }
}

#[test]
fn frozen_parameters_are_parameters_and_buffers_are_not() {
    let mut r = Recorder::new(Detail::Everything);
    let mut net = layers(&mut r, &[100, 200]);
    net[0].frozen = true;
    r.call("job.py(9): __init__", |r| {
        r.call("torch/nn/modules/module.py(483): __init__", |_| {});
        r.buffer(200);
    });
    for iteration in 0..2 {
        let x = batch(&mut r);
        let saved = forward(&mut r, &net, x);
        let mut gradients = backward(&mut r, &net, saved, &[]);
        step(&mut r, "Adam", &net, iteration == 0);
        zero_grad(&mut r, &mut gradients);
        r.free(x);
    }
    let (p, _) = done(r);
    let init: String = roles(&p)
        .lines()
        .filter(|l| l.starts_with("init"))
        .fold(String::new(), |text, line| text + line + "\n");
    check(
        &init,
        expect![[r#"
        init           parameter       model       1    400  registered as a module's parameter; no gradient is accumulated (frozen)
        init           parameter       model       1    800  wrapped as nn.Parameter, never freed, and a gradient of its size is accumulated
        init           buffer          model       1    800  made by a module's constructor; no parameter
    "#]],
    );
}

/// A GAN's batch outlives three forwards, all of one iteration; it was taken for a data set.
#[test]
fn a_batch_that_several_forwards_use_is_a_batch() {
    let mut r = Recorder::new(Detail::Everything);
    let net = layers(&mut r, &[100, 200]);
    let mut previous: Option<Tensor> = None;
    for iteration in 0..4 {
        let x = batch(&mut r);
        if let Some(x) = previous.replace(x) {
            r.free(x);
        }
        let mut gradients: Vec<Tensor> = Vec::new();
        for _ in 0..3 {
            let saved = forward(&mut r, &net, x);
            let new = backward(&mut r, &net, saved, &gradients);
            gradients.extend(new);
        }
        step(&mut r, "Adam", &net, iteration == 0);
        zero_grad(&mut r, &mut gradients);
    }
    let (p, _) = done(r);
    let batches: Vec<_> =
        p.blocks.iter().filter(|b| b.role == Role::Input).map(|b| b.residency).collect();
    assert_eq!(batches, [Residency::Batch; 4]);
}

/// Frozen layers make no backward nodes; without module calls they were taken for data loading, and
/// their activations for memory of the host.
#[test]
fn forward_begins_with_a_frozen_layer() {
    for detail in [Detail::NoPython, Detail::Neither] {
        let mut r = Recorder::new(detail);
        let net = layers(&mut r, &[100, 200]);
        for iteration in 0..2 {
            let x = batch(&mut r);
            let frozen = r.op("aten::linear", &[50, 100], |r| r.alloc(41));
            let h = r.op("aten::relu", &[41], |r| r.alloc(40));
            r.free(frozen);
            let saved = forward(&mut r, &net[1..], h);
            let mut gradients = backward(&mut r, &net[1..], saved, &[]);
            step(&mut r, "Adam", &net[1..], iteration == 0);
            zero_grad(&mut r, &mut gradients);
            r.free(x);
            r.free(h);
        }
        let (p, _) = done(r);
        let frozen = p.blocks.iter().filter(|b| b.size == Bytes(4 * 41));
        let places: Vec<_> = frozen.map(|b| (b.phase, b.residency)).collect();
        assert_eq!(places, [(Phase::Forward, Residency::Device); 2], "{detail:?}");
    }
}

#[test]
fn an_evaluation_between_iterations_is_forward_of_the_iteration_before() {
    for detail in Detail::ALL {
        let mut r = Recorder::new(detail);
        let net = layers(&mut r, &[100, 200]);
        for iteration in 0..2 {
            let x = batch(&mut r);
            // Names that only a forward has.
            for name in ["aten::relu", "aten::softmax"] {
                let (_, out) = r.differentiable(name, &[50], |r| r.alloc(50));
                r.free(out);
            }
            let saved = forward(&mut r, &net, x);
            let mut gradients = backward(&mut r, &net, saved, &[]);
            zero_grad(&mut r, &mut gradients);
            step(&mut r, "Adam", &net, iteration == 0);
            r.free(x);
        }
        let x = batch(&mut r);
        evaluate(&mut r, &net, x);
        r.free(x);
        let (p, _) = done(r);
        assert_eq!(p.iterations.len(), 2, "{detail:?}");
        let last = p.blocks.iter().rev().find(|b| b.size == Bytes(200)).expect("an output");
        assert_eq!((last.role, last.residency), (Role::Temporary, Residency::Device));
    }
}

#[test]
fn inference_repeats_by_module_calls_or_by_operators() {
    for detail in Detail::ALL {
        let mut r = Recorder::new(detail);
        let net = layers(&mut r, &[100, 200]);
        for _ in 0..4 {
            let x = batch(&mut r);
            evaluate(&mut r, &net, x);
            r.free(x);
        }
        let (p, notes) = done(r);
        assert_eq!(p.iterations.len(), 4, "{detail:?}");
        assert!(notes.get("no-backward").is_some());
        assert!(p.blocks.iter().all(|b| b.role != Role::Gradient));
    }
}

#[test]
fn an_optimizer_without_annotation_is_seen_by_its_writes() {
    for detail in Detail::ALL {
        let mut r = Recorder::new(detail);
        let net = layers(&mut r, &[100, 200]);
        for iteration in 0..3 {
            let x = batch(&mut r);
            let saved = forward(&mut r, &net, x);
            let mut gradients = backward(&mut r, &net, saved, &[]);
            adam(&mut r, &net, iteration == 0);
            free_all(&mut r, &mut gradients);
            r.free(x);
        }
        let (p, notes) = done(r);
        assert_eq!(p.iterations.len(), 3, "{detail:?}");
        assert!(notes.get("optimizer-by-writes").is_some());
        let state: Bytes =
            p.blocks.iter().filter(|b| b.role == Role::OptimizerState).map(|b| b.size).sum();
        assert_eq!(state, Bytes(4 * (100 + 200 + 2)), "{detail:?}");
    }
}

#[test]
fn clearing_is_found_by_the_frees_where_nothing_marks_it() {
    let mut r = Recorder::new(Detail::Neither);
    let net = layers(&mut r, &[100, 200]);
    let mut gradients = Vec::new();
    for iteration in 0..3 {
        let x = batch(&mut r);
        free_all(&mut r, &mut gradients);
        let saved = forward(&mut r, &net, x);
        gradients = backward(&mut r, &net, saved, &[]);
        step(&mut r, "Lion", &net, iteration == 0);
        r.free(x);
    }
    let (p, notes) = done(r);
    check(
        &phases(&p),
        expect![[r#"
        init
        data forward backward backward optimizer_step
        data zero_grad data forward backward backward optimizer_step
        data zero_grad data forward backward backward optimizer_step data
    "#]],
    );
    assert_eq!(notes.get("zero-grad-by-frees").map(|d| d.count), Some(2));
}

#[test]
fn a_recording_that_starts_late_still_knows_the_model() {
    let mut r = Recorder::new(Detail::Everything);
    let net = layers(&mut r, &[100, 200, 200]);
    step(&mut r, "Adam", &net, true);
    // The recording begins here.
    let keep = std::mem::replace(&mut r.trace, Recorder::new(Detail::Everything).trace);
    assert!(!keep.ops.is_empty());
    for _ in 0..2 {
        let x = batch(&mut r);
        let saved = forward(&mut r, &net, x);
        let mut gradients = backward(&mut r, &net, saved, &[]);
        step(&mut r, "Adam", &net, false);
        zero_grad(&mut r, &mut gradients);
        r.free(x);
    }
    let (p, notes) = done(r);
    check(
        &preexisting(&p),
        expect![[r#"
            parameter 800 B x2: a gradient of this size is accumulated, but no block of the trace is its parameter
            parameter 400 B x1: a gradient of this size is accumulated, but no block of the trace is its parameter
            optimizer_state 800 B x2: the optimizer's step updates state of this size that it did not make in the trace
            optimizer_state 400 B x1: the optimizer's step updates state of this size that it did not make in the trace
        "#]],
    );
    assert!(notes.get("made-before-trace").is_some());
}

/// The operators that change a copy of a tensor of so many elements.
type Update = dyn Fn(&mut Recorder, u64);

#[test]
fn a_recording_that_starts_late_has_the_averages_of_the_weights() {
    let forms: [&Update; 4] = [
        &|r, n| r.op("aten::lerp_", &[n, n], |_| {}),
        &|r, n| {
            r.op("aten::mul_", &[n], |_| {});
            r.op("aten::add_", &[n, n], |_| {});
        },
        &|r, n| {
            let scaled = r.op("aten::mul", &[n], |r| r.alloc(n));
            let other = r.op("aten::mul", &[n], |r| r.alloc(n));
            let sum = r.op("aten::add", &[n, n], |r| r.alloc(n));
            r.op("aten::copy_", &[n, n], |_| {});
            for tensor in [scaled, other, sum] {
                r.free(tensor);
            }
        },
        // A weight that is clamped, and one that another is copied into, are no averages.
        &|r, n| {
            r.op("aten::clamp_", &[n], |_| {});
            r.op("aten::copy_", &[n, n], |_| {});
        },
    ];
    for (row, update) in forms.iter().enumerate() {
        let mut r = Recorder::new(Detail::Everything);
        let net = layers(&mut r, &[100, 200, 200]);
        drop(std::mem::replace(&mut r.trace, Recorder::new(Detail::Everything).trace));
        for _ in 0..2 {
            let x = batch(&mut r);
            let saved = forward(&mut r, &net, x);
            let mut gradients = backward(&mut r, &net, saved, &[]);
            step(&mut r, "Adam", &net, false);
            for layer in &net {
                update(&mut r, layer.weight.elements);
            }
            zero_grad(&mut r, &mut gradients);
            r.free(x);
        }
        let (p, _) = done(r);
        let averages: Vec<_> =
            p.preexisting.iter().filter(|found| found.role == Role::Buffer).collect();
        let total: u64 = averages.iter().map(|found| found.total().get()).sum();
        assert_eq!(total, if row < 3 { 2000 } else { 0 }, "{row}: {averages:?}");
    }
}

#[test]
fn data_made_before_training_is_no_part_of_the_model() {
    let mut r = Recorder::new(Detail::Everything);
    let data = r.op("aten::randn", &[], |r| r.alloc(5000));
    let net = layers(&mut r, &[100, 5000]);
    for iteration in 0..2 {
        let x = r.op("aten::index", &[5000], |r| r.alloc(50));
        let saved = forward(&mut r, &net, x);
        let mut gradients = backward(&mut r, &net, saved, &[]);
        step(&mut r, "Adam", &net, iteration == 0);
        zero_grad(&mut r, &mut gradients);
        r.free(x);
    }
    let (p, _) = done(r);
    let of = |address: u64| {
        let block = p.blocks.iter().find(|b| b.address.0 == address).expect("in the trace");
        (block.role, block.residency)
    };
    assert_eq!(of(data.address), (Role::Input, Residency::HostOnly));
    assert_eq!(of(net[1].weight.address), (Role::Parameter, Residency::Model));
}

#[test]
fn a_batch_that_every_iteration_reuses_goes_to_the_gpu() {
    let mut r = Recorder::new(Detail::Everything);
    let net = layers(&mut r, &[100, 200]);
    let x = batch(&mut r);
    for iteration in 0..2 {
        let saved = forward(&mut r, &net, x);
        let mut gradients = backward(&mut r, &net, saved, &[]);
        step(&mut r, "Adam", &net, iteration == 0);
        zero_grad(&mut r, &mut gradients);
    }
    let (p, _) = done(r);
    let block = p.blocks.iter().find(|b| b.address.0 == x.address).expect("in the trace");
    assert_eq!((block.role, block.residency), (Role::Input, Residency::Batch));
}

#[test]
fn blocks_of_backward_name_the_forward_that_caused_them() {
    let (p, _) = done(plain(Detail::Everything));
    let gradient = p.blocks.iter().find(|b| b.role == Role::Gradient).expect("a gradient");
    let path: Vec<&str> = p.op_path(gradient).map(|o| p.op_name(o)).collect();
    check(
        &path.join(" < "),
        expect!["aten::mm < AddmmBackward0 < autograd::engine::evaluate_function: AddmmBackward0"],
    );
    let forward = p.forward_op(gradient.op.expect("an operator")).expect("linked");
    assert_eq!(p.op_name(forward), "aten::linear");
    assert_eq!(p.text(gradient.module), "Net_0");
}

#[test]
fn an_old_format_names_spans_like_operators_and_frames_no_nodes() {
    let mut r = plain(Detail::NoPython);
    let old = |text: &str| text.replace("autograd::engine::evaluate_function: ", "");
    // PyTorch 1.9: no frames around nodes, one category for all.
    for i in 0..r.trace.ops.len() {
        let name = old(r.trace.strings.resolve(r.trace.ops.name[i]));
        r.trace.ops.name[i] = r.trace.strings.intern(&name);
        r.trace.ops.kind[i] = xmem_trace::OpKind::Operator;
    }
    let mut strings = xmem_types::Interner::default();
    for (_, text) in r.trace.strings.iter() {
        strings.intern(&old(text).replace("evaluate_function", ""));
    }
    let renamed = |sym| strings.get(&old(r.trace.strings.resolve(sym))).expect("interned");
    r.trace.ops.name = r.trace.ops.name.iter().map(|&n| renamed(n)).collect();
    for signature in &mut r.trace.signatures {
        let (dims, types) = (signature.dims, signature.types);
        (signature.dims, signature.types) = (renamed(dims), renamed(types));
    }
    r.trace.strings = strings;
    let (old, _) = done(r);
    let (new, _) = done(plain(Detail::NoPython));
    assert_eq!(phases(&old), phases(&new));
    assert_eq!(roles(&old), roles(&new));
}

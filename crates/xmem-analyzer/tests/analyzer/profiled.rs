//! Traces of `xmem profile`: its marks, and what it lists.

use crate::support::*;
use expect_test::expect;
use serde_json::json;
use xmem_analyzer::integrity::{Condition, Finding};
use xmem_analyzer::recording::TensorKind;
use xmem_analyzer::{Block, Phase, Profile, Residency, Role, TransferKind};
use xmem_types::{Addr, Bytes, Sealed, Severity};

fn block(p: &Profile, tensor: Tensor) -> &Block {
    p.blocks.iter().find(|b| b.address == Addr(tensor.address)).expect("a block of the trace")
}

#[test]
fn marks_leave_phases_and_roles_as_they_are() {
    let (without, _) = done(plain_loop(Detail::Everything, By::Profiler));
    for detail in Detail::ALL {
        let (with, notes) = done(plain_loop(detail, By::Recorder));
        assert_eq!(phases(&with), phases(&without), "{detail:?}");
        assert_eq!(with.op_count(), without.op_count());
        for (a, b) in with.blocks.iter().zip(&without.blocks) {
            assert_eq!(
                (a.size, a.role, a.residency, a.phase, a.iteration),
                (b.size, b.role, b.residency, b.phase, b.iteration),
                "{detail:?}: {a:?}"
            );
        }
        let stacks = notes.get("no-python-stacks").map(|d| d.severity);
        assert!(stacks.is_none_or(|severity| severity == Severity::Note), "{detail:?}");
    }
}

#[test]
fn marks_find_the_block_that_is_alive_and_holds_the_address() {
    let mut r = Recorder::new(Detail::Everything);
    let gone = r.empty(10);
    r.free(gone);
    r.mark("to_device", gone);
    let x = r.empty(10);
    let inside = Tensor { address: x.address + 16, elements: 2 };
    let beyond = Tensor { address: x.address + 40, elements: 2 };
    r.mark("to_device", x);
    r.mark("on_device", inside);
    r.mark("to_host", beyond);
    r.annotation("xmem::to_device nowhere 8", |_| {});
    r.annotation("xmem::later 1", |_| {});
    let (p, _) = done(r);
    let found: Vec<_> = p.transfers.iter().map(|t| (t.kind, t.block.map(|b| b.0))).collect();
    let expected = [
        (TransferKind::ToDevice, None),
        (TransferKind::ToDevice, Some(1)),
        (TransferKind::OnDevice, Some(1)),
        (TransferKind::ToHost, None),
    ];
    assert_eq!(found, expected);
    assert_eq!(p.op_count(), 2, "no mark is left among the operators");
}

/// Only C++ has the buckets that the constructor of DistributedDataParallel makes.
#[test]
fn buckets_of_ddp_made_before_the_loop_are_on_the_device() {
    let mut r = Recorder::new(Detail::Everything);
    let before = r.empty(10);
    r.annotation("xmem::on_device_until", |_| {});
    r.annotation("xmem::on_device_from", |_| {});
    let bucket = r.empty(20);
    let freed = r.empty(30);
    r.free(freed);
    r.annotation("xmem::on_device_until", |_| {});
    let after = r.empty(40);
    let (p, _) = done(r);
    let found: Vec<_> = p.transfers.iter().map(|t| (t.kind, t.address, t.bytes)).collect();
    let made =
        |tensor: Tensor| (TransferKind::OnDevice, Addr(tensor.address), Bytes(tensor.elements * 4));
    assert_eq!(found, [made(bucket), made(freed)], "not {before:?} and {after:?}");
    assert_eq!(p.op_count(), 4, "no mark is left among the operators");
}

/// The steps of two optimizers over equal shapes look like those of one.
#[test]
fn iterations_end_where_they_are_marked() {
    let train = |by: By| {
        let mut r = Recorder::new(Detail::Everything);
        let nets = [layers(&mut r, &[100]), layers(&mut r, &[100])];
        for iteration in 0..3 {
            for net in &nets {
                let x = batch(&mut r);
                let saved = forward(&mut r, net, x);
                let mut gradients = backward(&mut r, net, saved, &[]);
                step(&mut r, "Adam", net, iteration == 0);
                free_all(&mut r, &mut gradients);
                r.free(x);
            }
            if by == By::Recorder {
                r.iteration_ends(iteration + 1);
            }
        }
        done(r).0
    };
    assert_eq!(train(By::Profiler).iterations.len(), 6);
    let p = train(By::Recorder);
    assert_eq!(p.iterations.len(), 3);
    let steps = |i: usize| {
        let within = p.phases.iter().filter(|s| s.iteration.is_some_and(|n| n.index() == i));
        within.filter(|s| s.phase == Phase::OptimizerStep).count()
    };
    assert_eq!([steps(0), steps(1), steps(2)], [2, 2, 2]);
}

/// Iterations with these numbers of optimizer steps, each over layers of its own.
fn iterations_with_steps(steps: &[usize], sealed: Sealed) -> (Profile, xmem_types::Diagnostics) {
    let mut r = Recorder::new(Detail::Everything);
    r.trace.evidence.sealed = sealed;
    let nets = [layers(&mut r, &[100]), layers(&mut r, &[200])];
    for (iteration, &count) in steps.iter().enumerate() {
        for step_of_iteration in 0..count {
            let net = &nets[usize::from(step_of_iteration + 1 == count)];
            let x = batch(&mut r);
            let saved = forward(&mut r, net, x);
            let mut gradients = backward(&mut r, net, saved, &[]);
            step(&mut r, "Adam", net, iteration == 0);
            free_all(&mut r, &mut gradients);
            r.free(x);
        }
        r.iteration_ends(iteration + 1);
    }
    *r.noted("iterations") = json!({"by": "optimizer steps", "count": steps.len()});
    done(r)
}

/// DTensor asks fake tensors for the shapes of results, and its operators run on the part of one process.
#[test]
fn operators_on_fake_tensors_have_no_memory_that_is_missing() {
    for (mode, is_missing) in
        [("PythonDispatchMode", false), ("PythonSubclass", true), ("aten::other", true)]
    {
        let mut r = Recorder::new(Detail::Everything);
        r.op("aten::gelu", &[800], |r| {
            r.op(mode, &[800], |r| r.op("aten::gelu", &[800], |_| {}));
        });
        let (p, _) = done(r);
        let finding = p.integrity.findings().iter().find(|f| f.check.name == "missing-outputs");
        let is_damage = finding.is_some_and(|f| f.condition() == Condition::Damaged);
        assert_eq!(is_damage, is_missing, "{mode}");
    }
}

#[test]
fn what_disagrees_in_a_sealed_recording_is_odd_and_no_damage() {
    let rows = [
        (Sealed::No, Condition::Damaged, Condition::Damaged),
        (Sealed::Intact, Condition::Doubtful, Condition::Doubtful),
        (Sealed::Broken, Condition::Damaged, Condition::Damaged),
    ];
    for (sealed, of_check, of_recording) in rows {
        let mut r = Recorder::new(Detail::Everything);
        r.op("aten::gelu", &[800], |r| {
            r.op("PythonSubclass", &[800], |r| r.op("aten::gelu", &[800], |_| {}));
        });
        r.trace.evidence.sealed = sealed;
        let (p, notes) = done(r);
        let finding = p.integrity.findings().iter().find(|f| f.check.name == "missing-outputs");
        assert_eq!(finding.map(Finding::condition), Some(of_check), "{sealed:?}");
        assert_eq!(p.integrity.condition(), of_recording, "{sealed:?}");
        assert_eq!(notes.get("broken-seal").is_some(), sealed == Sealed::Broken, "{notes:?}");
    }
    let (intact, _) = iterations_with_steps(&[1, 2, 3], Sealed::Intact);
    assert_eq!(intact.integrity.condition(), Condition::Doubtful, "the loop may be longer");
}

#[test]
fn iterations_with_unequal_numbers_of_steps_are_a_doubt() {
    for (steps, is_doubt) in [
        (&[2, 2, 2][..], false),
        // A gradient scaler skips the first step.
        (&[1, 2, 2], false),
        // All steps of the first layer, and the first ones of the second.
        (&[7, 1, 1], true),
        (&[1, 2, 3], true),
    ] {
        let (p, notes) = iterations_with_steps(steps, Sealed::No);
        assert_eq!(p.iterations.len(), steps.len(), "{steps:?}");
        assert_eq!(notes.get("unequal-steps").is_some(), is_doubt, "{steps:?}: {notes:?}");
        let finding = p.integrity.findings().iter().find(|f| f.check.name == "unequal-steps");
        let condition = if is_doubt { Condition::Doubtful } else { Condition::Intact };
        assert_eq!(finding.map(Finding::condition), Some(condition), "{steps:?}");
    }
}

/// A script that evaluates before it trains: its first calls of the model are no iterations.
#[test]
fn passes_are_iterations_only_without_steps() {
    let train = |units: [&str; 3]| {
        let mut r = Recorder::new(Detail::Everything);
        let net = layers(&mut r, &[100]);
        for (number, unit) in units.into_iter().enumerate() {
            let x = batch(&mut r);
            let saved = forward(&mut r, &net, x);
            let mut gradients = backward(&mut r, &net, saved, &[]);
            step(&mut r, "Adam", &net, number == 0);
            free_all(&mut r, &mut gradients);
            r.free(x);
            r.annotation(&format!("xmem::{unit} {}", number + 1), |_| {});
        }
        done(r).0.iterations.len()
    };
    assert_eq!(train(["forward", "forward", "forward"]), 3);
    assert_eq!(train(["forward", "backward", "backward"]), 2);
    assert_eq!(train(["forward", "backward", "iteration"]), 1);
}

#[test]
fn a_recording_without_an_iteration_or_a_gpu_gets_no_verdict() {
    for (key, value, reason) in [
        ("iterations", json!({"by": "optimizer steps", "count": 0}), "no-iteration"),
        ("uses_gpu", json!(false), "nothing-on-gpu"),
    ] {
        let mut r = plain_loop(Detail::Everything, By::Recorder);
        *r.noted("ended") = json!({"reason": "exception", "detail": "ValueError: x"});
        *r.noted(key) = value;
        let (_, notes) = done(r);
        let withheld: Vec<_> =
            notes.withheld_reasons().iter().map(|reason| reason.code()).collect();
        assert_eq!(withheld, [reason], "{notes:?}");
    }
}

#[test]
fn accumulated_passes_without_an_optimizer_end_where_they_are_marked() {
    let mut r = Recorder::new(Detail::NoPython);
    let net = layers(&mut r, &[100, 200]);
    for iteration in 0..2 {
        let mut gradients: Vec<Tensor> = Vec::new();
        for _ in 0..2 {
            let x = batch(&mut r);
            let saved = forward(&mut r, &net, x);
            gradients.extend(backward(&mut r, &net, saved, &gradients.clone()));
            r.free(x);
        }
        r.iteration_ends(iteration + 1);
        free_all(&mut r, &mut gradients);
    }
    assert_eq!(done(r).0.iterations.len(), 2);
}

#[test]
fn parameters_and_buffers_are_those_that_are_named() {
    for detail in Detail::ALL {
        let mut r = Recorder::new(detail);
        let mut net = layers(&mut r, &[100, 200]);
        net[0].frozen = true;
        let table = r.buffer(60);
        let attribute = r.buffer(70);
        let average = r.parameter(200);
        for (i, layer) in net.iter().enumerate() {
            r.mark("to_device", layer.weight);
            r.list(&format!("{i}.weight"), 0, TensorKind::Parameter, layer.weight);
        }
        r.list("table", 0, TensorKind::Buffer, table);
        r.list("1.weight", 1, TensorKind::Parameter, average);
        for iteration in 0..2 {
            let x = batch(&mut r);
            r.mark("to_device", x);
            let saved = forward(&mut r, &net, x);
            let mut gradients = backward(&mut r, &net, saved, &[]);
            step(&mut r, "Adam", &net, iteration == 0);
            zero_grad(&mut r, &mut gradients);
            r.free(x);
            r.iteration_ends(iteration + 1);
        }
        let (p, _) = done(r);
        let of = |tensor| {
            let found = block(&p, tensor);
            (p.text(found.module), found.role, found.residency)
        };
        use {Residency::HostOnly, Residency::Model};
        assert_eq!(of(net[0].weight), ("0.weight", Role::Parameter, Model), "{detail:?}");
        assert_eq!(of(net[1].weight), ("1.weight", Role::Parameter, Model), "{detail:?}");
        assert_eq!(of(table), ("table", Role::Buffer, Model), "{detail:?}: with its model");
        assert_eq!(of(average).2, HostOnly, "{detail:?}: nothing of that model is moved");
        assert_eq!(of(attribute).2, HostOnly, "{detail:?}: neither named nor moved");
        assert_eq!(preexisting(&p), "", "{detail:?}");
    }
}

#[test]
fn data_is_on_the_gpu_from_where_it_is_moved_or_made() {
    for detail in Detail::ALL {
        let mut r = Recorder::new(detail);
        let net = layers(&mut r, &[100, 200]);
        for layer in &net {
            r.mark("to_device", layer.weight);
        }
        let mut seen = Vec::new();
        for iteration in 0..2 {
            let read = r.empty(51);
            let x = r.empty(50);
            let label = r.empty(52);
            r.mark("to_device", x);
            let noise = r.empty(53);
            r.mark("on_device", noise);
            let mixed = r.op("aten::mul", &[50, 50], |r| r.alloc(54));
            let passing = r.op("aten::mul", &[50, 50], |r| r.alloc(55));
            r.free(passing);
            let saved = forward(&mut r, &net, x);
            let shown = r.empty(56);
            r.mark("to_host", shown);
            let mut gradients = backward(&mut r, &net, saved, &[]);
            step(&mut r, "Adam", &net, iteration == 0);
            r.iteration_ends(iteration + 1);
            zero_grad(&mut r, &mut gradients);
            seen = vec![read, x, label, noise, mixed, passing, shown];
            for tensor in [read, x, label, noise, mixed, shown] {
                r.free(tensor);
            }
        }
        let (p, _) = done(r);
        let found: String = seen
            .into_iter()
            .map(|tensor| {
                let b = block(&p, tensor);
                format!("{} {:9} {}\n", b.size.get() / 4, b.residency.name(), b.evidence.0)
            })
            .collect();
        check(
            &found,
            expect![[r#"
                51 host_only made before the batch moves, and not moved
                50 batch     made while data is loaded, moved to the GPU
                52 host_only made before the batch moves, and not moved
                53 device    made on the GPU while data is loaded
                54 device    computed from what was moved to the GPU before
                55 device    computed from what was moved to the GPU before
                56 host_only a copy that the program made for the host
            "#]],
        );
    }
}

#[test]
fn state_and_gradients_are_those_that_are_listed() {
    let mut r = Recorder::new(Detail::NoPython);
    let net = layers(&mut r, &[100]);
    r.mark("to_device", net[0].weight);
    // Made by the constructor, as nothing else in the trace.
    let sums = r.empty(100);
    let x = batch(&mut r);
    r.mark("to_device", x);
    let saved = forward(&mut r, &net, x);
    let gradients = backward(&mut r, &net, saved, &[]);
    step(&mut r, "Custom", &net, false);
    r.iteration_ends(1);
    r.list("weight", 0, TensorKind::Parameter, net[0].weight);
    let gradient = gradients[0].storage();
    r.listed("tensors")[0]["gradient"] = gradient;
    let mut state = sums.storage();
    state["name"] = "sum".into();
    r.listed("optimizers").push(json!({
        "class": "job.Custom",
        "implementation": "default",
        "groups": [{"tensors": 1}],
        "steps": 1,
        "state_storages": [state],
    }));
    let (p, _) = done(r);
    let sums = block(&p, sums);
    assert_eq!((sums.role, sums.residency), (Role::OptimizerState, Residency::Device));
    assert_eq!(block(&p, gradients[0]).role, Role::Gradient);
}

/// A recording that starts late, or weights that lie in a mapped file.
#[test]
fn what_is_listed_and_nowhere_in_the_trace_was_there_before() {
    let mut r = Recorder::new(Detail::Everything);
    let net = layers(&mut r, &[100]);
    let absent = |address, elements| Tensor { address, elements };
    r.list("0.weight", 0, TensorKind::Parameter, net[0].weight);
    r.list("1.weight", 0, TensorKind::Parameter, absent(0x10, 300));
    r.list("1.tied", 0, TensorKind::Parameter, absent(0x10, 300));
    r.list("2.weight", 0, TensorKind::Parameter, absent(0x20, 400));
    r.mark("to_device", absent(0x20, 400));
    let x = batch(&mut r);
    r.mark("to_device", x);
    let saved = forward(&mut r, &net, x);
    backward(&mut r, &net, saved, &[]);
    step(&mut r, "Adam", &net, true);
    r.iteration_ends(1);
    let (p, _) = done(r);
    check(
        &preexisting(&p),
        expect![[r#"
            parameter 1.17 KiB x1: listed by the recording, but no block of the trace
        "#]],
    );
}

#[test]
fn a_recording_that_was_cut_short_says_so() {
    for (reason, expected) in [
        ("steps", None),
        ("exception", Some(Severity::Warning)),
        ("memory", Some(Severity::Warning)),
    ] {
        let mut r = plain_loop(Detail::Everything, By::Recorder);
        *r.noted("ended") = json!({"reason": reason, "detail": "RuntimeError: no"});
        let (_, notes) = done(r);
        let note = notes.get("recording-cut-short");
        assert_eq!(note.map(|n| n.severity), expected, "{reason}");
        assert!(note.is_none_or(|n| n.message.contains("(RuntimeError: no)")));
    }
    for (requested, is_short) in [(1, false), (100, true)] {
        let mut r = plain_loop(Detail::Everything, By::Recorder);
        *r.noted("ended") = json!({"reason": "end", "detail": null});
        *r.noted("iterations") =
            json!({"by": "optimizer steps", "count": 3, "requested": requested});
        let (_, notes) = done(r);
        assert_eq!(notes.get("recording-cut-short").is_some(), is_short, "{requested}");
    }
}

/// torchvision's transforms are modules: the loader runs them before anything is moved.
#[test]
fn modules_that_prepare_data_are_no_forward() {
    let mut r = Recorder::new(Detail::Everything);
    let net = layers(&mut r, &[100, 200]);
    for layer in &net {
        r.mark("to_device", layer.weight);
    }
    let mut scaled = Vec::new();
    for iteration in 0..2 {
        let x = r.call("nn.Module: Resize_0", |r| r.op("aten::mul", &[50], |r| r.alloc(51)));
        scaled.push(x);
        let moved = batch(&mut r);
        r.mark("to_device", moved);
        let saved = forward(&mut r, &net, moved);
        let mut gradients = backward(&mut r, &net, saved, &[]);
        step(&mut r, "Adam", &net, iteration == 0);
        r.iteration_ends(iteration + 1);
        zero_grad(&mut r, &mut gradients);
        r.free(moved);
        r.free(x);
    }
    let (p, _) = done(r);
    assert_eq!(block(&p, scaled[1]).residency, Residency::HostOnly);
}

/// What a model computes with data that are on the GPU is not taken for the preparation of the next batch.
#[test]
fn a_model_that_is_called_before_a_batch_moves_computes_on_the_gpu() {
    for (class, residency) in
        [("__main__.Net", Residency::Device), ("__main__.Other", Residency::HostOnly)]
    {
        let mut r = Recorder::new(Detail::Everything);
        let net = layers(&mut r, &[100, 200]);
        for layer in &net {
            r.mark("to_device", layer.weight);
        }
        for iteration in 0..2 {
            let moved = batch(&mut r);
            r.mark("to_device", moved);
            let saved = forward(&mut r, &net, moved);
            let mut gradients = backward(&mut r, &net, saved, &[]);
            step(&mut r, "Adam", &net, iteration == 0);
            r.iteration_ends(iteration + 1);
            zero_grad(&mut r, &mut gradients);
            r.free(moved);
        }
        let shown = r.call("nn.Module: Net_0", |r| r.op("aten::mul", &[50], |r| r.alloc(52)));
        r.free(shown);
        let moved = batch(&mut r);
        r.mark("to_device", moved);
        evaluate(&mut r, &net, moved);
        r.free(moved);
        *r.noted("models") = json!([{"class": class, "training": true, "modules": {"": "Net"}}]);
        let (p, _) = done(r);
        assert_eq!(block(&p, shown).residency, residency, "{class}");
    }
}

/// A prefetching loader moves its first batch, computes with it, and moves the second one before forward.
#[test]
fn what_is_computed_between_two_moves_and_reaches_forward_is_on_the_gpu() {
    let mut r = Recorder::new(Detail::Everything);
    let net = layers(&mut r, &[100, 200]);
    for layer in &net {
        r.mark("to_device", layer.weight);
    }
    let mut made = Vec::new();
    for iteration in 0..2 {
        let first = batch(&mut r);
        r.mark("to_device", first);
        let scaled = r.op("aten::mul", &[50], |r| r.alloc(51));
        let passing = r.op("aten::mul", &[50], |r| r.alloc(52));
        r.free(passing);
        let second = batch(&mut r);
        r.mark("to_device", second);
        made.push((scaled, passing));
        let saved = forward(&mut r, &net, first);
        let mut gradients = backward(&mut r, &net, saved, &[]);
        step(&mut r, "Adam", &net, iteration == 0);
        r.iteration_ends(iteration + 1);
        zero_grad(&mut r, &mut gradients);
        for tensor in [first, second, scaled] {
            r.free(tensor);
        }
    }
    let (p, _) = done(r);
    let (scaled, passing) = made[1];
    assert_eq!(block(&p, scaled).residency, Residency::Device);
    assert_eq!(block(&p, passing).residency, Residency::HostOnly);
}

#[test]
fn streams_that_are_selected_are_known() {
    let mut r = Recorder::new(Detail::Everything);
    let before = r.empty(10);
    r.annotation("xmem::stream 2", |_| {});
    let beside = r.empty(11);
    r.annotation("xmem::stream 0", |_| {});
    let after = r.empty(12);
    r.annotation("xmem::stream no", |_| {});
    let (p, _) = done(r);
    let streams = [before, beside, after].map(|t| p.stream_at(block(&p, t).alloc_time).0);
    assert_eq!(streams, [0, 2, 0]);
}

#[test]
fn inference_repeats_where_its_rounds_are_marked() {
    let mut r = Recorder::new(Detail::Neither);
    let net = layers(&mut r, &[100, 200]);
    for iteration in 0..4 {
        let x = batch(&mut r);
        evaluate(&mut r, &net, x);
        r.free(x);
        r.iteration_ends(iteration + 1);
    }
    let (p, _) = done(r);
    assert_eq!(p.iterations.len(), 4);
    let made: Bytes = p.blocks.iter().filter(|b| b.iteration.is_some()).map(|b| b.size).sum();
    assert!(made > Bytes::ZERO);
}

/// The recorder notes the end of a pass from within the call of the next one, whose memory was that of data that are
/// loaded: a cache of keys and values was taken for a batch, and left out of every other pass.
#[test]
fn a_pass_begins_with_the_call_that_ends_the_one_before() {
    let mut r = Recorder::new(Detail::Everything);
    let net = layers(&mut r, &[100, 200]);
    let x = batch(&mut r);
    let mut cache = r.op("aten::cat", &[100], |r| r.alloc(100));
    for pass in 0..4 {
        r.call("nn.Module: Net_0", |r| {
            if pass > 0 {
                r.annotation(&format!("xmem::forward {pass}"), |_| {});
            }
            let grown = r.op("aten::cat", &[101 + pass], |r| r.alloc(101 + pass));
            r.free(std::mem::replace(&mut cache, grown));
            for layer in &net {
                let out =
                    r.op("aten::linear", &[x.elements, layer.weight.elements], |r| r.alloc(50));
                r.free(out);
            }
        });
    }
    let (p, _) = done(r);
    assert_eq!(p.iterations.len(), 3);
    let grown = p.blocks.iter().filter(|b| (4 * 101..=4 * 104).contains(&b.size.get()));
    let places: Vec<_> = grown.map(|b| (b.phase, b.residency)).collect();
    assert_eq!(places, [(Phase::Forward, Residency::Device); 4]);
}

/// Tokens that are split by expert have other sizes in each iteration, in a seventh of the operators: once in a while,
/// the recording was called damaged.
#[test]
fn a_seventh_of_the_operators_with_other_shapes_is_no_damage() {
    let is_doubted = |differing: u64| {
        let mut r = Recorder::new(Detail::Everything);
        let net = layers(&mut r, &[100]);
        for iteration in 0..3 {
            let x = batch(&mut r);
            let saved = forward(&mut r, &net, x);
            for at in 0..300 {
                let elements = if at < differing { 1000 * (iteration + 1) + at } else { 10 };
                let out = r.op("aten::mul", &[elements], |r| r.alloc(10));
                r.free(out);
            }
            let mut gradients = backward(&mut r, &net, saved, &[]);
            step(&mut r, "Adam", &net, iteration == 0);
            free_all(&mut r, &mut gradients);
            r.free(x);
        }
        let (p, _) = done(r);
        let mut found = p.integrity.findings().iter();
        found.any(|finding| finding.check.name == "unlike-shapes" && finding.affected > 0)
    };
    assert_eq!([0, 15, 45, 100].map(is_doubted), [false, true, false, false]);
}

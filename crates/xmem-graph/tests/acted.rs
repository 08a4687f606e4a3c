//! What a small model does, operator by operator: allocations, frees, and the order of backward.

use expect_test::expect;
use serde_json::Value;
use xmem_graph::graph::InputRole;
use xmem_graph::{DType, Graph, Optimizer, Training, Workload, act, pt2};

fn graph() -> Graph {
    pt2::read_model(include_str!("data/convolution.json")).expect("it is whole")
}

fn training(optimizer: &str) -> Workload {
    let mut workload = Workload::default();
    workload.training = Some(Training::new(Optimizer::parse(optimizer).expect("it is known")));
    workload.iterations = 1;
    workload
}

/// Events with their memory, those without any left out; blocks go by the order of their allocation.
fn listing(trace: &str, wanted: impl Fn(&str) -> bool) -> String {
    let trace: Value = serde_json::from_str(trace).expect("JSON");
    let mut lines = Vec::new();
    let mut open: Vec<(f64, String)> = Vec::new();
    let number = |e: &Value, key: &str| e[key].as_f64().unwrap_or(0.0);
    for event in trace["traceEvents"].as_array().expect("events") {
        let start = number(event, "ts");
        open.retain(|(end, _)| *end > start);
        let name = event["name"].as_str().unwrap_or_default();
        if event["cat"] != "cpu_instant_event" {
            if event["cat"] == "cpu_op" || name.starts_with("Optimizer") {
                open.push((start + number(event, "dur"), name.to_owned()));
            }
            continue;
        }
        let (bytes, address) = (
            event["args"]["Bytes"].as_i64().unwrap_or(0),
            event["args"]["Addr"].as_u64().unwrap_or(0),
        );
        let place = open.first().map_or("-", |(_, name)| name.as_str());
        let place = place.strip_prefix("autograd::engine::evaluate_function: ").unwrap_or(place);
        if wanted(place) {
            lines.push(format!(
                "{} b{:<3} {:>7}  {place}",
                if bytes > 0 { '+' } else { '-' },
                address / 64,
                bytes.abs()
            ));
        }
    }
    lines.join("\n") + "\n"
}

#[test]
fn a_training_step_allocates_and_frees_as_eager_pytorch_does() {
    let run = act(&graph(), &training("sgd:momentum")).expect("it runs");
    assert!(run.unknown_operators.is_empty() && run.different_sizes.is_empty());
    expect![[r#"
        + b1       864  aten::empty
        + b2        32  aten::empty
        + b3        32  aten::empty
        + b4        32  aten::empty
        + b5        32  aten::empty
        + b6        32  aten::empty
        + b7         8  aten::empty
        + b8    288000  aten::empty
        + b9        40  aten::empty
        + b10    49152  aten::empty
        + b11       32  aten::empty
        + b12   115200  aten::conv2d
        + b13   115200  aten::batch_norm
        + b14       32  aten::batch_norm
        + b15       32  aten::batch_norm
        + b16   115200  aten::dropout
        + b17   115200  aten::dropout
        + b18      160  aten::linear
        + b19      160  aten::cross_entropy_loss
        + b20        4  aten::cross_entropy_loss
        + b21        4  aten::cross_entropy_loss
        - b18      160  -
        + b22        4  aten::ones_like
        + b23      160  NllLossBackward0
        - b21        4  NllLossBackward0
        + b24      160  LogSoftmaxBackward0
        - b23      160  LogSoftmaxBackward0
        - b19      160  LogSoftmaxBackward0
        + b25   115200  AddmmBackward0
        + b26   288000  AddmmBackward0
        + b27       40  AddmmBackward0
        - b24      160  AddmmBackward0
        - b17   115200  AddmmBackward0
        + b28   115200  MulBackward0
        - b25   115200  MulBackward0
        - b16   115200  MulBackward0
        + b29   115200  ReluBackward0
        - b28   115200  ReluBackward0
        - b13   115200  ReluBackward0
        + b30   115200  NativeBatchNormBackward0
        + b31       32  NativeBatchNormBackward0
        + b32       32  NativeBatchNormBackward0
        - b29   115200  NativeBatchNormBackward0
        - b12   115200  NativeBatchNormBackward0
        - b14       32  NativeBatchNormBackward0
        - b15       32  NativeBatchNormBackward0
        + b33      864  ConvolutionBackward0
        + b34       32  ConvolutionBackward0
        - b30   115200  ConvolutionBackward0
        - b22        4  -
        + b35      864  Optimizer.step#SGD.step
        + b36       32  Optimizer.step#SGD.step
        + b37       32  Optimizer.step#SGD.step
        + b38       32  Optimizer.step#SGD.step
        + b39   288000  Optimizer.step#SGD.step
        + b40       40  Optimizer.step#SGD.step
    "#]]
    .assert_eq(&listing(&run.trace_text(), |place| place != "aten::detach"));
}

#[test]
fn inference_frees_each_activation_after_its_last_use() {
    let mut workload = Workload::default();
    workload.iterations = 1;
    let run = act(&graph(), &workload).expect("it runs");
    expect![[r#"
        + b12   115200  aten::conv2d
        + b13   115200  aten::batch_norm
        + b14       32  aten::batch_norm
        + b15       32  aten::batch_norm
        - b15       32  aten::batch_norm
        - b14       32  aten::batch_norm
        - b12   115200  -
        + b16   115200  aten::dropout
        + b17   115200  aten::dropout
        - b16   115200  aten::dropout
        - b13   115200  -
        + b18      160  aten::linear
        - b17   115200  -
        + b19      160  aten::cross_entropy_loss
        + b20        4  aten::cross_entropy_loss
        + b21        4  aten::cross_entropy_loss
        - b21        4  aten::cross_entropy_loss
        - b19      160  aten::cross_entropy_loss
        - b18      160  -
    "#]]
    .assert_eq(&listing(&run.trace_text(), |place| place != "aten::empty"));
}

/// Casts of weights died in the order of their addresses, which differ from run to run.
#[test]
fn casts_of_autocast_die_in_the_order_of_their_use() {
    let mut workload = training("adamw");
    workload.autocast = Some(DType::BF16);
    let run = act(&graph(), &workload).expect("it runs");
    // What the nodes do not keep of the casts dies where the context is left: those of the biases.
    let lines = listing(&run.trace_text(), |place| place == "-" || place == "aten::ones_like");
    let (left, _) = lines.split_once("aten::ones_like").expect("backward follows");
    let casts: Vec<&str> = left.lines().filter(|line| line.starts_with("- ")).collect();
    let blocks: Vec<u32> = casts
        .iter()
        .filter(|line| line.contains(" 16 ") || line.contains(" 20 "))
        .map(|line| line[3..7].trim().parse().expect("a number"))
        .collect();
    assert_eq!(blocks.len(), 2, "{left}");
    assert!(blocks.is_sorted(), "{left}");
}

/// T5's embedding has four names, and was made again for each but one of them.
#[test]
fn a_weight_of_several_names_is_made_once() {
    let archive = include_bytes!("../../../traces/graphs/t5_hfadafactor.pt2");
    let graph = pt2::read(archive).expect("it is whole").graph;
    assert_eq!(graph.inputs.iter().filter(|input| input.same_as.is_some()).count(), 3);
    let run = act(&graph, &Workload::default()).expect("it runs");
    let trace: Value = serde_json::from_str(&run.trace_text()).expect("JSON");
    let events = trace["traceEvents"].as_array().expect("events").iter();
    let names = events.map(|event| event["name"].as_str().unwrap_or_default());
    let model: Vec<&str> = names.take_while(|name| !name.starts_with("ProfilerStep")).collect();
    let mut marks: Vec<&str> =
        model.iter().copied().filter(|name| name.starts_with("xmem::to_device")).collect();
    let made = model.iter().filter(|name| **name == "aten::empty").count();
    let named = graph.inputs.iter().filter(|input| input.role != InputRole::Batch).count();
    assert_eq!((made, marks.len()), (named - 3, named - 3));
    marks.sort_unstable();
    marks.dedup();
    assert_eq!(marks.len(), made);
}

#[test]
fn another_batch_size_scales_what_depends_on_it_alone() {
    let bytes = |batch: i64| -> Vec<u64> {
        let mut workload = training("adamw");
        workload.batch = Some(batch);
        let run = act(&graph(), &workload).expect("it runs");
        let trace: Value = serde_json::from_str(&run.trace_text()).expect("JSON");
        let events = trace["traceEvents"].as_array().expect("events").iter();
        events
            .filter_map(|e| e["args"]["Bytes"].as_i64().filter(|b| *b > 0)?.try_into().ok())
            .collect()
    };
    let (four, eight, twelve) = (bytes(4), bytes(8), bytes(12));
    assert_eq!((four.len(), eight.len()), (eight.len(), twelve.len()));
    for ((a, b), c) in four.iter().zip(&eight).zip(&twelve) {
        assert_eq!(c - b, b - a, "memory is linear in the batch");
    }
    assert!(four.iter().zip(&eight).any(|(a, b)| b > a));
}

#[test]
fn a_size_that_the_graph_fixes_cannot_be_changed() {
    let mut workload = training("adamw");
    workload.length = Some(7);
    let error = act(&graph(), &workload).expect_err("there is no such symbol");
    expect!["the length of sequences cannot be changed: the graph was exported with a fixed one (export it with dynamic_shapes, as xmem export does)"]
        .assert_eq(&error.to_string());
}

//! What `xmem profile` notes beside a recording, here of a run that was acted: names of tensors, settings of the
//! optimizer, and that it is from a graph.

use super::Job;
use crate::eager::tensor::Tensor;
use crate::graph::InputRole;
use crate::interpreter::Findings;
use serde_json::{Value, json};

/// The value of the trace's member `xmem_recording`, as JSON.
pub(super) fn of(job: &Job<'_>, findings: &Findings) -> String {
    let workload = job.workload;
    let mut notes = json!({
        "schema": "xmem.recording.1",
        "torch": job.graph.torch,
        "stacks": true,
        "uses_gpu": true,
        "models": [{"class": "exported", "training": workload.training.is_some()}],
        "tensors": tensors(job),
        "graph": {
            "unknown_operators": findings.unknown,
            "different_sizes": findings.different,
            "autograd_functions": workload.training.as_ref().map_or(&[][..], |_| &workload.autograd_functions),
            "assumptions": job.graph.assumptions,
        },
        "ended": {"reason": "steps"},
        "iterations": {"by": "optimizer-steps", "count": workload.iterations},
    });
    let Some(object) = notes.as_object_mut() else { return String::new() };
    if let Some(training) = &workload.training {
        let optimizers = training.optimizers.iter().map(|(optimizer, _)| {
            let class = optimizer.class.class();
            json!({
                "class": format!("torch.optim.{}.{class}", class.to_lowercase()),
                "implementation": optimizer.implementation.name(),
                "arguments": {"capturable": optimizer.capturable},
                "steps": workload.iterations,
            })
        });
        object.insert("optimizers".to_owned(), optimizers.collect());
    }
    if let Some(dtype) = workload.autocast {
        object.insert("autocast".to_owned(), json!([{"dtype": dtype.name()}]));
    }
    notes.to_string()
}

fn tensors(job: &Job<'_>) -> Vec<Value> {
    let mut tensors = Vec::new();
    for (at, input) in job.graph.inputs.iter().enumerate() {
        let (name, kind) = match &input.role {
            InputRole::Parameter(name) => (name, "parameter"),
            InputRole::Buffer(name) => (name, "buffer"),
            InputRole::Constant(_) | InputRole::Batch => continue,
        };
        let Some(tensor) = job.model.get(&at) else { continue };
        tensors.push(json!({
            "name": name,
            "model": 0,
            "kind": kind,
            "requires_grad": tensor.requires_grad(),
            "storage": storage(tensor),
            "gradient": tensor.grad().as_ref().map(storage),
        }));
    }
    tensors
}

fn storage(tensor: &Tensor) -> Value {
    let (address, bytes) = tensor.memory();
    json!({"address": format!("0x{address:x}"), "bytes": bytes})
}

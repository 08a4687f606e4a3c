//! What `xmem profile` notes beside a recording, here of a run that was acted: names of tensors, settings of the
//! optimizer, and that it is from a graph.

use super::Job;
use super::model::Model;
use crate::dtype::DType;
use crate::eager::tensor::Tensor;
use crate::graph::InputRole;
use crate::interpreter::Findings;
use crate::ranks::{Ranks, Sharing};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

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
            "bounded_sizes": findings.bounded,
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
    if let Some(ranks) = &workload.ranks {
        object.extend(of_ranks(ranks, &job.model));
    }
    notes.to_string()
}

/// The processes of the job, and how they share the model.
fn of_ranks(ranks: &Ranks, model: &Model) -> Map<String, Value> {
    let (name, options) = match &ranks.sharing {
        Sharing::Replicated { gradient_as_bucket_view: true } => {
            ("DDP", json!({"gradient_as_bucket_view": "True"}))
        }
        Sharing::Replicated { .. } => ("DDP", json!({})),
        Sharing::Sharded(options) => {
            let mut noted = Map::new();
            if !options.reshard_after_forward {
                noted.insert("reshard_after_forward".to_owned(), json!("False"));
            }
            if let Some(dtype) = options.param_dtype {
                noted.insert("param_dtype".to_owned(), json!(dtype.name()));
                noted.insert("reduce_dtype".to_owned(), json!("float32"));
            }
            ("FSDP2", Value::Object(noted))
        }
    };
    let count = ranks.count;
    let notes = json!({
        "distributed": {
            "rank": 0, "world_size": count, "nodes": ranks.nodes(), "backend": "nccl", "groups": [count],
            "communicators": [count],
        },
        "strategies": [{"name": name, "options": options}],
        "sharding": {"groups": groups(ranks, model), "partitioned_state": false},
    });
    match notes {
        Value::Object(notes) => notes,
        _ => Map::new(),
    }
}

/// The parameters that ranks share, group by group.
fn groups(ranks: &Ranks, model: &Model) -> Vec<Value> {
    let sharded = model.sharded();
    if sharded.is_empty() {
        return vec![json!({"kind": "replicated", "ranks": 1, "replicas": ranks.count})];
    }
    let groups = sharded.into_iter().map(|parameters| {
        let extents = parameters.iter().map(|parameter| {
            let dims = parameter.whole.dims();
            let rest: i64 = dims.iter().skip(1).product();
            [dims.first().copied().unwrap_or(1), rest]
        });
        let kept = parameters.iter().flat_map(|p| [p.shard.dtype(), p.whole.dtype()]);
        let sizes: BTreeSet<u64> = kept.map(DType::size).collect();
        json!({
            "kind": "fully_shard",
            "ranks": ranks.count,
            "replicas": 1,
            "parameters": extents.collect::<Vec<_>>(),
            "element_sizes": sizes,
        })
    });
    groups.collect()
}

fn tensors(job: &Job<'_>) -> Vec<Value> {
    let mut tensors = Vec::new();
    for (at, input) in job.graph.inputs.iter().enumerate() {
        let (name, kind) = match &input.role {
            InputRole::Parameter(name) => (name, "parameter"),
            InputRole::Buffer(name) => (name, "buffer"),
            InputRole::Constant(_) | InputRole::Batch => continue,
        };
        let Some(tensor) = job.model.own(at) else { continue };
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

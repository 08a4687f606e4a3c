//! From the bytes of a graph to the verdict, for both formats. A test of `xmem-cli` includes this file too, so that it
//! keeps up with the crates.

use std::sync::Arc;
use xmem::convolutions::FittedModel;
use xmem::{Estimate, Job, ReadOptions};
use xmem_graph::{Graph, Loss, Optimizer, Training, Workload, act, onnx, pt2};

/// Acting a graph ends with an answer or an error, whatever the bytes are, and what a run says of itself is read again.
///
/// # Panics
/// If an answer contradicts itself.
pub(crate) fn graph(data: &[u8]) {
    let mut training = Training::new(Optimizer::parse("adamw").expect("it is known"));
    training.loss = Some(Loss::CrossEntropy);
    for training in [None, Some(training)] {
        let mut workload = Workload::default();
        workload.training = training;
        workload.iterations = 2;
        let Some(graph) = read(data, &workload) else { return };
        if let Ok(run) = act(&graph, &workload) {
            answer(run.trace_text().as_bytes());
        }
    }
}

/// The graph of a file by its first bytes; JSON is that of an archive, which mutations leave readable.
fn read(data: &[u8], workload: &Workload) -> Option<Graph> {
    if pt2::is_archive(data) {
        return Some(pt2::read(data).ok()?.graph);
    }
    if onnx::is_model(data) {
        let mut sizes = workload.clone();
        (sizes.batch, sizes.length) = (Some(2), None);
        let model = onnx::read(data.to_vec()).ok()?;
        return model.graph(&sizes).or_else(|_| model.graph(workload)).ok();
    }
    pt2::read_model(std::str::from_utf8(data).ok()?).ok()
}

fn answer(trace: &[u8]) {
    let device = xmem::find("t4-16g").expect("a known device").clone();
    let estimate = Estimate::builder(device).convolutions(Arc::new(FittedModel)).build();
    let job = Job::from_bytes(trace, &ReadOptions::default()).expect("a trace that was written");
    if let Ok(answer) = estimate.job(&job) {
        let peak = &answer.memory.peak;
        assert!(peak.allocated <= peak.reserved, "{peak:?}");
        assert!(peak.reserved <= peak.device, "{peak:?}");
    }
}

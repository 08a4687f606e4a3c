//! A job of a graph: acted, and estimated.

use crate::error::GraphJobError;
use crate::source::Source;
use crate::trace;
use xmem::{Answer, Estimate, Job};
use xmem_graph::{ActedRun, Workload};

/// A job of a graph.
#[derive(Clone, Copy, Debug)]
pub struct GraphJob<'a> {
    /// The model.
    pub source: &'a Source,
    /// What is done with it.
    pub workload: &'a Workload,
    /// The name of the graph, by which messages call it.
    pub name: &'a str,
}

impl GraphJob<'_> {
    /// What the job does, as a profiler would record it.
    ///
    /// # Errors
    /// If the graph does not say enough, or its batch, length or loss cannot be what they should be.
    pub fn act(&self) -> Result<ActedRun, GraphJobError> {
        self.source.act(self.workload).map_err(GraphJobError::of_acting)
    }

    /// The answer about what the job does.
    ///
    /// # Errors
    /// If the estimate cannot be made of it.
    pub fn answer(&self, run: &ActedRun, estimate: &Estimate) -> Result<Answer, GraphJobError> {
        Ok(estimate.predict(&Self::analyzed(run))?.answer())
    }

    /// What the job does, with blocks, iterations and roles.
    #[must_use]
    pub fn analyzed(run: &ActedRun) -> Job {
        let (trace, diagnostics) = trace::of(run);
        Job::from_trace(trace, diagnostics)
    }

    /// The text of a profiler's trace of what the job does.
    #[must_use]
    pub fn trace_text(run: &ActedRun) -> Vec<u8> {
        trace::text(run)
    }

    /// The name of the answer: that of the graph, and the batch size that was asked for.
    #[must_use]
    pub fn answer_name(&self) -> String {
        match self.workload.batch {
            Some(batch) => format!("{} --batch {batch}", self.name),
            None => self.name.to_owned(),
        }
    }
}

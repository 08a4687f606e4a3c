//! A graph, and the answer for one batch size.

use super::args::EstimateGraphArgs;
use super::error;
use crate::error::CliError;
use crate::exit::Exit;
use crate::output;
use std::num::NonZeroU32;
use xmem::{Answer, Estimate};
use xmem_estimate::{GraphJob, Source};
use xmem_graph::ActedRun;

/// The answer for one batch size.
pub(super) struct Answered {
    pub(super) name: String,
    pub(super) batch: Option<NonZeroU32>,
    pub(super) answer: Answer,
}

/// A graph, and what is asked about it.
pub(super) struct Question<'a> {
    pub(super) source: &'a Source,
    pub(super) args: &'a EstimateGraphArgs,
    pub(super) estimate: &'a Estimate,
    pub(super) name: &'a str,
}

impl Question<'_> {
    /// The answer for a batch size.
    pub(super) fn answer(&self, batch: Option<NonZeroU32>) -> Result<Answered, CliError> {
        self.acted(batch, |job, run| {
            if let Some(file) = &self.args.answer.trace {
                output::write(&GraphJob::trace_text(&run), Some(file))?;
            }
            let answer = job.answer(&run, self.estimate);
            let answer = answer.map_err(|error| error::failure(self.name, error))?;
            Ok(Answered { name: job.answer_name(), batch, answer })
        })
    }

    /// Acts the graph with a batch size, and gives it to `then`.
    pub(super) fn acted<T>(
        &self,
        batch: Option<NonZeroU32>,
        then: impl FnOnce(&GraphJob<'_>, ActedRun) -> Result<T, CliError>,
    ) -> Result<T, CliError> {
        let failed = |error| error::failure(self.name, error);
        let settings = self.args.job.settings(batch);
        let workload = settings.workload(self.source).map_err(failed)?;
        let job = GraphJob { source: self.source, workload: &workload, name: self.name };
        let run = job.act().map_err(failed)?;
        then(&job, run)
    }

    /// Prints or writes a text.
    pub(super) fn print(&self, text: &str) -> Result<(), CliError> {
        output::write(text.as_bytes(), self.args.answer.output.as_deref())
    }

    /// The exit code that was asked for.
    pub(super) fn exit(&self, exit: Exit) -> Exit {
        if self.args.answer.exit_zero { exit.zero_for_verdicts() } else { exit }
    }
}

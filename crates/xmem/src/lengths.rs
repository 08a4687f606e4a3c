//! The answer to a question about lengths that vary.

use crate::error::EstimateError;
use crate::expandable;
use crate::facts::TraceFacts;
use crate::predicted::PredictedJob;
use crate::verdict::Verdict;
use xmem_analyzer::integrity::Condition;
use xmem_devices::Device;
use xmem_orchestrator::Target;
use xmem_predict::{
    AllocatorSettings, AllocatorSetup, Finding, FitSummary, LengthRun, LengthSettings, Locator,
};
use xmem_types::{Diagnostics, Severity, WithheldReason};

/// The memory that a job needs if its batches have lengths, or sizes, that vary.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LengthsAnswer {
    /// The decision whether the job fits in every order that was tried, with the allocator's own options.
    pub verdict: Verdict,
    /// The reasons for which the verdict is withheld; empty where it is not.
    pub withheld: Vec<WithheldReason>,
    /// GPU, PyTorch version and what-ifs of the estimate.
    pub target: Target,
    /// The question.
    pub settings: LengthSettings,
    /// Per recorded iteration, its length, where its shapes show it and nothing else differs.
    pub recorded: Vec<Option<u64>>,
    /// How the sizes of blocks follow from the length.
    pub fit: FitSummary,
    /// With the allocator's own options; then, for PyTorch's caching allocator, with expandable segments the
    /// other way.
    pub runs: Vec<LengthRun>,
    /// The oddities and gaps found by each stage.
    pub findings: Vec<Finding>,
    /// The content of the trace.
    pub trace: TraceFacts,
}

impl PredictedJob<'_> {
    /// The peaks if the job goes on with iterations of other lengths, in random orders: with the allocator's own options, and
    /// with expandable segments the other way.
    ///
    /// # Errors
    /// If the recording does not show how memory depends on the length.
    pub fn lengths(&self, settings: &LengthSettings) -> Result<LengthsAnswer, EstimateError> {
        let own = self.prediction.setup();
        let other = expandable::conf(own, !own.has_expandable_segments()).and_then(|conf| {
            let allocator = AllocatorSettings { conf: Some(conf), ..self.allocator.clone() };
            allocator.resolve_leniently(self.job.environment(), &self.target.device).ok()
        });
        let setups: Vec<AllocatorSetup> = [own.clone()].into_iter().chain(other).collect();
        LengthsAnswer::new(self, settings, &setups)
    }
}

impl LengthsAnswer {
    fn new(
        predicted: &PredictedJob<'_>,
        settings: &LengthSettings,
        setups: &[AllocatorSetup],
    ) -> Result<Self, EstimateError> {
        let PredictedJob { job, prediction, integrity, .. } = predicted;
        let model = prediction.length_model(settings.varying.dimension)?;
        let mut notes = job.diagnostics().clone();
        notes.extend(prediction.diagnostics().clone());
        notes.extend(model.diagnostics().clone());
        report_extrapolation(settings, model.summary(), &mut notes);
        let runs =
            setups.iter().map(|setup| model.run(settings, setup)).collect::<Result<Vec<_>, _>>()?;
        let condition: Condition = job.profile().integrity.condition();
        let mut withheld = notes.withheld_reasons().to_vec();
        withheld.extend(integrity.withholds(condition));
        let fits = runs[0].fitting == runs[0].orders.len();
        let locator = Locator::new(job.profile());
        Ok(Self {
            verdict: Verdict::decide(fits, condition, &withheld),
            withheld,
            target: predicted.target.clone(),
            settings: settings.clone(),
            recorded: model.recorded_lengths().to_vec(),
            fit: model.summary().clone(),
            runs,
            findings: notes.iter().map(|note| locator.finding(note)).collect(),
            trace: job.facts().clone(),
        })
    }

    /// The device of the estimate.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.target.device
    }
}

fn report_extrapolation(settings: &LengthSettings, fit: &FitSummary, notes: &mut Diagnostics) {
    let (Some(&low), Some(&high)) = (fit.lengths.first(), fit.lengths.last()) else { return };
    let asked = settings.exact.as_ref().unwrap_or(&settings.varying.extents);
    if asked.iter().any(|length| !(low..=high).contains(length)) {
        let words = settings.varying.dimension.words();
        notes.report("lengths-extrapolated", Severity::Warning, None, || {
            format!(
                "some sizes asked for lie beyond those recorded ({words} {low} to {high}): record the \
                 shortest and the longest to have them between"
            )
        });
    }
}

//! The figure of an estimator, from what a job does: recorded, or acted from its graph.

use super::graph_source::GraphSizes;
use super::jobs::PlannedJob;
use super::matrix::{Estimator, Figure, ReadingsFrom};
use crate::input;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use xmem::analyzer::ScriptPart;
use xmem::convolutions::ConvolutionSource;
use xmem::predict::{CapacitySearch, Prediction};
use xmem::{Answer, Bytes, Device, Estimate, EstimateBuilder, Job, PredictedJob, ReadOptions};
use xmem_estimate::{GraphJob, JobSettings, Source};
use xmem_eval::evaluation::{EstimatedRun, MemoryByClass};
use xmem_studies::planning::{MemoryClasses, PlanBlocks, PlanScope};

/// An estimate, with what its confirmation needs.
pub(super) struct Estimated {
    /// The estimate, without its time.
    pub(super) run: EstimatedRun,
    /// Whether the job may meet the limit of the device.
    pub(super) meets_limit: bool,
    /// Memory that the reading may not have in it, as it began while the job was set up.
    pub(super) not_read: Bytes,
}

/// A figure and its range.
struct FigureOfJob {
    memory: Bytes,
    range: Option<(Bytes, Bytes)>,
    classes: Option<MemoryByClass>,
}

/// The settings of estimates on a device.
pub(super) fn builder(device: &Device) -> EstimateBuilder {
    Estimate::builder(device.clone()).capacity_search(CapacitySearch::Run)
}

/// The estimate from a graph, with sizes that it leaves open.
pub(super) fn of_graph(
    file: &Path,
    sizes: GraphSizes,
    job: &PlannedJob<'_>,
    estimator: &Estimator,
    classes: bool,
    convolutions: Arc<dyn ConvolutionSource>,
) -> Result<Estimated, String> {
    let name = input::name(file);
    let bytes = fs::read(file).map_err(|error| format!("cannot read `{name}`: {error}"))?;
    let of_graph =
        |error: &dyn std::error::Error| format!("its graph cannot be estimated: {error}");
    let source = Source::read(bytes).map_err(|error| of_graph(&error))?;
    let settings =
        JobSettings { batch: sizes.batch, length: sizes.length, ..JobSettings::default() };
    let workload = settings.workload(&source).map_err(|error| of_graph(&error))?;
    let acted = GraphJob { source: &source, workload: &workload, name: &name };
    let acted = acted.act().map_err(|error| of_graph(&error))?;
    let builder = builder(&job.device).convolutions(convolutions);
    of_job(&GraphJob::analyzed(&acted), builder, job, estimator, classes)
}

/// The estimate from what a job does.
pub(super) fn of_job(
    read: &Job,
    builder: EstimateBuilder,
    job: &PlannedJob<'_>,
    estimator: &Estimator,
    classes: bool,
) -> Result<Estimated, String> {
    let predicted = builder.build().predict(read).map_err(|error| error.to_string())?;
    let answer = predicted.answer();
    let FigureOfJob { memory, range, classes } = figure(&predicted, &answer, estimator, classes)?;
    let taken = predicted.prediction().device().taken;
    let reading = job.reading.as_ref().map(|_| job.kind.readings_from);
    let not_read = match reading {
        Some(ReadingsFrom::Setup) => {
            let parts = answer.memory.coverage.parts.iter();
            let setup = parts.filter(|part| part.part == ScriptPart::Setup);
            setup.map(|part| part.reserved).max().unwrap_or_default()
        }
        _ => Bytes::ZERO,
    };
    let context = match reading {
        Some(ReadingsFrom::Process) if estimator.figure.may_have_context() => taken,
        _ => Bytes::ZERO,
    };
    let out_of_memory = match estimator.figure {
        Figure::Reserved | Figure::Allocated | Figure::Least => !answer.memory.fits,
        _ => memory + taken > job.device.memory,
    };
    let run = EstimatedRun {
        memory: memory + context,
        reserve: memory,
        range: range.map(|(low, high)| (low.saturating_sub(not_read) + context, high + context)),
        out_of_memory,
        second: None,
        runtime: None,
        classes,
    };
    Ok(Estimated { run, meets_limit: answer.need.ample > job.device.memory, not_read })
}

fn figure(
    predicted: &PredictedJob<'_>,
    answer: &Answer,
    estimator: &Estimator,
    classes: bool,
) -> Result<FigureOfJob, String> {
    let memory = &answer.memory;
    let prediction = predicted.prediction();
    let taken = prediction.device().taken;
    let point = |memory| FigureOfJob { memory, range: None, classes: None };
    Ok(match estimator.figure {
        Figure::Reserved => FigureOfJob {
            memory: memory.peak.reserved,
            range: Some((memory.range.reserved.low, memory.range.reserved.high)),
            classes: if classes { Some(classes_of(prediction)?) } else { None },
        },
        Figure::Allocated => FigureOfJob {
            memory: memory.peak.allocated,
            range: Some((memory.range.allocated.low, memory.range.allocated.high)),
            classes: None,
        },
        Figure::Least => point(answer.least_capacity().saturating_sub(taken)),
        Figure::Dnnmem | Figure::DnnmemBfc => {
            let dnnmem = blocks(prediction)?.dnnmem(&estimator.dnnmem()?);
            let dnnmem = dnnmem.expect("blocks of a recorded job have an estimate");
            match estimator.figure {
                Figure::DnnmemBfc => point(dnnmem.with_bfc.saturating_sub(taken)),
                _ => FigureOfJob {
                    memory: dnnmem.with_job_allocator.saturating_sub(taken),
                    range: None,
                    classes: classes.then(|| by_class(dnnmem.classes)),
                },
            }
        }
        Figure::ShapeInference | Figure::ShapeInferenceSaved => {
            let blocks = blocks(prediction)?;
            let shapes = blocks.breakdown.expect("a recorded job has a breakdown").shape_inference;
            point(match estimator.figure {
                Figure::ShapeInferenceSaved => shapes.saved_outputs,
                _ => shapes.all_outputs,
            })
        }
    })
}

/// The peak of a recorded run by class.
pub(super) fn classes_of_recording(
    trace: &Path,
    job: &PlannedJob<'_>,
) -> Result<MemoryByClass, String> {
    let read = Job::from_path(trace, &ReadOptions::default()).map_err(|e| e.to_string())?;
    let predicted = builder(&job.device).build().predict(&read).map_err(|e| e.to_string())?;
    classes_of(predicted.prediction())
}

fn classes_of(prediction: &Prediction<'_>) -> Result<MemoryByClass, String> {
    let breakdown = blocks(prediction)?.breakdown.expect("a recorded job has a breakdown");
    Ok(by_class(breakdown.classes()))
}

/// The blocks of an iteration, by which DNNMem estimates.
fn blocks(prediction: &Prediction<'_>) -> Result<PlanBlocks, String> {
    PlanBlocks::of_prediction(prediction, PlanScope::Iteration).map_err(|error| error.to_string())
}

const fn by_class(classes: MemoryClasses) -> MemoryByClass {
    let MemoryClasses { live, rounding, reservation } = classes;
    MemoryByClass { live, rounding, reservation }
}

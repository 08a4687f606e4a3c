//! What is done with a graph: the notes of `xmem export`, changed by the options.

use super::args::{JobArgs, LossArg};
use super::error::EstimateGraphFailure;
use super::source::Source;
use xmem_graph::{DType, GraphError, Loss, Optimizer, OptimizerClass, Training, Workload};

/// The job with these options; `name` is that of the graph.
pub(super) fn workload(
    source: &Source,
    args: &JobArgs,
    name: &str,
) -> Result<Workload, EstimateGraphFailure> {
    let damaged = |source| EstimateGraphFailure::Graph { graph: name.to_owned(), source };
    let wrong =
        |source: GraphError| EstimateGraphFailure::Options { graph: name.to_owned(), source };
    let noted = source.job().map(Workload::from_job).transpose().map_err(damaged)?;
    let asks = args.training || args.optimizer.is_some() || args.loss.is_some();
    let mut workload = match noted {
        Some(noted) => noted,
        None if asks || args.inference => Workload::default(),
        None => return Err(EstimateGraphFailure::NoJob { graph: name.to_owned() }),
    };
    if args.inference {
        workload.training = None;
    } else if asks && workload.training.is_none() {
        workload.training = Some(Training::new(Optimizer::new(OptimizerClass::AdamW)));
    }
    if let Some(training) = &mut workload.training {
        if let Some(optimizer) = &args.optimizer {
            let optimizer = Optimizer::parse(optimizer).map_err(wrong)?;
            training.optimizers.iter_mut().for_each(|(known, _)| *known = optimizer.clone());
        }
        training.loss = args.loss.map(loss).or(training.loss);
        if let Some(passes) = args.accumulation {
            training.accumulate(passes.get());
        }
        if !args.freeze.is_empty() {
            let mut parameters = source.parameters(args).map_err(damaged)?;
            parameters.retain(|path| args.freeze.iter().any(|prefix| is_below(path, prefix)));
            training.frozen.extend(parameters);
        }
    }
    match args.autocast.as_deref() {
        None => {}
        Some("off" | "none") => workload.autocast = None,
        Some(name) => workload.autocast = Some(dtype(name)?),
    }
    if let Some(name) = &args.dtype {
        workload.dtype = Some(dtype(name)?);
    }
    workload.checkpoints.extend(args.checkpoint.iter().cloned());
    workload.length = args.length.map(|n| n.get().into());
    Ok(workload)
}

/// Returns whether a parameter is that of a module, or below it. Paths may begin with the name of the program's model.
fn is_below(path: &str, prefix: &str) -> bool {
    let starts = |path: &str| {
        path.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    starts(path) || path.split_once('.').is_some_and(|(_, rest)| starts(rest))
}

fn dtype(name: &str) -> Result<DType, EstimateGraphFailure> {
    let known = DType::named(name).filter(|dtype| dtype.is_floating_point());
    known.ok_or_else(|| EstimateGraphFailure::DType { name: name.to_owned() })
}

fn loss(loss: LossArg) -> Loss {
    match loss {
        LossArg::CrossEntropy => Loss::CrossEntropy,
        LossArg::Mse => Loss::Mse,
        LossArg::Bce => Loss::BinaryCrossEntropy,
        LossArg::Sum => Loss::Sum,
    }
}

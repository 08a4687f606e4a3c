//! Runs `xmem export`.

use super::args::ExportArgs;
use crate::commands::Outcome;
use crate::commands::profile::{RecordingProgress, check_command, writable};
use crate::device;
use crate::error::CliError;
use crate::exit::Exit;
use crate::global::{Global, Verbosity};
use crate::shell::quoted;
use crate::terminal::{say, shown};
use xmem::types::printable;
use xmem_recorder::{Engine, ExportedGraph, Purpose, Request, Stacks, Weights};

/// Runs the command.
pub(crate) fn run(args: &ExportArgs, global: &Global) -> Outcome {
    let name = args.device_as.as_deref().unwrap_or(device::DEFAULT);
    check_command(name, &args.command)?;
    let request = request(args, name)?;
    let progress = RecordingProgress::new(args.from_step, global.verbosity());
    let graph = xmem_recorder::export_graph(&request, &mut |news| progress.show(news))?;
    if global.verbosity() != Verbosity::Quiet {
        summary(&graph).iter().for_each(|line| say(line));
    }
    Ok(Exit::Fits)
}

fn request(args: &ExportArgs, device: &str) -> Result<Request, CliError> {
    let mut command = args.command.iter().cloned();
    let command = (command.next().unwrap_or_default(), command.collect());
    Ok(Request {
        purpose: Purpose::ExportGraph,
        steps: args.from_step,
        stacks: Stacks::Omitted,
        engine: Engine::Cpu,
        weights: if args.without_weights { Weights::Absent } else { Weights::Present },
        writable: writable(&args.let_write)?,
        overlay: args.overlay,
        helper: std::env::current_exe().ok(),
        timeout: args.timeout,
        memory: args.max_memory,
        ..Request::new(command, args.output.clone(), xmem::find(device)?.clone())
    })
}

fn summary(graph: &ExportedGraph) -> Vec<String> {
    let facts = &graph.facts;
    let list = |names: &[String]| {
        let names: Vec<_> = names.iter().map(|name| printable(name).into_owned()).collect();
        names.join(", ")
    };
    let file = shown(&graph.path);
    let (seconds, size) = (graph.took.as_secs_f64(), graph.size);
    let mut lines = vec![
        format!("exported the graph of a step in {seconds:.1} s: {file} ({size})"),
        format!(
            "  {} operators, {} parameters; inputs: {}",
            facts.operators,
            facts.parameters,
            list(&facts.inputs)
        ),
    ];
    let free = match facts.dynamic.is_empty() {
        true => "no size may differ from this batch's".to_owned(),
        false => format!("sizes that may differ from this batch's: {}", list(&facts.dynamic)),
    };
    lines.push(match &facts.fixed {
        Some(reason) => format!("  {free} ({})", printable(reason)),
        None => format!("  {free}"),
    });
    lines.push(format!("next: xmem estimate {} --training", quoted(&graph.path.to_string_lossy())));
    lines
}

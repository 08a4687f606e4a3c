//! Runs `xmem simulate`.

use super::args::{SimulateArgs, SimulateFormat};
use super::error::SimulateFailure;
use super::plan;
use crate::commands::Outcome;
use crate::exit::Exit;
use crate::global::{Global, Verbosity};
use crate::input::Kind;
use crate::operations;
use crate::operations::OperationsFailure;
use crate::output::{self, WriteError};
use crate::overwrite::{self, Output};
use crate::{allocator, input, style};
use std::io::Write;
use xmem::predict::{OperationList, Origin, Simulation, SimulationSettings};
use xmem_report::json::{SegmentDetail, SimulateForm, SimulateWriter};
use xmem_report::text::{self, Style};

/// Runs the command.
pub(crate) fn run(args: &SimulateArgs, global: &Global) -> Outcome {
    if let Some(hints) = &args.plan {
        let outputs = Output::given([("--output", args.output.as_deref())]);
        overwrite::refuse(&outputs, [args.operations.as_path(), hints.as_path()])?;
        return plan::run(args, hints, global);
    }
    let settings = SimulationSettings {
        allocator: allocator::settings(&args.allocator)?,
        capacity: args.capacity,
        total: args.total,
    };
    if args.format == SimulateFormat::Text && args.segments.is_some() {
        return Err(SimulateFailure::SegmentsAsText.into());
    }
    settings.check()?;
    let outputs = Output::given([("--output", args.output.as_deref())]);
    overwrite::refuse(&outputs, [args.operations.as_path()])?;
    let name = input::display_name(&args.operations);
    let list = operations::parse(
        &name,
        &input::read(&args.operations, Kind::Operations, args.max_input)?,
    )?;
    let mut simulation =
        settings.start(&list).map_err(|error| operations::allocator_failure(&name, error))?;
    if simulation.setup().conf_from == Origin::Default {
        allocator::hint_at_environment(global.verbosity());
    }
    output::stream(args.output.as_deref(), |out| match args.format {
        SimulateFormat::Text => as_text(&mut simulation, &list, args, global.verbosity(), out),
        SimulateFormat::Json => as_json(&mut simulation, &list, args, SimulateForm::Document, out),
        SimulateFormat::Jsonl => as_json(&mut simulation, &list, args, SimulateForm::Lines, out),
    })?;
    Ok(Exit::Fits)
}

fn as_json(
    simulation: &mut Simulation,
    list: &OperationList,
    args: &SimulateArgs,
    form: SimulateForm,
    out: &mut dyn Write,
) -> Result<(), WriteError> {
    // The segments after every operation grow with the square of the list.
    let segments = args.segments.unwrap_or(SegmentDetail::End);
    let name = input::name(&args.operations);
    let mut writer = SimulateWriter::new(out, form, segments, list.operations.len(), &name);
    writer.begin(simulation)?;
    for operation in &list.operations {
        let step = simulation.step(operation).map_err(|error| {
            OperationsFailure::step(&input::display_name(&args.operations), error)
        })?;
        writer.step(&step, simulation)?;
    }
    Ok(writer.end(simulation)?)
}

fn as_text(
    simulation: &mut Simulation,
    list: &OperationList,
    args: &SimulateArgs,
    verbosity: Verbosity,
    out: &mut dyn Write,
) -> Result<(), WriteError> {
    let style: Style = style::of_output(args.output.as_deref());
    let name = input::name(&args.operations);
    let each = matches!(verbosity, Verbosity::Stages | Verbosity::Everything);
    if each {
        out.write_all(text::step_heading(&style).as_bytes())?;
    }
    for operation in &list.operations {
        let step = simulation.step(operation).map_err(|error| {
            OperationsFailure::step(&input::display_name(&args.operations), error)
        })?;
        simulation.clear_events();
        if each {
            out.write_all(text::step(operation, &step, &style).as_bytes())?;
        }
    }
    if each {
        out.write_all(b"\n")?;
    }
    let page = match verbosity {
        Verbosity::Quiet => text::simulation_brief(&name, simulation),
        _ => text::simulation(&name, simulation, &style),
    };
    Ok(out.write_all(page.as_bytes())?)
}

//! `xmem simulate --plan`: a list, or a recording, that follows a plan which is kept in a file.

use super::args::{SimulateArgs, SimulateFormat};
use super::error::SimulateFailure;
use crate::commands::Outcome;
use crate::commands::plan::{self, FollowFormat, FollowOutput, PlanFailure, Source};
use crate::cudnn::CudnnArgs;
use crate::device::PlanDeviceArgs;
use crate::estimate::EstimateArgs;
use crate::global::Global;
use crate::input::{self, Kind};
use crate::reading::ReadingArgs;
use crate::what_if::WhatIfArgs;
use std::path::Path;
use xmem_report::json::read_hints;
use xmem_studies::planner::Limits;

/// Lets the input of `xmem simulate` follow the plan of a file.
pub(super) fn run(args: &SimulateArgs, file: &Path, global: &Global) -> Outcome {
    let format = match args.format {
        SimulateFormat::Text => FollowFormat::Text,
        SimulateFormat::Json => FollowFormat::Json,
        SimulateFormat::Jsonl => return Err(SimulateFailure::PlanAsLines.into()),
    };
    let name = input::name(file);
    let text = input::read(file, Kind::Operations, args.max_input)?;
    let (plan, scope) = read_hints(&text)
        .map_err(|source| PlanFailure::Hints { input: input::display_name(file), source })?;
    let device = PlanDeviceArgs::default();
    let estimate = EstimateArgs {
        what_if: WhatIfArgs::default(),
        cudnn: CudnnArgs::default(),
        allocator: args.allocator.clone(),
    };
    let source = Source {
        path: &args.operations,
        device: &device,
        estimate: &estimate,
        reading: &ReadingArgs { max_input: args.max_input, threads: None },
    };
    let answer = FollowOutput { format, output: args.output.as_deref(), global };
    plan::follow(&plan, &name, &source, scope, &Limits::default(), &answer)
}

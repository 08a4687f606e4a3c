//! Human-readable output.

pub use crate::devices::text::{devices, slices};
pub use crate::eval::markdown::evaluation_in_markdown;
pub use crate::eval::tables::{
    EvalTable, subject as evaluation_subject, tables as evaluation_tables,
};
pub use crate::eval::text::{evaluation, evaluation_brief};
pub use crate::fit::text::{fit, fit_brief};
pub use crate::inspect::text::inspect;
pub use crate::law::text::law;
pub use crate::lengths::text::{lengths, lengths_brief};
pub use crate::offload::text::{offload, offload_brief};
pub use crate::plan::text::{plan, plan_brief};
pub use crate::plan_run::text::{plan_run, plan_run_brief};
pub use crate::ranks::text::{ranks, several_jobs};
pub use crate::replay::rules::rules;
pub use crate::replay::table::{Row, table};
pub use crate::replay::text::{Extent, answer, brief};
pub use crate::simulate::text::{operation, simulation, simulation_brief, step, step_heading};
pub use crate::snapshot_info::text::snapshot_info;
pub use crate::snapshot_replay::text::{snapshot_replay, snapshot_replay_brief};
pub use crate::style::{Color, Style};
pub use crate::tune::text::{tune, tune_brief};
pub use crate::validate::text::{validation, validation_brief};
pub use crate::variants::text::variants;

//! Human-readable output.

mod answer;
mod answers;
mod chart;
mod devices;
mod fields;
mod findings;
mod inspect;
mod lengths;
mod places;
mod plan;
mod ranks;
mod recorded;
mod rules;
mod setup;
mod simulate;
mod site;
mod snapshot_info;
mod snapshot_replay;
mod style;
mod table;
mod validation;

pub use answer::{answer, brief};
pub use answers::{Row, table};
pub use devices::devices;
pub use inspect::inspect;
pub use lengths::{lengths, lengths_brief};
pub use plan::{plan, plan_brief};
pub use ranks::{ranks, several_jobs};
pub use rules::rules;
pub use simulate::{operation, simulation, simulation_brief, step, step_heading};
pub use snapshot_info::snapshot_info;
pub use snapshot_replay::{snapshot_replay, snapshot_replay_brief};
pub use style::{Color, Style};
pub(crate) use style::{paint_decision, shortened};
pub use validation::{validation, validation_brief};

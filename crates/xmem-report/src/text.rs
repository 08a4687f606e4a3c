//! The forms for people.

mod answer;
mod chart;
mod devices;
mod findings;
mod inspect;
mod labelled;
mod look;
mod places;
mod rules;
mod setup;
mod several;
mod simulate;
mod site;
mod snapshot_info;
mod snapshot_replay;
mod tabular;
mod validation;

pub use answer::{answer, brief};
pub use devices::devices;
pub use inspect::inspect;
pub use look::{Colour, Look};
pub use rules::rules;
pub use several::{Row, table};
pub use simulate::{operation, simulation, simulation_in_short, step, step_heading};
pub use snapshot_info::snapshot_info;
pub use snapshot_replay::{snapshot_replay, snapshot_replay_brief};
pub use validation::{validation, validation_brief};

//! The forms for people.

mod answer;
mod chart;
mod devices;
mod findings;
mod inspect;
mod look;
mod places;
mod rules;
mod setup;
mod several;
mod simulate;
mod tabular;

pub use answer::{answer, brief};
pub use devices::devices;
pub use inspect::inspect;
pub use look::{Colour, Look};
pub use rules::rules;
pub use several::table;
pub use simulate::{operation, simulation, simulation_in_short, step, step_heading};

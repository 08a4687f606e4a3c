//! Tools of the tests: hand-made traces, and schedules as text.

pub(crate) mod arguments;
pub(crate) mod case;
pub(crate) mod job;
pub(crate) mod listing;
pub(crate) mod measured;
pub(crate) mod script;

mod golden;
mod growth;
mod properties;
mod recordings;

pub(crate) use case::{Case, check, lowered, target};
pub(crate) use script::Script;

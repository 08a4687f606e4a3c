//! The tasks by groups: their arguments, and how each is called.

mod attack;
mod benches;
mod checks;
mod clusters;
mod judges;
mod program;
mod recordings;
mod release;
mod report;
mod values;

pub(crate) use benches::Benches;
pub(crate) use checks::Checks;
pub(crate) use clusters::Clusters;
pub(crate) use judges::Judges;
pub(crate) use recordings::Recordings;
pub(crate) use release::Release;
pub(crate) use report::Report;

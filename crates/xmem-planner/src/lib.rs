//! Static memory plans: an offset for each block of a list whose lifetimes are known, so that blocks that are
//! live at the same time do not overlap, and the memory that all of them need together.
//!
//! A [`BlockList`] and a [`Planner`] go in, a [`Planned`] comes out, after one independent check
//! ([`check`]) that every plan passes, also in release builds. The crate knows blocks as sizes and intervals: no
//! trace, no operator's name, no allocator and no file.
//!
//! ```
//! use xmem_planner::{PlannedBlock, BlockList, Limits, Planner, plan};
//! use xmem_types::Bytes;
//!
//! let block = |size, start, end| PlannedBlock { size: Bytes(size), start, end, operator: None };
//! let list = BlockList::new(vec![block(4, 0, 2), block(8, 1, 3), block(4, 2, 4)])?;
//! let planned = plan(&list, Planner::Bump, &Limits::default())?;
//! assert_eq!(list.lower_bound(), Bytes(12));
//! assert_eq!(planned.plan.peak(), Bytes(16));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod budget;
mod check;
mod csv;
mod follow;
mod fragmentation;
mod instance;
mod interrupt;
mod list;
mod plan;
mod planner;
mod planners;
mod refused;
mod run;

pub use budget::Limits;
pub use check::{Violation, check};
pub use csv::{CsvBlocks, CsvError, read_csv};
pub use follow::{Follower, REACH, SURE};
pub use fragmentation::{FreePieces, Moment, moments};
pub use interrupt::{Interrupted, interrupt};
pub use list::{BlockList, ListError, PlannedBlock};
pub use plan::{Plan, Planned, Proof};
pub use planner::{ParsePlannerError, Planner};
pub use planners::{Fit, GreedyOrder};
pub use refused::Refused;
pub use run::plan;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}

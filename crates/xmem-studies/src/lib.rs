//! What is asked of one prediction or of several: a static plan of its blocks and what allocators make of them
//! ([`planning`]), offloading ([`offloading`]), the difference of two runs ([`difference`]), the ranks of a distributed job
//! ([`ranks`]), variants of one ([`variants`]), what makes a job fit ([`fit`]), and settings
//! with which it needs less ([`tune`](mod@tune)).
//!
//! Each study takes predictions or answers of the facade and gives a value. Left to others: reading recordings and making
//! predictions (`xmem`), the algorithms (`xmem-planner`, `xmem-offload`), and showing results (`xmem-report`).
#![forbid(unsafe_code)]

mod block_size;
pub mod difference;
pub mod fit;
pub mod law;
pub mod offloading;
pub mod planning;
pub mod ranks;
pub mod tune;
pub mod variants;

// The crates below, of whose types the results consist.
pub use xmem_offload as offload;
pub use xmem_planner as planner;
pub use xmem_timing as timing;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}

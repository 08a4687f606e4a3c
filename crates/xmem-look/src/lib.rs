//! A predicted run in a terminal: memory over time, what is allocated at a moment by name, and the blocks.
//!
//! [`Browser`] is the state, which keys change; [`draw`] shows it; [`browse`] does both in a terminal. Left to others:
//! where a run comes from (the façade `xmem`), and the arguments (`xmem-cli`).
#![forbid(unsafe_code)]

mod browser;
#[cfg(unix)]
mod hang_up;
#[cfg(not(unix))]
#[path = "hang_up_elsewhere.rs"]
mod hang_up;
mod key;
mod layout;
mod session;
mod view;
mod wait;

pub use browser::{Browser, Subject};
pub use key::{Key, KeyOutcome};
pub use session::{Ended, browse};
pub use view::{Palette, draw};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}

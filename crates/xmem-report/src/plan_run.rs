//! Runs that follow a plan: text and `xmem.plan-run/2`.

pub(crate) mod json;
pub(crate) mod text;

//! The simulation against what must hold for every graph, and against figures of the papers.

mod budgets;
mod groups;
mod host_optimizer;
mod networks;
mod properties;
mod residual_block;
mod windows;
mod workspaces;

//! The simulation against what must hold for every graph, and against figures of the papers.

mod groups;
mod networks;
mod properties;
mod residual_block;
mod windows;
mod workspaces;

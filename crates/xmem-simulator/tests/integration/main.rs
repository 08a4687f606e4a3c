//! Allocators, by operations that are written out. One program, so that it is linked once.

mod alloc_conf;
mod calls;
mod fallbacks;
mod seed;
mod wall;

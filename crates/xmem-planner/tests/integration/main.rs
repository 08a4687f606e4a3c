//! Planners: quality, ties, limits and exactness, on lists that are known. One program, so that it is linked once.

mod exact;
mod limits;
mod lists;
mod mip;
mod properties;
mod quality;
mod ties;

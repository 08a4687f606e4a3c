//! The facade: estimates of recorded jobs. One program, so that it is linked once.

mod accuracy;
mod averages;
mod cublas;
mod extreme_numbers;
mod gpu_recordings;
mod integrity;
mod late;
mod lengths;
mod min_capacity;
mod prediction;
mod public_api;
mod sharding;
mod snapshot;
mod timeline;
mod verdict;
mod what_ifs;
mod whole_runs;

//! The command, run as a process: results, exit codes, streams and files.
#![expect(clippy::disallowed_methods, reason = "tests write the files that the command reads")]

mod allocator;
mod bounds;
mod check;
mod collectives;
#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod cpu_plan;
#[cfg(unix)]
mod cudnn;
#[cfg(unix)]
mod cudnn_trust;
mod dataset;
mod diff;
mod doubts;
mod errors;
mod estimate;
mod estimate_ranks;
mod eval;
mod eval_graphs;
mod explain;
#[cfg(unix)]
mod export;
mod fit;
mod gpu;
mod guide;
mod hostile;
#[cfg(unix)]
mod hostile_scripts;
mod integrity;
mod job;
mod job_variants;
mod kubernetes;
#[cfg(unix)]
mod law;
mod left_behind;
mod lengths;
mod lines;
#[cfg(unix)]
mod lone_ranks;
#[cfg(unix)]
mod look;
#[cfg(unix)]
mod messages;
mod notes;
mod offload;
mod one_verdict;
mod options;
mod other;
mod output;
#[cfg(target_os = "linux")]
mod overlay;
mod overwrite;
#[cfg(unix)]
mod pages;
mod pickle;
mod picture;
mod plan;
#[cfg(unix)]
mod profile;
mod ranks;
mod recorded;
mod recorded_sequences;
mod recording;
mod replay;
mod report;
#[path = "../../../xmem-report/tests/report/schema_check.rs"]
mod schema_check;
#[cfg(unix)]
mod secrets;
mod shell;
mod short_help;
mod simulate;
mod skypilot;
mod snapshot;
#[cfg(unix)]
mod stopped;
mod traces;
#[cfg(unix)]
mod transcripts;
mod tried;
#[cfg(unix)]
mod users;
mod validate;
mod variants;

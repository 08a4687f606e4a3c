//! What every format says about recorded runs agrees with the answer.
#![allow(clippy::disallowed_methods, reason = "a test reads the recorded traces")]

mod parquet;
mod perfetto;
mod protobuf;
mod run;
mod speedscope;
mod svg;

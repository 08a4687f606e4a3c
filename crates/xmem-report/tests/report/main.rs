//! The report of a hand-made answer: text by snapshot, JSON against its schema.

mod lines;
mod recording;
mod sample;
mod schema;
mod schema_check;
mod text;

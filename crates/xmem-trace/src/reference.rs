//! The plain reader: whole document through serde_json, event by event. Slow and simple; the
//! oracle of the chunked reader's differential tests.

//! Questions to the process that asks cuDNN, from arbitrary bytes: what is read is written the same.

#![no_main]

#[path = "../../crates/xmem-cudnn/src/query.rs"]
#[allow(dead_code, reason = "the crate uses more of it")]
mod query;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    for line in text.lines() {
        if let Some(query) = query::Query::parse(line) {
            assert_eq!(query::Query::parse(&query.to_line()), Some(query));
        }
    }
});

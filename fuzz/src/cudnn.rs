//! What the fuzz target of the lines that the process with cuDNN reads checks.

#[path = "../../crates/xmem-cudnn/src/query.rs"]
#[allow(dead_code, unreachable_pub, reason = "the crate uses more of it")]
mod query;

/// What is read is written the same.
pub(crate) fn questions(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    for line in text.lines() {
        if let Some(query) = query::Query::parse(line) {
            assert_eq!(query::Query::parse(&query.to_line()), Some(query));
        }
    }
}

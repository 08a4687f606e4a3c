//! Files of JSON that the hook leaves for a trace, each as the value of a top-level key.

use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs::File;
use std::io::Read;

/// Bytes of the longest file that is read.
const MAX_SIZE: u64 = 256 << 20;

/// What a file has; none if it has another form.
pub(crate) fn read<T: DeserializeOwned>(file: File) -> Option<T> {
    let mut text = String::new();
    file.take(MAX_SIZE).read_to_string(&mut text).ok()?;
    serde_json::from_str(&text).ok()
}

/// A key with its value, to be written behind the brace with which a trace begins.
pub(crate) fn metadata(key: &str, value: &impl Serialize) -> Option<String> {
    Some(format!("\n\"{key}\": {},", serde_json::to_string(value).ok()?))
}

/// A file with this text.
#[cfg(test)]
pub(crate) fn with_text(text: &str) -> File {
    use std::io::{Seek, Write};
    let mut file = tempfile::tempfile().expect("a file");
    file.write_all(text.as_bytes()).expect("written");
    file.rewind().expect("rewound");
    file
}

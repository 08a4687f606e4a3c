//! The annotations in which a manifest carries what was predicted about its job.

use serde_json::Value;
use xmem::Bytes;

/// What was predicted about a job, as annotations carry it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Annotations {
    /// Device memory that the job needs on each of its GPUs, without the CUDA context.
    pub peak: Option<Bytes>,
    /// The CUDA context of the device for which it was predicted.
    pub context: Option<Bytes>,
    /// The SHA-256 of the trace, in hexadecimal digits.
    pub trace: Option<String>,
}

/// An annotation whose value is not one of its key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("annotation {key}: {reason}")]
pub struct ParseAnnotationError {
    /// The key.
    pub key: &'static str,
    /// What is wrong with the value.
    pub reason: &'static str,
}

impl Annotations {
    /// The key of [`Self::peak`].
    pub const PEAK: &str = "xmem.dev/peak-bytes";
    /// The key of [`Self::context`].
    pub const CONTEXT: &str = "xmem.dev/context-bytes";
    /// The key of [`Self::trace`].
    pub const TRACE: &str = "xmem.dev/trace-sha256";

    /// Reads the annotations of an object's metadata.
    ///
    /// # Errors
    /// If a value is not one of its key.
    pub fn of_metadata(metadata: Option<&Value>) -> Result<Self, ParseAnnotationError> {
        let value = |key| metadata?.get("annotations")?.get(key);
        let read = |key: &'static str| match value(key) {
            None => Ok(None),
            Some(value) => bytes(key, value).map(Some),
        };
        let trace = match value(Self::TRACE) {
            None => None,
            Some(value) => Some(digest(value)?),
        };
        Ok(Self { peak: read(Self::PEAK)?, context: read(Self::CONTEXT)?, trace })
    }

    /// These, and of `other` what they lack.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            peak: self.peak.or(other.peak),
            context: self.context.or(other.context),
            trace: self.trace.or(other.trace),
        }
    }

    /// Keys and values, in the order in which they are written.
    #[must_use]
    pub fn entries(&self) -> Vec<(&'static str, String)> {
        let bytes = |size: Option<Bytes>| size.map(|size| size.get().to_string());
        let entries = [
            (Self::PEAK, bytes(self.peak)),
            (Self::CONTEXT, bytes(self.context)),
            (Self::TRACE, self.trace.clone()),
        ];
        entries.into_iter().filter_map(|(key, value)| Some((key, value?))).collect()
    }
}

/// Values of annotations are text (Kubernetes, ObjectMeta); digits without quotes are accepted, as YAML
/// makes a number of them.
fn bytes(key: &'static str, value: &Value) -> Result<Bytes, ParseAnnotationError> {
    let error = |reason| ParseAnnotationError { key, reason };
    let number = match value {
        Value::String(text) if text.bytes().all(|byte| byte.is_ascii_digit()) => text.parse().ok(),
        Value::String(_) => return Err(error("not a number of bytes in decimal digits")),
        other => other.as_u64(),
    };
    match number {
        // No device has that much, and sums stay exact.
        Some(number) if number < 1 << 50 => Ok(Bytes(number)),
        Some(_) => Err(error("larger than any device")),
        None => Err(error("not a number of bytes in decimal digits")),
    }
}

fn digest(value: &Value) -> Result<String, ParseAnnotationError> {
    let hex = |text: &&str| text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let found = value.as_str().filter(hex).map(str::to_ascii_lowercase);
    let reason = "not 64 hexadecimal digits";
    found.ok_or(ParseAnnotationError { key: Annotations::TRACE, reason })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn annotations_are_digits() {
        let read = |value: Value| {
            let metadata = json!({"annotations": {"xmem.dev/peak-bytes": value}});
            Annotations::of_metadata(Some(&metadata)).map(|found| found.peak)
        };
        for (value, peak) in [
            (json!("1024"), 1024),
            (json!(1024), 1024),
            (json!("0"), 0),
            (json!("1125899906842623"), (1 << 50) - 1),
        ] {
            assert_eq!(read(value), Ok(Some(Bytes(peak))));
        }
        for value in [
            json!("1125899906842624"),
            json!("99999999999999999999999"),
            json!(""),
            json!("-1"),
            json!("+1"),
            json!("10GiB"),
            json!(1.5),
            json!(-1),
            json!(null),
            json!(["1"]),
        ] {
            assert!(read(value.clone()).is_err(), "{value}");
        }
    }

    #[test]
    fn what_the_template_lacks_is_taken_from_the_object() {
        let of = |value| Annotations::of_metadata(Some(&value)).expect("annotations");
        let digest = "A".repeat(64);
        let template = of(json!({"annotations": {"xmem.dev/peak-bytes": "2"}}));
        let object = of(json!({"annotations": {
            "xmem.dev/peak-bytes": "1", "xmem.dev/context-bytes": "3", "xmem.dev/trace-sha256": digest,
        }}));
        let both = template.or(object);
        let entries = both.entries();
        let texts: Vec<String> =
            entries.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let trace = format!("xmem.dev/trace-sha256={}", "a".repeat(64));
        assert_eq!(texts, ["xmem.dev/peak-bytes=2", "xmem.dev/context-bytes=3", trace.as_str()]);
        let wrong = json!({"annotations": {"xmem.dev/trace-sha256": "a/b"}});
        assert!(Annotations::of_metadata(Some(&wrong)).is_err());
        assert_eq!(Annotations::of_metadata(None), Ok(Annotations::default()));
    }
}

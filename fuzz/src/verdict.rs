//! From the bytes of a file to the verdict, and traces with extreme numbers in them. An ordinary test of
//! `xmem` includes this file too, so that it keeps up with the crate.

use std::num::NonZeroUsize;
use std::sync::Arc;
use xmem::convolutions::FittedModel;
use xmem::orchestrator::{OptimizerImpl, ZeroGradPlace};
use xmem::{Bytes, Device, Estimate, Job, ReadOptions, TorchVersion};

/// Devices of two architectures, a small and a large one.
const DEVICES: [&str; 2] = ["t4-16g", "h100-80g"];

/// Numbers around the limits of the types that sizes, shapes and addresses are kept in, as they stand in
/// a trace.
pub(crate) const NUMBERS: [&str; 14] = [
    "0",
    "1",
    "-1",
    "65537",
    "2147483647",
    "2147483648",
    "4294967296",
    "1099511627776",
    "4611686018427387904",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551615",
    "-9223372036854775808",
    "99999999999999999999",
];

/// Estimating ends with an answer or an error, whatever the bytes are, and the answer agrees with itself.
///
/// # Panics
/// If an answer contradicts itself.
pub(crate) fn verdict(data: &[u8]) {
    let options = ReadOptions {
        inflate_limit: Bytes::mib(8),
        threads: NonZeroUsize::new(1),
        ..ReadOptions::default()
    };
    let Ok(job) = Job::from_bytes(data, &options) else { return };
    for name in DEVICES {
        let device = xmem::find(name).expect("a known device").clone();
        for estimate in [plain(device.clone()), other(device)] {
            if let Ok(answer) = estimate.job(&job) {
                let peak = &answer.memory.peak;
                assert!(peak.allocated <= peak.reserved, "{:?}", answer.memory.peak);
                assert!(peak.reserved <= peak.device, "{:?}", answer.memory.peak);
                for bounds in [&answer.memory.range.allocated, &answer.memory.range.reserved] {
                    assert!(bounds.low <= bounds.high, "{:?}", answer.memory.range);
                }
            }
        }
    }
}

fn plain(device: Device) -> Estimate {
    Estimate::builder(device).convolutions(Arc::new(FittedModel)).build()
}

/// With every setting that other rules hang on.
fn other(device: Device) -> Estimate {
    Estimate::builder(device)
        .convolutions(Arc::new(FittedModel))
        .torch(TorchVersion::new(2, 6))
        .optimizer(OptimizerImpl::ForLoop)
        .zero_grad(ZeroGradPlace::BeforeBackward)
        .build()
}

/// The places of whole numbers in a text, outside of words: each with its first and the byte behind it.
pub(crate) fn numbers(text: &[u8]) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let length = text[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let sign = usize::from(length > 0 && at > 0 && text[at - 1] == b'-');
        let before = at.checked_sub(sign + 1).map_or(b' ', |before| text[before]);
        if length > 0 && matches!(before, b'[' | b',' | b':' | b' ') {
            found.push((at - sign, at + length));
        }
        at += length.max(1);
    }
    found
}

/// The text with another number at each of the places, which ascend.
pub(crate) fn with_number(text: &[u8], places: &[(usize, usize)], number: &str) -> Vec<u8> {
    let mut changed = Vec::with_capacity(text.len() + places.len() * number.len());
    let mut end = 0;
    for &(from, to) in places {
        changed.extend_from_slice(&text[end..from]);
        changed.extend_from_slice(number.as_bytes());
        end = to;
    }
    changed.extend_from_slice(&text[end..]);
    changed
}

//! The allocator that was simulated, in words.

use super::look::{Look, wrap};
use xmem::{AddressOrder, AllocatorKind, AllocatorSetup, Origin};

/// `allocator: PyTorch 2.6, expandable_segments:True (from the trace)`, indented by two and broken
/// where the screen ends; `input` is what said so.
pub(super) fn lines(setup: &AllocatorSetup, input: &str, look: &Look) -> String {
    told(&parts(setup, input), look)
}

/// The same about some parts.
pub(super) fn told(parts: &[String], look: &Look) -> String {
    let text = format!("allocator: {}", parts.join(", "));
    let lines = wrap(&text, look.columns().saturating_sub(2));
    lines.iter().map(|line| format!("  {line}\n")).collect()
}

/// What there is to say about it: `PyTorch 2.6`, `expandable_segments:True (from the trace)`.
pub(super) fn parts(setup: &AllocatorSetup, input: &str) -> Vec<String> {
    let from = |origin| match origin {
        Origin::Input => format!(" (from the {input})"),
        Origin::Given | Origin::Default => String::new(),
    };
    let torch = format!("PyTorch {}{}", setup.release, from(setup.release_from));
    let mut parts = vec![match setup.kind {
        AllocatorKind::Native => torch,
        AllocatorKind::Uncached => format!("{torch} without caching"),
        AllocatorKind::MallocAsync => format!("{torch} on cudaMallocAsync, approximately"),
        AllocatorKind::Bfc => "TensorFlow's BFC allocator".to_owned(),
        AllocatorKind::BfcGrowth => "TensorFlow's BFC allocator with allow_growth".to_owned(),
    }];
    if !setup.conf.is_empty() && !setup.kind.is_tensorflow() {
        parts.push(format!("{}{}", setup.conf, from(setup.conf_from)));
    }
    if let Some(fraction) = setup.memory_fraction {
        let percent = (fraction * 10_000.0).round() / 100.0;
        parts.push(format!("{percent} % of the device's memory"));
    }
    if setup.address_order != AddressOrder::Driver {
        parts.push(address_words(setup.address_order).to_owned());
    }
    parts
}

/// Whether anything differs from PyTorch's defaults in the release that is assumed.
pub(super) fn is_usual(setup: &AllocatorSetup) -> bool {
    setup.kind == AllocatorKind::Native
        && setup.release_from == Origin::Default
        && setup.conf.is_empty()
        && setup.memory_fraction.is_none()
        && setup.address_order == AddressOrder::Driver
}

/// An order of addresses in words.
pub(super) fn address_words(order: AddressOrder) -> &'static str {
    match order {
        AddressOrder::Driver => "addresses in the driver's order",
        AddressOrder::Ascending => "addresses ascending",
        AddressOrder::Descending => "addresses descending",
        AddressOrder::Recorded => "addresses as recorded",
    }
}

//! The simulated allocator as text.

pub(crate) mod json;

use crate::style::{Style, wrap};
use xmem::predict::{AllocatorKind, AllocatorSetup, Origin};
use xmem::simulator::AddressOrder;

/// `allocator: PyTorch 2.6, expandable_segments:True (from the trace)`, indented by two and
/// wrapped; `input` is the kind of file that settings come from.
pub(crate) fn lines(setup: &AllocatorSetup, input: &str, style: &Style) -> String {
    allocator_line(&parts(setup, input), style)
}

/// The same for a part of the description.
pub(crate) fn allocator_line(parts: &[String], style: &Style) -> String {
    let text = format!("allocator: {}", parts.join(", "));
    let lines = wrap(&text, style.columns().saturating_sub(2));
    lines.iter().map(|line| format!("  {line}\n")).collect()
}

/// The parts of the description: `PyTorch 2.6`, `expandable_segments:True (from the trace)`.
pub(crate) fn parts(setup: &AllocatorSetup, input: &str) -> Vec<String> {
    let from = |origin| match origin {
        Origin::Input => format!(" (from the {input})"),
        Origin::Given | Origin::Default => String::new(),
    };
    let torch = format!("PyTorch {}{}", setup.release, from(setup.release_from));
    let mut parts = vec![match setup.kind {
        AllocatorKind::Native => torch,
        AllocatorKind::Uncached => format!("{torch} without caching"),
        AllocatorKind::MallocAsync => format!("{torch} with cudaMallocAsync (approximate)"),
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

/// Returns whether the allocator is PyTorch's with default options, in the default release.
pub(crate) fn is_default(setup: &AllocatorSetup) -> bool {
    setup.kind == AllocatorKind::Native
        && setup.release_from == Origin::Default
        && setup.conf.is_empty()
        && setup.memory_fraction.is_none()
        && setup.address_order == AddressOrder::Driver
}

/// An address order as text.
pub(crate) fn address_words(order: AddressOrder) -> &'static str {
    match order {
        AddressOrder::Driver => "driver address order",
        AddressOrder::Ascending => "ascending addresses",
        AddressOrder::Descending => "descending addresses",
        AddressOrder::Recorded => "recorded addresses",
    }
}

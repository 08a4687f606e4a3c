//! The simulated allocator, as text and as part of other documents.

use crate::style::{Style, wrap};
use serde::Serialize;
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

/// The simulated allocator, and the origin of its settings.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct SetupDto<'a> {
    /// The allocator: PyTorch's caching allocator, PyTorch without caching, PyTorch with CUDA's pools, or TensorFlow's,
    /// with and without allow_growth.
    #[cfg_attr(test, schemars(with = "crate::schemas::NameOf<xmem::predict::AllocatorKind>"))]
    name: &'static str,
    /// true if the allocator's implementation is not public, so that the figures are approximate.
    approximate: bool,
    /// The PyTorch release of the allocator, major and minor.
    torch: String,
    /// The origin of the release: the command line, the input, or the default.
    #[cfg_attr(test, schemars(extend("enum" = ["command_line", "input", "default"])))]
    torch_from: &'static str,
    /// Options in the syntax of PYTORCH_CUDA_ALLOC_CONF; empty if there are none.
    conf: &'a str,
    /// The origin of the options.
    #[cfg_attr(test, schemars(extend("enum" = ["command_line", "input", "default"])))]
    conf_from: &'static str,
    /// The fraction of the device's memory that the process may use, from 0 to 1; null without a limit.
    memory_fraction: Option<f64>,
    /// The order of the addresses of new segments.
    #[cfg_attr(test, schemars(extend("enum" = ["driver", "ascending", "descending", "recorded"])))]
    address_order: &'static str,
}

impl<'a> From<&'a AllocatorSetup> for SetupDto<'a> {
    fn from(setup: &'a AllocatorSetup) -> Self {
        Self {
            name: setup.kind.name(),
            approximate: setup.kind.is_approximate(),
            torch: setup.release.to_string(),
            torch_from: origin(setup.release_from),
            conf: &setup.conf,
            conf_from: origin(setup.conf_from),
            memory_fraction: setup.memory_fraction,
            address_order: setup.address_order.name(),
        }
    }
}

fn origin(origin: Origin) -> &'static str {
    match origin {
        Origin::Given => "command_line",
        Origin::Input => "input",
        Origin::Default => "default",
    }
}

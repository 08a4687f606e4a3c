//! The site file as a table of Lua: what the controller's plug-in reads, which runs no program.

use std::fmt::Write as _;
use xmem::Bytes;
use xmem_gate::{Margin, Policy, Rules, Site};

/// The table as a chunk that returns it. Memory is in MiB, rounded down; shares are in thousandths.
pub(super) fn site(site: &Site) -> String {
    let mut page = String::from(
        "-- Written by `xmem config --format lua` from the site file. Do not edit.\nreturn {\n",
    );
    page += &rules("  ", &site.rules, site);
    page += "  gpus = {\n";
    for gpu in &site.gpus {
        for kind in &gpu.gres {
            let _ = writeln!(
                page,
                "    {{ gres = {}, device = {}, memory_mib = {}, context_mib = {} }},",
                text(kind),
                text(&gpu.device.name),
                mib(gpu.device.memory),
                gpu.device.context.get().div_ceil(1 << 20),
            );
        }
    }
    page += "  },\n  partitions = {\n";
    for (name, own) in &site.partitions {
        let _ = writeln!(page, "    [{}] = {{", text(name));
        page += &rules("      ", own, site);
        page += "    },\n";
    }
    page += "  },\n";
    if let Some(help) = &site.help {
        let _ = writeln!(page, "  help = {},", text(help));
    }
    page + "}\n"
}

/// What is set; the plug-in takes the rest from the site.
fn rules(indent: &str, rules: &Rules, site: &Site) -> String {
    let mut lines = String::new();
    let mut line = |key: &str, value: String| {
        let _ = writeln!(lines, "{indent}{key} = {value},");
    };
    if let Some(policy) = rules.policy {
        line("policy", text(Policy::name(policy)));
    }
    match rules.margin {
        Some(Margin::PerMille(share)) => line("margin_permille", share.to_string()),
        Some(Margin::Size(size)) => line("margin_mib", size.get().div_ceil(1 << 20).to_string()),
        None => {}
    }
    if let Some(closed) = rules.fail_closed {
        line("fail_closed", closed.to_string());
    }
    if let Some(gpu) = rules.gpu {
        line("device", text(&site.gpus[gpu].device.name));
    }
    lines
}

fn mib(size: Bytes) -> u64 {
    size.get() >> 20
}

/// A string of Lua (Lua 5.1 manual, 2.1): escapes by decimal numbers are the same in all versions.
fn text(text: &str) -> String {
    let mut quoted = String::from("\"");
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => {
                quoted.push('\\');
                quoted.push(byte.into());
            }
            0x20..=0x7e => quoted.push(byte.into()),
            _ => {
                let _ = write!(quoted, "\\{byte:03}");
            }
        }
    }
    quoted + "\""
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cannot_leave_its_quotes() {
        for (given, quoted) in [
            ("a100", "\"a100\""),
            ("\"] = os.exit() --", "\"\\\"] = os.exit() --\""),
            ("a\\\n\u{fc}", "\"a\\\\\\010\\195\\188\""),
        ] {
            assert_eq!(text(given), quoted);
        }
    }
}

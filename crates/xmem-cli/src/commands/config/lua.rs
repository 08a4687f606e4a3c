//! The site file as a table of Lua: what the controller's plug-in reads, which runs no program.

use std::fmt::Write as _;
use xmem::Bytes;
use xmem_gate::{Policy, Rules, Site};

/// The table as a chunk that returns it. Memory is in MiB, rounded down.
pub(super) fn site(site: &Site) -> String {
    let mut page = String::from(
        "-- Written by `xmem config --format lua` from the site file. Do not edit.\nreturn {\n",
    );
    page += &rules("    ", &site.rules, site);
    let mut line = |key: &str, value: &str| {
        let _ = writeln!(page, "    {key} = {value},");
    };
    line("timeout_ms", &site.timeout.as_millis().to_string());
    if let Some(program) = &site.program {
        line("xmem", &text(program));
    }
    if let Some(help) = &site.help {
        line("help", &text(help));
    }
    page += "    gpus = {\n";
    for gpu in &site.gpus {
        let _ = writeln!(
            page,
            "        {{ device = {}, memory_mib = {}, gres = {}, features = {} }},",
            text(&gpu.device.name),
            mib(gpu.device.memory),
            list(&gpu.gres),
            list(&gpu.features),
        );
    }
    page += "    },\n    partitions = {\n";
    for (name, own) in &site.partitions {
        let _ = writeln!(page, "        [{}] = {{", text(name));
        page += &rules("            ", own, site);
        page += "        },\n";
    }
    page + "    },\n}\n"
}

fn list(names: &[String]) -> String {
    let names: Vec<String> = names.iter().map(|name| text(name)).collect();
    if names.is_empty() { "{}".to_owned() } else { format!("{{ {} }}", names.join(", ")) }
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
    if let Some(closed) = rules.fail_closed {
        line("fail_closed", closed.to_string());
    }
    if let Some(gpu) = rules.gpu {
        line("gpu", text(&site.gpus[gpu].device.name));
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
    fn the_table_has_what_the_plug_ins_read() {
        let site = Site::from_toml(
            "policy = 'reject'\nhelp = 'see \"wiki\"'\nprogram = '/usr/bin/xmem'\ntimeout = 1.5\n\
             [[gpu]]\ndevice = 'a100-40g'\nmemory = '39GiB'\ngres = ['a100']\n\
             [[gpu]]\ndevice = 'v100-16g'\ngres = ['v100']\nfeatures = ['volta', 'v100']\n\
             [partition.debug]\npolicy = 'off'\n\
             [partition.strict]\nfail-closed = true\ngpu = 'v100-16g'\n",
        );
        expect_test::expect![[r#"
            -- Written by `xmem config --format lua` from the site file. Do not edit.
            return {
                policy = "reject",
                timeout_ms = 1500,
                xmem = "/usr/bin/xmem",
                help = "see \"wiki\"",
                gpus = {
                    { device = "a100-40g", memory_mib = 39936, gres = { "a100" }, features = {} },
                    { device = "v100-16g", memory_mib = 16130, gres = { "v100" }, features = { "volta", "v100" } },
                },
                partitions = {
                    ["debug"] = {
                        policy = "off",
                    },
                    ["strict"] = {
                        fail_closed = true,
                        gpu = "v100-16g",
                    },
                },
            }
        "#]]
        .assert_eq(&super::site(&site.expect("site")));
    }

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

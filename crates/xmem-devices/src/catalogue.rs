//! The built-in devices.

use crate::device::Device;
use crate::name::Name;
use crate::schema;
use std::sync::LazyLock;
use xmem_types::Bytes;

const FILES: [&str; 6] = [
    include_str!("../data/devices/pascal-volta-turing.toml"),
    include_str!("../data/devices/ampere.toml"),
    include_str!("../data/devices/ada.toml"),
    include_str!("../data/devices/hopper-blackwell.toml"),
    include_str!("../data/devices/jetson.toml"),
    include_str!("../data/devices/mig.toml"),
];

static DEVICES: LazyLock<Vec<Device>> = LazyLock::new(|| {
    FILES
        .iter()
        .flat_map(|text| schema::parse(text).expect("the built-in devices are tested"))
        .collect()
});

/// All built-in devices: older generations first, MIG slices last.
#[must_use]
pub fn devices() -> &'static [Device] {
    &DEVICES
}

/// The built-in cards, the smallest first: without parts of devices, and without those that share the host's memory.
#[must_use]
pub fn cards() -> Vec<&'static Device> {
    let is_card = |device: &&Device| !device.is_slice() && !device.shares_host_memory;
    let mut cards: Vec<&Device> = devices().iter().filter(is_card).collect();
    cards.sort_by_key(|device| device.memory);
    cards
}

/// A name that is not that of one device.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DeviceNameError {
    /// Nothing matches.
    #[error(
        "unknown device `{name}`{}: `xmem devices` lists the known ones, --capacity 24GiB stands for any GPU of this \
         size, and --device-file describes another",
        self.question().map_or_else(String::new, |question| format!(" ({question})"))
    )]
    Unknown {
        /// The requested name.
        name: String,
        /// The built-in devices of which it is perhaps a misspelling.
        suggestions: Vec<&'static str>,
    },
    /// Several devices match.
    #[error("`{name}` is several devices: {}; name one of them", self.list())]
    Several {
        /// The requested name.
        name: String,
        /// The devices that match.
        devices: Vec<&'static Device>,
    },
}

impl DeviceNameError {
    /// The requested name.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Unknown { name, .. } | Self::Several { name, .. } => name,
        }
    }

    /// The question about a misspelling: ``did you mean `rtx4090-24g`?``
    #[must_use]
    pub fn question(&self) -> Option<String> {
        let Self::Unknown { suggestions, .. } = self else { return None };
        let names: Vec<String> = suggestions.iter().map(|name| format!("`{name}`")).collect();
        (!names.is_empty()).then(|| format!("did you mean {}?", names.join(" or ")))
    }

    /// The devices that match, with their sizes: `a100-40g (40 GiB), a100-80g (80 GiB)`.
    #[must_use]
    pub fn list(&self) -> String {
        let Self::Several { devices, .. } = self else { return String::new() };
        let size = |device: &Device| device.nominal_memory().get() >> 30;
        let shown = |device: &&Device| format!("{} ({} GiB)", device.name, size(device));
        devices.iter().map(shown).collect::<Vec<_>>().join(", ")
    }
}

/// The built-in device called `name`: by short name (`a100-40g`), alias, torch's device name (`NVIDIA
/// A100-SXM4-40GB`), or the model and, where it has several, the size (`4090`, `RTX 3080 12GB`), whatever the case and
/// punctuation.
///
/// # Errors
/// If there is no such device, or more than one.
pub fn find(name: &str) -> Result<&'static Device, DeviceNameError> {
    let devices = find_all(name);
    match devices[..] {
        [device] => Ok(device),
        [] => Err(DeviceNameError::Unknown { name: name.to_owned(), suggestions: slips(name) }),
        _ => Err(DeviceNameError::Several { name: name.to_owned(), devices }),
    }
}

/// The built-in devices that `name` may mean: all of a model (`a100`), or of a name that torch has for several.
#[must_use]
pub fn find_all(name: &str) -> Vec<&'static Device> {
    let wanted = Name::new(name);
    let keys = wanted.keys();
    let is_named =
        |device: &&Device| names(device).any(|known| keys.contains(&Name::new(known).key()));
    let named: Vec<&Device> = devices().iter().filter(is_named).collect();
    if !named.is_empty() {
        return named;
    }
    for (model, size) in wanted.meanings() {
        let is_meant = |device: &&Device| {
            !device.is_slice()
                && size.is_none_or(|size| device.nominal_memory() == Bytes::gib(size))
                && short_names(device).any(|known| Name::new(known).models().contains(&model))
        };
        let meant: Vec<&Device> = devices().iter().filter(is_meant).collect();
        if !meant.is_empty() {
            return meant;
        }
    }
    Vec::new()
}

/// The devices of which `name` is perhaps a misspelling.
fn slips(name: &str) -> Vec<&'static str> {
    let wanted = Name::new(name);
    let slip = |device: &'static Device| {
        let models = short_names(device).flat_map(|known| Name::new(known).models());
        let known = short_names(device).map(Name::new);
        let known =
            known.chain(models.map(|model| Name::new(&model)).filter(|_| !device.is_slice()));
        known.filter_map(|known| wanted.slip(&known)).min().map(|slip| (slip, device.name.as_str()))
    };
    let found: Vec<(usize, &str)> = devices().iter().filter_map(slip).collect();
    let fewest = found.iter().map(|(slip, _)| *slip).min();
    found.into_iter().filter(|(slip, _)| Some(*slip) == fewest).map(|(_, name)| name).collect()
}

fn short_names(device: &Device) -> impl Iterator<Item = &str> {
    std::iter::once(device.name.as_str()).chain(device.aliases.iter().map(String::as_str))
}

fn names(device: &Device) -> impl Iterator<Item = &str> {
    short_names(device).chain(std::iter::once(device.title.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use xmem_types::Bytes;

    #[test]
    fn no_two_devices_answer_to_one_short_name() {
        let mut owners: BTreeMap<String, &str> = BTreeMap::new();
        for device in devices() {
            for name in short_names(device) {
                let owner = owners.entry(Name::new(name).key()).or_insert(&device.name);
                assert_eq!(*owner, device.name, "{name}");
            }
            assert_eq!(find(&device.name), Ok(device));
        }
    }

    /// torch does not tell these apart.
    #[test]
    fn only_known_boards_share_a_name_in_torch() {
        let mut shared: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for device in devices() {
            shared.entry(&device.title).or_default().push(&device.name);
        }
        shared.retain(|_, names| names.len() > 1);
        let expected: [(&str, Vec<&str>); 2] = [
            ("NVIDIA GeForce RTX 3080", vec!["rtx3080-10g", "rtx3080-12g"]),
            ("Orin", vec!["jetson-orin-64g", "jetson-orin-32g"]),
        ];
        assert_eq!(shared, BTreeMap::from(expected));
    }

    #[test]
    fn the_cards_that_people_asked_for_are_there() {
        for name in [
            "A6000",
            "A5000",
            "RTX 3070",
            "RTX 3080 10GB",
            "RTX 3080 12GB",
            "RTX 3080 Ti",
            "RTX 4070",
            "RTX 4070 Ti",
            "RTX 4080",
            "RTX 5070",
            "RTX 5080",
            "GH200",
            "H100 NVL",
            "H20",
            "H200 NVL",
            "B300",
            "L40",
            "A30",
            "A16",
            "T4G",
            "Jetson AGX Orin 64GB",
            "Jetson AGX Orin 32GB",
        ] {
            assert!(find(name).is_ok(), "{name}: {:?}", find(name));
        }
    }

    #[test]
    fn only_jetson_modules_share_the_memory_of_the_host() {
        for device in devices() {
            assert_eq!(
                device.shares_host_memory,
                device.name.starts_with("jetson-"),
                "{}",
                device.name
            );
        }
    }

    /// `a100-40g` has about 40 GiB: less than what is sold, by no more than a tenth (ECC on GDDR
    /// memory costs a sixteenth).
    #[test]
    fn the_size_in_the_name_is_the_size_sold() {
        for device in devices() {
            let sold = match device.name.rsplit_once("-mig-") {
                Some((_, profile)) => profile.split_once('.').expect("1g.5gb").1,
                None => device.name.rsplit('-').next().expect("suffix"),
            };
            let gib: u64 = sold.trim_end_matches(['g', 'b']).parse().expect("a size");
            let memory = device.memory.as_mib();
            let nominal = Bytes::gib(gib).as_mib();
            assert!(memory < nominal, "{}: {memory} MiB", device.name);
            assert!(memory > nominal * 0.89, "{}: {memory} MiB", device.name);
        }
    }

    #[test]
    fn a_slice_is_a_part_of_its_device() {
        let mut slices = 0;
        for slice in devices() {
            let Some((parent, _)) = slice.name.split_once("-mig-") else { continue };
            let parent = find(parent).expect("parent");
            assert!(slice.memory <= parent.memory, "{}", slice.name);
            assert!(slice.sms <= parent.sms, "{}", slice.name);
            assert_eq!(slice.compute_capability, parent.compute_capability, "{}", slice.name);
            assert!(slice.title.starts_with(&parent.title), "{}", slice.name);
            slices += 1;
        }
        assert_eq!(slices, 24);
    }

    #[test]
    fn threads_per_sm_follow_the_compute_capability() {
        for device in devices() {
            let threads = match device.compute_capability.to_string().as_str() {
                "7.5" => 1024,
                "8.6" | "8.7" | "8.9" | "12.0" => 1536,
                _ => 2048,
            };
            assert_eq!(device.max_threads_per_sm, threads, "{}", device.name);
        }
    }

    #[test]
    fn devices_are_found_as_people_and_torch_write_them() {
        for (asked, name) in [
            ("a100-40g", "a100-40g"),
            ("A100 40GB", "a100-40g"),
            ("a100 40", "a100-40g"),
            ("h100-80", "h100-80g"),
            ("A100-SXM4-40GB", "a100-40g"),
            ("NVIDIA A100-SXM4-80GB", "a100-80g"),
            ("A100 80GB", "a100-80g"),
            ("a100-80gib", "a100-80g"),
            ("NVIDIA A100 80GB PCIe", "a100-pcie-80g"),
            ("a100 pcie 80", "a100-pcie-80g"),
            ("NVIDIA GeForce RTX 3060", "rtx3060-12g"),
            ("RTX 4090", "rtx4090-24g"),
            ("RTX-4090", "rtx4090-24g"),
            ("rtx4090", "rtx4090-24g"),
            ("4090", "rtx4090-24g"),
            ("4090 24GB", "rtx4090-24g"),
            ("3090", "rtx3090-24g"),
            ("3080 ti", "rtx3080ti-12g"),
            ("3080ti", "rtx3080ti-12g"),
            ("3080 12gb", "rtx3080-12g"),
            ("RTX 3080 (10 GB)", "rtx3080-10g"),
            ("4070", "rtx4070-12g"),
            ("A6000", "rtxa6000-48g"),
            ("RTX A6000", "rtxa6000-48g"),
            ("6000 Ada", "rtx6000ada-48g"),
            ("Tesla T4", "t4-16g"),
            ("nvidia_l4", "l4-24g"),
            ("L40S", "l40s-48g"),
            ("V100 16GB", "v100-16g"),
            ("H100 PCIe", "h100-pcie-80g"),
            ("h100-sxm", "h100-80g"),
            ("H100 NVL", "h100-nvl-94g"),
            ("H200", "h200-141g"),
            ("NVIDIA GH200 480GB", "gh200-96g"),
            ("B300", "b300-288g"),
            ("NVIDIA GB300", "gb300-288g"),
            ("AGX Orin 64GB", "jetson-orin-64g"),
            ("NVIDIA A100-SXM4-40GB MIG 1g.5gb", "a100-40g-mig-1g.5gb"),
        ] {
            assert_eq!(find(asked).map(|d| d.name.as_str()), Ok(name), "{asked}");
        }
    }

    #[test]
    fn a_model_in_several_sizes_is_asked_back_with_a_list() {
        let error = find("a100").expect_err("several");
        assert_eq!(
            error.to_string(),
            "`a100` is several devices: a100-40g (40 GiB), a100-80g (80 GiB), a100-pcie-80g (80 GiB); name one of them"
        );
        for (asked, expected) in [
            ("3080", &["rtx3080-10g", "rtx3080-12g"][..]),
            ("NVIDIA GeForce RTX 3080", &["rtx3080-10g", "rtx3080-12g"]),
            ("h100", &["h100-80g", "h100-pcie-80g", "h100-nvl-94g"]),
            ("V100", &["v100-16g", "v100-32g"]),
            ("Orin", &["jetson-orin-64g", "jetson-orin-32g"]),
        ] {
            match find(asked) {
                Err(DeviceNameError::Several { name, devices }) => {
                    let names: Vec<&str> = devices.iter().map(|d| d.name.as_str()).collect();
                    assert_eq!((name.as_str(), &names[..]), (asked, expected));
                }
                other => panic!("{asked}: {other:?}"),
            }
        }
    }

    #[test]
    fn the_nearest_other_card_is_never_suggested() {
        for name in [
            "4050",
            "4070 super",
            "3060 ti",
            "b100",
            "h800",
            "a100-60g",
            "rtx5000",
            "tpu",
            "",
            "24",
        ] {
            let error = find(name).expect_err("unknown");
            let none = DeviceNameError::Unknown { name: name.to_owned(), suggestions: Vec::new() };
            assert_eq!(error, none);
            let message = error.to_string();
            assert!(
                message.starts_with(&format!("unknown device `{name}`: `xmem devices`")),
                "{message}"
            );
            assert!(message.contains("--capacity 24GiB"), "{message}");
        }
    }

    #[test]
    fn a_slip_of_the_pen_comes_with_what_was_meant() {
        for (name, suggestions) in [
            ("a100-40gx", &["a100-40g"][..]),
            ("gtx4090", &["rtx4090-24g"]),
            ("h100-pci-80g", &["h100-pcie-80g"]),
            ("a100-40g-mig-1g.5gx", &["a100-40g-mig-1g.5gb"]),
        ] {
            match find(name) {
                Err(DeviceNameError::Unknown { suggestions: found, .. }) => {
                    assert_eq!(found, suggestions, "{name}");
                }
                other => panic!("{name}: {other:?}"),
            }
        }
        assert!(find("gtx4090").expect_err("unknown").to_string().starts_with(
            "unknown device `gtx4090` (did you mean `rtx4090-24g`?): `xmem devices` lists"
        ));
    }
}

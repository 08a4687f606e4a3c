//! The built-in devices.

use crate::device::Device;
use crate::name::{key, nearest};
use crate::schema;
use std::sync::LazyLock;

const FILES: [&str; 5] = [
    include_str!("../data/devices/pascal-volta-turing.toml"),
    include_str!("../data/devices/ampere.toml"),
    include_str!("../data/devices/ada.toml"),
    include_str!("../data/devices/hopper-blackwell.toml"),
    include_str!("../data/devices/mig.toml"),
];

static DEVICES: LazyLock<Vec<Device>> = LazyLock::new(|| {
    FILES
        .iter()
        .flat_map(|text| schema::parse(text).expect("the built-in profiles are tested"))
        .collect()
});

/// All built-in devices: older generations first, MIG slices last.
#[must_use]
pub fn devices() -> &'static [Device] {
    &DEVICES
}

/// A device name that nothing matches.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown device `{name}`{}", suggestion_text(.suggestion.as_deref()))]
pub struct UnknownDevice {
    /// The requested name.
    pub name: String,
    /// The built-in device that was perhaps meant.
    pub suggestion: Option<&'static str>,
}

fn suggestion_text(suggestion: Option<&str>) -> String {
    let hint = "`xmem devices` lists the known ones, --device-file describes another";
    match suggestion {
        Some(name) => format!(": did you mean `{name}`? {hint}"),
        None => format!(": {hint}"),
    }
}

/// The built-in device called `name`: by short name (`a100-40g`), alias (`a100`) or torch's device
/// name (`NVIDIA A100-SXM4-40GB`), whatever the case and punctuation.
///
/// # Errors
/// If there is no such device; the error carries the nearest name.
pub fn find(name: &str) -> Result<&'static Device, UnknownDevice> {
    let wanted = key(name);
    let matches = |device: &&Device| names(device).any(|known| key(known) == wanted);
    devices().iter().find(matches).ok_or_else(|| UnknownDevice {
        name: name.to_owned(),
        suggestion: nearest(name, devices().iter().map(|device| device.name.as_str())),
    })
}

fn names(device: &Device) -> impl Iterator<Item = &str> {
    let aliases = device.aliases.iter().map(String::as_str);
    [device.name.as_str(), device.title.as_str()].into_iter().chain(aliases)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use xmem_types::Bytes;

    #[test]
    fn no_two_devices_answer_to_one_name() {
        let mut owners: BTreeMap<String, &str> = BTreeMap::new();
        for device in devices() {
            for name in names(device) {
                let owner = owners.entry(key(name)).or_insert(&device.name);
                assert_eq!(*owner, device.name, "{name}");
            }
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
                "8.6" | "8.9" | "12.0" => 1536,
                _ => 2048,
            };
            assert_eq!(device.max_threads_per_sm, threads, "{}", device.name);
        }
    }

    #[test]
    fn devices_are_found_as_people_and_torch_write_them() {
        for (asked, name) in [
            ("a100-40g", "a100-40g"),
            ("A100", "a100-40g"),
            ("A100-SXM4-40GB", "a100-40g"),
            ("NVIDIA A100-SXM4-80GB", "a100-80g"),
            ("NVIDIA GeForce RTX 3060", "rtx3060-12g"),
            ("RTX 4090", "rtx4090-24g"),
            ("3090", "rtx3090-24g"),
            ("Tesla T4", "t4-16g"),
            ("nvidia_l4", "l4-24g"),
            ("H100", "h100-80g"),
            ("NVIDIA A100-SXM4-40GB MIG 1g.5gb", "a100-40g-mig-1g.5gb"),
        ] {
            assert_eq!(find(asked).map(|d| d.name.as_str()), Ok(name), "{asked}");
        }
    }

    #[test]
    fn an_unknown_name_comes_with_the_nearest_one() {
        let error = find("a100-40gb").expect_err("unknown");
        assert_eq!(
            error.to_string(),
            "unknown device `a100-40gb`: did you mean `a100-40g`? `xmem devices` lists the known \
             ones, --device-file describes another"
        );
        let error = find("tpu").expect_err("unknown");
        assert_eq!(error.suggestion, None);
        assert!(error.to_string().starts_with("unknown device `tpu`: `xmem devices`"));
    }
}

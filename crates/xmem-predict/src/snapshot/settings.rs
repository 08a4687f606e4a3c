//! The allocator's options in the form of a snapshot.

use crate::allocator::AllocatorSetup;
use xmem_simulator::{AllocatorChoice, AllocatorConfig, Feature};
use xmem_snapshot::{AllocatorSettings, Setting};
use xmem_types::{Bytes, TorchVersion};

/// `allocator_settings` of a snapshot (`THCPModule_memorySnapshot` in torch/csrc/cuda/Module.cpp).
/// Of the keys that came after the oldest ones, it has those that the release writes; for an
/// allocator other than PyTorch's usual one, its name as `allocator`.
pub(super) fn settings(setup: &AllocatorSetup) -> AllocatorSettings {
    let mut settings = match &setup.choice {
        AllocatorChoice::Caching(config) => of_caching(config, &setup.conf),
        _ => AllocatorSettings::default(),
    };
    if !matches!(setup.choice, AllocatorChoice::Caching(_)) {
        let name = Setting::Text(setup.kind.name().to_owned());
        settings.other.insert("allocator".to_owned(), name);
    }
    settings.text = Some(setup.conf.clone());
    settings
}

fn of_caching(config: &AllocatorConfig, conf: &str) -> AllocatorSettings {
    let divisions = config.roundup_power2_divisions.0.into_iter();
    AllocatorSettings {
        text: None,
        max_split_size: config.max_split_size,
        garbage_collection_threshold: config.garbage_collection_threshold.unwrap_or(0.0),
        expandable_segments: config.expandable_segments,
        roundup_power2_divisions: divisions
            .enumerate()
            .map(|(power, divisions)| (Bytes::mib(1 << power), divisions))
            .collect(),
        other: host_options(config.release)
            .map(|(name, default)| (name.to_owned(), as_set(conf, name).unwrap_or(default)))
            .collect(),
    }
}

/// Options that have nothing to do with device memory, with PyTorch's defaults.
fn host_options(release: TorchVersion) -> impl Iterator<Item = (&'static str, Setting)> {
    const OFF: Setting = Setting::Bool(false);
    let options = [
        (Feature::PinnedOptions, "pinned_num_register_threads", Setting::Int(1)),
        (Feature::PinnedOptions, "release_lock_on_cudamalloc", OFF),
        (Feature::PinnedOptions, "pinned_use_cuda_host_register", OFF),
        (Feature::GraphCaptureReuse, "graph_capture_record_stream_reuse", OFF),
    ];
    let known = options.into_iter().filter(move |(feature, ..)| feature.is_in(release));
    known.map(|(_, name, value)| (name, value))
}

/// The value of one of them in an option string that was accepted.
fn as_set(conf: &str, name: &str) -> Option<Setting> {
    let mut options = conf.split(',').filter_map(|option| option.split_once(':'));
    let (_, value) = options.rfind(|(key, _)| key.trim() == name)?;
    match value.trim() {
        "True" => Some(Setting::Bool(true)),
        "False" => Some(Setting::Bool(false)),
        number => number.parse().ok().map(Setting::Int),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::allocator::{AllocatorKind, AllocatorSettings as CallerSettings, JobEnvironment};
    use xmem_devices::Device;

    fn of(conf: &str, kind: Option<AllocatorKind>, minor: u16) -> AllocatorSettings {
        let release = Some(TorchVersion::new(2, minor));
        let given = CallerSettings {
            kind,
            release,
            conf: Some(conf.to_owned()),
            ..CallerSettings::default()
        };
        let device = Device::custom(Bytes::gib(8));
        settings(&given.resolve(&JobEnvironment::default(), &device).expect("it can be used"))
    }

    #[test]
    fn every_option_is_told_by_the_name_it_has_in_snapshots() {
        let conf = "max_split_size_mb:64,garbage_collection_threshold:0.75,\
                    roundup_power2_divisions:[256:1,512:2,1024:4,>:8],\
                    pinned_num_register_threads:8, pinned_use_cuda_host_register:True";
        let set = of(conf, None, 11);
        assert_eq!(set.text.as_deref(), Some(conf));
        assert_eq!(set.max_split_size, Some(Bytes::mib(64)));
        assert_eq!(set.garbage_collection_threshold, 0.75);
        assert!(!set.expandable_segments);
        assert_eq!(set.roundup_power2_divisions[&Bytes::mib(512)], 2);
        assert_eq!(set.roundup_power2_divisions[&Bytes::gib(32)], 8);
        let other = |name: &str| format!("{:?}", set.other[name]);
        assert_eq!(other("pinned_num_register_threads"), "Int(8)");
        assert_eq!(other("pinned_use_cuda_host_register"), "Bool(true)");
        assert_eq!(other("release_lock_on_cudamalloc"), "Bool(false)");
        assert!(of("expandable_segments:True", None, 11).expandable_segments);
    }

    #[test]
    fn a_release_tells_only_what_it_knows() {
        for (minor, count) in [(1, 0), (2, 3), (8, 3), (9, 4), (11, 4)] {
            assert_eq!(of("", None, minor).other.len(), count, "2.{minor}");
        }
    }

    #[test]
    fn another_allocator_is_named() {
        let set = of("", Some(AllocatorKind::BfcGrowth), 11);
        assert_eq!(format!("{:?}", set.other), r#"{"allocator": Text("tf-bfc-growth")}"#);
        assert_eq!(set.max_split_size, None);
    }
}

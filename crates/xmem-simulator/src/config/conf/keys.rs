//! The options by name, and the releases that know them.

use super::ConfError;
use crate::config::{Feature, oldest_release};
use xmem_types::TorchVersion;

/// An option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
    Backend,
    MaxSplitSize,
    MaxNonSplitRounding,
    LargeSegmentSize,
    GarbageCollectionThreshold,
    MemoryFraction,
    RoundupPower2Divisions,
    RoundupBypassThreshold,
    ExpandableSegments,
    ExpandableReserve,
    ExpandableReserveByClass,
    ThrowOnCudaMallocOom,
    GraphCaptureReuse,
    /// About pinned host memory or locks: True or False.
    HostSwitch(&'static str),
    /// `pinned_num_register_threads`: about pinned host memory.
    HostThreads,
    /// About pinned host memory: a number.
    HostNumber(&'static str),
}

/// Every option with its names, and the feature without which a release refuses it.
const KEYS: &[(&str, Key, Option<Feature>)] = &[
    ("backend", Key::Backend, Some(Feature::Backend)),
    ("max_split_size_mb", Key::MaxSplitSize, None),
    ("max_non_split_rounding_mb", Key::MaxNonSplitRounding, Some(Feature::MaxNonSplitRounding)),
    ("large_segment_size_mb", Key::LargeSegmentSize, Some(Feature::LargeSegmentSize)),
    ("garbage_collection_threshold", Key::GarbageCollectionThreshold, None),
    ("per_process_memory_fraction", Key::MemoryFraction, Some(Feature::AcceleratorConfig)),
    ("roundup_power2_divisions", Key::RoundupPower2Divisions, None),
    ("roundup_bypass_threshold_mb", Key::RoundupBypassThreshold, None),
    ("expandable_segments", Key::ExpandableSegments, Some(Feature::ExpandableSegments)),
    ("expandable_segments_reserve", Key::ExpandableReserve, Some(Feature::ExpandableReserve)),
    (
        "expandable_segments_reserve_by_class",
        Key::ExpandableReserveByClass,
        Some(Feature::ExpandableReserve),
    ),
    ("throw_on_cudamalloc_oom", Key::ThrowOnCudaMallocOom, Some(Feature::RefuseBeyondFraction)),
    ("graph_capture_record_stream_reuse", Key::GraphCaptureReuse, Some(Feature::GraphCaptureReuse)),
    (
        "release_lock_on_cudamalloc",
        Key::HostSwitch("release_lock_on_cudamalloc"),
        Some(Feature::PinnedOptions),
    ),
    (
        "release_lock_on_hipmalloc",
        Key::HostSwitch("release_lock_on_cudamalloc"),
        Some(Feature::PinnedOptions),
    ),
    (
        "pinned_use_cuda_host_register",
        Key::HostSwitch("pinned_use_cuda_host_register"),
        Some(Feature::PinnedOptions),
    ),
    (
        "pinned_use_hip_host_register",
        Key::HostSwitch("pinned_use_cuda_host_register"),
        Some(Feature::PinnedOptions),
    ),
    ("pinned_num_register_threads", Key::HostThreads, Some(Feature::PinnedOptions)),
    (
        "pinned_use_background_threads",
        Key::HostSwitch("pinned_use_background_threads"),
        Some(Feature::PinnedBackgroundThreads),
    ),
    (
        "pinned_reserve_segment_size_mb",
        Key::HostNumber("pinned_reserve_segment_size_mb"),
        Some(Feature::AcceleratorConfig),
    ),
    (
        "pinned_free_catch_all",
        Key::HostSwitch("pinned_free_catch_all"),
        Some(Feature::RefuseBeyondFraction),
    ),
    (
        "pinned_max_round_threshold_mb",
        Key::HostNumber("pinned_max_round_threshold_mb"),
        Some(Feature::PinnedCacheLimits),
    ),
    (
        "pinned_max_cached_size_mb",
        Key::HostNumber("pinned_max_cached_size_mb"),
        Some(Feature::PinnedCacheLimits),
    ),
];

/// An option by its name, and the releases that know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownOption {
    /// The name.
    pub name: &'static str,
    /// The first release that takes it.
    pub since: TorchVersion,
    /// The last release that takes it; none if no known release refuses it again.
    pub last: Option<TorchVersion>,
}

/// Every option that some known release takes, in the order of their subjects.
pub fn alloc_conf_options() -> impl Iterator<Item = KnownOption> {
    KEYS.iter().map(|&(name, key, since)| KnownOption {
        name,
        since: since.map_or(oldest_release(), Feature::since),
        last: (key == Key::RoundupBypassThreshold).then_some(LAST_WITH_BYPASS),
    })
}

/// The last release that knows `roundup_bypass_threshold_mb`.
const LAST_WITH_BYPASS: TorchVersion = TorchVersion::new(2, 0);

impl Key {
    /// The option that is called so in `release`.
    pub(super) fn find(name: &str, release: TorchVersion) -> Result<Self, ConfError> {
        let Some(&(name, key, since)) = KEYS.iter().find(|(known, ..)| *known == name) else {
            return Err(ConfError::UnknownKey {
                key: name.to_owned(),
                nearest: nearest(name, release),
                release,
            });
        };
        if let Some(feature) = since
            && !feature.is_in(release)
        {
            return Err(ConfError::NotYet { key: name, since: feature.since(), release });
        }
        if key == Self::RoundupBypassThreshold && release > LAST_WITH_BYPASS {
            return Err(ConfError::NoLonger { key: name, last: LAST_WITH_BYPASS, release });
        }
        Ok(key)
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::HostSwitch(name) | Self::HostNumber(name) => name,
            _ => KEYS.iter().find(|(_, key, _)| *key == self).map_or("", |(name, ..)| name),
        }
    }

    /// Returns whether it changes nothing about device memory.
    pub(super) fn is_host_only(self) -> bool {
        matches!(self, Self::HostSwitch(_) | Self::HostThreads | Self::HostNumber(_))
    }

    pub(super) fn bad(self, value: &str, expected: &str) -> ConfError {
        ConfError::BadValue {
            key: self.name(),
            value: value.to_owned(),
            expected: expected.to_owned(),
        }
    }
}

/// The option that was probably meant.
fn nearest(name: &str, release: TorchVersion) -> Option<&'static str> {
    KEYS.iter()
        .filter(|(known, ..)| Key::find(known, release).is_ok())
        .map(|(known, ..)| (strsim::jaro_winkler(name, known), *known))
        .filter(|(likeness, _)| *likeness > 0.85)
        .max_by(|(a, _), (b, _)| a.total_cmp(b))
        .map(|(_, known)| known)
}

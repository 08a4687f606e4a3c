//! The settings of a recording's allocator: its release, as far as the snapshot
//! says, and its options.

use xmem_simulator::{AllocConf, AllocatorConfig, Backend, ConfError, PowerOfTwoDivisions};
use xmem_snapshot::{AllocatorSettings, Snapshot};
use xmem_types::{Bytes, Diagnostics, Severity, TorchVersion};

/// The allocator of a recording.
#[derive(Clone, Debug, PartialEq)]
pub struct Setup {
    /// Its options.
    pub config: AllocatorConfig,
    /// The options as text; empty for the defaults.
    pub text: String,
    /// The origin of the options.
    pub source: SetupSource,
    /// The releases that write such a snapshot, the first and the last one known; the configuration
    /// is that of the last, unless one was given.
    pub releases: (TorchVersion, TorchVersion),
}

/// The origin of the options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetupSource {
    /// The snapshot has them.
    Recorded,
    /// They were given instead.
    Given,
    /// The snapshot is older than that, and they are taken for the defaults.
    Assumed,
}

/// The reason why there is no allocator to compare with.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SetupError {
    /// The options cannot be simulated, or are none of that release.
    #[error("the allocator options `{text}` are not valid for PyTorch {release}")]
    Options {
        /// The options.
        text: String,
        /// The release.
        release: TorchVersion,
        /// The problem.
        #[source]
        source: ConfError,
    },
    /// `backend:cudaMallocAsync`, which keeps no segments.
    #[error(
        "the allocator is cudaMallocAsync, which has no segments and records nothing; record with \
         backend:native"
    )]
    OtherBackend,
}

impl Setup {
    /// The allocator of `snapshot`, or with the options `conf` instead, or of another `release`.
    ///
    /// # Errors
    /// If such an allocator is not simulated.
    pub fn of(
        snapshot: &Snapshot,
        conf: Option<&str>,
        release: Option<TorchVersion>,
    ) -> Result<(Self, Diagnostics), SetupError> {
        let releases = snapshot.releases();
        let mut notes = Diagnostics::default();
        let release = release.unwrap_or(releases.1);
        let settings = snapshot.allocator_settings.as_ref();
        let (text, source) = match (conf, settings) {
            (Some(conf), _) => (conf.to_owned(), SetupSource::Given),
            (None, None) => (String::new(), SetupSource::Assumed),
            (None, Some(stated)) => {
                (stated.text.clone().unwrap_or_default(), SetupSource::Recorded)
            }
        };
        let parsed = AllocConf::parse(&text, release).map_err(|source| SetupError::Options {
            text: text.clone(),
            release,
            source,
        })?;
        if parsed.backend == Backend::CudaMallocAsync {
            return Err(SetupError::OtherBackend);
        }
        let mut config = parsed.config;
        if let (SetupSource::Recorded, Some(stated)) = (source, settings) {
            overrule(&mut config, stated, &mut notes);
        }
        Ok((Self { config, text, source, releases }, notes))
    }
}

/// The settings one by one are those in force; the text is what was parsed last, which a release
/// before 2.3 does not say at all.
fn overrule(config: &mut AllocatorConfig, stated: &AllocatorSettings, notes: &mut Diagnostics) {
    let by_text = config.clone();
    config.max_split_size = stated.max_split_size;
    config.expandable_segments = stated.expandable_segments;
    let threshold = stated.garbage_collection_threshold;
    config.garbage_collection_threshold = (threshold > 0.0).then_some(threshold);
    if !stated.roundup_power2_divisions.is_empty() {
        let mut table = [0; 16];
        for (&size, &divisions) in &stated.roundup_power2_divisions {
            let row = (size.get() / Bytes::mib(1).get()).max(1).ilog2() as usize;
            table[row.min(15)] = divisions;
        }
        config.roundup_power2_divisions = PowerOfTwoDivisions(table);
    }
    if stated.text.is_some() && *config != by_text {
        notes.report("settings-changed", Severity::Note, None, || {
            "the active settings differ from the option string; the active ones are used".to_owned()
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use xmem_snapshot::Setting;
    use xmem_types::Interner;

    fn snapshot(settings: Option<AllocatorSettings>) -> Snapshot {
        Snapshot {
            segments: Vec::new(),
            device_traces: vec![Vec::new()],
            allocator_settings: settings,
            annotations: Vec::new(),
            streams: Vec::new(),
            frames: Default::default(),
            strings: Interner::default(),
        }
    }

    fn with_keys(text: Option<&str>, keys: &[&str]) -> AllocatorSettings {
        AllocatorSettings {
            text: text.map(str::to_owned),
            other: keys.iter().map(|&key| (key.to_owned(), Setting::Bool(false))).collect(),
            ..AllocatorSettings::default()
        }
    }

    #[test]
    fn keys_tell_the_release() {
        let version = |minor| TorchVersion::new(2, minor);
        for (text, keys, expected) in [
            (None, &[][..], (version(0), version(1))),
            (None, &["pinned_num_register_threads"][..], (version(2), version(2))),
            (Some(""), &["pinned_num_register_threads"][..], (version(3), version(8))),
            (Some(""), &["graph_capture_record_stream_reuse"][..], (version(9), version(11))),
            (Some(""), &["max_round_threshold"][..], (version(13), version(15))),
        ] {
            let (setup, _) = Setup::of(&snapshot(Some(with_keys(text, keys))), None, None).unwrap();
            assert_eq!(setup.releases, expected, "{keys:?}");
            assert_eq!(setup.config.release, expected.1, "{keys:?}");
        }
    }

    #[test]
    fn settings_in_force_count_more_than_the_text() {
        let mut settings = with_keys(Some("max_split_size_mb:100"), &["max_round_threshold"]);
        settings.max_split_size = Some(Bytes::mib(200));
        settings.roundup_power2_divisions = BTreeMap::from([(Bytes::mib(256), 4)]);
        let stated = snapshot(Some(settings));
        let (setup, notes) = Setup::of(&stated, None, None).unwrap();
        assert_eq!(setup.config.max_split_size, Some(Bytes::mib(200)));
        assert_eq!(setup.config.roundup_power2_divisions.0[8], 4);
        assert!(notes.get("settings-changed").is_some());

        let given = "max_split_size_mb:300";
        let (setup, notes) =
            Setup::of(&stated, Some(given), Some(TorchVersion::new(2, 6))).unwrap();
        assert_eq!(setup.config.max_split_size, Some(Bytes::mib(300)));
        assert_eq!(setup.config.release, TorchVersion::new(2, 6));
        assert!(notes.is_empty());
    }

    #[test]
    fn options_that_cannot_be_followed_are_refused() {
        let none = snapshot(None);
        let refused = |conf| Setup::of(&none, Some(conf), Some(TorchVersion::new(2, 11)));
        assert!(matches!(refused("max_splt_size_mb:50"), Err(SetupError::Options { .. })));
        assert!(matches!(refused("backend:cudaMallocAsync"), Err(SetupError::OtherBackend)));
    }
}

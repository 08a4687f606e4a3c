//! The content of a snapshot, as counts and names, as `xmem snapshot info` shows it.

mod device;

pub use device::{DeviceFacts, HistoryFacts, LiveGroup, SegmentFacts, StreamFacts};

use crate::findings::findings;
use crate::setup::Setup;
use std::collections::BTreeMap;
use xmem::predict::Finding;
use xmem_snapshot::{AllocatorSettings, AnnotationStage, DeviceIndex, Setting, Snapshot};
use xmem_types::{Diagnostics, Severity, TorchVersion};

/// The content of a snapshot.
#[derive(Clone, Debug)]
pub struct SnapshotFacts {
    /// The first and the last release that write such a snapshot.
    pub releases: (TorchVersion, TorchVersion),
    /// The allocator's options as text; none before PyTorch 2.3.
    pub options: Option<String>,
    /// Settings that are not PyTorch's defaults, by name.
    pub unusual_settings: Vec<(String, String)>,
    /// Distinct call stacks.
    pub stacks: u64,
    /// Scopes of the program (`record_function`), by name, with how often each began.
    pub scopes: Vec<(String, u64)>,
    /// The devices that have segments or a history.
    pub devices: Vec<DeviceFacts>,
    /// The oddities.
    pub findings: Vec<Finding>,
}

impl SnapshotFacts {
    /// The content of `snapshot`; of each device the `largest` groups of live blocks. The oddities
    /// met while it was read is in `notes`.
    #[must_use]
    pub fn of(snapshot: &Snapshot, notes: &Diagnostics, largest: usize) -> Self {
        let mut notes = notes.clone();
        let setup = Setup::of(snapshot, None, None);
        let config = match &setup {
            Ok((setup, more)) => {
                notes.extend(more.clone());
                Some(&setup.config)
            }
            Err(error) => {
                notes.report("options-not-simulated", Severity::Warning, None, || {
                    format!("{error}; the state at the start of the history is not reconstructed")
                });
                None
            }
        };
        let devices = indices(snapshot)
            .map(|index| DeviceFacts::of(snapshot, index, config, largest, &mut notes))
            .collect();
        let settings = snapshot.allocator_settings.as_ref();
        Self {
            releases: snapshot.releases(),
            options: settings.and_then(|settings| settings.text.clone()),
            unusual_settings: settings.map(unusual).unwrap_or_default(),
            stacks: snapshot.frames.stack_count().saturating_sub(1) as u64,
            scopes: scopes(snapshot),
            devices,
            findings: findings(&notes),
        }
    }
}

fn indices(snapshot: &Snapshot) -> impl Iterator<Item = DeviceIndex> {
    let with_history = snapshot.device_traces.iter().enumerate();
    let with_history = with_history.filter(|(_, trace)| !trace.is_empty());
    let mut list: Vec<DeviceIndex> = with_history
        .map(|(row, _)| DeviceIndex(u32::try_from(row).expect("a pickle has fewer lists")))
        .chain(snapshot.segments.iter().map(|segment| segment.device))
        .collect();
    list.sort_unstable();
    list.dedup();
    list.into_iter()
}

fn scopes(snapshot: &Snapshot) -> Vec<(String, u64)> {
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    let began = |stage| stage == AnnotationStage::Start;
    for annotation in snapshot.annotations.iter().filter(|a| began(a.stage)) {
        *counts.entry(snapshot.strings.resolve(annotation.name)).or_default() += 1;
    }
    counts.into_iter().map(|(name, count)| (name.to_owned(), count)).collect()
}

/// Settings that are not PyTorch's defaults, which are the same since each of them exists
/// (`c10/cuda/CUDAAllocatorConfig.h`, `c10/core/AllocatorConfig.h`).
fn unusual(settings: &AllocatorSettings) -> Vec<(String, String)> {
    let mut list: Vec<(String, String)> = Vec::new();
    let mut add = |name: &str, value: String| list.push((name.to_owned(), value));
    if let Some(limit) = settings.max_split_size {
        add("max_split_size", limit.to_string());
    }
    if settings.garbage_collection_threshold > 0.0 {
        let threshold = settings.garbage_collection_threshold;
        add("garbage_collection_threshold", threshold.to_string());
    }
    if settings.expandable_segments {
        add("expandable_segments", "on".to_owned());
    }
    let divisions = settings.roundup_power2_divisions.iter().filter(|(_, parts)| **parts > 1);
    let divisions: Vec<String> =
        divisions.map(|(size, parts)| format!("{parts} from {size}")).collect();
    if !divisions.is_empty() {
        add("roundup_power2_divisions", divisions.join(", "));
    }
    for (name, setting) in &settings.other {
        match setting {
            Setting::Bool(true) => add(name, "on".to_owned()),
            Setting::Text(text) if !text.is_empty() => add(name, text.clone()),
            Setting::Int(number) if name == "pinned_num_register_threads" && *number > 1 => {
                add(name, number.to_string());
            }
            _ => {}
        }
    }
    list
}

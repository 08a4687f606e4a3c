//! Who decides what, and what is said about it.

use super::{
    AllocatorError, AllocatorKind, AllocatorSettings, AllocatorSetup, JobEnvironment, Origin,
};
use xmem_devices::Device;
use xmem_simulator::{AddressOrder, AllocatorChoice, ConfError};
use xmem_types::{Bytes, TorchVersion};

const CONF: &str = "PYTORCH_CUDA_ALLOC_CONF";
const LATER: &str = "PYTORCH_ALLOC_CONF";
const NO_CACHING: &str = "PYTORCH_NO_CUDA_MEMORY_CACHING";

fn device() -> Device {
    Device::custom(Bytes::gib(8))
}

fn settings(conf: &str) -> AllocatorSettings {
    AllocatorSettings { conf: Some(conf.to_owned()), ..AllocatorSettings::default() }
}

fn with_kind(kind: AllocatorKind) -> AllocatorSettings {
    AllocatorSettings { kind: Some(kind), ..AllocatorSettings::default() }
}

fn resolved(settings: &AllocatorSettings, metadata: &[(&str, &str)]) -> AllocatorSetup {
    let environment = JobEnvironment::from_metadata(metadata.iter().copied());
    settings.resolve(&environment, &device()).expect("it can be used")
}

fn error(settings: &AllocatorSettings, metadata: &[(&str, &str)]) -> AllocatorError {
    let environment = JobEnvironment::from_metadata(metadata.iter().copied());
    settings.resolve(&environment, &device()).expect_err("it cannot be used")
}

fn codes(setup: &AllocatorSetup) -> Vec<&'static str> {
    setup.notes.iter().map(|note| note.code).collect()
}

#[test]
fn the_caller_comes_before_the_input_and_the_input_before_the_default() {
    let given = settings("max_split_size_mb:64");
    let none = AllocatorSettings::default();
    let empty = settings("");
    let input: &[_] = &[(CONF, "expandable_segments:True")];
    for (settings, metadata, conf, from) in [
        (&given, input, "max_split_size_mb:64", Origin::Given),
        (&empty, input, "", Origin::Given),
        (&none, input, "expandable_segments:True", Origin::Input),
        (&none, &[], "", Origin::Default),
    ] {
        let setup = resolved(settings, metadata);
        assert_eq!((setup.conf.as_str(), setup.conf_from), (conf, from));
        assert_eq!(setup.kind, AllocatorKind::Native);
    }
}

#[test]
fn the_release_is_the_callers_then_the_inputs_then_the_latest_recorded() {
    let version = TorchVersion::new;
    let given = AllocatorSettings { release: Some(version(2, 4)), ..AllocatorSettings::default() };
    let none = AllocatorSettings::default();
    for (settings, said, release, from, codes_said) in [
        (&given, Some("2.6.0+cu124"), version(2, 4), Origin::Given, &[] as &[_]),
        (&none, Some("2.6.0+cu124"), version(2, 6), Origin::Input, &[]),
        (&none, None, TorchVersion::default(), Origin::Default, &[]),
        (
            &none,
            Some("new"),
            TorchVersion::default(),
            Origin::Default,
            &["torch-version-unreadable"],
        ),
        (&none, Some("1.9.1"), version(1, 13), Origin::Input, &["torch-version-too-old"]),
        (&none, Some("2.99.0"), version(2, 99), Origin::Input, &["torch-version-too-new"]),
    ] {
        let metadata: Vec<_> = said.map(|text| ("torch_version", text)).into_iter().collect();
        let setup = resolved(settings, &metadata);
        assert_eq!((setup.release, setup.release_from), (release, from), "{said:?}");
        assert_eq!(codes(&setup), codes_said, "{said:?}");
        let AllocatorChoice::Caching(config) = &setup.choice else { panic!("another allocator") };
        assert_eq!(config.release, release);
    }
    let old = AllocatorSettings { release: Some(version(1, 9)), ..AllocatorSettings::default() };
    assert_eq!(error(&old, &[]), AllocatorError::TooOld { release: version(1, 9) });
}

#[test]
fn the_allocator_is_the_callers_or_what_options_and_environment_choose() {
    let none = AllocatorSettings::default();
    let backend = "backend:cudaMallocAsync";
    let old = ("torch_version", "2.6");
    for (settings, metadata, kind) in [
        (&none, &[] as &[_], AllocatorKind::Native),
        (&none, &[(CONF, backend)], AllocatorKind::MallocAsync),
        (&none, &[(NO_CACHING, "1")], AllocatorKind::Uncached),
        (&none, &[(NO_CACHING, "0")], AllocatorKind::Native),
        (&none, &[(NO_CACHING, "0"), old], AllocatorKind::Uncached),
        (&none, &[(NO_CACHING, "1"), (CONF, backend)], AllocatorKind::MallocAsync),
        (&with_kind(AllocatorKind::Native), &[(CONF, backend)], AllocatorKind::Native),
        (&with_kind(AllocatorKind::Native), &[(NO_CACHING, "1")], AllocatorKind::Native),
        (&with_kind(AllocatorKind::BfcGrowth), &[], AllocatorKind::BfcGrowth),
        (&settings(backend), &[], AllocatorKind::MallocAsync),
    ] {
        assert_eq!(resolved(settings, metadata).kind, kind, "{metadata:?}");
    }
}

#[test]
fn contradictions_are_refused() {
    let both = |kind, conf: &str| AllocatorSettings { kind: Some(kind), ..settings(conf) };
    let backend = "backend:cudaMallocAsync";
    for kind in [AllocatorKind::Native, AllocatorKind::Uncached, AllocatorKind::Bfc] {
        let refused = error(&both(kind, backend), &[]);
        assert_eq!(refused, AllocatorError::Contradiction { kind, conf: backend.to_owned() });
    }
    let refused = error(&both(AllocatorKind::Bfc, "expandable_segments:True"), &[]);
    assert!(matches!(refused, AllocatorError::ConfForTensorFlow { .. }));
    for fraction in [-0.1, 1.1, f64::NAN] {
        let settings =
            AllocatorSettings { memory_fraction: Some(fraction), ..AllocatorSettings::default() };
        assert!(matches!(error(&settings, &[]), AllocatorError::Fraction { .. }), "{fraction}");
    }
}

#[test]
fn options_are_judged_by_the_release_that_reads_them() {
    let given = settings("large_segment_size_mb:40");
    assert_eq!(resolved(&given, &[]).release, TorchVersion::default());
    let refused = error(&given, &[("torch_version", "2.6.0")]);
    let AllocatorError::Conf { release_from, source, .. } = refused else {
        panic!("{refused}");
    };
    assert_eq!(release_from, Origin::Input);
    assert!(matches!(source, ConfError::NotYet { .. }));
}

#[test]
fn options_of_the_input_that_cannot_be_used_give_way_to_none() {
    let metadata = [(CONF, "max_split_size:64"), (NO_CACHING, "1")];
    let environment = JobEnvironment::from_metadata(metadata);
    let settings = AllocatorSettings::default();
    assert!(settings.resolve(&environment, &device()).is_err());
    let setup = settings.resolve_leniently(&environment, &device()).expect("lenient");
    assert_eq!((setup.conf.as_str(), setup.conf_from), ("", Origin::Default));
    assert_eq!(setup.kind, AllocatorKind::Uncached, "the other variable still counts");
    assert!(codes(&setup).contains(&"allocator-options-unusable"));

    let given = AllocatorSettings { conf: Some("nonsense".to_owned()), ..settings };
    assert!(given.resolve_leniently(&environment, &device()).is_err());
}

#[test]
fn what_no_release_accepts_is_found_before_the_input_is_read() {
    let of = |conf: &str, release| {
        AllocatorSettings { release, ..settings(conf) }.check(&device()).is_ok()
    };
    assert!(!of("max_split_size:64", None));
    assert!(!of("expandable_segments:true", None));
    assert!(!of("large_segment_size_mb:40", Some(TorchVersion::new(2, 6))));
    assert!(of("large_segment_size_mb:40", None));
    assert!(of("roundup_bypass_threshold_mb:64,roundup_power2_divisions:4", None), "up to 2.0");
    assert!(of("expandable_segments_reserve:0.5,expandable_segments:True", None), "from 2.15 on");
}

#[test]
fn settings_that_change_nothing_are_named() {
    let effect = "allocator-options-without-effect";
    for (settings, metadata, code, word) in [
        (
            settings("garbage_collection_threshold:0.8,throw_on_cudamalloc_oom:True"),
            &[("torch_version", "2.12")] as &[_],
            super::WITHOUT_FRACTION,
            "garbage_collection_threshold, throw_on_cudamalloc_oom: no effect",
        ),
        (settings("max_non_split_rounding_mb:64"), &[], effect, "max_split_size_mb"),
        (settings("pinned_use_background_threads:True"), &[], "host-allocator-options", "pinned"),
        (
            AllocatorSettings {
                kind: Some(AllocatorKind::Uncached),
                ..settings("expandable_segments:True")
            },
            &[],
            effect,
            "without caching",
        ),
        (settings("backend:cudaMallocAsync,max_split_size_mb:64"), &[], effect, "only backend"),
        (with_kind(AllocatorKind::Bfc), &[(CONF, "max_split_size_mb:64")], effect, "TensorFlow"),
        (
            AllocatorSettings::default(),
            &[(LATER, "max_split_size_mb:64"), ("torch_version", "2.6")],
            "allocator-variable-unread",
            "does not read PYTORCH_ALLOC_CONF",
        ),
    ] {
        let setup = resolved(&settings, metadata);
        let note = setup.notes.iter().find(|note| note.code == code);
        let note = note.unwrap_or_else(|| panic!("{settings:?} says {:?}", codes(&setup)));
        assert!(note.message.contains(word), "{}", note.message);
    }
    for conf in [
        "",
        "expandable_segments:True,max_split_size_mb:64,max_non_split_rounding_mb:64",
        "large_segment_size_mb:64",
        "garbage_collection_threshold:0.8,per_process_memory_fraction:0.9",
    ] {
        assert!(codes(&resolved(&settings(conf), &[])).is_empty(), "{conf}");
    }
}

#[test]
fn a_memory_fraction_reaches_the_allocator() {
    let of = |kind| {
        let given = AllocatorSettings { memory_fraction: Some(0.5), ..with_kind(kind) };
        let setup = resolved(&given, &[(CONF, "per_process_memory_fraction:0.9")]);
        assert_eq!(setup.memory_fraction, Some(0.5), "the call comes later");
        setup.choice
    };
    let AllocatorChoice::Caching(config) = of(AllocatorKind::Native) else { panic!("native") };
    assert_eq!(config.memory_fraction, Some(0.5));
    let AllocatorChoice::MallocAsync(config) = of(AllocatorKind::MallocAsync) else {
        panic!("async")
    };
    assert_eq!(config.memory_fraction, Some(0.5));
    let AllocatorChoice::Bfc(config) = of(AllocatorKind::Bfc) else { panic!("bfc") };
    assert_eq!(config.limit, xmem_simulator::MemoryLimit::Fraction(0.5));
    assert!(!config.allow_growth);
}

#[test]
fn addresses_come_in_the_drivers_order_unless_another_is_given() {
    assert_eq!(resolved(&AllocatorSettings::default(), &[]).address_order, AddressOrder::Driver);
    let order = Some(AddressOrder::Ascending);
    let given = AllocatorSettings { address_order: order, ..AllocatorSettings::default() };
    assert_eq!(resolved(&given, &[]).address_order, AddressOrder::Ascending);
}

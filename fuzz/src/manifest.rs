//! What the fuzz target of manifests checks.

use xmem_gate::kubernetes::{Annotations, admission_policy, check_object, find_templates};
use xmem_gate::{Decision, Manifest, Site};

/// Reading ends; annotations that are written are read again, and what is decided follows from them.
pub(crate) fn manifest(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let (first, rest) = text.split_once('\0').unwrap_or(("", text));
    let site = Site::from_toml(first).unwrap_or_default();
    let policy = Manifest::parse(&admission_policy(&site));
    assert!(policy.is_ok_and(|policy| !policy.values().is_empty()));

    let Ok(manifest) = Manifest::parse(rest) else { return };
    let known = |group: &str, kind: &str| site.templates_of(group, kind);
    let mut places = Vec::new();
    for (document, value) in manifest.values().iter().enumerate() {
        for check in check_object(value, "default", &site) {
            let decided = check.decision != Decision::NoVerdict;
            assert_eq!(decided, check.need.is_some(), "{check:?}");
            assert_eq!(decided, check.unchecked.is_none(), "{check:?}");
        }
        let templates = find_templates(value, &known);
        places.extend(templates.iter().map(|template| template.annotation_place(document)));
    }
    let peak = 7 << 30;
    let Ok(written) = manifest.annotated(&places, &[(Annotations::PEAK, u64::to_string(&peak))])
    else {
        return;
    };
    let read = Manifest::parse(&written).expect("what was written is a manifest");
    let values = read.values();
    let templates = values.iter().flat_map(|value| find_templates(value, &known));
    for template in templates {
        let found = template.annotations.map(|annotations| annotations.peak.map(xmem::Bytes::get));
        // Another annotation beside it may be wrong.
        assert!(found.is_err() || found == Ok(Some(peak)), "{found:?}");
    }
}

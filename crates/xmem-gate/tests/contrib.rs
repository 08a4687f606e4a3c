//! The manifests of contrib/kubernetes say what the gate says.

use xmem_gate::kubernetes::admission_policy;
use xmem_gate::{Manifest, Site};

const SERVER: &str = include_str!("../../../contrib/kubernetes/server.yaml");
const OTHERS: [&str; 4] = [
    include_str!("../../../contrib/kubernetes/namespace.yaml"),
    include_str!("../../../contrib/kubernetes/certificate.yaml"),
    include_str!("../../../contrib/kubernetes/validating-webhook.yaml"),
    include_str!("../../../contrib/kubernetes/mutating-webhook.yaml"),
];

/// The site file in the manifest of the server.
fn site() -> Site {
    let documents = Manifest::parse(SERVER).expect("YAML").values();
    let site = documents[0]["data"]["site.toml"].as_str().expect("a site file");
    Site::from_toml(site).expect("a site")
}

#[test]
fn the_site_file_of_the_server_is_one() {
    assert_eq!(site().gpus.len(), 3);
}

#[test]
fn the_policy_is_that_of_the_same_site() {
    let written = admission_policy(&site());
    expect_test::expect_file!["../../../contrib/kubernetes/admission-policy.yaml"]
        .assert_eq(&written);
}

#[test]
fn every_manifest_is_yaml_with_a_kind() {
    for text in OTHERS {
        for document in Manifest::parse(text).expect("YAML").values() {
            assert!(
                document["kind"].is_string() && document["metadata"]["name"] != "",
                "{document}"
            );
        }
    }
}

//! The manifests of contrib/kubernetes say what the gate says.

use xmem::Bytes;
use xmem_gate::{Manifest, Margin, Site};

const SERVER: &str = include_str!("../../../contrib/kubernetes/server.yaml");
const POLICY: &str = include_str!("../../../contrib/kubernetes/admission-policy.yaml");
const OTHERS: [&str; 4] = [
    include_str!("../../../contrib/kubernetes/namespace.yaml"),
    include_str!("../../../contrib/kubernetes/certificate.yaml"),
    include_str!("../../../contrib/kubernetes/validating-webhook.yaml"),
    include_str!("../../../contrib/kubernetes/mutating-webhook.yaml"),
];

#[test]
fn the_site_file_of_the_server_is_one() {
    let documents = Manifest::parse(SERVER).expect("YAML").values();
    let site = documents[0]["data"]["site.toml"].as_str().expect("a site file");
    let site = Site::from_toml(site).expect("a site");
    assert_eq!(site.gpus.len(), 3);
}

#[test]
fn the_table_of_the_policy_is_memory_without_context_and_margin() {
    let documents = Manifest::parse(POLICY).expect("YAML").values();
    let table = documents[0]["data"].as_object().expect("a table");
    assert!(!table.is_empty());
    for (product, limit) in table {
        let device = xmem::find(product).expect("a device");
        let usable = device.memory - Margin::PerMille(50).of(device.memory) - device.context;
        let limit: u64 = limit.as_str().expect("text").parse().expect("a number");
        assert_eq!(Bytes(limit), usable, "{product}");
    }
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

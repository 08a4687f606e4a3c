//! The manifests of contrib/kubernetes say what the gate says.

use cel::{Context, Program};
use serde_json::{Value, json};
use xmem_gate::kubernetes::{admission_policy, is_from_decided_owner, workload_kinds};
use xmem_gate::{Manifest, Site};

const SERVER: &str = include_str!("../../../../contrib/kubernetes/server.yaml");
const WEBHOOKS: [&str; 2] = [
    include_str!("../../../../contrib/kubernetes/validating-webhook.yaml"),
    include_str!("../../../../contrib/kubernetes/mutating-webhook.yaml"),
];
const OTHERS: [&str; 3] = [
    include_str!("../../../../contrib/kubernetes/namespace.yaml"),
    include_str!("../../../../contrib/kubernetes/network-policy.yaml"),
    include_str!("../../../../contrib/kubernetes/certificate.yaml"),
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
    expect_test::expect_file!["../../../../contrib/kubernetes/admission-policy.yaml"]
        .assert_eq(&written);
}

#[test]
fn every_manifest_is_yaml_with_a_kind() {
    for text in OTHERS.into_iter().chain(WEBHOOKS) {
        for document in Manifest::parse(text).expect("YAML").values() {
            assert!(
                document["kind"].is_string() && document["metadata"]["name"] != "",
                "{document}"
            );
        }
    }
}

/// The only webhook of a manifest.
fn webhook(text: &str) -> Value {
    Manifest::parse(text).expect("YAML").values()[0]["webhooks"][0].clone()
}

#[test]
fn webhooks_that_ask_about_nine_kinds_let_the_others_through() {
    for text in WEBHOOKS {
        let webhook = webhook(text);
        let rules = webhook["rules"].as_array().expect("rules");
        for (group, kind) in workload_kinds() {
            // The plural by which each of these is named in the API.
            let resource = format!("{}s", kind.to_lowercase());
            let names = |rule: &Value, key: &str, name: &str| {
                rule[key].as_array().expect("a list").iter().any(|found| found == name)
            };
            let is_asked = rules.iter().any(|rule| {
                names(rule, "apiGroups", group)
                    && names(rule, "resources", &resource)
                    && names(rule, "operations", "CREATE")
            });
            assert!(is_asked, "{group}/{resource}");
        }
    }
}

#[test]
fn forged_owners_skipped_the_webhook() {
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"ownerReferences": [
        {"apiVersion": "batch/v1", "kind": "Job", "name": "x", "uid": "1", "controller": true},
    ]}});
    let system = |name: &str| format!("system:serviceaccount:kube-system:{name}");
    for text in WEBHOOKS {
        for (user, skipped) in [
            ("alice".to_owned(), false),
            ("system:serviceaccount:research:job-controller".to_owned(), false),
            (system("default"), false),
            (system("job-controller"), true),
            ("system:kube-controller-manager".to_owned(), true),
        ] {
            let mut context = Context::default();
            let request = json!({"kind": {"kind": "Pod"}, "userInfo": {"username": user}});
            context.add_variable("request", &request).expect("a request");
            context.add_variable("object", &pod).expect("an object");
            let conditions = webhook(text)["matchConditions"].clone();
            let is_asked = conditions.as_array().expect("conditions").iter().all(|condition| {
                let expression = condition["expression"].as_str().expect("text");
                let program = Program::compile(expression).expect(expression);
                program.execute(&context).expect(expression) == cel::Value::from(true)
            });
            assert_eq!(is_asked, !skipped, "{user}");
            // The server would skip it, too.
            assert_eq!(is_from_decided_owner(&pod, &user, &Site::default()), skipped, "{user}");
        }
    }
}

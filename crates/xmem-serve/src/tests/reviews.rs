//! Reviews as the API server sends them, for every kind, and their answers.

use super::client::post;
use super::{Running, SITE, patient};
use crate::review::Review;
use crate::{Mutation, answer};
use base64::Engine as _;
use expect_test::expect;
use serde_json::Value;
use xmem_gate::Site;
use xmem_gate::kubernetes::TemplateCheck;

macro_rules! reviews {
    ($($name:literal)*) => {
        [$(($name, include_str!(concat!("../../tests/reviews/", $name, ".json")))),*]
    };
}

/// Objects with the defaults and fields that the API server adds.
const REVIEWS: [(&str, &str); 21] = reviews! {
    "pod-create" "pod-create-without-gpu" "pod-create-vgpu" "pod-update-terminating"
    "job-create" "job-create-dry-run" "job-create-without-annotations" "job-create-annotated-above"
    "job-update-of-labels" "job-delete" "cronjob-create" "deployment-update"
    "deployment-update-of-replicas" "deployment-scale" "statefulset-create" "jobset-create"
    "pytorchjob-create" "raycluster-create" "rayjob-create" "service-create" "sweep-create"
};

pub(super) fn recorded(name: &str) -> &'static str {
    REVIEWS.iter().find(|(known, _)| *known == name).expect("a review").1
}

fn shown(name: &str, body: &str) -> String {
    let answer: Value = serde_json::from_str(body).expect("JSON");
    let sent: Value = serde_json::from_str(recorded(name)).expect("JSON");
    assert_eq!(answer["apiVersion"], "admission.k8s.io/v1");
    assert_eq!(answer["kind"], "AdmissionReview");
    assert_eq!(answer["response"]["uid"], sent["request"]["uid"], "{name}");
    let response = &answer["response"];
    let mut lines = format!("{name}: allowed {}\n", response["allowed"]);
    for warning in response["warnings"].as_array().into_iter().flatten() {
        let warning = warning.as_str().expect("text");
        assert!(warning.chars().count() <= 120, "{warning}");
        lines += &format!("  warning {warning}\n");
    }
    if let Some(message) = response["status"]["message"].as_str() {
        lines += &format!("  {} {message}\n", response["status"]["code"]);
    }
    if let Some(patch) = response["patch"].as_str() {
        assert_eq!(response["patchType"], "JSONPatch");
        let patch = base64::engine::general_purpose::STANDARD.decode(patch).expect("base64");
        lines += &format!("  patch {}\n", String::from_utf8(patch).expect("text"));
    }
    lines
}

#[tokio::test]
async fn every_kind_gets_its_answer() {
    let server = Running::start(patient()).await;
    // One connection, as the API server keeps it.
    let mut client = server.client().await;
    let mut page = String::new();
    for (name, review) in REVIEWS {
        let (status, body) = client.ask(&post("/validate", review)).await;
        assert_eq!(status, 200, "{name}: {body}");
        page += &shown(name, &body);
    }
    expect![[r#"
        pod-create: allowed true
        pod-create-without-gpu: allowed true
        pod-create-vgpu: allowed false
          403 xmem: does not fit: needs 9.44 GiB of 8.79 GiB: 666.00 MiB too much; https://hpc.example.org/gpu-memory
        pod-update-terminating: allowed true
        job-create: allowed false
          403 xmem: does not fit: needs 21.19 GiB of 14.58 GiB on t4-16g: 6.61 GiB too much (spec.template); https://hpc.example.org/gpu-memory
        job-create-dry-run: allowed false
          403 xmem: does not fit: needs 21.19 GiB of 14.58 GiB on t4-16g: 6.61 GiB too much (spec.template); https://hpc.example.org/gpu-memory
        job-create-without-annotations: allowed true
          warning xmem: GPU memory not checked: no annotation xmem.dev/peak-bytes (spec.template)
          warning https://hpc.example.org/gpu-memory
        job-create-annotated-above: allowed true
        job-update-of-labels: allowed true
        job-delete: allowed true
        cronjob-create: allowed true
          warning xmem: over-requested: needs 5.44 GiB of 39.49 GiB on a100-40g; t4-16g is enough (spec.jobTemplate.spec.template)
          warning https://hpc.example.org/gpu-memory
        deployment-update: allowed false
          403 xmem: does not fit: needs 30.19 GiB of 14.58 GiB on t4-16g: 15.61 GiB too much (spec.template); https://hpc.example.org/gpu-memory
        deployment-update-of-replicas: allowed true
        deployment-scale: allowed true
        statefulset-create: allowed true
          warning xmem: tight: needs 13.89 GiB of 14.58 GiB on t4-16g with 746.50 MiB to stay free (spec.template)
          warning https://hpc.example.org/gpu-memory
        jobset-create: allowed false
          403 xmem: does not fit: needs 30.19 GiB of 14.58 GiB on t4-16g: 15.61 GiB too much (spec.replicatedJobs[1].template.spec.template); https://hpc.example.org/gpu-memory
        pytorchjob-create: allowed false
          403 xmem: does not fit: needs 30.19 GiB of 14.58 GiB on t4-16g: 15.61 GiB too much (spec.pytorchReplicaSpecs.Worker.template); https://hpc.example.org/gpu-memory
        raycluster-create: allowed false
          403 xmem: does not fit: needs 30.19 GiB of 14.58 GiB on t4-16g: 15.61 GiB too much (spec.workerGroupSpecs[0].template); https://hpc.example.org/gpu-memory
        rayjob-create: allowed true
        service-create: allowed true
        sweep-create: allowed false
          403 xmem: does not fit: needs 30.19 GiB of 14.58 GiB on t4-16g: 15.61 GiB too much (spec.trials[0].pod); https://hpc.example.org/gpu-memory
    "#]].assert_eq(&page);
    for line in ["xmem_reviews_total{action=\"reject\"} 8", "xmem_reviews_in_flight 0"] {
        assert!(server.counts(line), "{line}");
    }
}

#[tokio::test]
async fn new_objects_are_annotated_with_the_decision() {
    let server = Running::with(SITE, patient(), Mutation::Annotate, answer::decide).await;
    let mut client = server.client().await;
    let mut page = String::new();
    for name in ["pod-create", "job-create", "deployment-update", "service-create"] {
        let (status, body) = client.ask(&post("/mutate", recorded(name))).await;
        assert_eq!(status, 200, "{body}");
        page += &shown(name, &body);
    }
    expect![[r#"
        pod-create: allowed true
          patch [{"op":"add","path":"/metadata/annotations/xmem.dev~1decision","value":"fits"}]
        job-create: allowed true
          patch [{"op":"add","path":"/metadata/annotations","value":{"xmem.dev/decision":"does_not_fit"}}]
        deployment-update: allowed true
        service-create: allowed true
    "#]].assert_eq(&page);
}

#[tokio::test]
async fn an_internal_error_lets_through_unless_the_namespace_fails_closed() {
    fn broken(_: &Review, _: &Site) -> Vec<TemplateCheck> {
        panic!("broken on purpose")
    }
    let warning = "xmem: GPU memory not checked: internal error of the gate";
    for (site, allowed, text) in [
        ("", true, warning),
        ("policy = \"warn\"\nfail-closed = true", true, warning),
        ("policy = \"off\"", true, ""),
        ("[namespace.research]\nfail-closed = true", false, warning),
        ("[namespace.other]\nfail-closed = true", true, warning),
    ] {
        let server = Running::with(site, patient(), Mutation::Annotate, broken).await;
        let mut client = server.client().await;
        // The connection goes on.
        for _ in 0..2 {
            let (status, body) = client.ask(&post("/validate", recorded("job-create"))).await;
            let answer: Value = serde_json::from_str(&body).expect("JSON");
            assert_eq!(
                (status, &answer["response"]["allowed"]),
                (200, &Value::Bool(allowed)),
                "{site}"
            );
            assert!(body.contains(text), "{body}");
        }
        let (_, body) = client.ask(&post("/mutate", recorded("job-create"))).await;
        assert!(body.contains("\"allowed\":true") && !body.contains("patch"), "{body}");
        assert!(server.counts("xmem_internal_errors_total 3"));
    }
}

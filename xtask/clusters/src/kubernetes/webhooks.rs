//! The repository's webhook configurations, changed as far as a server outside of the cluster and the version
//! of Kubernetes need it.

use super::MANIFESTS;
use super::certificates::{Authority, replace};
use super::kubectl::{Kubectl, OutputError};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::path::Path;
use xmem_task::{Error, repo};

/// The manifests.
const FILES: [&str; 2] = ["mutating-webhook.yaml", "validating-webhook.yaml"];

/// What the version of Kubernetes has.
#[derive(Clone, Copy, Debug)]
pub(super) struct Webhooks {
    has_conditions: bool,
    has_cronjobs: bool,
}

impl Webhooks {
    /// Applies the manifests.
    pub(super) fn apply(
        folder: &Path,
        kubectl: &Kubectl,
        authority: &Authority,
        address: &str,
    ) -> Result<Self, Error> {
        let found = Self::of(kubectl)?;
        let bundle = STANDARD.encode(authority.pem());
        for file in FILES {
            let path = repo::root().join(MANIFESTS).join(file).display().to_string();
            // kubectl turns it into JSON; an older version may not know all of its fields.
            let text = kubectl.must(&[
                "create",
                "--dry-run=client",
                "--validate=false",
                "-o",
                "json",
                "-f",
                &path,
            ])?;
            let mut object: Value = serde_json::from_str(&text).map_err(OutputError)?;
            found.change(&mut object, address, &bundle);
            let path = folder.join(file).with_extension("json");
            replace(&path, &object.to_string())?;
            kubectl.must(&["apply", "-f", &path.display().to_string()])?;
        }
        Ok(found)
    }

    fn of(kubectl: &Kubectl) -> Result<Self, Error> {
        let schemas = kubectl.must(&["get", "--raw", "/openapi/v2"])?;
        let batch = kubectl.must(&["get", "--raw", "/apis/batch/v1"])?;
        Ok(Self {
            has_conditions: schemas.contains("\"matchConditions\""),
            has_cronjobs: batch.contains("\"cronjobs\""),
        })
    }

    /// Returns whether conditions in CEL are known (Kubernetes 1.28).
    pub(super) fn has_conditions(self) -> bool {
        self.has_conditions
    }

    /// The version of the group `batch` that has CronJobs (v1 since Kubernetes 1.21).
    pub(super) fn version_of_cronjobs(self) -> &'static str {
        if self.has_cronjobs { "batch/v1" } else { "batch/v1beta1" }
    }

    fn change(self, object: &mut Value, address: &str, bundle: &str) {
        for webhook in object["webhooks"].as_array_mut().into_iter().flatten() {
            let path = webhook["clientConfig"]["service"]["path"].as_str().unwrap_or_default();
            let url = format!("https://{address}{path}");
            webhook["clientConfig"] = json!({"url": url, "caBundle": bundle});
            if !self.has_conditions
                && let Some(fields) = webhook.as_object_mut()
            {
                fields.remove("matchConditions");
            }
            for rule in webhook["rules"].as_array_mut().into_iter().flatten() {
                if !self.has_cronjobs && rule["apiGroups"] == json!(["batch"]) {
                    rule["apiVersions"] = json!(["v1", "v1beta1"]);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(webhooks: Webhooks) -> Value {
        let mut object = json!({"webhooks": [{
            "name": "validate.xmem.dev",
            "clientConfig": {"service": {"name": "xmem", "path": "/validate"}},
            "matchConditions": [{"name": "some"}],
            "rules": [{"apiGroups": ["batch"], "apiVersions": ["v1"]}],
        }]});
        webhooks.change(&mut object, "127.0.0.1:1", "Q0E=");
        object["webhooks"][0].clone()
    }

    #[test]
    fn only_the_address_is_changed_for_a_version_that_knows_all() {
        let all = Webhooks { has_conditions: true, has_cronjobs: true };
        let expected = json!({
            "name": "validate.xmem.dev",
            "clientConfig": {"url": "https://127.0.0.1:1/validate", "caBundle": "Q0E="},
            "matchConditions": [{"name": "some"}],
            "rules": [{"apiGroups": ["batch"], "apiVersions": ["v1"]}],
        });
        assert_eq!(changed(all), expected);
    }

    #[test]
    fn an_old_version_gets_no_conditions_and_its_own_cronjobs() {
        let webhook = changed(Webhooks { has_conditions: false, has_cronjobs: false });
        assert_eq!(webhook.get("matchConditions"), None);
        assert_eq!(webhook["rules"][0]["apiVersions"], json!(["v1", "v1beta1"]));
    }
}

//! Objects that a controller makes for an owner whose templates were decided about when it was created.
//!
//! An `ownerReference` alone proves nothing: whoever creates an object writes it, and the API server does not
//! look whether the owner exists. Who the request is from, the API server has authenticated.

use super::workload::is_workload;
use crate::site::Site;
use serde_json::Value;

/// A controller of kube-controller-manager, by the name of its service account in `kube-system`, and the kind
/// of owner for which it makes objects of a kind.
struct Controller {
    account: &'static str,
    owner: (&'static str, &'static str),
    makes: (&'static str, &'static str),
}

/// Kubernetes 1.34, `pkg/controller`: the names of `cmd/kube-controller-manager/names` and of `ControllerKind`.
const CONTROLLERS: [Controller; 7] = [
    controller("job-controller", ("batch", "Job"), POD),
    controller("replicaset-controller", ("apps", "ReplicaSet"), POD),
    controller("replication-controller", ("", "ReplicationController"), POD),
    controller("statefulset-controller", ("apps", "StatefulSet"), POD),
    controller("daemon-set-controller", ("apps", "DaemonSet"), POD),
    controller("cronjob-controller", ("batch", "CronJob"), ("batch", "Job")),
    controller("deployment-controller", ("apps", "Deployment"), ("apps", "ReplicaSet")),
];

const POD: (&str, &str) = ("", "Pod");

const fn controller(
    account: &'static str,
    owner: (&'static str, &'static str),
    makes: (&'static str, &'static str),
) -> Controller {
    Controller { account, owner, makes }
}

/// The prefix of the names of service accounts in `kube-system`.
const SYSTEM_ACCOUNT: &str = "system:serviceaccount:kube-system:";

/// The user of all these controllers where kube-controller-manager runs without
/// `--use-service-account-credentials`.
const MANAGER: &str = "system:kube-controller-manager";

/// Returns whether `user` is a controller, and has the object from an owner about whose templates the gate
/// decides: a controller of Kubernetes, or one of those that the site names.
#[must_use]
pub fn is_from_decided_owner(object: &Value, user: &str, site: &Site) -> bool {
    let Some(owner) = controlling_owner(object) else { return false };
    if site.controllers.iter().any(|known| known == user) {
        return owner != POD
            && (is_workload(owner.0, owner.1) || !site.templates_of(owner.0, owner.1).is_empty());
    }
    let made = group_and_kind(object);
    let account = user.strip_prefix(SYSTEM_ACCOUNT);
    CONTROLLERS.iter().any(|known| {
        let is_user = user == MANAGER || account == Some(known.account);
        is_user && known.owner == owner && known.makes == made
    })
}

/// The group and kind of the owner that controls an object, of which there is at most one (Kubernetes API
/// reference, OwnerReference).
fn controlling_owner(object: &Value) -> Option<(&str, &str)> {
    let owners = object.pointer("/metadata/ownerReferences")?.as_array()?;
    let owner = owners.iter().find(|owner| owner.get("controller") == Some(&Value::Bool(true)))?;
    Some(group_and_kind(owner))
}

fn group_and_kind(object: &Value) -> (&str, &str) {
    let text = |key| object.get(key).and_then(Value::as_str).unwrap_or_default();
    let group = text("apiVersion").split_once('/').map_or("", |(group, _)| group);
    (group, text("kind"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn object(made: (&str, &str), owner: (&str, &str), controls: bool) -> Value {
        json!({"apiVersion": made.0, "kind": made.1, "metadata": {"ownerReferences": [
            {"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "1"},
            {"apiVersion": owner.0, "kind": owner.1, "name": "x", "uid": "2", "controller": controls},
        ]}})
    }

    fn is_skipped(object: &Value, user: &str) -> bool {
        let site = Site::from_toml(
            "controllers = ['system:serviceaccount:jobset-system:jobset-controller-manager']\n\
             [[workload]]\ngroup = 'example.org'\nkind = 'Sweep'\ntemplates = ['spec.pod']\n",
        );
        is_from_decided_owner(object, user, &site.expect("a site"))
    }

    #[test]
    fn only_a_controller_has_objects_from_its_owners() {
        let (pod, job, set) = (("v1", "Pod"), ("batch/v1", "Job"), ("apps/v1", "ReplicaSet"));
        let account = |name: &str| format!("system:serviceaccount:kube-system:{name}");
        for (made, owner, name) in [
            (pod, job, "job-controller"),
            (pod, set, "replicaset-controller"),
            (pod, ("v1", "ReplicationController"), "replication-controller"),
            (pod, ("apps/v1", "StatefulSet"), "statefulset-controller"),
            (pod, ("apps/v1", "DaemonSet"), "daemon-set-controller"),
            (job, ("batch/v1", "CronJob"), "cronjob-controller"),
            (set, ("apps/v1", "Deployment"), "deployment-controller"),
        ] {
            let owned = object(made, owner, true);
            assert!(is_skipped(&owned, &account(name)), "{name}");
            assert!(is_skipped(&owned, MANAGER), "{name}");
            for user in [
                "alice",
                "",
                name,
                "system:admin",
                "system:serviceaccount:research:default",
                &format!("system:serviceaccount:research:{name}"),
                &account(&format!("{name}-2")),
                &account("generic-garbage-collector"),
            ] {
                assert!(!is_skipped(&owned, user), "{name} {user}");
            }
            // The owner does not control it, is another, or there is none.
            assert!(!is_skipped(&object(made, owner, false), &account(name)));
            assert!(!is_skipped(&object(made, ("example.org/v1", owner.1), true), &account(name)));
            assert!(!is_skipped(&object(made, ("v1", "Node"), true), &account(name)));
            assert!(!is_skipped(&json!({"apiVersion": made.0, "kind": made.1}), &account(name)));
        }
        // Each for its own kinds.
        assert!(!is_skipped(&object(pod, set, true), &account("job-controller")));
        assert!(!is_skipped(&object(job, job, true), &account("job-controller")));
    }

    #[test]
    fn controllers_of_the_site_have_objects_from_every_known_kind() {
        let user = "system:serviceaccount:jobset-system:jobset-controller-manager";
        let job = ("batch/v1", "Job");
        for (owner, expected) in [
            (("jobset.x-k8s.io/v1alpha2", "JobSet"), true),
            (("example.org/v1", "Sweep"), true),
            (("example.org/v1", "Sweeps"), false),
            (("argoproj.io/v1alpha1", "Workflow"), false),
            (("v1", "Pod"), false),
        ] {
            assert_eq!(is_skipped(&object(job, owner, true), user), expected, "{owner:?}");
            assert!(!is_skipped(&object(job, owner, true), "alice"));
        }
    }
}

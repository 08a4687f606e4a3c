//! The decision about the bytes that annotations name. Nothing is replayed.

use super::annotations::{Annotations, ParseAnnotationError};
use super::placement::{Placement, placement};
use super::template::PodTemplate;
use super::workload::find_templates;
use crate::decision::{Action, Policy};
use crate::margin::Margin;
use crate::site::{Rules, Site, Unresolved};
use serde_json::Value;
use xmem::{Bytes, Decision, Device, TightBy};

/// What is decided about the pods of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TemplateCheck {
    /// The place of the template in the object; empty for a pod.
    pub place: String,
    /// The decision.
    pub decision: Decision,
    /// Why it is tight, if it is.
    pub tight_by: Option<TightBy>,
    /// The smallest device on which the pods may run; none if it is not known.
    pub device: Option<Device>,
    /// Memory that a job needs there, context included; none if it is not known.
    pub need: Option<Bytes>,
    /// Memory of the device that is to stay free.
    pub margin: Bytes,
    /// The smallest device of the site that holds the job and has less memory, if it is over-requested.
    pub smaller: Option<Device>,
    /// Why nothing was decided, if nothing was.
    pub unchecked: Option<Unchecked>,
    /// What the rules of the namespace make of it.
    pub action: Action,
}

/// The reason why nothing is decided about a template.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unchecked {
    /// No annotation names the memory that the job needs.
    #[error("no annotation {}", Annotations::PEAK)]
    NoAnnotation,
    /// An annotation cannot be read.
    #[error(transparent)]
    Annotation(#[from] ParseAnnotationError),
    /// It is not known which GPU the pods get.
    #[error(transparent)]
    Unresolved(#[from] Unresolved),
}

/// Decides about every template of an object that asks for GPUs. Empty if none does, or the policy of the
/// namespace is off.
#[must_use]
pub fn check_object(object: &Value, namespace: &str, site: &Site) -> Vec<TemplateCheck> {
    let rules = site.rules_of_namespace(namespace);
    if rules.policy == Some(Policy::Off) {
        return Vec::new();
    }
    let templates = find_templates(object, &|group, kind| site.templates_of(group, kind));
    templates.iter().filter_map(|template| check_template(template, site, &rules)).collect()
}

/// Decides about a template. None if it asks for no GPU.
#[must_use]
pub fn check_template(template: &PodTemplate, site: &Site, rules: &Rules) -> Option<TemplateCheck> {
    let mut check = TemplateCheck {
        place: template.place(),
        decision: Decision::NoVerdict,
        tight_by: None,
        device: None,
        need: None,
        margin: Bytes::ZERO,
        smaller: None,
        unchecked: None,
        action: Action::Admit,
    };
    let placed = match placement(template, site, rules) {
        Ok(placed) => placed?,
        Err(error) => {
            check.unchecked = Some(error.into());
            return Some(check.with_action(rules));
        }
    };
    check.device = placed.devices.first().cloned();
    match &template.annotations {
        Err(error) => check.unchecked = Some(error.clone().into()),
        Ok(found) => match found.peak {
            None => check.unchecked = Some(Unchecked::NoAnnotation),
            Some(peak) => {
                check.decide(&Need { peak, context: found.context }, &placed, site, rules);
            }
        },
    }
    Some(check.with_action(rules))
}

/// Memory that a job needs.
struct Need {
    peak: Bytes,
    /// The context of the device for which it was predicted.
    context: Option<Bytes>,
}

impl Need {
    /// The need on a device: its context is known, unless only its memory is.
    fn on(&self, device: &Device) -> Bytes {
        let context = match (device.name.as_str(), self.context) {
            ("custom", Some(context)) => context,
            _ => device.context,
        };
        self.peak + context
    }

    fn leaves_margin(&self, device: &Device, margin: Margin) -> bool {
        self.on(device) <= device.memory - margin.of(device.memory)
    }
}

impl TemplateCheck {
    fn decide(&mut self, need: &Need, placed: &Placement, site: &Site, rules: &Rules) {
        let margin = rules.margin.unwrap_or_default();
        let Some((device, others)) = placed.devices.split_first() else { return };
        self.need = Some(need.on(device));
        self.margin = margin.of(device.memory);
        (self.decision, self.tight_by) = if need.leaves_margin(device, margin) {
            (Decision::Fits, None)
        } else if need.on(device) <= device.memory {
            (Decision::Tight, Some(TightBy::Margin))
        } else if others.iter().any(|other| need.leaves_margin(other, margin)) {
            (Decision::Tight, Some(TightBy::Placement))
        } else {
            (Decision::DoesNotFit, None)
        };
        if self.decision == Decision::Fits {
            let smaller = site
                .devices()
                .into_iter()
                .find(|other| other.memory < device.memory && need.leaves_margin(other, margin));
            if let Some(found) = smaller {
                self.smaller = Some(found.clone());
                self.decision = Decision::OverRequested;
            }
        }
    }

    fn with_action(mut self, rules: &Rules) -> Self {
        let closed = rules.fail_closed.unwrap_or(false);
        self.action = rules.policy.unwrap_or_default().action(self.decision, closed);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const SITE: &str = r#"
policy = "reject"
margin = "5%"

[[gpu]]
device = "t4-16g"
products = ["Tesla-T4"]

[[gpu]]
device = "a100-40g"
products = ["NVIDIA-A100-SXM4-40GB", "NVIDIA-A100"]

[[gpu]]
device = "a100-80g"
products = ["NVIDIA-A100-SXM4-80GB", "NVIDIA-A100"]

[namespace.off]
policy = "off"

[namespace.warn]
policy = "warn"

[namespace.closed]
fail-closed = true

[namespace.exact]
margin = "0%"
"#;

    fn job(product: &str, annotations: &Value) -> Value {
        let template = json!({
            "metadata": {"annotations": annotations},
            "spec": {
                "nodeSelector": {"nvidia.com/gpu.product": product},
                "containers": [{"name": "train", "resources": {"limits": {"nvidia.com/gpu": 1}}}],
            },
        });
        json!({"apiVersion": "batch/v1", "kind": "Job", "spec": {"template": template}})
    }

    fn decided(object: &Value, namespace: &str) -> String {
        let site = Site::from_toml(SITE).expect("site");
        let checks = check_object(object, namespace, &site);
        let words = checks.iter().map(|check| {
            let tight = check.tight_by.map_or(String::new(), |by| format!("/{}", by.name()));
            let smaller = check.smaller.as_ref().map_or(String::new(), |d| format!("/{}", d.name));
            let why = check.unchecked.as_ref().map_or(String::new(), |why| format!(": {why}"));
            format!("{}{tight}{smaller} {}{why}", check.decision.name(), check.action.name())
        });
        words.collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn bytes_are_held_against_the_smallest_device() {
        let mib = |size: u64| json!({"xmem.dev/peak-bytes": (size << 20).to_string()});
        let context = |name: &str| xmem::find(name).expect("device").context.get() >> 20;
        let memory = |name: &str| xmem::find(name).expect("device").memory.get() >> 20;
        let (t4, a40) = (context("t4-16g"), context("a100-40g"));
        let t4_limit = memory("t4-16g") - memory("t4-16g") * 5 / 100 - 1 - t4;
        for (product, peak, namespace, expected) in [
            ("Tesla-T4", 1000, "default", "fits admit"),
            ("Tesla-T4", t4_limit, "default", "fits admit"),
            ("Tesla-T4", t4_limit + 2, "default", "tight/margin warn"),
            ("Tesla-T4", t4_limit + 2, "exact", "fits admit"),
            ("Tesla-T4", memory("t4-16g") - t4, "default", "tight/margin warn"),
            ("Tesla-T4", memory("t4-16g") - t4 + 1, "default", "does_not_fit reject"),
            ("Tesla-T4", memory("t4-16g"), "warn", "does_not_fit warn"),
            ("Tesla-T4", memory("t4-16g"), "off", ""),
            ("NVIDIA-A100-SXM4-40GB", 1000, "default", "over_requested/t4-16g warn"),
            ("NVIDIA-A100-SXM4-40GB", 20_000, "default", "fits admit"),
            ("NVIDIA-A100", memory("a100-40g") - a40 + 1, "default", "tight/placement warn"),
            ("NVIDIA-A100", 90_000, "default", "does_not_fit reject"),
        ] {
            assert_eq!(decided(&job(product, &mib(peak)), namespace), expected, "{product} {peak}");
        }
    }

    #[test]
    fn without_annotations_the_policy_decides() {
        let missing = "no_verdict warn: no annotation xmem.dev/peak-bytes";
        let closed = "no_verdict reject: no annotation xmem.dev/peak-bytes";
        let none = job("Tesla-T4", &json!({}));
        assert_eq!(decided(&none, "default"), missing);
        assert_eq!(decided(&none, "closed"), closed);
        assert_eq!(decided(&none, "off"), "");
        let wrong = job("Tesla-T4", &json!({"xmem.dev/peak-bytes": "4 GiB"}));
        let reason = "annotation xmem.dev/peak-bytes: not a number of bytes in decimal digits";
        assert_eq!(decided(&wrong, "default"), format!("no_verdict warn: {reason}"));
        let unknown = job("Radeon", &json!({"xmem.dev/peak-bytes": "1"}));
        assert!(
            decided(&unknown, "closed").starts_with("no_verdict reject: the GPU type `Radeon`")
        );
        let no_gpu = json!({"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [{}]}});
        assert_eq!(decided(&no_gpu, "closed"), "");
    }

    #[test]
    fn the_annotated_context_counts_where_only_the_memory_is_known() {
        let of = |context: Option<u64>, budget: u64| {
            let mut annotations = json!({"xmem.dev/peak-bytes": (1000_u64 << 20).to_string()});
            if let Some(context) = context {
                annotations["xmem.dev/context-bytes"] = json!((context << 20).to_string());
            }
            let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"annotations": annotations},
                "spec": {"containers": [{"resources": {"limits":
                    {"nvidia.com/gpu": 1, "nvidia.com/gpumem": budget}}}]}});
            decided(&pod, "exact")
        };
        assert_eq!(of(Some(200), 1200), "fits admit");
        assert_eq!(of(Some(201), 1200), "does_not_fit reject");
        // The context that is assumed for a device of which only the memory is known.
        assert_eq!(of(None, 1450), "fits admit");
        assert_eq!(of(None, 1449), "does_not_fit reject");
    }

    #[test]
    fn annotations_of_the_object_count_for_its_templates() {
        let mut object = job("Tesla-T4", &json!({}));
        object["metadata"] = json!({"annotations": {"xmem.dev/peak-bytes": "1000"}});
        assert_eq!(decided(&object, "closed"), "fits admit");
    }
}

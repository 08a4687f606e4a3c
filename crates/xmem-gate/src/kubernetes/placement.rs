//! The devices on which a pod may run.

use super::nodes::NodeTerm;
use super::nodes::unshared;
use super::template::{GpuMemory, MEMORY, PERCENT, PodTemplate};
use crate::request::JobRequest;
use crate::site::{Rules, Site, Unresolved};
use xmem::{Bytes, Device};

/// The devices on which a pod may run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// The devices with the memory that the pod may use, the smallest first; never empty.
    pub devices: Vec<Device>,
    /// The number of GPUs, or parts of them.
    pub count: u32,
}

/// The resource for any GPU.
const ANY: &str = "nvidia.com/gpu";

/// The same where GPUs are shared in time (NVIDIA, k8s-device-plugin, `renameByDefault`).
const SHARED: &str = "nvidia.com/gpu.shared";

/// The resources for slices of GPUs.
const SLICE: &str = "nvidia.com/mig-";

/// The devices on which a pod may run, by the site and the rules of its namespace. None if it asks for no
/// GPU.
///
/// # Errors
/// If it asks for a GPU of which the site says nothing, or how many or how much of it cannot be read.
pub fn placement(
    template: &PodTemplate,
    site: &Site,
    rules: &Rules,
) -> Result<Option<Placement>, Unresolved> {
    let mut devices: Vec<Device> = Vec::new();
    let mut count: u64 = 0;
    let of_site = |name: &str| site.gpus.iter().any(|gpu| gpu.resources.iter().any(|r| r == name));
    let is_gpu =
        |name: &str| matches!(name, ANY | SHARED) || name.starts_with(SLICE) || of_site(name);
    if let Some(name) = template.unreadable.iter().find(|name| is_gpu(name)) {
        return Err(Unresolved::Quantity(name.clone()));
    }
    for (name, wanted) in template.resources.iter().filter(|(name, _)| is_gpu(name)) {
        count = count.saturating_add(*wanted);
        let mut found = Ok(Vec::new());
        for term in &template.nodes {
            match (&mut found, of_term((name, template.queue.as_deref()), term, site, rules)) {
                (Ok(all), Ok(more)) => all.extend(more),
                (Ok(_), Err(error)) => found = Err(error),
                (Err(_), _) => break,
            }
        }
        devices.extend(match (found, template.gpu_memory) {
            // The limit says enough.
            (Err(_), Some(GpuMemory::Size(size))) => vec![Device::custom(size)],
            (found, _) => found?,
        });
    }
    if count == 0 {
        return Ok(None);
    }
    let is_share = |name: &&String| [MEMORY, PERCENT].contains(&name.as_str());
    if let Some(name) = template.unreadable.iter().find(is_share) {
        return Err(Unresolved::Quantity(name.clone()));
    }
    if devices.is_empty() {
        return Err(Unresolved::Nodes);
    }
    if let Some(limit) = template.gpu_memory {
        for device in &mut devices {
            let memory = limited(device.memory, limit);
            *device = device.clone().with_memory(memory, "limit of the pod");
        }
    }
    devices.sort_by(|a, b| (a.memory, &a.name).cmp(&(b.memory, &b.name)));
    devices.dedup();
    Ok(Some(Placement { devices, count: u32::try_from(count).unwrap_or(u32::MAX) }))
}

fn limited(memory: Bytes, limit: GpuMemory) -> Bytes {
    match limit {
        GpuMemory::Size(size) => memory.min(size),
        GpuMemory::Percent(share) => {
            Bytes((u128::from(memory.get()) * u128::from(share) / 100) as u64)
        }
    }
}

/// The devices of a resource on the nodes of one alternative, for an object that waits in this queue.
fn of_term(
    (name, queue): (&str, Option<&str>),
    term: &NodeTerm,
    site: &Site,
    rules: &Rules,
) -> Result<Vec<Device>, Unresolved> {
    let products = term.products.iter().flatten().map(|name| unshared(name).to_owned());
    let request = JobRequest {
        resources: vec![(if name == SHARED { ANY } else { name }.to_owned(), 1)],
        products: products.collect(),
        ..JobRequest::default()
    };
    if term.products.as_ref().is_some_and(Vec::is_empty) {
        // Requirements that exclude each other.
        return Ok(Vec::new());
    }
    let by_memory = term.products.is_none() && term.restricts_memory();
    let is_any = matches!(name, ANY | SHARED);
    let found: Vec<&Device> = if is_any && by_memory {
        site.gpus.iter().filter(|gpu| gpu.resources.is_empty()).map(|gpu| &gpu.device).collect()
    } else {
        let names_none = is_any && term.products.is_none();
        let default: Vec<&Device> = match queue.and_then(|name| site.queues.get(name)) {
            _ if !names_none => Vec::new(),
            Some(all) => {
                all.iter().filter_map(|&index| Some(&site.gpus.get(index)?.device)).collect()
            }
            None => rules
                .gpu
                .and_then(|index| site.gpus.get(index))
                .map(|gpu| &gpu.device)
                .into_iter()
                .collect(),
        };
        match site.candidates(&request) {
            _ if !default.is_empty() => default,
            Ok(found) => found.devices,
            Err(Unresolved::Resource(_)) => slices(name, &request.products),
            Err(error) => return Err(error),
        }
    };
    if found.is_empty() && by_memory && is_any && site.gpus.is_empty() {
        // Nothing is known but how much memory the nodes have at least.
        return term.above.map(|size| vec![Device::custom(size)]).ok_or(Unresolved::NoKind);
    }
    if found.is_empty() && !is_any {
        return Err(Unresolved::Resource(name.to_owned()));
    }
    Ok(found.into_iter().filter(|device| term.allows(device)).cloned().collect())
}

/// The built-in slices of a resource's name (NVIDIA, "MIG Support in Kubernetes", `mixed` strategy), of
/// the products if some are named.
fn slices(name: &str, products: &[String]) -> Vec<&'static Device> {
    let Some(slice) = name.strip_prefix(SLICE) else { return Vec::new() };
    // `+me` and the like, in labels `.me`: the same memory.
    let slice = slice.strip_suffix(".me").unwrap_or(slice);
    let of_product = |whole: &str| {
        products.is_empty()
            || products
                .iter()
                .any(|name| xmem::devices::find_all(name).iter().any(|d| d.name == whole))
    };
    xmem::devices::devices()
        .iter()
        .filter(|device| {
            let parts = device.name.split_once("-mig-");
            parts.is_some_and(|(whole, known)| known == slice && of_product(whole))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::workload::find_templates;
    use super::*;
    use serde_json::{Value, json};

    const SITE: &str = r#"
[[gpu]]
device = "t4-16g"
products = ["Tesla-T4"]

[[gpu]]
device = "a100-40g"
products = ["NVIDIA-A100-SXM4-40GB"]

[[gpu]]
device = "a100-80g"
products = ["NVIDIA-A100-SXM4-80GB"]

[[gpu]]
device = "a100-40g-mig-1g.5gb"
resources = ["nvidia.com/mig-1g.5gb", "example.com/small"]

[namespace.teaching]
gpu = "t4-16g"

[queue.team-a]
gpus = ["a100-40g", "a100-80g"]
"#;

    fn placed(site: &str, limits: &Value, more: &Value) -> Result<String, String> {
        let site = Site::from_toml(site).expect("site");
        let mut spec = json!({"containers": [{"resources": {"limits": limits}}]});
        if let (Some(spec), Some(more)) = (spec.as_object_mut(), more.as_object()) {
            spec.extend(more.clone());
        }
        let labels = json!({"kueue.x-k8s.io/queue-name": more["queue"]});
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "spec": spec, "metadata": {"labels": labels}});
        let template = find_templates(&pod, &|_, _| Vec::new()).remove(0);
        let rules = site.rules_of_namespace(more["namespace"].as_str().unwrap_or("default"));
        let found = placement(&template, &site, &rules).map_err(|error| error.to_string())?;
        let Some(found) = found else { return Ok("none".to_owned()) };
        let names: Vec<String> = found
            .devices
            .iter()
            .map(|device| match xmem::find(&device.name) {
                Ok(known) if known.memory == device.memory => device.name.clone(),
                _ => format!("{}:{}", device.name, device.memory.get() >> 20),
            })
            .collect();
        Ok(format!("{} x{}", names.join(" "), found.count))
    }

    #[test]
    fn requests_lead_to_the_devices_of_the_site() {
        let product = |name: &str| json!({"nodeSelector": {"nvidia.com/gpu.product": name}});
        let memory = |operator: &str, size: &str| {
            json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
                {"nodeSelectorTerms": [{"matchExpressions":
                    [{"key": "nvidia.com/gpu.memory", "operator": operator, "values": [size]}]}]}}}})
        };
        let gpus = |count: u64| json!({"nvidia.com/gpu": count});
        let none = json!({});
        for (limits, more, expected) in [
            (gpus(1), product("Tesla-T4"), "t4-16g x1"),
            (gpus(4), product("NVIDIA-A100-SXM4-40GB-SHARED"), "a100-40g x4"),
            (gpus(1), memory("Gt", "20000"), "a100-40g a100-80g x1"),
            (gpus(1), memory("Lt", "20000"), "t4-16g x1"),
            (gpus(1), json!({"namespace": "teaching"}), "t4-16g x1"),
            // Those of the queue, unless the job names its own.
            (gpus(2), json!({"queue": "team-a"}), "a100-40g a100-80g x2"),
            (gpus(1), json!({"queue": "team-a", "namespace": "teaching"}), "a100-40g a100-80g x1"),
            (gpus(1), json!({"queue": "team-b", "namespace": "teaching"}), "t4-16g x1"),
            (
                gpus(1),
                json!({"queue": "team-a", "nodeSelector": {"nvidia.com/gpu.product": "Tesla-T4"}}),
                "t4-16g x1",
            ),
            (json!({"nvidia.com/gpu.shared": 1}), product("Tesla-T4"), "t4-16g x1"),
            // A built-in device that the site file does not list.
            (gpus(1), product("NVIDIA-L4"), "l4-24g x1"),
            (json!({"nvidia.com/mig-1g.5gb": 2}), none.clone(), "a100-40g-mig-1g.5gb x2"),
            (json!({"example.com/small": 1}), none.clone(), "a100-40g-mig-1g.5gb x1"),
            // Budgets of a vGPU.
            (
                json!({"nvidia.com/gpu": 1, "nvidia.com/gpumem": 3000}),
                none.clone(),
                "custom:3000 x1",
            ),
            (
                json!({"nvidia.com/gpu": 1, "nvidia.com/gpumem": 3000}),
                product("Tesla-T4"),
                "t4-16g:3000 x1",
            ),
            (
                json!({"nvidia.com/gpu": 1, "nvidia.com/gpumem": 99000}),
                product("Tesla-T4"),
                "t4-16g x1",
            ),
            (
                json!({"nvidia.com/gpu": 1, "nvidia.com/gpumem-percentage": 50}),
                product("Tesla-T4"),
                "t4-16g:7465 x1",
            ),
            (json!({"cpu": "4", "example.com/fpga": 1}), none.clone(), "none"),
            (json!({"nvidia.com/gpu": 0}), none.clone(), "none"),
            // Without a GPU, a limit of its memory asks for nothing.
            (json!({"nvidia.com/gpumem": 3000}), none.clone(), "none"),
            (json!({"nvidia.com/gpumem": "x", "cpu": "y"}), none, "none"),
        ] {
            assert_eq!(placed(SITE, &limits, &more).as_deref(), Ok(expected), "{limits} {more}");
        }
        for (limits, more, error) in [
            (gpus(1), json!({}), "the request names no type of GPU"),
            (gpus(1), product("Radeon"), "the GPU type `Radeon` is not known"),
            (gpus(1), memory("Gt", "200000"), "no GPU of the site is on the nodes"),
            (
                json!({"nvidia.com/gpu": "one"}),
                product("Tesla-T4"),
                "the quantity of `nvidia.com/gpu` cannot be read",
            ),
            (
                json!({"example.com/small": "-1"}),
                json!({}),
                "the quantity of `example.com/small` cannot be read",
            ),
            (
                json!({"nvidia.com/gpu": 1, "nvidia.com/gpumem": "x"}),
                product("Tesla-T4"),
                "the quantity of `nvidia.com/gpumem` cannot be read",
            ),
            (
                json!({"nvidia.com/mig-9g.99gb": 1}),
                json!({}),
                "the resource `nvidia.com/mig-9g.99gb`",
            ),
        ] {
            let found = placed(SITE, &limits, &more).expect_err("unresolved");
            assert!(found.starts_with(error), "{limits} {more}: {found}");
        }
    }

    #[test]
    fn without_a_site_names_and_bounds_say_the_device() {
        let slice = json!({"nvidia.com/mig-1g.10gb": 1});
        let above = json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
            {"nodeSelectorTerms": [{"matchExpressions":
                [{"key": "nvidia.com/gpu.memory", "operator": "Gt", "values": ["30000"]}]}]}}}});
        for (limits, more, expected) in [
            (json!({"nvidia.com/gpu": 1}), above, "custom:30000 x1"),
            (
                slice.clone(),
                json!({}),
                "a100-80g-mig-1g.10gb a100-40g-mig-1g.10gb h100-80g-mig-1g.10gb \
                 h100-pcie-80g-mig-1g.10gb x1",
            ),
            (
                slice,
                json!({"nodeSelector": {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB"}}),
                "a100-40g-mig-1g.10gb x1",
            ),
        ] {
            assert_eq!(placed("", &limits, &more).as_deref(), Ok(expected), "{limits}");
        }
        let any = placed("", &json!({"nvidia.com/gpu": 1}), &json!({}));
        assert!(any.expect_err("unresolved").starts_with("the request names no type of GPU"));
    }
}

//! The GPUs that a job asks for.

use std::str::FromStr;

/// The GPUs of one kind that a job asks for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct GpuRequest {
    /// The type (`a100`), in lower case; none if any GPU will do.
    pub kind: Option<String>,
    /// The number.
    pub count: u32,
}

/// What a job asks of a cluster, as far as it says which GPU the job gets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobRequest {
    /// The GPUs of each kind.
    pub gpus: Vec<GpuRequest>,
    /// A node must have all features of one of these lists (`a100&nvlink|h100`); empty for any node.
    pub features: Vec<Vec<String>>,
    /// The partitions in which the job may start.
    pub partitions: Vec<String>,
    /// The resources of Kubernetes (`nvidia.com/mig-1g.5gb`) with their counts.
    pub resources: Vec<(String, u64)>,
    /// The values of a node's label with the name of the GPU (`nvidia.com/gpu.product`) that the job takes.
    pub products: Vec<String>,
}

/// Text that is not a request for GPUs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a request for GPUs: {reason}, for example gpu:a100:1 or gres/gpu:a100=1")]
pub struct ParseRequestError {
    /// The text.
    pub text: String,
    /// What is wrong with it.
    pub reason: &'static str,
}

impl JobRequest {
    /// Reads requests as Slurm's options and TRES write them: `gpu:a100:2`, `gpu:2`, `gres:gpu:a100:1`,
    /// `gres/gpu:a100=1`, several of them with commas. Resources that are not GPUs are left out (Slurm,
    /// sbatch(1), `--gres` and `--tres-per-task`).
    ///
    /// # Errors
    /// If a count is not a number.
    pub fn gres(text: &str) -> Result<Vec<GpuRequest>, ParseRequestError> {
        let items = outside_parentheses(text);
        let read = items.iter().map(String::as_str).filter_map(|item| {
            let item = item.trim();
            let item = ["gres/", "gres:"].iter().find_map(|p| item.strip_prefix(p)).unwrap_or(item);
            let rest = item.strip_prefix("gpu")?;
            match rest.as_bytes().first() {
                None => Some(Ok(GpuRequest { kind: None, count: 1 })),
                Some(b':' | b'=') => Some(kind_and_count(&rest[1..], text)),
                // Another resource whose name begins like it.
                Some(_) => None,
            }
        });
        read.collect()
    }

    /// Reads requests as Slurm's `--gpus` writes them: `a100:2`, `2`, `a100:1,v100:1` (sbatch(1), `--gpus`).
    ///
    /// # Errors
    /// If a count is not a number.
    pub fn gpus(text: &str) -> Result<Vec<GpuRequest>, ParseRequestError> {
        let items = outside_parentheses(text);
        let items = items.iter().map(|item| item.trim()).filter(|item| !item.is_empty());
        items.map(|item| kind_and_count(item, text)).collect()
    }

    /// Reads a constraint on nodes (sbatch(1), `--constraint`): alternatives of features that must all be
    /// there. Counts (`*2`) and the brackets around alternatives of one job are left out.
    #[must_use]
    pub fn constraint(text: &str) -> Vec<Vec<String>> {
        let plain: String = text.chars().filter(|c| !"[](){}".contains(*c)).collect();
        let features = |alternative: &str| {
            let names = alternative.split(['&', ',']).map(|name| {
                let name = name.split('*').next().unwrap_or_default();
                name.trim().to_ascii_lowercase()
            });
            names.filter(|name| !name.is_empty()).collect::<Vec<_>>()
        };
        plain.split('|').map(features).filter(|names| !names.is_empty()).collect()
    }

    /// Returns whether the job asks for a GPU.
    #[must_use]
    pub fn asks_for_gpus(&self) -> bool {
        self.gpus.iter().any(|request| request.count > 0)
            || self.resources.iter().any(|(_, count)| *count > 0)
    }
}

impl FromStr for JobRequest {
    type Err = ParseRequestError;

    /// Reads the GPUs of `--request`.
    fn from_str(text: &str) -> Result<Self, ParseRequestError> {
        let error = |reason| ParseRequestError { text: text.to_owned(), reason };
        let mut gpus = Self::gres(text)?;
        if gpus.is_empty() && !text.contains("gpu") && !text.contains(['/', '=']) {
            gpus = Self::gpus(text)?;
        }
        if gpus.is_empty() {
            return Err(error("it names no GPU"));
        }
        Ok(Self { gpus, ..Self::default() })
    }
}

/// `a100`, `a100:2`, `a100=2`, `2`.
fn kind_and_count(item: &str, text: &str) -> Result<GpuRequest, ParseRequestError> {
    let error = |reason| ParseRequestError { text: text.to_owned(), reason };
    // The sockets that Slurm shows behind a count.
    let item = item.split('(').next().unwrap_or_default();
    let number = |text: &str| match text.parse() {
        Ok(count) => Ok(count),
        Err(_) => Err(error("the count is not a number")),
    };
    let kind = |name: &str| Some(name.to_ascii_lowercase());
    match item.rsplit_once([':', '=']) {
        Some(("", _)) => Err(error("the type is empty")),
        Some((name, count)) => Ok(GpuRequest { kind: kind(name), count: number(count)? }),
        None if item.is_empty() => Err(error("the count is missing")),
        None if item.bytes().all(|byte| byte.is_ascii_digit()) => {
            Ok(GpuRequest { kind: None, count: number(item)? })
        }
        None => Ok(GpuRequest { kind: kind(item), count: 1 }),
    }
}

/// The parts between commas, except commas in parentheses: `gpu:2(S:0,1)`.
fn outside_parentheses(text: &str) -> Vec<String> {
    let mut depth = 0_u32;
    let mut parts = vec![String::new()];
    for c in text.chars() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        match parts.last_mut() {
            Some(last) if c != ',' || depth > 0 => last.push(c),
            _ => parts.push(String::new()),
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gpu(kind: &str, count: u32) -> GpuRequest {
        GpuRequest { kind: (!kind.is_empty()).then(|| kind.to_owned()), count }
    }

    #[test]
    fn generic_resources_are_read_as_slurm_writes_them() {
        for (text, gpus) in [
            ("gpu", vec![gpu("", 1)]),
            ("gpu:2", vec![gpu("", 2)]),
            ("gpu:a100", vec![gpu("a100", 1)]),
            ("gpu:A100:2", vec![gpu("a100", 2)]),
            ("gres:gpu:a100:1", vec![gpu("a100", 1)]),
            ("gres/gpu:a100=4", vec![gpu("a100", 4)]),
            ("gres/gpu:a100:1", vec![gpu("a100", 1)]),
            ("gres/gpu=4", vec![gpu("", 4)]),
            ("gpu:a100:2(S:0,1)", vec![gpu("a100", 2)]),
            ("gpu:1g.5gb:1", vec![gpu("1g.5gb", 1)]),
            ("shard:4,gpu:v100:1,gpu:a100:1", vec![gpu("v100", 1), gpu("a100", 1)]),
            ("license/gpuview=1,gpumem:100", vec![]),
            ("cpu=4,mem=16G,gres/gpu:h100=1", vec![gpu("h100", 1)]),
        ] {
            assert_eq!(JobRequest::gres(text), Ok(gpus), "{text}");
        }
        for text in ["gpu:a100:x", "gpu:", "gpu::1", "gpu:a100:-1"] {
            assert!(JobRequest::gres(text).is_err(), "{text}");
        }
    }

    #[test]
    fn gpus_are_read_without_the_resource() {
        for (text, gpus) in [
            ("2", vec![gpu("", 2)]),
            ("a100:2", vec![gpu("a100", 2)]),
            ("a100", vec![gpu("a100", 1)]),
            ("a100:1, v100:3", vec![gpu("a100", 1), gpu("v100", 3)]),
            ("", vec![]),
        ] {
            assert_eq!(JobRequest::gpus(text), Ok(gpus), "{text}");
        }
    }

    #[test]
    fn a_constraint_is_a_list_of_alternatives() {
        for (text, lists) in [
            ("a100", vec![vec!["a100"]]),
            ("A100&nvlink", vec![vec!["a100", "nvlink"]]),
            ("a100|h100", vec![vec!["a100"], vec!["h100"]]),
            ("[a100|h100]", vec![vec!["a100"], vec!["h100"]]),
            ("a100*2&ib", vec![vec!["a100", "ib"]]),
            ("", vec![]),
        ] {
            assert_eq!(JobRequest::constraint(text), lists, "{text}");
        }
    }

    #[test]
    fn a_request_without_a_gpu_is_an_error() {
        assert_eq!("a100".parse::<JobRequest>().map(|r| r.gpus), Ok(vec![gpu("a100", 1)]));
        for text in ["", "cpu=4", "gres/shard:1", "gpu:a100:many"] {
            assert!(text.parse::<JobRequest>().is_err(), "{text}");
        }
    }
}

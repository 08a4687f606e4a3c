//! The GPU of this machine, by what its driver says in `/proc`.

use std::path::Path;
use xmem::Device;

/// Where NVIDIA's driver has a folder for each GPU.
const GPUS: &str = "/proc/driver/nvidia/gpus";

/// The GPU that is there, if all are alike and known.
pub(super) fn device() -> Option<&'static Device> {
    let entries = std::fs::read_dir(Path::new(GPUS)).ok()?.flatten();
    let texts = entries.map(|entry| std::fs::read_to_string(entry.path().join("information")));
    one_of(&texts.collect::<Result<Vec<_>, _>>().ok()?)
}

fn one_of(texts: &[String]) -> Option<&'static Device> {
    let mut models = texts.iter().map(|text| model(text));
    let first = models.next()??;
    models.all(|model| model == Some(first)).then(|| xmem::find(first).ok())?
}

fn model(text: &str) -> Option<&str> {
    text.lines().find_map(|line| line.strip_prefix("Model:")).map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gpu_is_known_by_its_model() {
        let text = |model: &str| format!("Model: \t\t {model}\nIRQ:   \t\t 74\n");
        let [hopper, other] = ["NVIDIA H100 80GB HBM3", "NVIDIA A100-SXM4-40GB"].map(&text);
        let name = |texts: &[String]| one_of(texts).map(|device| device.name.as_str());
        assert_eq!(name(&[hopper.clone(), hopper.clone()]), Some("h100-80g"));
        assert_eq!(name(&[hopper, other]), None);
        assert_eq!(name(&[text("Unheard of")]), None);
        assert_eq!(name(&[]), None);
    }
}

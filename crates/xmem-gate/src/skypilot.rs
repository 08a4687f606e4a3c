//! The GPUs of SkyPilot, and those on which a job fits.

use crate::check::Question;
use xmem::{Bytes, Device, EstimateError, Job};

/// A GPU under SkyPilot's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Accelerator {
    /// The name in SkyPilot's catalog.
    pub name: &'static str,
    /// The devices that clouds give for it, the smallest first; at least one.
    pub devices: Vec<&'static Device>,
}

/// Names and devices: `AcceleratorName` of skypilot-catalog, `catalogs/v8/common/accelerators.csv` (commit 001ca549), as
/// far as there are devices. Clouds give both boards of an A100 with 80 GB and of an H100 under one name.
const ACCELERATORS: [(&str, &[&str]); 32] = [
    ("A10", &["a10-24g"]),
    ("A100", &["a100-40g"]),
    ("A100-80GB", &["a100-80g", "a100-pcie-80g"]),
    ("A100-80GB-SXM", &["a100-80g"]),
    ("A10G", &["a10g-24g"]),
    ("A30", &["a30-24g"]),
    ("A40", &["a40-48g"]),
    ("A4000", &["rtxa4000-16g"]),
    ("A6000", &["rtxa6000-48g"]),
    ("B200", &["b200-180g"]),
    ("GH200", &["gh200-96g"]),
    ("H100", &["h100-80g", "h100-pcie-80g"]),
    ("H100-NVL", &["h100-nvl-94g"]),
    ("H100-SXM", &["h100-80g"]),
    ("H200", &["h200-141g"]),
    ("H200-SXM", &["h200-141g"]),
    ("L4", &["l4-24g"]),
    ("L40", &["l40-48g"]),
    ("L40S", &["l40s-48g"]),
    ("P100", &["p100-16g"]),
    ("RTX3060", &["rtx3060-12g"]),
    ("RTX3070", &["rtx3070-8g"]),
    ("RTX3080", &["rtx3080-10g", "rtx3080-12g"]),
    ("RTX3090", &["rtx3090-24g"]),
    ("RTX4090", &["rtx4090-24g"]),
    ("RTX5090", &["rtx5090-32g"]),
    ("RTX6000-Ada", &["rtx6000ada-48g"]),
    ("RTXA5000", &["rtxa5000-24g"]),
    ("RTXA6000", &["rtxa6000-48g"]),
    ("T4", &["t4-16g"]),
    ("V100", &["v100-16g"]),
    ("V100-32GB", &["v100-32g"]),
];

/// The GPUs of SkyPilot, the smallest first.
#[must_use]
pub fn accelerators() -> Vec<Accelerator> {
    let known = ACCELERATORS.iter().map(|&(name, devices)| {
        let found = devices.iter().filter_map(|name| xmem::find(name).ok());
        let mut devices: Vec<&'static Device> = found.collect();
        devices.sort_by_key(|device| device.memory);
        Accelerator { name, devices }
    });
    let mut known: Vec<Accelerator> = known.collect();
    known.sort_by_key(|accelerator| (accelerator.memory(), accelerator.name));
    known
}

impl Accelerator {
    /// The memory of the smallest of its devices.
    fn memory(&self) -> Bytes {
        self.devices.first().map_or(Bytes::ZERO, |device| device.memory)
    }

    /// Returns whether a job certainly fits on each of its devices and leaves the margin free.
    ///
    /// # Errors
    /// As [`check`](crate::check()).
    pub fn holds(&self, job: &Job, question: &Question<'_>) -> Result<bool, EstimateError> {
        for device in &self.devices {
            if !question.fits(job, device)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_has_its_devices() {
        let all = accelerators();
        for (accelerator, (name, devices)) in
            ACCELERATORS.iter().map(|row| (all.iter().find(|a| a.name == row.0), row))
        {
            assert_eq!(accelerator.map(|a| a.devices.len()), Some(devices.len()), "{name}");
        }
        assert!(all.windows(2).all(|pair| pair[0].memory() <= pair[1].memory()));
    }
}

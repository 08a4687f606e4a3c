//! For Kubernetes: a number for vGPU schedulers, and a claim for dynamic resource allocation.

use xmem::Bytes;

/// The memory in MiB, rounded up: the value of `nvidia.com/gpumem` (Project-HAMi, HAMi).
#[must_use]
pub fn gpumem(memory: Bytes) -> String {
    format!("{}\n", mebibytes(memory))
}

/// A claim template for GPUs that have at least this memory each (Kubernetes, resource.k8s.io/v1,
/// ResourceClaimTemplate; NVIDIA, k8s-dra-driver-gpu: device class and capacity `gpu.nvidia.com`).
#[must_use]
pub fn dra(memory: Bytes, gpus: u32) -> String {
    let memory = mebibytes(memory);
    format!(
        "\
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata:
  name: gpu-with-{memory}mi
spec:
  spec:
    devices:
      requests:
      - name: gpu
        exactly:
          deviceClassName: gpu.nvidia.com
          allocationMode: ExactCount
          count: {gpus}
          selectors:
          - cel:
              expression: >-
                device.capacity['gpu.nvidia.com'].memory.compareTo(quantity('{memory}Mi')) >= 0
"
    )
}

fn mebibytes(memory: Bytes) -> u64 {
    memory.get().div_ceil(1 << 20)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mebibytes_are_rounded_up() {
        assert_eq!(gpumem(Bytes::mib(3)), "3\n");
        assert_eq!(gpumem(Bytes((3 << 20) + 1)), "4\n");
        let claim = dra(Bytes(1 << 34), 2);
        assert!(claim.contains("quantity('16384Mi')") && claim.contains("count: 2"), "{claim}");
    }
}

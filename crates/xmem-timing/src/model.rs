//! The parameters of the model, and the durations that follow from work and bytes.

use crate::operator::{Precision, Work, starts_no_kernel};
use std::collections::BTreeMap;
use std::fmt;
use xmem_devices::{Bandwidth, Device, Speed, TensorCores};
use xmem_types::{Bytes, Nanos};

/// Floating-point operations per second; a multiply-add is two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct FlopRate(pub u64);

/// Peak rates of dense arithmetic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peaks {
    /// Double precision.
    pub f64: FlopRate,
    /// Single precision.
    pub f32: FlopRate,
    /// Single precision on tensor cores (TF32).
    pub tf32: FlopRate,
    /// `float16`.
    pub f16: FlopRate,
    /// `bfloat16`.
    pub bf16: FlopRate,
}

impl Peaks {
    fn of(device: &Device) -> Self {
        let per_clock = device.compute_capability.throughput();
        let Speed { sm_clock_khz, tensor_clock_khz, tensor_cores, .. } = device.speed;
        let scalar = |flops: u32| {
            FlopRate(u64::from(device.sms) * u64::from(flops) * u64::from(sm_clock_khz) * 1000)
        };
        let tensor = |flops: u32| {
            if flops <= per_clock.f32 {
                return scalar(flops);
            }
            let flops = match tensor_cores {
                TensorCores::Full => flops,
                TensorCores::HalfRate => flops / 2,
            };
            FlopRate(u64::from(device.sms) * u64::from(flops) * u64::from(tensor_clock_khz) * 1000)
        };
        Self {
            f64: scalar(per_clock.f64),
            f32: scalar(per_clock.f32),
            tf32: tensor(per_clock.tf32).max(scalar(per_clock.f32)),
            f16: tensor(per_clock.tensor16),
            bf16: tensor(per_clock.tensor_bf16),
        }
    }
}

/// All parameters of the model.
#[derive(Clone, Debug, PartialEq)]
pub struct TimeModel {
    /// Peaks of arithmetic: clock × multiprocessors × operations per clock.
    pub peaks: Peaks,
    /// The share of a peak that matrix products, convolutions and attention reach. 0.6.
    pub compute_efficiency: f64,
    /// Bandwidth of the device's memory.
    pub memory: Bandwidth,
    /// The share of it that kernels reach. 0.75.
    pub memory_efficiency: f64,
    /// Time that every kernel takes besides. 5 µs.
    pub launch: Nanos,
    /// Bandwidth between host and device, one direction, as copies of pinned memory reach it: 76 % of PCI Express
    /// after its line code (12 GB/s of 16 lanes of generation 3, 24 of generation 4).
    pub pcie: Bandwidth,
    /// Time that every transfer takes besides. 10 µs.
    pub transfer_latency: Nanos,
    /// Bandwidth of NVLink to the other GPUs of the machine, one direction, as collectives reach it: 80 % of the data
    /// sheet's. `None` without NVLink; [`pcie`](Self::pcie) counts then.
    pub nvlink: Option<Bandwidth>,
    /// Bandwidth of the network for each GPU, one direction, as collectives reach it. A property of the cluster: 25
    /// GB/s by default, an adapter of 200 Gb/s for each GPU.
    pub network: Bandwidth,
    /// Durations of operators by name, which replace the roofline.
    pub measured: BTreeMap<String, Nanos>,
}

impl TimeModel {
    /// The model of `device`, with default efficiencies, latencies and network.
    #[must_use]
    pub fn of(device: &Device) -> Self {
        let speed = &device.speed;
        let nvlink = Bandwidth(speed.nvlink.get() / 10 * 8);
        Self {
            peaks: Peaks::of(device),
            compute_efficiency: 0.6,
            memory: speed.memory,
            memory_efficiency: 0.75,
            launch: Nanos(5_000),
            pcie: pcie(speed),
            transfer_latency: Nanos(10_000),
            nvlink: (nvlink > Bandwidth(0)).then_some(nvlink),
            network: Bandwidth::gb_per_second(25),
            measured: BTreeMap::new(),
        }
    }

    /// The duration of the operator called `name`: as measured; zero if it starts no kernel; else the longer of its
    /// arithmetic and its memory traffic, and the launch.
    #[must_use]
    pub fn operator_duration(&self, name: &str, work: &Work) -> Nanos {
        if let Some(measured) = self.measured.get(name) {
            return *measured;
        }
        if starts_no_kernel(name) {
            return Nanos::ZERO;
        }
        let peak = self.peak(work.precision).0 as f64 * self.compute_efficiency;
        let bandwidth = self.memory.get() as f64 * self.memory_efficiency;
        let arithmetic = seconds(work.flops as f64 / peak);
        arithmetic.max(seconds(work.bytes.get() as f64 / bandwidth)) + self.launch
    }

    /// The duration of a copy between host and device: latency + size / bandwidth.
    #[must_use]
    pub fn transfer_duration(&self, bytes: Bytes) -> Nanos {
        self.transfer_latency + over(bytes.get() as f64, self.pcie)
    }

    fn peak(&self, precision: Precision) -> FlopRate {
        match precision {
            Precision::Float64 => self.peaks.f64,
            Precision::TensorFloat32 => self.peaks.tf32,
            Precision::Float16 => self.peaks.f16,
            Precision::BFloat16 => self.peaks.bf16,
            Precision::Float32 | Precision::Other(_) => self.peaks.f32,
        }
    }
}

/// The duration of `bytes` over a link.
pub(crate) fn over(bytes: f64, link: Bandwidth) -> Nanos {
    seconds(bytes / link.get() as f64)
}

/// Saturates, and is zero for what is no number (nothing over a link of no bandwidth).
fn seconds(value: f64) -> Nanos {
    Nanos((value * 1e9).round() as i64)
}

/// Effective bandwidth of PCI Express: transfers per second and lane, less the line code, and 76 % of that for the
/// headers of packets and flow control. PCI Express Base Specification: 2.5 and 5 GT/s with 8b/10b, 8, 16 and 32 GT/s
/// with 128b/130b, 64 GT/s in flits.
fn pcie(speed: &Speed) -> Bandwidth {
    let megabytes_of_a_lane: u64 = match speed.pcie_generation {
        0 | 1 => 250,
        2 => 500,
        generation => 985 << (generation - 3).min(8),
    };
    Bandwidth(megabytes_of_a_lane * u64::from(speed.pcie_lanes) * 760_000)
}

impl fmt::Display for TimeModel {
    /// A parameter a line, without a newline at the end.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tera = |rate: FlopRate| rate.0 as f64 / 1e12;
        let giga = |link: Bandwidth| link.get() as f64 / 1e9;
        let Peaks { f64, f32, tf32, f16, bf16 } = self.peaks;
        let peaks = [("float64", f64), ("float32", f32), ("TF32", tf32)];
        write!(f, "arithmetic ")?;
        for (name, rate) in peaks.into_iter().chain([("float16", f16), ("bfloat16", bf16)]) {
            write!(f, "{name} {:.1}, ", tera(rate))?;
        }
        let percent = |share: f64| share * 100.0;
        writeln!(f, "TFLOP/s at {:.0} %", percent(self.compute_efficiency))?;
        let (memory, share) = (giga(self.memory), percent(self.memory_efficiency));
        writeln!(f, "memory {memory:.0} GB/s at {share:.0} %, launch {}", self.launch)?;
        let pcie = giga(self.pcie);
        writeln!(f, "host to device {pcie:.1} GB/s, latency {}", self.transfer_latency)?;
        match self.nvlink {
            Some(nvlink) => write!(f, "NVLink {:.0} GB/s, ", giga(nvlink))?,
            None => write!(f, "no NVLink, ")?,
        }
        write!(f, "network {:.1} GB/s for each GPU", giga(self.network))?;
        match self.measured.len() {
            0 => Ok(()),
            1 => write!(f, "\n1 measured operator"),
            n => write!(f, "\n{n} measured operators"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use xmem_devices::find;

    fn model(device: &str) -> TimeModel {
        TimeModel::of(find(device).expect("built in"))
    }

    /// The peaks that NVIDIA prints, to 2 %: [device, float32, TF32, 16 bits].
    #[test]
    fn peaks_are_those_of_the_data_sheets() {
        for (device, expected) in [
            ("a100-40g", [19.5, 156.0, 312.0]),
            ("a30-24g", [10.3, 82.0, 165.0]),
            ("a40-48g", [37.4, 74.8, 149.7]),
            ("a10-24g", [31.2, 62.5, 125.0]),
            ("a10g-24g", [35.0, 35.0, 70.0]),
            ("rtx3090-24g", [35.6, 35.6, 71.0]),
            ("rtx4090-24g", [82.6, 82.6, 165.2]),
            ("l4-24g", [30.3, 60.5, 121.0]),
            ("l40-48g", [90.5, 90.5, 181.0]),
            ("h100-80g", [66.9, 494.7, 989.4]),
            ("h100-pcie-80g", [51.2, 378.0, 756.0]),
            ("b200-180g", [75.0, 1125.0, 2250.0]),
            ("gb200-186g", [80.0, 1250.0, 2500.0]),
            ("gb300-288g", [80.0, 1250.0, 2500.0]),
            ("rtx4070tis-16g", [44.1, 44.1, 88.2]),
            ("rtx5090-32g", [104.8, 104.8, 209.5]),
            ("v100-16g", [15.7, 15.7, 125.0]),
            ("t4-16g", [8.1, 8.1, 65.0]),
            ("rtx2080ti-11g", [13.4, 13.4, 53.8]),
            ("gtx1650-4g", [2.98, 2.98, 5.97]),
            ("p100-16g", [9.3, 9.3, 9.3]),
            ("p40-24g", [11.8, 11.8, 11.8]),
        ] {
            let peaks = model(device).peaks;
            for (rate, teras) in [peaks.f32, peaks.tf32, peaks.f16].into_iter().zip(expected) {
                let rate = rate.0 as f64 / 1e12;
                assert!((rate / teras - 1.0).abs() < 0.02, "{device}: {rate} for {teras}");
            }
        }
        assert_eq!(model("v100-16g").peaks.bf16, model("v100-16g").peaks.f32);
        assert!(model("a100-40g").peaks.f64.0.abs_diff(9_700_000_000_000) < 100_000_000_000);
    }

    #[test]
    fn an_operator_takes_the_longer_of_arithmetic_and_traffic() {
        let model = model("a100-40g");
        let work =
            |flops, bytes| Work { flops, bytes: Bytes(bytes), precision: Precision::Float32 };
        for (name, work, expected) in [
            // 19.491 TFLOP/s × 0.6: 10^9 operations take 85.506 µs.
            ("aten::mm", work(1_000_000_000, 0), 85_506 + 5_000),
            // 1555 GB/s × 0.75: 10^8 bytes take 85.745 µs.
            ("aten::add", work(0, 100_000_000), 85_745 + 5_000),
            ("aten::mm", work(1_000_000_000, 100_000_000), 85_745 + 5_000),
            ("aten::sum", work(0, 0), 5_000),
            ("aten::view", work(0, 100_000_000), 0),
        ] {
            let Nanos(duration) = model.operator_duration(name, &work);
            assert!(
                (duration - expected).abs() <= 1,
                "{name} {work:?}: {duration}, not {expected}"
            );
        }
    }

    #[test]
    fn a_transfer_takes_its_latency_and_its_bytes() {
        for (device, expected) in [
            // 985 MB/s × 16 × 0.76 = 11.9776 GB/s, twice and four times that.
            ("v100-16g", 10_000 + 83_489_180),
            ("a100-40g", 10_000 + 41_744_590),
            ("h100-80g", 10_000 + 20_872_295),
            ("rtx4060-8g", 10_000 + 83_489_180),
        ] {
            assert_eq!(model(device).transfer_duration(Bytes(1_000_000_000)), Nanos(expected));
        }
        assert_eq!(model("a100-40g").transfer_duration(Bytes::ZERO), Nanos(10_000));
    }

    #[test]
    fn the_parameters_are_printed() {
        let mut model = model("h100-80g");
        model.measure("op,duration_us\naten::mm,1\n").expect("valid");
        let expected = "\
arithmetic float64 33.5, float32 66.9, TF32 494.7, float16 989.4, bfloat16 989.4, TFLOP/s at 60 %
memory 3350 GB/s at 75 %, launch 5.000 µs
host to device 47.9 GB/s, latency 10.000 µs
NVLink 360 GB/s, network 25.0 GB/s for each GPU
1 measured operator";
        assert_eq!(model.to_string(), expected);
        let without = TimeModel::of(find("a10-24g").expect("built in")).to_string();
        assert!(without.ends_with("no NVLink, network 25.0 GB/s for each GPU"), "{without}");
    }
}

//! A program for the simulator and the slow model, read from bytes. An ordinary test of
//! `xmem-simulator` includes this file too, so that it keeps up with the crate.

use crate::side_by_side::{PoolKeyword, Step, run};
use xmem_simulator::{AddressOrder, AllocConf, Completion, DeviceConfig};
use xmem_types::{Bytes, MIB, TorchVersion};

/// Both do the same, whatever the bytes ask for.
///
/// # Panics
/// With the first difference.
pub(crate) fn simulate_vs_oracle(data: &[u8]) {
    let mut bytes = Source(data);
    let release = bytes.choice(&RELEASES);
    let options: Vec<&str> = (0..bytes.below(4)).map(|_| bytes.choice(OPTIONS)).collect();
    // What a release refuses is not run.
    let Ok(conf) = AllocConf::parse(&options.join(","), TorchVersion::new(2, release)) else {
        return;
    };
    let device = bytes.device();
    let mut steps = Vec::new();
    while !bytes.0.is_empty() && steps.len() < 400 {
        steps.push(bytes.step());
    }
    if let Err(difference) = run(&steps, &conf.config, &device) {
        panic!("{:?} on {device:?}: {difference}", conf.config);
    }
}

const RELEASES: [u16; 6] = [6, 9, 10, 11, 12, 15];

const OPTIONS: &[&str] = &[
    "expandable_segments:True",
    "max_split_size_mb:24",
    "max_split_size_mb:64",
    "max_non_split_rounding_mb:40",
    "roundup_power2_divisions:4",
    "roundup_power2_divisions:[1:2,4:8,>:4]",
    "garbage_collection_threshold:0.6",
    "per_process_memory_fraction:0.7",
    "large_segment_size_mb:32",
    "throw_on_cudamalloc_oom:True",
    "expandable_segments_reserve:0.5",
];

/// Sizes at which something changes.
const SIZES: [u64; 12] =
    [0, 1, 512, 513, MIB, MIB + 1, 2 * MIB, 10 * MIB - 512, 10 * MIB, 20 * MIB, 21 * MIB, 64 * MIB];

/// The bytes that are left; zeros when there are none.
struct Source<'b>(&'b [u8]);

impl Source<'_> {
    fn byte(&mut self) -> u8 {
        let Some((&first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        first
    }

    fn below(&mut self, n: u32) -> u32 {
        u32::from(self.byte()) % n
    }

    fn choice<T: Copy>(&mut self, list: &[T]) -> T {
        list[usize::from(self.byte()) % list.len()]
    }

    fn size(&mut self) -> u64 {
        let kind = self.byte();
        let fine = u64::from(self.byte()) << 8 | u64::from(self.byte());
        match kind % 8 {
            0..3 => SIZES[usize::from(kind / 8) % SIZES.len()],
            3..5 => fine,
            5 => fine * 37,
            6 => fine * 512,
            _ => fine * 1500,
        }
    }

    fn device(&mut self) -> DeviceConfig {
        let room = u64::from(self.byte());
        DeviceConfig {
            capacity: (room > 0).then(|| Bytes(2 * room * MIB + u64::from(self.byte()))),
            taken: Bytes::ZERO,
            reported_total: None,
            address_total: None,
            address_order: self.choice(&[
                AddressOrder::Driver,
                AddressOrder::Ascending,
                AddressOrder::Descending,
            ]),
            completion: self.choice(&[Completion::Immediate, Completion::AtSynchronization]),
        }
    }

    fn step(&mut self) -> Step {
        match self.byte() {
            0..96 => Step::Alloc { size: self.size(), stream: self.stream() },
            96..160 => Step::Free(u32::from(self.byte())),
            160..186 => Step::FreeNewest,
            186..204 => Step::RecordStream { block: u32::from(self.byte()), stream: self.stream() },
            204..208 => Step::Synchronize,
            208..214 => Step::EmptyCache,
            214..217 => Step::Fraction(f64::from(self.byte()) / 255.0),
            217..219 => Step::ResetPeaks,
            219..222 => Step::Capacity(u64::from(self.byte()) * 2 * MIB),
            222..230 => {
                let pool = self.below(4);
                let keyword = self.choice(&[
                    PoolKeyword::None,
                    PoolKeyword::NoSplit,
                    PoolKeyword::UseOnOom,
                    PoolKeyword::Both,
                ]);
                Step::EnterPool { pool, keyword }
            }
            230..235 => Step::BeginCapture { pool: self.below(3), stream: self.stream() },
            235..243 => Step::LeaveNewest,
            243..248 => Step::Leave(u32::from(self.byte())),
            _ => Step::Release(u32::from(self.byte())),
        }
    }

    fn stream(&mut self) -> u32 {
        self.choice(&[0, 0, 0, 1, 2, 3])
    }
}

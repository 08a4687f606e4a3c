//! Option strings in PyTorch's own syntax: `PYTORCH_CUDA_ALLOC_CONF`.

mod error;
mod keys;
mod numbers;
mod tokens;

pub use error::ConfError;
pub use keys::{KnownOption, alloc_conf_options};

use super::{AllocatorConfig, Feature, OnExcess, PowerOfTwoDivisions, Reserve};
use keys::Key;
use numbers::Integers;
use tokens::Tokens;
use xmem_types::{Bytes, MIB, TorchVersion};

/// The content of an option string.
#[derive(Clone, Debug, PartialEq)]
pub struct AllocConf {
    /// The allocator that it chooses.
    pub backend: Backend,
    /// The caching allocator's options.
    pub config: AllocatorConfig,
    /// Options that are right, but change nothing about device memory, as they are about pinned
    /// host memory or locks.
    pub without_effect: Vec<String>,
}

/// `backend:`, or what `PYTORCH_NO_CUDA_MEMORY_CACHING` chooses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Backend {
    /// The caching allocator.
    #[default]
    Native,
    /// CUDA's own stream-ordered pools.
    CudaMallocAsync,
}

/// The environment variables that a release reads, in order: the first that is set counts alone,
/// even where it is empty.
///
/// `CUDAAllocatorConfig::instance` in `c10/cuda/CUDAAllocatorConfig.h`; since 2.10 the static
/// initialization in `c10/core/AllocatorConfig.h`, whose comment claims the opposite order.
#[must_use]
pub fn alloc_conf_variables(release: TorchVersion) -> &'static [&'static str] {
    let all = &["PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF", "PYTORCH_ALLOC_CONF"];
    if Feature::AcceleratorConfig.is_in(release) { all } else { &all[..1] }
}

/// Returns whether a value of `PYTORCH_NO_CUDA_MEMORY_CACHING` switches the caching allocator off:
/// up to 2.6 any value does, later only one that means yes (`c10::utils::check_env`).
#[must_use]
pub fn switches_caching_off(value: &str, release: TorchVersion) -> bool {
    release <= TorchVersion::new(2, 6) || value == "1"
}

impl AllocConf {
    /// Reads an option string as strictly as `release` does
    /// (`CUDAAllocatorConfig::parseArgs`, `AcceleratorAllocatorConfig::parseArgs`).
    ///
    /// # Errors
    /// If it is not what that release accepts, or uses what is not simulated.
    pub fn parse(text: &str, release: TorchVersion) -> Result<Self, ConfError> {
        let mut conf = Self {
            backend: Backend::Native,
            config: AllocatorConfig::of(release),
            without_effect: Vec::new(),
        };
        // The segment size is read before all else, as other options' limits depend on it.
        let numbers = Integers::of(release);
        let mut tokens = Tokens::of(text, numbers);
        while let Some(name) = tokens.next() {
            if Key::find(name, release)? == Key::LargeSegmentSize {
                conf.set(Key::LargeSegmentSize, &mut tokens)?;
            } else {
                tokens.skip_value();
            }
            tokens.end_of_option()?;
        }
        let mut tokens = Tokens::of(text, numbers);
        while let Some(name) = tokens.next() {
            let key = Key::find(name, release)?;
            if key == Key::LargeSegmentSize {
                tokens.skip_value();
            } else {
                conf.set(key, &mut tokens)?;
            }
            if key.is_host_only() {
                conf.without_effect.push(key.name().to_owned());
            }
            tokens.end_of_option()?;
        }
        Ok(conf)
    }

    fn set(&mut self, key: Key, tokens: &mut Tokens<'_>) -> Result<(), ConfError> {
        tokens.expect(key, ":")?;
        let release = self.config.release;
        let config = &mut self.config;
        let smallest_split = if Feature::AcceleratorConfig.is_in(release) {
            config.large_buffer.get() / MIB
        } else {
            // `> 20` there, where later releases say `>=`.
            config.large_buffer.get() / MIB + 1
        };
        match key {
            Key::Backend => {
                self.backend = match tokens.value(key)? {
                    "native" => Backend::Native,
                    "cudaMallocAsync" => Backend::CudaMallocAsync,
                    other => {
                        return Err(key.bad(other, "native or cudaMallocAsync"));
                    }
                };
            }
            Key::MaxSplitSize => {
                config.max_split_size = Some(tokens.mebibytes(key, smallest_split)?);
            }
            Key::MaxNonSplitRounding => {
                config.max_non_split_rounding = tokens.mebibytes(key, smallest_split)?;
            }
            Key::LargeSegmentSize => {
                config.large_buffer = tokens.mebibytes(key, 11)?;
                // Its default follows the segment size.
                config.max_non_split_rounding = config.large_buffer;
            }
            Key::GarbageCollectionThreshold => {
                let value = tokens.number(key, "between 0 and 1", |x| x > 0.0 && x < 1.0)?;
                config.garbage_collection_threshold = Some(value);
            }
            Key::MemoryFraction => {
                let value = tokens.number(key, "from 0 to 1", |x| (0.0..=1.0).contains(&x))?;
                config.memory_fraction = Some(value);
            }
            Key::RoundupPower2Divisions => {
                config.roundup_power2_divisions = divisions(tokens, release)?;
            }
            Key::RoundupBypassThreshold => {
                config.roundup_bypass_threshold = Some(tokens.mebibytes(key, 0)?);
            }
            Key::ExpandableSegments => config.expandable_segments = tokens.boolean(key)?,
            Key::ThrowOnCudaMallocOom => {
                let refuse = tokens.boolean(key)?;
                config.on_excess = if refuse { OnExcess::Refuse } else { OnExcess::GiveBack };
            }
            Key::ExpandableReserve => config.expandable_reserve = Some(reserve(tokens)?),
            Key::ExpandableReserveByClass => {
                return Err(ConfError::NotSimulated {
                    key: key.name(),
                    why: "streams have no classes here",
                });
            }
            Key::GraphCaptureReuse => {
                if tokens.boolean(key)? {
                    return Err(ConfError::NotSimulated {
                        key: key.name(),
                        why: "it depends on the nodes of the captured graph",
                    });
                }
            }
            Key::HostSwitch(_) => {
                tokens.boolean(key)?;
            }
            Key::HostThreads => {
                let power = |n: u64| n.is_power_of_two() && n <= 128;
                tokens.integer(key, "a power of two up to 128", power)?;
            }
            Key::HostNumber(_) => {
                tokens.integer(key, "a whole number from 1 on", |n| n > 0)?;
            }
        }
        Ok(())
    }
}

/// One number for all sizes, or a list `[256:1,512:2,1024:4,>:8]` of sizes in MiB.
fn divisions(
    tokens: &mut Tokens<'_>,
    release: TorchVersion,
) -> Result<PowerOfTwoDivisions, ConfError> {
    let key = Key::RoundupPower2Divisions;
    let power = "a power of two";
    if !tokens.take("[") {
        let all = tokens.integer(key, power, u64::is_power_of_two)?;
        return Ok(PowerOfTwoDivisions([clamped(all); 16]));
    }
    if !Feature::DivisionsBySize.is_in(release) {
        return Err(key.bad("[", "one number for all sizes, before PyTorch 2.0"));
    }
    let mut table = [0; 16];
    let mut last: Option<usize> = None;
    while !tokens.take("]") {
        let rest = tokens.take(">");
        let bucket = if rest {
            let after = usize::from(Feature::FillBehindLastSize.is_in(release));
            last.map_or(0, |last| last + after)
        } else {
            let mib = tokens.integer(key, "a power of two, in MiB", u64::is_power_of_two)?;
            (mib.ilog2() as usize).min(15)
        };
        tokens.expect(key, ":")?;
        let off_or_power = |n: u64| n == 0 || n.is_power_of_two();
        let value = clamped(tokens.integer(key, "0 or a power of two", off_or_power)?);
        if rest {
            table[bucket.min(16)..].fill(value);
        } else {
            // The first size listed stands for all below it too.
            let from = if last.is_none() { 0 } else { bucket };
            table[from..=bucket].fill(value);
            last = Some(bucket);
        }
        if !tokens.peeks("]") {
            tokens.expect(key, ",")?;
        }
    }
    Ok(PowerOfTwoDivisions(table))
}

/// Divisions beyond the number of blocks in any size round nothing.
fn clamped(divisions: u64) -> u32 {
    u32::try_from(divisions).unwrap_or(1 << 31)
}

/// A part of the device's total, or GiB with the letter `G`.
fn reserve(tokens: &mut Tokens<'_>) -> Result<Reserve, ConfError> {
    let key = Key::ExpandableReserve;
    let text = tokens.value(key)?;
    let number = text.strip_suffix(['G', 'g']);
    let value: f64 = number.unwrap_or(text).parse().unwrap_or(f64::NAN);
    if !(value.is_finite() && value > 0.0) {
        return Err(key.bad(text, "a part of the device's memory like 0.5, or a size like 40G"));
    }
    Ok(match number {
        Some(_) => Reserve::Size(Bytes((value * (1u64 << 30) as f64) as u64)),
        None => Reserve::PartOfTotal(value),
    })
}

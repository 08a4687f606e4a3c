//! The allocator settings that a snapshot carries since PyTorch 2.0.

use std::collections::BTreeMap;
use xmem_types::Bytes;

/// `allocator_settings` of a snapshot: how `PYTORCH_CUDA_ALLOC_CONF` was understood
/// (`THCPModule_memorySnapshot` in torch/csrc/cuda/Module.cpp). A setting that the recording
/// version did not write has PyTorch's default.
#[derive(Clone, Debug, Default)]
pub struct AllocatorSettings {
    /// The settings as text, as they were last parsed; since 2.3.
    pub text: Option<String>,
    /// Blocks larger than this are not split; `None` is no limit, as is the largest number
    /// (PyTorch's own way to say it).
    pub max_split_size: Option<Bytes>,
    /// The share of the capacity above which cached blocks are collected; 0 is never.
    pub garbage_collection_threshold: f64,
    /// True if segments grow in place; since 2.1.
    pub expandable_segments: bool,
    /// For requests of at least so many bytes, into how many steps a power of two is divided for
    /// rounding, 0 being none; since 2.3. The sizes are whole mebibytes.
    pub roundup_power2_divisions: BTreeMap<Bytes, u32>,
    /// Every other setting, by its name.
    pub other: BTreeMap<String, Setting>,
}

/// The value of a setting that has no field of its own.
#[derive(Clone, Debug)]
pub enum Setting {
    /// A switch.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A fraction.
    Float(f64),
    /// A text.
    Text(String),
    /// Python's `None`.
    None,
}

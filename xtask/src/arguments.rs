//! Values of options that more than one task takes, or that name a value of a library.

use clap::ValueEnum;
use xmem_attack as attack;
use xmem_corpus::{accuracy, torch};

/// A sort of recordings that is attacked.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Input {
    /// Traces of the host
    Traces,
    /// Traces with memory events of a GPU
    Gpu,
    /// Memory snapshots
    Snapshots,
}

impl From<Input> for attack::Input {
    fn from(input: Input) -> Self {
        match input {
            Input::Traces => Self::HostTrace,
            Input::Gpu => Self::GpuTrace,
            Input::Snapshots => Self::Snapshot,
        }
    }
}

/// The form of a table.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Format {
    /// Aligned columns
    Text,
    /// Markdown tables, for the book
    Markdown,
}

impl From<Format> for accuracy::Format {
    fn from(format: Format) -> Self {
        match format {
            Format::Text => Self::Text,
            Format::Markdown => Self::Markdown,
        }
    }
}

/// Sets of recorded cases.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Sets {
    /// Those that may be looked at while rules are written
    Rules,
    /// Those that no rule was written for
    Untouched,
    /// Both, apart
    All,
}

impl From<Sets> for accuracy::Sets {
    fn from(sets: Sets) -> Self {
        match sets {
            Sets::Rules => Self::Rules,
            Sets::Untouched => Self::Untouched,
            Sets::All => Self::All,
        }
    }
}

/// What stands for the GPU (`xmem profile --engine`).
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Engine {
    /// CUDA is redirected to the CPU
    Cpu,
    /// The CUDA build runs without computing
    VirtualGpu,
}

impl From<Engine> for torch::Engine {
    fn from(engine: Engine) -> Self {
        match engine {
            Engine::Cpu => Self::Cpu,
            Engine::VirtualGpu => Self::VirtualGpu,
        }
    }
}

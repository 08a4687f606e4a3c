//! Values of options. Those of libraries have their own, because arguments are read without them.

use clap::ValueEnum;

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

#[cfg(feature = "attack")]
impl From<Input> for xmem_attack::Input {
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

#[cfg(feature = "corpus")]
impl From<Format> for xmem_corpus::Format {
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

#[cfg(feature = "corpus")]
impl From<Sets> for xmem_corpus::accuracy::Sets {
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

#[cfg(feature = "corpus")]
impl From<Engine> for xmem_corpus::torch::Engine {
    fn from(engine: Engine) -> Self {
        match engine {
            Engine::Cpu => Self::Cpu,
            Engine::VirtualGpu => Self::VirtualGpu,
        }
    }
}

//! A framework's allocator chosen while the program runs.

use crate::allocator::{
    AllocFailure, BlockHandle, BlockView, CachingAllocator, Control, Framework, FrameworkAllocator,
    Mapping, Observer, RequestIndex, Segment, SegmentState, Stats, Unsupported,
};
use crate::bfc::{BfcAllocator, BfcConfig};
use crate::config::{AllocConf, AllocatorConfig, Backend};
use crate::device::Device;
use crate::plain::{MallocAsync, MallocAsyncAllocator, Uncached, UncachedAllocator};
use xmem_types::{Bytes, StreamId};

/// One of the allocators known here.
#[derive(Clone, Debug, PartialEq)]
pub enum AllocatorChoice {
    /// PyTorch's caching allocator.
    Caching(AllocatorConfig),
    /// PyTorch without caching.
    Uncached,
    /// PyTorch on CUDA's stream-ordered pools, approximately.
    MallocAsync(MallocAsync),
    /// TensorFlow's allocator.
    Bfc(BfcConfig),
}

impl Default for AllocatorChoice {
    fn default() -> Self {
        Self::Caching(AllocatorConfig::default())
    }
}

impl AllocatorChoice {
    /// The allocator that PyTorch uses with these options.
    #[must_use]
    pub fn from_conf(conf: &AllocConf) -> Self {
        match conf.backend {
            Backend::Native => Self::Caching(conf.config.clone()),
            Backend::CudaMallocAsync => {
                Self::MallocAsync(MallocAsync { memory_fraction: conf.config.memory_fraction })
            }
        }
    }
}

/// The allocator that an [`AllocatorChoice`] makes.
#[derive(Clone, Debug)]
pub enum ChosenAllocator<O = ()> {
    /// PyTorch's caching allocator.
    Caching(Box<CachingAllocator<O>>),
    /// PyTorch without caching.
    Uncached(Box<UncachedAllocator<O>>),
    /// PyTorch on CUDA's stream-ordered pools.
    MallocAsync(Box<MallocAsyncAllocator<O>>),
    /// TensorFlow's allocator.
    Bfc(Box<BfcAllocator<O>>),
}

impl Framework for AllocatorChoice {
    type Allocator<O: Observer> = ChosenAllocator<O>;

    fn over<O: Observer>(&self, device: Device, observer: O) -> ChosenAllocator<O> {
        match self {
            Self::Caching(config) => {
                ChosenAllocator::Caching(Box::new(config.over(device, observer)))
            }
            Self::Uncached => ChosenAllocator::Uncached(Box::new(Uncached.over(device, observer))),
            Self::MallocAsync(config) => {
                ChosenAllocator::MallocAsync(Box::new(config.over(device, observer)))
            }
            Self::Bfc(config) => ChosenAllocator::Bfc(Box::new(config.over(device, observer))),
        }
    }
}

/// Does the same with whichever allocator it is.
macro_rules! whichever {
    ($self:expr, $allocator:ident => $call:expr) => {
        match $self {
            ChosenAllocator::Caching($allocator) => $call,
            ChosenAllocator::Uncached($allocator) => $call,
            ChosenAllocator::MallocAsync($allocator) => $call,
            ChosenAllocator::Bfc($allocator) => $call,
        }
    };
}

impl<O: Observer> FrameworkAllocator for ChosenAllocator<O> {
    type Observer = O;

    fn allocate(
        &mut self,
        at: RequestIndex,
        size: Bytes,
        stream: StreamId,
    ) -> Result<Option<BlockHandle>, AllocFailure> {
        whichever!(self, allocator => allocator.allocate(at, size, stream))
    }

    fn free(&mut self, at: RequestIndex, block: BlockHandle) {
        whichever!(self, allocator => allocator.free(at, block));
    }

    fn release_cached(&mut self, at: RequestIndex) {
        whichever!(self, allocator => allocator.release_cached(at));
    }

    fn control(&mut self, at: RequestIndex, control: Control) -> Result<(), Unsupported> {
        whichever!(self, allocator => allocator.control(at, control))
    }

    fn block(&self, block: BlockHandle) -> BlockView {
        whichever!(self, allocator => allocator.block(block))
    }

    fn segments(&self) -> &[Segment] {
        whichever!(self, allocator => allocator.segments())
    }

    fn mappings(&self) -> &[Mapping] {
        whichever!(self, allocator => allocator.mappings())
    }

    fn state(&self) -> Vec<SegmentState> {
        whichever!(self, allocator => allocator.state())
    }

    fn allocated(&self) -> Bytes {
        whichever!(self, allocator => allocator.allocated())
    }

    fn reserved(&self) -> Bytes {
        whichever!(self, allocator => allocator.reserved())
    }

    fn largest_free(&self) -> Bytes {
        whichever!(self, allocator => allocator.largest_free())
    }

    fn stats(&self) -> Stats {
        whichever!(self, allocator => allocator.stats())
    }

    fn device(&self) -> &Device {
        whichever!(self, allocator => allocator.device())
    }

    fn device_mut(&mut self) -> &mut Device {
        whichever!(self, allocator => allocator.device_mut())
    }

    fn lift_limit(&mut self) {
        whichever!(self, allocator => allocator.lift_limit());
    }

    fn observer(&self) -> &O {
        whichever!(self, allocator => allocator.observer())
    }

    fn observer_mut(&mut self) -> &mut O {
        whichever!(self, allocator => allocator.observer_mut())
    }
}

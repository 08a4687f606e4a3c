//! The facts of `xmem profile` about the blocks: parameters, buffers, gradients and optimizer
//! state, by their addresses, and transfers to the GPU, by its marks.

use crate::block::{Block, Role};
use crate::lifetime::Lifetime;
use crate::marks::TransferKind;
use crate::python::Frame;
use crate::recording::{Recording, Storage, TensorKind};
use crate::spans::Phase;
use crate::transfers::{Live, Transfer};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;
use xmem_types::{Addr, BlockId, Bytes, Interner, Nanos};

/// The way in which a block comes to the GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// It is made there.
    Made,
    /// It is copied there.
    Moved(Nanos),
}

/// Facts about blocks; empty for a trace that `xmem profile` did not make.
#[derive(Clone, Debug, Default)]
pub(crate) struct RecorderFacts {
    /// Rows of [`Recording::tensors`].
    pub(crate) tensors: BTreeMap<BlockId, usize>,
    pub(crate) gradients: FxHashSet<BlockId>,
    /// Blocks of the optimizers' state.
    pub(crate) state: FxHashMap<BlockId, State>,
    /// Parameters, buffers and state that no block of the trace holds and no mark moves.
    pub(crate) absent: Vec<(Role, Bytes)>,
    /// Addresses of the tensors and the state that the recording lists.
    listed: FxHashSet<Addr>,
    /// Models of which something is moved or has a gradient.
    models_at_work: FxHashSet<usize>,
    /// The first arrival of each block that comes to the GPU.
    arrivals: FxHashMap<BlockId, Arrival>,
    to_host: FxHashSet<BlockId>,
    /// The first time at which memory comes to the GPU.
    pub(crate) first_arrival: Option<Nanos>,
    /// The lists that the recording has.
    pub(crate) lists: Lists,
}

/// The presence of each list of a recording: the models' tensors, the optimizers' state.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Lists {
    pub(crate) tensors: bool,
    pub(crate) state: bool,
}

/// The kind of a block of an optimizer's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// The count of steps.
    Counter,
    Other,
}

impl RecorderFacts {
    pub(crate) fn find(
        recording: Option<&Recording>,
        transfers: &[Transfer],
        lifetimes: &[Lifetime],
    ) -> Self {
        let mut known = Self::default();
        for transfer in transfers {
            known.take_transfer(transfer);
        }
        if let Some(recording) = recording {
            known.take_recording(recording, transfers, lifetimes);
        }
        known
    }

    fn take_transfer(&mut self, transfer: &Transfer) {
        let arrival = match transfer.kind {
            TransferKind::ToHost => {
                self.to_host.extend(transfer.block);
                return;
            }
            TransferKind::OnDevice => Arrival::Made,
            TransferKind::ToDevice => Arrival::Moved(transfer.time),
        };
        self.first_arrival.get_or_insert(transfer.time);
        if let Some(block) = transfer.block {
            self.arrivals.entry(block).or_insert(arrival);
        }
    }

    fn take_recording(
        &mut self,
        recording: &Recording,
        transfers: &[Transfer],
        lifetimes: &[Lifetime],
    ) {
        let live = Live::at_the_end(lifetimes);
        let moved: FxHashSet<Addr> =
            transfers.iter().filter(|t| t.block.is_none()).map(|t| t.address).collect();
        let listed = &mut self.listed;
        let mut place = |storage: Storage| {
            let block = live.holding(storage.address, lifetimes);
            let new = listed.insert(storage.address);
            let absent = block.is_none() && new && !moved.contains(&storage.address);
            (block, (absent && storage.bytes > Bytes::ZERO).then_some(storage.bytes))
        };
        for (row, tensor) in recording.tensors.iter().enumerate() {
            let (block, absent) = place(tensor.storage);
            let role = match tensor.kind {
                TensorKind::Parameter => Role::Parameter,
                TensorKind::Buffer => Role::Buffer,
            };
            self.absent.extend(absent.map(|bytes| (role, bytes)));
            if let Some(block) = block {
                self.tensors.entry(block).or_insert(row);
            }
            let gradient = tensor.gradient.and_then(|g| live.holding(g.address, lifetimes));
            self.gradients.extend(gradient);
            let arrives = block.is_some_and(|b| self.arrivals.contains_key(&b));
            if arrives || tensor.gradient.is_some() {
                self.models_at_work.extend(tensor.model);
            }
        }
        for state in recording.optimizers.iter().flat_map(|o| &o.state) {
            let (block, absent) = place(state.storage);
            let what = if state.name == "step" { State::Counter } else { State::Other };
            if what == State::Other {
                self.absent.extend(absent.map(|bytes| (Role::OptimizerState, bytes)));
            }
            if let Some(block) = block {
                self.state.entry(block).or_insert(what);
            }
        }
        self.lists = Lists {
            tensors: !recording.tensors.is_empty(),
            state: recording.optimizers.iter().any(|o| !o.state.is_empty()),
        };
    }

    /// Shows the names of parameters and buffers where other blocks show their module.
    pub(crate) fn name_tensors(
        &self,
        recording: Option<&Recording>,
        frames: &mut [Frame],
        strings: &mut Interner,
    ) {
        let Some(recording) = recording else { return };
        for (&id, &row) in &self.tensors {
            if let Some(tensor) = recording.tensors.get(row) {
                frames[id.index()].module = strings.intern(&tensor.name);
            }
        }
    }

    /// The way in which a block comes to the GPU, if a mark says that it does.
    pub(crate) fn arrival(&self, block: BlockId) -> Option<Arrival> {
        self.arrivals.get(&block).copied()
    }

    /// Returns whether a transfer moves something other than the models and the optimizers' state.
    pub(crate) fn is_data(&self, transfer: &Transfer, blocks: &[Block]) -> bool {
        let Some(id) = transfer.block else { return !self.listed.contains(&transfer.address) };
        let block = &blocks[id.index()];
        let before_backward = matches!(block.phase, Phase::Init | Phase::Data | Phase::ZeroGrad);
        let of_model = if self.lists.tensors {
            self.tensors.contains_key(&id) || self.state.contains_key(&id)
        } else {
            matches!(block.role, Role::Parameter | Role::Buffer | Role::OptimizerState)
        };
        before_backward && !of_model
    }

    /// Returns whether a block is a copy that was made for the host.
    pub(crate) fn is_host_copy(&self, block: BlockId) -> bool {
        self.to_host.contains(&block)
    }

    /// Returns whether something of a model is moved, or it is trained: then all of it is on the GPU.
    pub(crate) fn is_at_work(&self, model: Option<usize>) -> bool {
        model.is_none_or(|model| self.models_at_work.contains(&model))
    }

    /// Returns whether the recording says nothing about blocks.
    pub(crate) fn is_empty(&self) -> bool {
        self.first_arrival.is_none()
            && self.to_host.is_empty()
            && !self.lists.tensors
            && !self.lists.state
    }
}

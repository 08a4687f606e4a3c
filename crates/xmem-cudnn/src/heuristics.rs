//! The plans that PyTorch would try for one convolution, in its order.
//!
//! As `aten/src/ATen/native/cudnn/Conv_v8.cpp` does it: the operation graph of
//! one convolution (`build_opgraph`), the engine configurations of the heuristics in mode INSTANT and
//! then those of the fallback list (`get_generator_sources`, `run_single_conv`), except those that
//! convert the inputs to a narrower type (`filterEngineConfigs`). TF32 is allowed and nothing need be
//! deterministic, PyTorch's defaults.
//!
//! PyTorch builds the plan of a configuration and asks the plan for its workspace (`try_configs`). Here
//! the configuration itself is asked, which needs no compiler: of 12 215 configurations of 413 recorded
//! convolutions all could be built, and the plan's workspace was the configuration's.

use crate::backend::{Attribute, Backend, Descriptor, Enumeration, Kind, Refusal};
use crate::properties;
use crate::query::{Query, Wanted};
use crate::splits;
use std::array;
use xmem_convolutions::{ConvPass, ElementType, Layout};
use xmem_types::Bytes;

const TENSOR_BYTE_ALIGNMENT: Attribute = 900;
const TENSOR_DATA_TYPE: Attribute = 901;
const TENSOR_DIMENSIONS: Attribute = 902;
const TENSOR_STRIDES: Attribute = 903;
const TENSOR_UNIQUE_ID: Attribute = 906;
const CONVOLUTION_COMP_TYPE: Attribute = 100;
const CONVOLUTION_MODE: Attribute = 101;
const CONVOLUTION_DILATIONS: Attribute = 102;
const CONVOLUTION_STRIDES: Attribute = 103;
const CONVOLUTION_POST_PADDINGS: Attribute = 104;
const CONVOLUTION_PRE_PADDINGS: Attribute = 105;
const CONVOLUTION_SPATIAL_DIMS: Attribute = 106;
const HEURISTICS_MODE: Attribute = 200;
const HEURISTICS_GRAPH: Attribute = 201;
const HEURISTICS_RESULTS: Attribute = 202;
const HEURISTICS_DEVICE: Attribute = 204;
const CONFIG_ENGINE: Attribute = 300;
const CONFIG_CHOICES: Attribute = 302;
const CONFIG_WORKSPACE: Attribute = 303;
const CHOICE_KNOB: Attribute = 600;
const CHOICE_VALUE: Attribute = 601;
const GRAPH_OPERATIONS: Attribute = 801;
const ENGINE_GRAPH: Attribute = 1300;
const ENGINE_INDEX: Attribute = 1301;
const ENGINE_NUMERICAL_NOTE: Attribute = 1303;
const ENGINE_SMS: Attribute = 1306;
const ENGINE_DEVICE: Attribute = 1307;
const DEVICE_JSON: Attribute = 2702;

const MODE_INSTANT: i32 = 0;
const MODE_FALLBACK: i32 = 2;
const CROSS_CORRELATION: i32 = 1;
const DATA_FLOAT: i32 = 0;
const NOTE_DOWN_CONVERT_INPUTS: i32 = 1;

const KNOB_WORKSPACE: i32 = 25;
const KNOB_CLUSTER_M: i32 = 27;
const KNOB_CLUSTER_N: i32 = 28;
const MAX_CHOICES: usize = 32;

/// The alignment that PyTorch finds for tensors of the caching allocator (`getAlignment`).
const ALIGNMENT: i64 = 32;

/// The compute capability whose kernels split sums among all multiprocessors, as cuDNN writes it.
const SPLITTING: u64 = 900;

/// A device as cuDNN reads it.
pub(crate) struct Device<'b> {
    backend: &'b Backend,
    properties: Descriptor<'b>,
    /// The multiprocessors among which kernels split sums; none if workspaces do not follow from them.
    splits_among: Option<u64>,
}

impl<'b> Device<'b> {
    /// Describes a device by its properties as JSON.
    pub(crate) fn new(backend: &'b Backend, json: &str) -> Result<Self, Refusal> {
        let mut properties = backend.descriptor(Kind::DeviceProperties)?;
        properties.set_text(DEVICE_JSON, json)?;
        properties.finalize()?;
        let splits_among = properties::multiprocessors(json, SPLITTING);
        Ok(Self { backend, properties, splits_among })
    }

    /// The workspaces of all plans in PyTorch's order, or those that it requests one after the other until
    /// an allocation succeeds: only those smaller than all before them, since the others fail where those
    /// before have failed.
    pub(crate) fn workspaces(&self, query: &Query) -> Result<Vec<Bytes>, Refusal> {
        let graph = self.graph(query)?;
        let mut sizes: Vec<Bytes> = Vec::new();
        for mode in [MODE_INSTANT, MODE_FALLBACK] {
            for config in self.configurations(&graph, mode)? {
                if down_converts(&config)? {
                    continue;
                }
                let size = Bytes(u64::try_from(config.integer(CONFIG_WORKSPACE)?).unwrap_or(0));
                // Of the plan that PyTorch takes; the others matter where memory is short.
                let size = if sizes.is_empty() { self.split(&graph, &config, size) } else { size };
                if query.wanted == Wanted::All {
                    sizes.push(size);
                    continue;
                }
                if sizes.last().is_none_or(|&smallest| size < smallest) {
                    sizes.push(size);
                }
                if size == Bytes::ZERO {
                    return Ok(sizes);
                }
            }
        }
        Ok(sizes)
    }

    fn configurations(
        &self,
        graph: &Descriptor<'b>,
        mode: i32,
    ) -> Result<Vec<Descriptor<'b>>, Refusal> {
        let mut heuristics = self.backend.descriptor(Kind::EngineHeuristics)?;
        heuristics.set_descriptor(HEURISTICS_GRAPH, graph)?;
        heuristics.set_enumeration(HEURISTICS_MODE, Enumeration::HeuristicMode, mode)?;
        heuristics.set_descriptor(HEURISTICS_DEVICE, &self.properties)?;
        heuristics.finalize()?;
        heuristics.descriptors(HEURISTICS_RESULTS, Kind::EngineConfig)
    }

    /// The workspace of a configuration with all multiprocessors, where the library says `found` without a GPU.
    fn split(&self, graph: &Descriptor<'b>, config: &Descriptor<'b>, found: Bytes) -> Bytes {
        let Some(sms) = self.splits_among else { return found };
        let Ok((engine, choices)) = configured(config) else { return found };
        let value = |knob| choices.iter().find(|choice| choice.0 == knob).map(|choice| choice.1);
        let clusters = [KNOB_CLUSTER_M, KNOB_CLUSTER_N].map(value);
        if value(KNOB_WORKSPACE) != Some(0) || clusters[0].is_none() {
            return found;
        }
        let blocks: i64 = clusters.into_iter().flatten().product();
        let samples = array::from_fn(|n| {
            let size = self.sample(graph, engine, &choices, i32::try_from(n + 1).ok()?).ok()?;
            u64::try_from(size).ok()
        });
        match u64::try_from(blocks) {
            Ok(blocks) if (1..=sms).contains(&blocks) => splits::size(&samples, blocks, sms, found),
            _ => found,
        }
    }

    /// The workspace of an engine with so many multiprocessors and clusters of one block.
    fn sample(
        &self,
        graph: &Descriptor<'b>,
        index: i64,
        choices: &[(i32, i64)],
        sms: i32,
    ) -> Result<i64, Refusal> {
        let mut engine = self.backend.descriptor(Kind::Engine)?;
        engine.set_descriptor(ENGINE_GRAPH, graph)?;
        engine.set_integers(ENGINE_INDEX, &[index])?;
        engine.set_descriptor(ENGINE_DEVICE, &self.properties)?;
        engine.set_enumeration(ENGINE_SMS, Enumeration::Number, sms)?;
        engine.finalize()?;
        let mut config = self.backend.descriptor(Kind::EngineConfig)?;
        config.set_descriptor(CONFIG_ENGINE, &engine)?;
        let mut all = Vec::new();
        for &(knob, value) in choices {
            let is_cluster = [KNOB_CLUSTER_M, KNOB_CLUSTER_N].contains(&knob);
            let mut choice = self.backend.descriptor(Kind::KnobChoice)?;
            choice.set_enumeration(CHOICE_KNOB, Enumeration::Knob, knob)?;
            choice.set_integers(CHOICE_VALUE, &[if is_cluster { 1 } else { value }])?;
            choice.finalize()?;
            all.push(choice);
        }
        config.set_descriptors(CONFIG_CHOICES, &all)?;
        config.finalize()?;
        config.integer(CONFIG_WORKSPACE)
    }

    fn graph(&self, query: &Query) -> Result<Descriptor<'b>, Refusal> {
        let mut operation = self.operation(query)?;
        operation.finalize()?;
        let mut graph = self.backend.descriptor(Kind::OperationGraph)?;
        graph.set_descriptor(GRAPH_OPERATIONS, &operation)?;
        graph.finalize()?;
        Ok(graph)
    }

    fn operation(&self, query: &Query) -> Result<Descriptor<'b>, Refusal> {
        // Attributes of the three kinds of operation: the first of alpha, beta and convolution,
        // which follow each other, and those of input, weight and output.
        let (kind, first, [x, w, y]) = match query.pass {
            ConvPass::Forward => (Kind::Forward, 700, [704, 703, 705]),
            ConvPass::BackwardData => (Kind::BackwardData, 706, [710, 709, 711]),
            ConvPass::BackwardWeight => (Kind::BackwardFilter, 712, [716, 715, 717]),
        };
        let mut operation = self.backend.descriptor(kind)?;
        operation.set_number(first, 1.0)?;
        operation.set_number(first + 1, 0.0)?;
        operation.set_descriptor(first + 2, &self.convolution(query)?)?;
        for (name, dims, id) in
            [(x, &query.input, b'x'), (w, &query.weight, b'w'), (y, &query.output, b'y')]
        {
            let tensor = self.tensor(query, dims, id)?;
            operation.set_descriptor(name, &tensor)?;
        }
        Ok(operation)
    }

    fn convolution(&self, query: &Query) -> Result<Descriptor<'b>, Refusal> {
        let mut convolution = self.backend.descriptor(Kind::Convolution)?;
        convolution.set_enumeration(CONVOLUTION_COMP_TYPE, Enumeration::DataType, DATA_FLOAT)?;
        convolution.set_enumeration(
            CONVOLUTION_MODE,
            Enumeration::ConvolutionMode,
            CROSS_CORRELATION,
        )?;
        convolution.set_integers(CONVOLUTION_SPATIAL_DIMS, &[query.stride.len() as i64])?;
        convolution.set_integers(CONVOLUTION_STRIDES, &query.stride)?;
        convolution.set_integers(CONVOLUTION_PRE_PADDINGS, &query.padding)?;
        convolution.set_integers(CONVOLUTION_POST_PADDINGS, &query.padding)?;
        convolution.set_integers(CONVOLUTION_DILATIONS, &query.dilation)?;
        convolution.finalize()?;
        Ok(convolution)
    }

    fn tensor(&self, query: &Query, dims: &[i64], id: u8) -> Result<Descriptor<'b>, Refusal> {
        let data_type = match query.element {
            ElementType::F32 => DATA_FLOAT,
            ElementType::F16 => 2,
            ElementType::Bf16 => 9,
        };
        let mut tensor = self.backend.descriptor(Kind::Tensor)?;
        tensor.set_enumeration(TENSOR_DATA_TYPE, Enumeration::DataType, data_type)?;
        tensor.set_integers(TENSOR_DIMENSIONS, dims)?;
        tensor.set_integers(TENSOR_STRIDES, &strides(dims, query.layout))?;
        tensor.set_integers(TENSOR_UNIQUE_ID, &[i64::from(id)])?;
        tensor.set_integers(TENSOR_BYTE_ALIGNMENT, &[ALIGNMENT])?;
        tensor.finalize()?;
        Ok(tensor)
    }
}

/// Strides in elements (a [`Query`] has countable tensors, so that none overflows), also for dimensions of size one
/// (`fixSizeOneDimStride`, aten/src/ATen/cudnn/Descriptors.h).
fn strides(dims: &[i64], layout: Layout) -> Vec<i64> {
    let mut order: Vec<usize> = (2..dims.len()).rev().collect();
    match layout {
        Layout::Nchw => order.push(1),
        Layout::Nhwc => order.insert(0, 1),
    }
    order.push(0);
    let mut strides = vec![0; dims.len()];
    let mut next = 1;
    for dim in order {
        strides[dim] = next;
        next *= dims[dim].max(1);
    }
    strides
}

/// The engine of a configuration and the choices of its knobs.
fn configured(config: &Descriptor<'_>) -> Result<(i64, Vec<(i32, i64)>), Refusal> {
    let engines = config.descriptors(CONFIG_ENGINE, Kind::Engine)?;
    let index = engines.first().map_or(Ok(-1), |engine| engine.integer(ENGINE_INDEX))?;
    let choices = config.descriptors_up_to(CONFIG_CHOICES, Kind::KnobChoice, MAX_CHOICES)?;
    let read = |choice: &Descriptor<'_>| {
        let knob = choice.enumeration(CHOICE_KNOB, Enumeration::Knob)?;
        Ok((knob, choice.integer(CHOICE_VALUE)?))
    };
    Ok((index, choices.iter().map(read).collect::<Result<_, Refusal>>()?))
}

fn down_converts(config: &Descriptor<'_>) -> Result<bool, Refusal> {
    let engines = config.descriptors(CONFIG_ENGINE, Kind::Engine)?;
    let Some(engine) = engines.first() else { return Ok(false) };
    Ok(engine.numerical_notes(ENGINE_NUMERICAL_NOTE)?.contains(&NOTE_DOWN_CONVERT_INPUTS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strides_follow_the_memory_format() {
        for (dims, layout, expected) in [
            (&[8, 3, 4, 5][..], Layout::Nchw, &[60, 20, 5, 1][..]),
            (&[8, 3, 4, 5], Layout::Nhwc, &[60, 1, 15, 3]),
            (&[8, 1, 4, 5], Layout::Nhwc, &[20, 1, 5, 1]),
            (&[2, 3, 4, 5, 6], Layout::Nchw, &[360, 120, 30, 6, 1]),
            (&[2, 3, 4, 5, 6], Layout::Nhwc, &[360, 1, 90, 18, 3]),
        ] {
            assert_eq!(strides(dims, layout), expected, "{dims:?} {layout:?}");
        }
    }
}

//! Recurrent layers through cuDNN.
//!
//! The CPU runs LSTMs through oneDNN, layer by layer, and the others step by step. CUDA hands the whole
//! stack of layers to cuDNN (aten/src/ATen/native/cudnn/RNN.cpp): outputs and states, a reserve that
//! backward needs, a workspace for each call. The sizes of these two are the library's secret and are
//! estimated from what backward needs at least; everything else was recorded with PyTorch 2.11's CUDA
//! build, kernels stubbed.

use crate::attention::NodesOf;
use crate::doubt::{Doubt, SizeRange};
use crate::draft::{Addition, Draft, Position};
use crate::requests::{Ask, Window, lay_out_in};
use crate::rules::name::RECURRENT;
use crate::target::Target;
use xmem_analyzer::{Argument, Arguments, DType, Role};
use xmem_types::{Bytes, Nanos, OpId};

/// Operators that run a stack of layers.
pub(crate) const LAYERS: &[&str] = &["aten::lstm", "aten::gru", "aten::rnn_tanh", "aten::rnn_relu"];

/// What was made for the first such layer and stays.
#[derive(Default)]
pub(crate) struct Made {
    dropout_states: bool,
}

/// Replaces a stack of layers and its backward. Returns the backward nodes that are replaced; none
/// where the call could not be read.
pub(crate) fn lower(
    draft: &mut Draft<'_>,
    target: &Target,
    nodes_of: &NodesOf,
    made: &mut Made,
    op: OpId,
) -> Option<Vec<OpId>> {
    let profile = draft.profile;
    let call = Call::read(profile.op_name(op), profile.arguments(op))?;
    let mut nodes: Vec<OpId> = std::iter::once(op)
        .chain(profile.tree.descendants(op).iter().copied())
        .filter_map(|o| nodes_of.get(&o))
        .flatten()
        .copied()
        .collect();
    nodes.sort_unstable_by_key(|&n| (profile.op_start(n), n));
    let (start, end) = (Position::start(profile.op_start(op)), Position::end(profile.op_end(op)));
    let all = draft.blocks_in(op);
    let last_of = |size: Bytes, taken: &[usize]| {
        let fits = |&i: &usize| profile.blocks[i].size == size && !taken.contains(&i);
        all.iter().copied().rfind(|i| fits(i) && draft.escapes(*i, op))
    };
    let mut outputs = vec![last_of(call.output(), &[])?];
    for state in call.states() {
        outputs.extend(last_of(state, &outputs));
    }
    for i in all.into_iter().filter(|i| !outputs.contains(i)) {
        draft.drop_block(i, RECURRENT);
    }
    let done = nodes.last().map_or(end, |&n| Position::end(profile.op_end(n)));
    // cuDNN's backward reads the output; the CPU's reads that of each step.
    let output = outputs[0];
    if draft.items[output].free.is_some_and(|free| free < done) {
        draft.retime(output, draft.items[output].alloc, Some(done), RECURRENT);
    }
    if call.dropout && !made.dropout_states {
        made.dropout_states = true;
        dropout_states(draft, target, start, op);
    }
    let mut asks = Vec::new();
    if call.batch_first {
        asks.push(Ask::Hold(call.input()));
    }
    asks.push(Ask::Output(call.output()));
    asks.extend(call.states().map(Ask::Output));
    asks.push(call.workspace());
    outputs.sort_unstable();
    lay_out_in(draft, Window { op, start, end }, &mut outputs, &asks, RECURRENT);
    let mut kept = Vec::new();
    if call.dtype == DType::BF16 {
        // Not flattened when the model was moved (torch/backends/cudnn/__init__.py, `is_acceptable`).
        kept.push((call.flat(), None));
    }
    if call.training {
        let (size, range) = call.reserve();
        kept.push((size, Some(range)));
    }
    for (size, range) in kept {
        let alloc = draft.after_position(end_of_requests(draft, op, start));
        let new = Addition { size, alloc, free: Some(done), role: Role::Activation, op };
        match range {
            Some(range) => {
                draft.add_uncertain(new, range, RECURRENT);
            }
            None => draft.add(new, RECURRENT),
        }
    }
    backward(draft, &call, &nodes);
    Some(nodes)
}

/// After the last output that was made within `op`.
fn end_of_requests(draft: &Draft<'_>, op: OpId, start: Position) -> Position {
    let live = draft.blocks_in(op).into_iter().filter(|&i| draft.live(i));
    live.map(|i| draft.items[i].alloc).max().unwrap_or(start)
}

/// The gradients of input and weights stay, and those of the states that the job goes on with.
fn backward(draft: &mut Draft<'_>, call: &Call, nodes: &[OpId]) {
    let (Some(&first), Some(&last)) = (nodes.first(), nodes.last()) else { return };
    let profile = draft.profile;
    let mut all: Vec<usize> = nodes.iter().flat_map(|&n| draft.blocks_in(n)).collect();
    all.sort_unstable();
    all.dedup();
    let states: Vec<Bytes> = call.states().collect();
    let mut kept: Vec<usize> = Vec::new();
    for &i in all.iter().rev().filter(|&&i| draft.escapes(i, last)) {
        let size = profile.blocks[i].size;
        let flows = size == call.input() || states.contains(&size);
        let once = !kept.iter().any(|&k| profile.blocks[k].size == size);
        if profile.blocks[i].role == Role::Gradient || (flows && once) {
            kept.push(i);
        }
    }
    kept.reverse();
    for &i in all.iter().filter(|i| !kept.contains(i)) {
        draft.drop_block(i, RECURRENT);
    }
    let flows = |size: Bytes| {
        let out = kept
            .iter()
            .any(|&i| profile.blocks[i].size == size && profile.blocks[i].role != Role::Gradient);
        if out { Ask::Output(size) } else { Ask::Hold(size) }
    };
    // Zeros for the states that no gradient comes to.
    let mut asks: Vec<Ask> = states.iter().map(|&s| Ask::Hold(s)).collect();
    asks.push(flows(call.input()));
    asks.extend(states.iter().map(|&s| flows(s)));
    if call.batch_first {
        asks.extend([Ask::Hold(call.input()), Ask::Hold(call.output())]);
    }
    asks.extend([call.workspace(), Ask::Free]);
    if call.batch_first {
        asks.extend([Ask::Free, Ask::Free, Ask::Hold(call.input())]);
    }
    if call.biased {
        asks.extend(flat_gradient(draft, call, &mut kept));
        asks.extend([call.workspace(), Ask::Free]);
    } else {
        // cuDNN's flat buffer has biases all the same: the weights' gradients are copied out of it.
        asks.extend([Ask::Hold(call.flat()), call.workspace(), Ask::Free]);
        asks.extend(call.parameters.iter().map(|&p| Ask::Output(p)));
    }
    let window = Window {
        op: first,
        start: Position::start(profile.op_start(first)),
        end: Position::end(profile.op_end(last)),
    };
    lay_out_in(draft, window, &mut kept, &asks, RECURRENT);
}

/// One flat buffer on CUDA, of which each weight's gradient is a part: it goes with the last of them.
/// Where the job does not train all weights, the gradients stay as they are.
fn flat_gradient(draft: &mut Draft<'_>, call: &Call, kept: &mut Vec<usize>) -> Vec<Ask> {
    let profile = draft.profile;
    let is_gradient = |i: &usize| profile.blocks[*i].role == Role::Gradient;
    let gradients: Vec<usize> = kept.iter().copied().filter(is_gradient).collect();
    let all: Bytes = gradients.iter().map(|&i| profile.blocks[i].size).sum();
    let Some((&first, others)) = gradients.split_first() else { return Vec::new() };
    if all != call.weights() {
        return call.parameters.iter().map(|&p| Ask::Output(p)).collect();
    }
    let forever = Position::end(Nanos::MAX);
    let free = gradients.iter().map(|&i| draft.items[i].free.unwrap_or(forever)).max();
    let alloc = draft.items[first].alloc;
    draft.retime(first, alloc, free.filter(|&f| f != forever), RECURRENT);
    draft.resize(first, all, RECURRENT);
    for &other in others {
        draft.drop_block(other, RECURRENT);
    }
    kept.retain(|i| !others.contains(i));
    vec![Ask::Output(all)]
}

/// The generator's states for dropout between layers, once and for ever
/// (aten/src/ATen/native/cudnn/RNN.cpp, `DropoutState`). cuDNN decides how large they are: taken is
/// a generator for each thread that the device holds at once.
fn dropout_states(draft: &mut Draft<'_>, target: &Target, start: Position, op: OpId) {
    const GENERATOR: u64 = 48;
    let threads = u64::from(target.device.sms) * u64::from(target.device.max_threads_per_sm);
    let size = Bytes(threads * GENERATOR);
    let range = SizeRange {
        low: Bytes(size.get() / 2),
        high: Bytes(size.get() * 2),
        doubt: Doubt::Library,
    };
    let new = Addition { size, alloc: start, free: None, role: Role::Workspace, op };
    draft.add_uncertain(new, range, RECURRENT);
}

/// What a cell computes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cell {
    Lstm,
    Gru,
    Plain,
}

impl Cell {
    const fn gates(self) -> u64 {
        match self {
            Self::Lstm => 4,
            Self::Gru => 3,
            Self::Plain => 1,
        }
    }

    /// Numbers that backward needs for each hidden unit and step: at least the gates and what they
    /// are applied to; taken and at most with what an implementation may keep beside.
    const fn reserved(self) -> [u64; 3] {
        match self {
            Self::Lstm => [5, 6, 8],
            Self::Gru => [4, 5, 7],
            Self::Plain => [1, 2, 3],
        }
    }
}

/// A call of `lstm(input, hx, params, has_biases, num_layers, dropout, train, bidirectional,
/// batch_first)`, or with `data, batch_sizes` for packed sequences.
struct Call {
    cell: Cell,
    dtype: DType,
    /// Steps times batch; sequences of a batch.
    rows: u64,
    batch: u64,
    inputs: u64,
    hidden: u64,
    /// Smaller than `hidden` with a projection.
    outputs: u64,
    layers: u64,
    directions: u64,
    parameters: Vec<Bytes>,
    biased: bool,
    dropout: bool,
    training: bool,
    batch_first: bool,
}

impl Call {
    fn read(operator: &str, arguments: &Arguments) -> Option<Self> {
        let cell = match operator {
            "aten::lstm" => Cell::Lstm,
            "aten::gru" => Cell::Gru,
            _ => Cell::Plain,
        };
        let at = arguments.list.iter().rposition(|a| matches!(a, Argument::TensorList(_)))?;
        let Argument::TensorList(parameters) = &arguments.list[at] else { return None };
        let state = match arguments.list.get(at.checked_sub(1)?)? {
            Argument::Tensor(state) => state.dims.clone(),
            Argument::TensorList(states) => states.first()?.clone(),
            _ => return None,
        };
        let packed = at == 3;
        let input = arguments.tensor(0)?;
        let (input_weight, hidden_weight) = (parameters.first()?, parameters.get(1)?);
        let flag = |offset: usize| arguments.value(at + offset) == Some("True");
        let layers = u64::try_from(*arguments.ints(at + 2)?.first()?).ok()?;
        let element = input.dtype.size();
        let inputs = *input.dims.last()?;
        Some(Self {
            cell,
            dtype: input.dtype,
            rows: input.numel() / inputs.max(1),
            batch: *state.get(1)?,
            inputs,
            hidden: input_weight.first()? / cell.gates(),
            outputs: *hidden_weight.get(1)?,
            layers,
            directions: if flag(5) { 2 } else { 1 },
            parameters: parameters
                .iter()
                .map(|dims| Bytes(dims.iter().product::<u64>() * element))
                .collect(),
            biased: flag(1),
            dropout: layers > 1
                && flag(4)
                && arguments
                    .value(at + 3)
                    .and_then(|p| p.parse().ok())
                    .is_some_and(|p: f64| p > 0.0),
            training: flag(4),
            batch_first: !packed && flag(6),
        })
    }

    fn bytes(&self, elements: u64) -> Bytes {
        Bytes(elements * self.dtype.size())
    }

    fn input(&self) -> Bytes {
        self.bytes(self.rows * self.inputs)
    }

    fn output(&self) -> Bytes {
        self.bytes(self.rows * self.outputs * self.directions)
    }

    /// Last hidden state, and of LSTMs the last cell state.
    fn states(&self) -> impl Iterator<Item = Bytes> + use<> {
        let each = self.layers * self.directions * self.batch;
        let hidden = self.bytes(each * self.outputs);
        let cell = (self.cell == Cell::Lstm).then(|| self.bytes(each * self.hidden));
        std::iter::once(hidden).chain(cell)
    }

    fn weights(&self) -> Bytes {
        self.parameters.iter().copied().sum()
    }

    /// All weights as cuDNN wants them: with two biases a gate.
    fn flat(&self) -> Bytes {
        let gates = 2 * self.cell.gates() * self.hidden * self.directions * self.layers;
        self.weights() + if self.biased { Bytes::ZERO } else { self.bytes(gates) }
    }

    /// One number for each hidden unit, step, direction and layer.
    fn units(&self) -> Bytes {
        self.bytes(self.rows * self.hidden * self.directions * self.layers)
    }

    fn reserve(&self) -> (Bytes, SizeRange) {
        let [low, size, high] = self.cell.reserved().map(|n| Bytes(self.units().get() * n));
        (size, SizeRange { low, high, doubt: Doubt::Library })
    }

    /// The gates of one layer before they are applied, for all steps at once; perhaps of every layer,
    /// and a copy of the weights in another order.
    fn workspace(&self) -> Ask {
        let gates = Bytes(self.units().get() * self.cell.gates() / self.layers.max(1));
        let high = Bytes(gates.get() * self.layers) + self.weights();
        let range = SizeRange { low: Bytes::ZERO, high, doubt: Doubt::Library };
        Ask::Unsure(gates, range)
    }
}

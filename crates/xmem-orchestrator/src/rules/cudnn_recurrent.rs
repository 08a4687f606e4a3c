//! Recurrent layers run through cuDNN.
//!
//! The CPU runs LSTMs through oneDNN, layer by layer, and the others step by step. CUDA hands the whole stack
//! of layers to cuDNN (aten/src/ATen/native/cudnn/RNN.cpp): outputs and states, a reserve that backward
//! needs, a workspace for each call. The library does not document the sizes of these two; they are as measured
//! on a GPU ([`sizes`]), the workspace with a range. Everything else was recorded with PyTorch 2.11's CUDA
//! build, kernels stubbed.
//!
//! When the module is moved to the GPU, its weights are copied into one buffer. Backward makes their gradients
//! in one buffer, too, which stays with them if there were none before, and else goes when they were added.

mod flat_weights;
mod sizes;

pub(crate) use flat_weights::FlatWeights;

use crate::frame::call::Call;
use crate::frame::count::Count;
use crate::frame::definition::{Applies, Lowering, Outcome, Reason, RuleDefinition};
use crate::frame::draft::{Addition, Edits, Place};
use crate::rule::Rule;
use crate::target::Target;
use crate::uncertainty::{SizeRange, Uncertainty};
use sizes::{Algorithm, Stack};
use xmem_analyzer::{Argument, Arguments, DType, Role};
use xmem_types::{BlockId, Bytes, OpId};

pub(crate) static RULE: RuleDefinition = RuleDefinition {
    rule: Rule {
        name: "cudnn-recurrent",
        summary: "recurrent layers run through cuDNN: outputs, states and a reserve for backward instead of the CPU's steps; the sizes of reserve and workspace are as measured on an H100, the workspace with a range",
        source: "aten/src/ATen/native/cudnn/RNN.cpp `_cudnn_rnn`, `_cudnn_rnn_backward`; cuDNN documents no formula for cudnnGetRNNTempSpaceSizes",
        operators: &["aten::lstm", "aten::gru", "aten::rnn_tanh", "aten::rnn_relu"],
        covers: &["aten::mkldnn_rnn_layer", "aten::mkldnn_rnn_layer_backward"],
    },
    applies: Applies::ToOperators(|_| Box::new(Recurrent::default())),
};

/// The memory that the first layer with dropout makes and that stays.
#[derive(Default)]
struct Recurrent {
    dropout_states: bool,
}

impl Lowering for Recurrent {
    fn lower(&mut self, call: &mut Call<'_, '_, '_>) -> Outcome {
        if let Some(nodes) = self.replace(call) {
            return Outcome::ReplacedNodes(nodes);
        }
        Outcome::KeptAsRecorded(Reason {
            code: "recurrent-as-recorded",
            message: format!(
                "{} runs through cuDNN on CUDA, but its shapes were not recorded: its memory is kept \
                 as the CPU ran it",
                call.name()
            ),
        })
    }
}

impl Recurrent {
    /// Replaces a stack of layers and its backward; returns the backward nodes that are replaced.
    fn replace(&mut self, call: &mut Call<'_, '_, '_>) -> Option<Vec<OpId>> {
        let layers = Layers::read(call.name(), call.arguments())?;
        let (op, nodes) = (call.op, call.nodes());
        let edits = &mut call.edits;
        let (start, end) = (edits.before(op), edits.after_op(op));
        let all = edits.blocks_in(op);
        let last_of = |size: Bytes, taken: &[BlockId]| {
            let fits = |b: &BlockId| edits.recorded_size(*b) == size && !taken.contains(b);
            all.iter().copied().rfind(|block| fits(block) && edits.escapes(*block, op))
        };
        let mut outputs = vec![last_of(layers.output(), &[])?];
        for state in layers.states() {
            outputs.extend(last_of(state, &outputs));
        }
        for block in all.into_iter().filter(|block| !outputs.contains(block)) {
            edits.drop_block(block);
        }
        let done = nodes.last().map_or(end, |&node| edits.after_op(node));
        // cuDNN's backward reads the output; the CPU's reads that of each step.
        let output = outputs[0];
        if edits.item(output).free() < done {
            edits.move_free(output, done);
        }
        if layers.dropout && !self.dropout_states {
            self.dropout_states = true;
            add_dropout_states(edits, call.cx.target, start, op);
        }
        outputs.sort_unstable();
        let mut plan = edits.plan(op, start, Role::Workspace).ends(end).outputs(outputs);
        if layers.batch_first {
            plan.hold(layers.input());
        }
        plan.output(layers.output());
        plan.output_each(layers.states());
        let (size, range) = layers.workspace();
        plan.hold_uncertain(size, range);
        plan.finish();
        keep_for_backward(edits, &layers, (start, done), op);
        backward(edits, &layers, &nodes);
        Some(nodes)
    }
}

/// Adds what the forward keeps for the backward.
fn keep_for_backward(
    edits: &mut Edits<'_, '_>,
    layers: &Layers,
    (start, done): (Place, Place),
    op: OpId,
) {
    let mut kept = Vec::new();
    if layers.dtype == DType::BF16 {
        // Not flattened when the model was moved (torch/backends/cudnn/__init__.py, `is_acceptable`).
        kept.push(layers.flat());
    }
    if layers.training {
        kept.push(layers.stack().reserve().into());
    }
    for size in kept {
        let last = edits.blocks_in(op).into_iter().filter(|&block| edits.live(block));
        let last = last.map(|block| edits.item(block).alloc()).max().unwrap_or(start);
        let alloc = edits.next(last);
        edits.add(Addition { size, alloc, free: done, role: Role::Activation, op });
    }
}

/// The gradients of input and weights stay, and those of the states that the job continues with.
fn backward(edits: &mut Edits<'_, '_>, layers: &Layers, nodes: &[OpId]) {
    let (Some(&first), Some(&last)) = (nodes.first(), nodes.last()) else { return };
    let profile = edits.profile();
    let mut all: Vec<BlockId> = nodes.iter().flat_map(|&n| edits.blocks_in(n)).collect();
    all.sort_unstable();
    all.dedup();
    let states: Vec<Bytes> = layers.states().collect();
    // Weights' gradients that are added to earlier ones.
    let is_added = |block: &BlockId| {
        let freed_in = profile.block(*block).freed_in;
        freed_in.is_some_and(|op| profile.op_name(op).ends_with("torch::autograd::AccumulateGrad"))
    };
    let (added, others): (Vec<BlockId>, Vec<BlockId>) = all.iter().partition(|b| is_added(b));
    let mut kept: Vec<BlockId> = Vec::new();
    for &block in others.iter().rev().filter(|&&block| edits.escapes(block, last)) {
        let size = profile.block(block).size;
        let flows = size == layers.input() || states.contains(&size);
        let once = !kept.iter().any(|&k| profile.block(k).size == size);
        if profile.block(block).role == Role::Gradient || (flows && once) {
            kept.push(block);
        }
    }
    kept.reverse();
    for &block in all.iter().filter(|block| !kept.contains(block)) {
        edits.drop_block(block);
    }
    let flowing: Vec<Bytes> = kept
        .iter()
        .filter(|&&block| profile.block(block).role != Role::Gradient)
        .map(|&block| profile.block(block).size)
        .collect();
    let passing =
        !added.is_empty() && !kept.iter().any(|&block| profile.block(block).role == Role::Gradient);
    let gradients =
        if layers.biased { flat_gradient(edits, layers, &mut kept) } else { Vec::new() };

    let (start, end) = (edits.before(first), edits.after_op(last));
    // The CPU's layers free the gradient of their output one by one.
    for block in nodes.iter().flat_map(|&node| edits.freed_in(node)).collect::<Vec<_>>() {
        let item = edits.item(block);
        if item.alloc() < start && item.free() < end {
            edits.move_free(block, end);
        }
    }
    let mut plan = edits.plan(first, start, Role::Workspace).ends(end).outputs(kept);
    // Zeros for the states that no gradient comes to.
    plan.hold_each(states.iter().copied());
    for size in std::iter::once(layers.input()).chain(states) {
        if flowing.contains(&size) {
            plan.output(size);
        } else {
            plan.hold(size);
        }
    }
    let (workspace, range) = layers.workspace();
    if layers.batch_first {
        let copies = [plan.take(layers.input()), plan.take(layers.output())];
        plan.touch_uncertain(workspace, range);
        plan.free_all(copies.into_iter().rev());
        plan.hold(layers.input());
    } else {
        plan.touch_uncertain(workspace, range);
    }
    // cuDNN's flat buffer has biases in any case: without them, the weights' gradients are copied out of it.
    if passing || !layers.biased {
        plan.hold(layers.flat());
    }
    plan.output_each(gradients);
    let scratch = plan.take_uncertain(workspace, range);
    if !layers.biased && passing {
        plan.hold_each(layers.parameters.iter().copied());
    } else if !layers.biased {
        plan.output_each(layers.parameters.iter().copied());
    }
    plan.free(scratch);
    plan.finish();
}

/// One flat buffer on CUDA, of which each weight's gradient is a part: it goes with the last of them.
/// If the job does not train all weights, the gradients stay as they are. Returns the sizes of the
/// gradients in the order in which they are made.
fn flat_gradient(
    edits: &mut Edits<'_, '_>,
    layers: &Layers,
    kept: &mut Vec<BlockId>,
) -> Vec<Bytes> {
    let profile = edits.profile();
    let is_gradient = |block: &BlockId| profile.block(*block).role == Role::Gradient;
    let gradients: Vec<BlockId> = kept.iter().copied().filter(is_gradient).collect();
    let all: Bytes = gradients.iter().map(|&block| profile.block(block).size).sum();
    let Some((&first, others)) = gradients.split_first() else { return Vec::new() };
    if all != layers.weights() {
        return layers.parameters.clone();
    }
    let free = gradients.iter().map(|&block| edits.item(block).free()).max();
    edits.move_free(first, free.unwrap_or(Place::NEVER));
    edits.resize(first, all);
    for &other in others {
        edits.drop_block(other);
    }
    kept.retain(|block| !others.contains(block));
    vec![all]
}

/// The generator's states for dropout between layers, once for the process
/// (aten/src/ATen/native/cudnn/RNN.cpp, `DropoutState`). cuDNN decides how large they are: a generator of 48 bytes for
/// each of 1024 threads a multiprocessor, as measured on an H100 with cuDNN 9.19.
fn add_dropout_states(edits: &mut Edits<'_, '_>, target: &Target, start: Place, op: OpId) {
    const GENERATOR: u64 = 48;
    const THREADS: u64 = 1024;
    let size = Count(target.device.sms.into()) * THREADS * GENERATOR;
    let (low, high) = ((size / 2).into(), (size * 2).into());
    let range = SizeRange::new(low, high, Uncertainty::Library);
    let role = Role::Workspace;
    let new = Addition { size: size.into(), alloc: start, free: Place::NEVER, role, op };
    edits.add_uncertain(new, range);
}

/// The kind of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
}

/// A call of `lstm(input, hx, params, has_biases, num_layers, dropout, train, bidirectional,
/// batch_first)`, or with `data, batch_sizes` for packed sequences.
struct Layers {
    cell: Cell,
    dtype: DType,
    /// Steps times batch; sequences of a batch.
    rows: Count,
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
    packed: bool,
    batch_first: bool,
}

impl Layers {
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
        let inputs = *input.dims.last()?;
        let size =
            |dims: &Vec<u64>| dims.iter().copied().map(Count).product::<Count>().of(input.dtype);
        Some(Self {
            cell,
            dtype: input.dtype,
            rows: Count::elements(input) / inputs,
            batch: *state.get(1)?,
            inputs,
            hidden: input_weight.first()? / cell.gates(),
            outputs: *hidden_weight.get(1)?,
            layers,
            directions: if flag(5) { 2 } else { 1 },
            parameters: parameters.iter().map(|dims| size(dims).into()).collect(),
            biased: flag(1),
            dropout: layers > 1
                && flag(4)
                && arguments
                    .value(at + 3)
                    .and_then(|p| p.parse().ok())
                    .is_some_and(|p: f64| p > 0.0),
            training: flag(4),
            packed,
            batch_first: !packed && flag(6),
        })
    }

    fn bytes(&self, elements: Count) -> Bytes {
        elements.of(self.dtype).into()
    }

    fn input(&self) -> Bytes {
        self.bytes(self.rows * self.inputs)
    }

    fn output(&self) -> Bytes {
        self.bytes(self.rows * self.outputs * self.directions)
    }

    /// Last hidden state, and of LSTMs the last cell state.
    fn states(&self) -> impl Iterator<Item = Bytes> + use<> {
        let each = Count(self.layers) * self.directions * self.batch;
        let hidden = self.bytes(each * self.outputs);
        let cell = (self.cell == Cell::Lstm).then(|| self.bytes(each * self.hidden));
        std::iter::once(hidden).chain(cell)
    }

    fn weights(&self) -> Bytes {
        self.parameters.iter().map(|&size| Count::from(size)).fold(Count(0), |a, b| a + b).into()
    }

    /// All weights as cuDNN wants them: with two biases a gate.
    fn flat(&self) -> Bytes {
        let gates = Count(2) * self.cell.gates() * self.hidden * self.directions * self.layers;
        let biases = if self.biased { Count(0) } else { gates.of(self.dtype) };
        (biases + self.weights()).into()
    }

    /// The stack as cuDNN sees it.
    fn stack(&self) -> Stack {
        Stack {
            cell: self.cell,
            rows: self.rows,
            batch: self.batch,
            inputs: self.inputs,
            hidden: self.hidden,
            outputs: self.outputs,
            layers: self.layers,
            directions: self.directions,
            packed: self.packed,
            dropout: self.dropout,
            element: self.dtype.size(),
        }
    }

    /// The workspace of the algorithm that is expected; as range, those of all.
    fn workspace(&self) -> (Bytes, SizeRange) {
        let stack = self.stack();
        let all = Algorithm::ALL.map(|algorithm| Bytes::from(stack.workspace(algorithm)));
        let size = stack.workspace(stack.algorithm()).into();
        let low = all.into_iter().min().unwrap_or(size);
        let high = all.into_iter().max().unwrap_or(size);
        (size, SizeRange::new(low, high, Uncertainty::Library))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::RULE;
    use crate::Uncertainty;
    use crate::testing::{Case, Script, lowered, target};
    use expect_test::expect;

    pub(crate) fn cases() -> Vec<Case> {
        vec![
            Case {
                rule: RULE.name,
                shows: "an LSTM of one layer: reserve until backward, one flat gradient",
                script: lstm(
                    "f32[30,16,64] {1,16,96;1,16,96} {384,64;384,96;384;384} True 1 0. True False False",
                    Gradients::Kept,
                ),
                target: target(),
                requests: expect![[r#"
                    an LSTM of one layer: reserve until backward, one flat gradient
                    on  + wi 98304 parameter cudnn-recurrent
                    on  + wh 147456 parameter cudnn-recurrent
                    on  + bi 1536 parameter cudnn-recurrent
                    on  + bh 1536 parameter cudnn-recurrent
                    on  + cudnn-recurrent#1 248832 parameter
                    on  - wi
                    on  - wh
                    on  - bi
                    on  - bh
                    off + wi 98304 parameter model-placement
                    off + wh 147456 parameter model-placement
                    off + bi 1536 parameter model-placement
                    off + bh 1536 parameter model-placement
                        + y 184320 activation
                    off + h 6144 temporary
                    off + c 6144 temporary
                    off + workspace 2826240 activation
                        + hy 6144 temporary
                        + cy 6144 temporary
                    on  + cudnn-recurrent#2 12677504 workspace
                    on  + cudnn-recurrent#3 921856 activation
                    on  - cudnn-recurrent#2
                    off - h
                    off - c
                        - hy
                        - cy
                    on  + cudnn-recurrent#4 6144 workspace
                    on  + cudnn-recurrent#5 6144 workspace
                    on  + cudnn-recurrent#6 122880 workspace
                    on  + cudnn-recurrent#7 6144 workspace
                    on  + cudnn-recurrent#8 6144 workspace
                    on  + cudnn-recurrent#9 12677504 workspace
                    on  - cudnn-recurrent#9
                    on  + gwi 248832 gradient cudnn-recurrent
                    on  + cudnn-recurrent#10 12677504 workspace
                    on  - cudnn-recurrent#10
                    on  - cudnn-recurrent#8
                    on  - cudnn-recurrent#7
                    on  - cudnn-recurrent#6
                    on  - cudnn-recurrent#5
                    on  - cudnn-recurrent#4
                    on  - cudnn-recurrent#3
                    off + gwi 98304 gradient
                    off + gwh 147456 gradient
                    off + gbi 1536 gradient
                    off + gbh 1536 gradient
                    off - workspace
                        - y
                        - gwi
                    off - gwh
                    off - gbi
                    off - gbh
                "#]],
            },
            Case {
                rule: RULE.name,
                shows: "batch first: contiguous copies",
                script: lstm(
                    "f32[16,30,64] {1,16,96;1,16,96} {384,64;384,96;384;384} True 1 0. True False True",
                    Gradients::Kept,
                ),
                target: target(),
                requests: expect![[r#"
                    batch first: contiguous copies
                    on  + wi 98304 parameter cudnn-recurrent
                    on  + wh 147456 parameter cudnn-recurrent
                    on  + bi 1536 parameter cudnn-recurrent
                    on  + bh 1536 parameter cudnn-recurrent
                    on  + cudnn-recurrent#1 248832 parameter
                    on  - wi
                    on  - wh
                    on  - bi
                    on  - bh
                    on  + cudnn-recurrent#2 122880 workspace
                    off + wi 98304 parameter model-placement
                    off + wh 147456 parameter model-placement
                    off + bi 1536 parameter model-placement
                    off + bh 1536 parameter model-placement
                        + y 184320 activation
                    off + h 6144 temporary
                    off + c 6144 temporary
                    off + workspace 2826240 activation
                        + hy 6144 temporary
                        + cy 6144 temporary
                    on  + cudnn-recurrent#3 12677504 workspace
                    on  + cudnn-recurrent#4 921856 activation
                    on  - cudnn-recurrent#3
                    on  - cudnn-recurrent#2
                    off - h
                    off - c
                        - hy
                        - cy
                    on  + cudnn-recurrent#5 6144 workspace
                    on  + cudnn-recurrent#6 6144 workspace
                    on  + cudnn-recurrent#7 122880 workspace
                    on  + cudnn-recurrent#8 6144 workspace
                    on  + cudnn-recurrent#9 6144 workspace
                    on  + cudnn-recurrent#10 122880 workspace
                    on  + cudnn-recurrent#11 184320 workspace
                    on  + cudnn-recurrent#12 12677504 workspace
                    on  - cudnn-recurrent#12
                    on  - cudnn-recurrent#11
                    on  - cudnn-recurrent#10
                    on  + cudnn-recurrent#13 122880 workspace
                    on  + gwi 248832 gradient cudnn-recurrent
                    on  + cudnn-recurrent#14 12677504 workspace
                    on  - cudnn-recurrent#14
                    on  - cudnn-recurrent#13
                    on  - cudnn-recurrent#9
                    on  - cudnn-recurrent#8
                    on  - cudnn-recurrent#7
                    on  - cudnn-recurrent#6
                    on  - cudnn-recurrent#5
                    on  - cudnn-recurrent#4
                    off + gwi 98304 gradient
                    off + gwh 147456 gradient
                    off + gbi 1536 gradient
                    off + gbh 1536 gradient
                    off - workspace
                        - y
                        - gwi
                    off - gwh
                    off - gbi
                    off - gbh
                "#]],
            },
            Case {
                rule: RULE.name,
                shows: "gradients that are added to earlier ones: one buffer until backward ends",
                script: lstm(
                    "f32[30,16,64] {1,16,96;1,16,96} {384,64;384,96;384;384} True 1 0. True False False",
                    Gradients::Added,
                ),
                target: target(),
                requests: expect![[r#"
                    gradients that are added to earlier ones: one buffer until backward ends
                        + preexisting#1 147456 gradient
                        + preexisting#2 98304 gradient
                        + preexisting#3 1536 gradient
                        + preexisting#4 1536 gradient
                    on  + wi 98304 parameter cudnn-recurrent
                    on  + wh 147456 parameter cudnn-recurrent
                    on  + bi 1536 parameter cudnn-recurrent
                    on  + bh 1536 parameter cudnn-recurrent
                    on  + cudnn-recurrent#1 248832 parameter
                    on  - wi
                    on  - wh
                    on  - bi
                    on  - bh
                    off + wi 98304 parameter model-placement
                    off + wh 147456 parameter model-placement
                    off + bi 1536 parameter model-placement
                    off + bh 1536 parameter model-placement
                        + y 184320 activation
                    off + h 6144 temporary
                    off + c 6144 temporary
                    off + workspace 2826240 activation
                        + hy 6144 temporary
                        + cy 6144 temporary
                    on  + cudnn-recurrent#2 12677504 workspace
                    on  + cudnn-recurrent#3 921856 activation
                    on  - cudnn-recurrent#2
                    off - h
                    off - c
                        - hy
                        - cy
                    on  + cudnn-recurrent#4 6144 workspace
                    on  + cudnn-recurrent#5 6144 workspace
                    on  + cudnn-recurrent#6 122880 workspace
                    on  + cudnn-recurrent#7 6144 workspace
                    on  + cudnn-recurrent#8 6144 workspace
                    on  + cudnn-recurrent#9 12677504 workspace
                    on  - cudnn-recurrent#9
                    on  + cudnn-recurrent#10 248832 workspace
                    on  + cudnn-recurrent#11 12677504 workspace
                    on  - cudnn-recurrent#11
                    on  - cudnn-recurrent#10
                    on  - cudnn-recurrent#8
                    on  - cudnn-recurrent#7
                    on  - cudnn-recurrent#6
                    on  - cudnn-recurrent#5
                    on  - cudnn-recurrent#4
                    on  - cudnn-recurrent#3
                    off + gwi 98304 temporary
                    off + gwh 147456 temporary
                    off + gbi 1536 temporary
                    off + gbh 1536 temporary
                    off - workspace
                    off - gwi
                    off - gwh
                    off - gbi
                    off - gbh
                        - y
                "#]],
            },
        ]
    }

    #[derive(Clone, Copy, PartialEq, Eq)]
    enum Gradients {
        Kept,
        /// Not the first backward since gradients were set to none.
        Added,
    }

    const PARAMETERS: [(&str, &[u64], u64); 4] = [
        ("wi", &[384, 64], 98_304),
        ("wh", &[384, 96], 147_456),
        ("bi", &[384], 1536),
        ("bh", &[384], 1536),
    ];

    /// As oneDNN runs it on the CPU.
    fn lstm(arguments: &str, gradients: Gradients) -> Script {
        let mut t = Script::default();
        for (name, dims, _) in PARAMETERS {
            t.parameter(name, dims);
        }
        t.iteration(0, |t| {
            t.op("aten::lstm", arguments, |t| {
                t.op_seq(1, "aten::mkldnn_rnn_layer", "f32[30,16,64]", |t| {
                    t.alloc("y", 184_320);
                    t.alloc("h", 6144);
                    t.alloc("c", 6144);
                    t.alloc("workspace", 2_826_240);
                    t.alloc("packed", 98_304);
                    t.free("packed");
                });
                t.makes_seq(2, "aten::stack", "{16,96} 0", "hy", 6144);
                t.makes_seq(3, "aten::stack", "{16,96} 0", "cy", 6144);
            });
            t.free("h c hy cy");
            t.node(1, "MkldnnRnnLayerBackward0", |t| {
                t.op("aten::mkldnn_rnn_layer_backward", "f32[30,16,64]", |t| {
                    t.alloc("zeros", 6144);
                    t.alloc("gx", 122_880);
                    for (name, _, bytes) in PARAMETERS {
                        t.alloc(&format!("g{name}"), bytes);
                    }
                    t.free("zeros gx");
                });
                t.free("workspace");
            });
            for (name, dims, _) in PARAMETERS {
                let dims: Vec<String> = dims.iter().map(u64::to_string).collect();
                let gradient = format!("f32[{}]", dims.join(","));
                match gradients {
                    Gradients::Kept => t.accumulate(&gradient),
                    Gradients::Added => add_gradient(t, name, &gradient),
                }
            }
            t.free("y");
            if gradients == Gradients::Kept {
                t.free("gwi gwh gbi gbh");
            }
        });
        t
    }

    fn add_gradient(t: &mut Script, name: &str, gradient: &str) {
        let node = "torch::autograd::AccumulateGrad";
        t.op(&format!("autograd::engine::evaluate_function: {node}"), "", |t| {
            t.op(node, gradient, |t| {
                t.op("aten::add_", &format!("{gradient} {gradient} 1"), |_| ());
                t.free(&format!("g{name}"));
            });
        });
    }

    #[test]
    fn sizes_that_cudnn_decides_are_uncertain() {
        for case in cases() {
            let (schedule, _) = lowered(&case.script, &target());
            let doubts: Vec<_> = schedule
                .uncertain
                .iter()
                .map(|u| (u.range.cause, u.range.low.get(), u.range.high.get()))
                .collect();
            let workspace = (Uncertainty::Library, 9_408_768, 12_677_504);
            assert_eq!(doubts, [workspace; 3], "{}", case.shows);
        }
    }
}

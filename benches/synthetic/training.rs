//! A multilayer perceptron trained with Adam: linear layer and ReLU over and over.

use super::recorder::{Recorder, Signature, Storage};

const BATCH: u64 = 32;
const FLOAT: u64 = 4;

/// How large the job is. Each field is a dimension in which a trace grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Training {
    /// Rounds of forward, backward and optimizer.
    pub iterations: usize,
    /// Layers; with each come four blocks that live as long as the job.
    pub layers: usize,
    /// How many operators, modules and Python calls enclose each forward operator.
    pub depth: usize,
    /// Threads beside the first, each of which prepares a part of the batch.
    pub threads: u32,
}

impl Default for Training {
    fn default() -> Self {
        Self { iterations: 3, layers: 8, depth: 2, threads: 0 }
    }
}

/// What the program holds of a layer.
struct Layer {
    width: u64,
    parameters: [Storage; 2],
    gradients: Vec<Storage>,
    state: Vec<Storage>,
    weight: Signature,
    bias: Signature,
    output: Signature,
}

/// What autograd holds of a layer.
struct Saved {
    result: Storage,
    linear: u64,
    relu: u64,
}

impl Training {
    /// The trace.
    #[must_use]
    pub fn trace(&self) -> Vec<u8> {
        let mut profiler = Recorder::new();
        self.run(&mut profiler);
        profiler.json()
    }

    /// Runs the job.
    pub fn run(&self, profiler: &mut Recorder) {
        let script = profiler.call("train.py(1): <module>");
        let mut layers = self.build(profiler);
        let mut numbers = 0..;
        for iteration in 0..self.iterations {
            let step = profiler.annotation(&format!("ProfilerStep#{iteration}"));
            let batch = self.load(profiler);
            clear(profiler, &mut layers);
            let saved = self.forward(profiler, &layers, &mut numbers);
            backward(profiler, &mut layers, saved);
            optimize(profiler, &mut layers);
            batch.into_iter().for_each(|part| profiler.free(part));
            profiler.end(step);
        }
        profiler.give_back(script);
    }

    fn build(&self, profiler: &mut Recorder) -> Vec<Layer> {
        let build = profiler.call("train.py(10): build");
        let layers = (0..self.layers).map(|layer| {
            // A few widths, so that sizes and signatures repeat as in real models.
            let width = 64 << (layer % 4);
            let weight = profiler.signature(&[&[width, width]]);
            let bias = profiler.signature(&[&[width]]);
            let output = profiler.signature(&[&[BATCH, width]]);
            let parameters = [width * width, width].map(|count| {
                let empty = profiler.op("aten::empty", None);
                let storage = profiler.alloc(count * FLOAT);
                profiler.end(empty);
                profiler.leaf("aten::uniform_", Some(weight));
                storage
            });
            let (gradients, state) = (Vec::new(), Vec::new());
            Layer { width, parameters, gradients, state, weight, bias, output }
        });
        let layers = layers.collect();
        profiler.give_back(build);
        layers
    }

    /// A part of the batch on each thread.
    fn load(&self, profiler: &mut Recorder) -> Vec<Storage> {
        let name = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__";
        let loading = profiler.annotation(name);
        let batch = (0..=self.threads).map(|thread| {
            profiler.on_thread(thread);
            let random = profiler.op("aten::randn", None);
            let empty = profiler.op("aten::empty", None);
            let part = profiler.alloc(BATCH * 64 * FLOAT);
            profiler.end(empty);
            profiler.leaf("aten::normal_", None);
            profiler.end(random);
            part
        });
        let batch = batch.collect();
        profiler.on_thread(0);
        profiler.end(loading);
        batch
    }

    fn forward(
        &self,
        profiler: &mut Recorder,
        layers: &[Layer],
        numbers: &mut impl Iterator<Item = u64>,
    ) -> Vec<Saved> {
        let mut number = || numbers.next().expect("an endless sequence");
        let model = profiler.call_module("Mlp", 0);
        let mut saved = Vec::new();
        for (row, layer) in layers.iter().enumerate() {
            let mut around = Vec::new();
            for level in 0..self.depth {
                let frame = profiler.call_module("Block", (row * self.depth + level) as u64);
                around.push((frame, profiler.op("custom::around", Some(layer.output))));
            }
            let frame = profiler.call_module("Linear", row as u64);
            let (linear_number, relu_number) = (number(), number());
            let linear = profiler.op("aten::linear", Some(layer.output));
            let transposed = profiler.op("aten::t", Some(layer.weight));
            profiler.leaf("aten::transpose", Some(layer.weight));
            profiler.end(transposed);
            let product = profiler.forward("aten::addmm", linear_number, Some(layer.output));
            let sum = profiler.alloc(BATCH * layer.width * FLOAT);
            profiler.leaf("aten::copy_", Some(layer.output));
            profiler.end(product);
            profiler.end(linear);
            profiler.give_back(frame);
            let relu = profiler.forward("aten::relu", relu_number, Some(layer.output));
            let clamp = profiler.op("aten::clamp_min", Some(layer.output));
            let result = profiler.alloc(BATCH * layer.width * FLOAT);
            profiler.end(clamp);
            profiler.end(relu);
            profiler.free(sum);
            for (frame, op) in around.into_iter().rev() {
                profiler.end(op);
                profiler.give_back(frame);
            }
            saved.push(Saved { result, linear: linear_number, relu: relu_number });
        }
        profiler.give_back(model);
        saved
    }
}

fn backward(profiler: &mut Recorder, layers: &mut [Layer], saved: Vec<Saved>) {
    let run = profiler.call("torch/autograd/graph.py(820): _engine_run_backward");
    let mut flowing = None;
    for (layer, saved) in layers.iter_mut().zip(saved).rev() {
        let activation = BATCH * layer.width * FLOAT;
        let relu = Node::begin(profiler, "ReluBackward0", saved.relu);
        let threshold = profiler.op("aten::threshold_backward", Some(layer.output));
        let through = profiler.alloc(activation);
        profiler.end(threshold);
        profiler.end(relu.call);
        if let Some(flowing) = flowing.take() {
            profiler.free(flowing);
        }
        profiler.free(saved.result);
        profiler.end(relu.evaluate);

        let linear = Node::begin(profiler, "AddmmBackward0", saved.linear);
        let gradients = [activation, layer.width * layer.width * FLOAT].map(|bytes| {
            let product = profiler.op("aten::mm", Some(layer.output));
            let gradient = profiler.alloc(bytes);
            profiler.end(product);
            gradient
        });
        profiler.end(linear.call);
        let sum = profiler.op("aten::sum", Some(layer.output));
        let bias = profiler.alloc(layer.width * FLOAT);
        profiler.end(sum);
        profiler.free(through);
        profiler.end(linear.evaluate);
        let [input, weight] = gradients;
        flowing = Some(input);
        for (gradient, signature) in [(bias, layer.bias), (weight, layer.weight)] {
            let name = "torch::autograd::AccumulateGrad";
            let evaluate = profiler.op(&evaluation(name), None);
            let accumulate = profiler.op(name, Some(signature));
            profiler.leaf("aten::detach", Some(signature));
            profiler.end(accumulate);
            profiler.end(evaluate);
            layer.gradients.push(gradient);
        }
    }
    if let Some(flowing) = flowing {
        profiler.free(flowing);
    }
    profiler.give_back(run);
}

/// A backward node: what the engine opens, and the node's own operator in it.
struct Node {
    evaluate: super::Op,
    call: super::Op,
}

impl Node {
    fn begin(profiler: &mut Recorder, name: &str, number: u64) -> Self {
        let evaluate = profiler.backward(&evaluation(name), number);
        Self { evaluate, call: profiler.op(name, None) }
    }
}

fn evaluation(name: &str) -> String {
    format!("autograd::engine::evaluate_function: {name}")
}

fn optimize(profiler: &mut Recorder, layers: &mut [Layer]) {
    let call = profiler.call("torch/optim/adam.py(210): step");
    let step = profiler.annotation("Optimizer.step#Adam.step");
    for layer in layers {
        let sizes = layer.parameters.map(|parameter| parameter.bytes());
        if layer.state.is_empty() {
            for bytes in sizes.into_iter().flat_map(|bytes| [bytes; 2]) {
                let zeros = profiler.op("aten::zeros_like", Some(layer.weight));
                layer.state.push(profiler.alloc(bytes));
                profiler.leaf("aten::zero_", Some(layer.weight));
                profiler.end(zeros);
            }
        }
        for (bytes, signature) in sizes.into_iter().zip([layer.weight, layer.bias]) {
            profiler.leaf("aten::lerp_", Some(signature));
            profiler.leaf("aten::addcmul_", Some(signature));
            let root = profiler.op("aten::sqrt", Some(signature));
            let denominator = profiler.alloc(bytes);
            profiler.end(root);
            profiler.leaf("aten::addcdiv_", Some(signature));
            profiler.free(denominator);
        }
    }
    profiler.end(step);
    profiler.give_back(call);
}

fn clear(profiler: &mut Recorder, layers: &mut [Layer]) {
    let clearing = profiler.annotation("Optimizer.zero_grad#Adam.zero_grad");
    for gradient in layers.iter_mut().flat_map(|layer| layer.gradients.drain(..)) {
        profiler.free(gradient);
    }
    profiler.end(clearing);
}

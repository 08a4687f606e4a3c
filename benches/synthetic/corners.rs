//! Traces that are hard on a reader in one way each.

use super::recorder::{Recorder, Signature, Storage};
use super::training::Training;

/// A way to be hard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Corner {
    /// All events at the same time.
    EqualTimes,
    /// One operator encloses all others.
    OneOperator,
    /// One annotation encloses all operators.
    OneAnnotation,
    /// One Python call encloses all operators and calls.
    OneCall,
    /// Blocks that are never freed.
    NeverFreed,
    /// Blocks that are freed in the order of their allocation, after the last.
    FreedInOrder,
    /// Blocks that are freed in reverse, after the last.
    FreedInReverse,
    /// Blocks that are freed in no order, after the last.
    FreedInDisorder,
    /// Frees of what was allocated before.
    UnknownFrees,
    /// Every event on a thread of its own.
    ManyThreads,
    /// Matrix products on threads of their own, all at once.
    ConcurrentProducts,
    /// Operators that last no time.
    InstantOperators,
    /// Every operator within the one before.
    NestedOperators,
    /// Every matrix product within the one before, and each allocates.
    NestedProducts,
    /// Every Python call within the one before, modules among them.
    NestedCalls,
    /// One address over and over.
    OneAddress,
    /// No two names alike.
    DistinctNames,
    /// No two signatures alike.
    DistinctSignatures,
    /// Steps of the profiler with next to nothing in them.
    TinyIterations,
    /// Steps of an optimizer with next to nothing in them.
    TinySteps,
    /// Steps of an optimizer that run forward and backward themselves.
    Closures,
    /// Backward passes without an optimizer.
    BackwardOnly,
    /// Calls of a model without backward.
    Inference,
    /// One backward pass of many nodes.
    OneBackward,
    /// Training on many threads.
    ForwardThreads,
    /// Steps whose signatures repeat late.
    LatePeriod,
    /// Gradients that are cleared one by one, outside of `zero_grad`.
    LateGradients,
    /// Marks of `xmem profile` around tiny iterations.
    MarkedIterations,
    /// The same around calls of a model, without backward.
    MarkedInference,
}

impl Corner {
    /// All of them.
    pub const ALL: [Self; 29] = [
        Self::EqualTimes,
        Self::OneOperator,
        Self::OneAnnotation,
        Self::OneCall,
        Self::NeverFreed,
        Self::FreedInOrder,
        Self::FreedInReverse,
        Self::FreedInDisorder,
        Self::UnknownFrees,
        Self::ManyThreads,
        Self::ConcurrentProducts,
        Self::InstantOperators,
        Self::NestedOperators,
        Self::NestedProducts,
        Self::NestedCalls,
        Self::OneAddress,
        Self::DistinctNames,
        Self::DistinctSignatures,
        Self::TinyIterations,
        Self::TinySteps,
        Self::Closures,
        Self::BackwardOnly,
        Self::Inference,
        Self::OneBackward,
        Self::ForwardThreads,
        Self::LatePeriod,
        Self::LateGradients,
        Self::MarkedIterations,
        Self::MarkedInference,
    ];

    /// In words.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::EqualTimes => "equal times",
            Self::OneOperator => "one operator around all",
            Self::OneAnnotation => "one annotation around all",
            Self::OneCall => "one Python call around all",
            Self::NeverFreed => "never freed",
            Self::FreedInOrder => "freed in order",
            Self::FreedInReverse => "freed in reverse",
            Self::FreedInDisorder => "freed in disorder",
            Self::UnknownFrees => "frees of unknown blocks",
            Self::ManyThreads => "a thread for each event",
            Self::ConcurrentProducts => "products on all threads at once",
            Self::InstantOperators => "operators of no duration",
            Self::NestedOperators => "nested operators",
            Self::NestedProducts => "nested matrix products",
            Self::NestedCalls => "nested Python calls",
            Self::OneAddress => "one address",
            Self::DistinctNames => "distinct names",
            Self::DistinctSignatures => "distinct signatures",
            Self::TinyIterations => "tiny iterations",
            Self::TinySteps => "tiny optimizer steps",
            Self::Closures => "steps with closures",
            Self::BackwardOnly => "backward without optimizer",
            Self::Inference => "calls of a model",
            Self::OneBackward => "one long backward pass",
            Self::ForwardThreads => "training on many threads",
            Self::LatePeriod => "a period at the end",
            Self::LateGradients => "gradients cleared one by one",
            Self::MarkedIterations => "marked iterations",
            Self::MarkedInference => "marked calls of a model",
        }
    }

    /// A trace of about this many events.
    #[must_use]
    pub fn trace(self, events: usize) -> Vec<u8> {
        let mut profiler = Recorder::new();
        self.record(&mut profiler, events);
        profiler.json()
    }

    fn record(self, profiler: &mut Recorder, events: usize) {
        match self {
            Self::EqualTimes => {
                profiler.stop_clock();
                let layers = events / 130;
                Training { iterations: 2, layers, ..Training::default() }.run(profiler);
            }
            Self::OneOperator => {
                let op = profiler.op("aten::giant", None);
                plain(profiler, events);
                profiler.end(op);
            }
            Self::OneAnnotation => {
                let op = profiler.annotation("## all ##");
                plain(profiler, events);
                profiler.end(op);
            }
            Self::OneCall => {
                let call = profiler.call_module("Model", 0);
                for _ in 0..events / 5 {
                    let inner = profiler.call("model.py(7): forward");
                    plain(profiler, 4);
                    profiler.give_back(inner);
                }
                profiler.give_back(call);
            }
            Self::NeverFreed => {
                hold(profiler, events);
            }
            Self::FreedInOrder => {
                let held = hold(profiler, events * 2 / 3);
                held.into_iter().for_each(|storage| profiler.free(storage));
            }
            Self::FreedInReverse => {
                let held = hold(profiler, events * 2 / 3);
                held.into_iter().rev().for_each(|storage| profiler.free(storage));
            }
            Self::FreedInDisorder => {
                let mut held = hold(profiler, events * 2 / 3);
                let mut random = 7_u64;
                while !held.is_empty() {
                    random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    let row = (random >> 33) as usize % held.len();
                    profiler.free(held.swap_remove(row));
                }
            }
            Self::UnknownFrees => {
                for at in 0..events as u64 {
                    profiler.free_unknown(64 * (1 + at % 100));
                }
            }
            Self::ManyThreads => {
                for thread in 0..events as u32 / 4 {
                    profiler.on_thread(thread);
                    plain(profiler, 4);
                }
            }
            Self::ConcurrentProducts => {
                let signature = profiler.signature(&[&[32, 32], &[32, 32]]);
                let open: Vec<_> = (0..events as u32 / 2)
                    .map(|thread| {
                        profiler.on_thread(thread);
                        let op = profiler.op("aten::mm", Some(signature));
                        profiler.alloc(4096);
                        op
                    })
                    .collect();
                open.into_iter().for_each(|op| profiler.end(op));
            }
            Self::InstantOperators => {
                for _ in 0..events {
                    profiler.instant("aten::relu");
                }
            }
            Self::NestedOperators => {
                let open: Vec<_> =
                    (0..events - 2).map(|_| profiler.op("custom::around", None)).collect();
                let storage = profiler.alloc(4096);
                profiler.free(storage);
                open.into_iter().rev().for_each(|op| profiler.end(op));
            }
            Self::NestedProducts => {
                let signature = profiler.signature(&[&[32, 32], &[32, 32]]);
                let open: Vec<_> = (0..events / 3)
                    .map(|_| {
                        let op = profiler.op("aten::mm", Some(signature));
                        (op, profiler.alloc(4096))
                    })
                    .collect();
                for (op, storage) in open.into_iter().rev() {
                    profiler.free(storage);
                    profiler.end(op);
                }
            }
            Self::NestedCalls => {
                let open: Vec<_> = (0..events / 5 * 4)
                    .map(|at| match at % 2 {
                        0 => profiler.call_module("Block", at as u64),
                        _ => profiler.call("model.py(7): forward"),
                    })
                    .collect();
                plain(profiler, events / 5);
                open.into_iter().rev().for_each(|call| profiler.give_back(call));
            }
            Self::OneAddress => {
                for _ in 0..events / 2 {
                    let storage = profiler.alloc(4096);
                    profiler.free(storage);
                }
            }
            Self::DistinctNames => {
                for at in 0..events / 2 {
                    let op = profiler.op(&format!("custom::operator_{at}"), None);
                    profiler.alloc(4096);
                    profiler.end(op);
                }
            }
            Self::DistinctSignatures => {
                for at in 0..events as u64 / 2 {
                    let signature = profiler.signature(&[&[at + 1, 3], &[3, at + 2]]);
                    let op = profiler.op("aten::mm", Some(signature));
                    profiler.alloc(4096);
                    profiler.end(op);
                }
            }
            Self::TinyIterations => {
                for at in 0..events / 5 {
                    let step = profiler.annotation(&format!("ProfilerStep#{at}"));
                    plain(profiler, 4);
                    profiler.end(step);
                }
            }
            Self::TinySteps => small(profiler, events, 0),
            Self::Closures => {
                let signature = profiler.signature(&[&[32, 32]]);
                for at in 0..events as u64 / 9 {
                    let step = profiler.annotation("Optimizer.step#LBFGS.step");
                    forward_and_backward(profiler, at, signature);
                    profiler.leaf("aten::add_", Some(signature));
                    profiler.end(step);
                }
            }
            Self::BackwardOnly => {
                let signature = profiler.signature(&[&[32, 32]]);
                for at in 0..events as u64 / 7 {
                    forward_and_backward(profiler, at, signature);
                }
            }
            Self::Inference => {
                for _ in 0..events / 5 {
                    let call = profiler.call_module("Model", 0);
                    plain(profiler, 4);
                    profiler.give_back(call);
                }
            }
            Self::OneBackward => {
                let layers = events / 70;
                Training { iterations: 1, layers, depth: 0, threads: 0 }.run(profiler);
            }
            Self::ForwardThreads => {
                let signature = profiler.signature(&[&[32, 32]]);
                for at in 0..events as u64 / 70 {
                    profiler.on_thread(at as u32);
                    for number in 0..10 {
                        forward_and_backward(profiler, number, signature);
                    }
                }
            }
            Self::LatePeriod => small(profiler, events, usize::MAX),
            Self::LateGradients => {
                let signature = profiler.signature(&[&[32, 32]]);
                let mut gradients = Vec::new();
                for at in 0..events as u64 / 10 {
                    gradients.push(node(profiler, at, signature));
                }
                for gradient in gradients {
                    let op = profiler.op("aten::detach", None);
                    profiler.free(gradient);
                    profiler.end(op);
                }
            }
            Self::MarkedIterations => {
                let signature = profiler.signature(&[&[32, 32]]);
                for at in 0..events as u64 / 16 {
                    let batch = batch(profiler);
                    forward_and_backward(profiler, at, signature);
                    let step = profiler.annotation("Optimizer.step#SGD.step");
                    profiler.leaf("aten::add_", Some(signature));
                    profiler.end(step);
                    mark(profiler, &format!("iteration {at}"));
                    profiler.free(batch);
                }
            }
            Self::MarkedInference => {
                for at in 0..events / 9 {
                    let batch = batch(profiler);
                    plain(profiler, 4);
                    mark(profiler, &format!("iteration {at}"));
                    profiler.free(batch);
                }
            }
        }
    }
}

/// Batch data that goes to the GPU.
fn batch(profiler: &mut Recorder) -> Storage {
    let load = profiler.annotation("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__");
    let batch = profiler.alloc(8192);
    profiler.end(load);
    mark(profiler, &format!("to_device 0x{:x} {}", batch.address(), batch.bytes()));
    batch
}

/// A mark of `xmem profile`.
fn mark(profiler: &mut Recorder, text: &str) {
    let mark = profiler.annotation(&format!("xmem::{text}"));
    profiler.end(mark);
}

/// Operators that allocate, and frees behind them.
fn plain(profiler: &mut Recorder, events: usize) {
    let signature = profiler.signature(&[&[32, 32]]);
    for _ in 0..events / 4 {
        let outer = profiler.op("aten::relu", Some(signature));
        let inner = profiler.op("aten::clamp_min", Some(signature));
        let storage = profiler.alloc(4096);
        profiler.end(inner);
        profiler.end(outer);
        profiler.free(storage);
    }
}

/// Operators whose results stay; a third of the sizes repeat.
fn hold(profiler: &mut Recorder, events: usize) -> Vec<Storage> {
    let signature = profiler.signature(&[&[32, 32]]);
    let held = (0..events as u64 / 2).map(|at| {
        let op = profiler.op("aten::relu", Some(signature));
        let storage = profiler.alloc(512 * (1 + at * 7 % 4096));
        profiler.end(op);
        storage
    });
    held.collect()
}

/// Rounds of forward, backward and a step; in round `odd` the step is another.
fn small(profiler: &mut Recorder, events: usize, odd: usize) {
    let signature = profiler.signature(&[&[32, 32]]);
    let other = profiler.signature(&[&[64, 64]]);
    let rounds = events / 11;
    for round in 0..rounds {
        forward_and_backward(profiler, round as u64, signature);
        let step = profiler.annotation("Optimizer.step#SGD.step");
        let last = round == odd || (odd == usize::MAX && round + 1 == rounds);
        profiler.leaf("aten::add_", Some(if last { other } else { signature }));
        profiler.end(step);
    }
}

fn forward_and_backward(profiler: &mut Recorder, number: u64, signature: Signature) {
    let gradient = node(profiler, number, signature);
    profiler.free(gradient);
}

/// A forward operator, its backward node and the gradient that it makes.
fn node(profiler: &mut Recorder, number: u64, signature: Signature) -> Storage {
    let forward = profiler.forward("aten::relu", number, Some(signature));
    let result = profiler.alloc(4096);
    profiler.end(forward);
    let name = "autograd::engine::evaluate_function: ReluBackward0";
    let evaluate = profiler.backward(name, number);
    let threshold = profiler.op("aten::threshold_backward", Some(signature));
    let gradient = profiler.alloc(4096);
    profiler.end(threshold);
    profiler.free(result);
    profiler.end(evaluate);
    let accumulate = profiler.op("torch::autograd::AccumulateGrad", Some(signature));
    profiler.end(accumulate);
    gradient
}

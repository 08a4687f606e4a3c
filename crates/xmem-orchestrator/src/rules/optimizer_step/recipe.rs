//! The optimizers of torch.optim on CUDA, as data.
//!
//! A recipe is the memory side of a `_multi_tensor_*` function (torch/optim/*.py): lists of tensors
//! bound to Python variables. A list lives until its variable is bound anew, deleted, or the function
//! returns. Read from PyTorch 2.11's source and checked against recordings with its CUDA build,
//! kernels stubbed.

use super::updates::Update;
use crate::frame::draft::{Piece, Plan};
use xmem_analyzer::DType;
use xmem_types::Bytes;

/// A variable of the function: the operator of the CPU's loop that makes the same values, for reports,
/// stands with it where the list is made.
pub(super) type Local = &'static str;

/// One optimizer.
pub(super) struct Recipe {
    /// The class in `Optimizer.step#CLASS.step`.
    pub(super) class: &'static str,
    /// Its loop is `_single_tensor_FUNCTION`.
    pub(super) function: &'static str,
    /// The end of each parameter's update in the CPU's loop.
    pub(super) end: End,
    /// A sum (`aten::add`) before the first of these operators is L2 weight decay.
    pub(super) decays_before: &'static [&'static str],
    /// The device of the scalars of a parameter's state.
    pub(super) scalars: Scalars,
    /// Support for `fused=True` on CUDA.
    pub(super) fused: Fused,
    /// The body of the function, for one list of parameters of the same type.
    pub(super) body: &'static [Act],
    /// The variables in the order in which they are released when the function returns.
    pub(super) locals: &'static [Local],
}

/// The operator that ends a parameter's update. Its first argument has the parameter's shape.
pub(super) struct End {
    pub(super) op: &'static str,
    pub(super) previous: Previous,
}

/// The operator just before the last one.
pub(super) enum Previous {
    Any,
    Is(&'static str),
    IsNot(&'static str),
}

/// The device of step counters and the like.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Scalars {
    Host,
    /// On the GPU if `fused=True` (`_get_scalar_dtype`, `_init_group`).
    HostUnlessFused,
    Device,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Fused {
    Supported,
    Unsupported,
}

/// One act of a `_multi_tensor_*` function.
pub(super) enum Act {
    /// Binds a new list with a tensor like each parameter; then the variable's former list is freed.
    Make { local: Local, like: &'static str, when: When },
    /// `del`, or another binding that makes nothing.
    Drop(Local),
    /// Binds one variable's list to another.
    Move { from: Local, to: Local, when: When },
    /// The variable of a `for` loop over a list keeps the last tensor.
    KeepLast { of: Local, by: Local },
    /// State that the loop makes on the way: momentum buffers.
    State,
    /// A loop over the parameters: the requests for one of them, and the lists that the variables are
    /// bound to after the loop.
    Each(fn(&mut Plan<'_, '_, '_>, &Update) -> Vec<(Local, Piece)>),
}

/// The gradients that an act depends on. They are copied by `maximize` (negated) and by L2 weight decay
/// (summed).
#[derive(Clone, Copy)]
pub(super) enum When {
    Always,
    Copied,
    NotCopied,
    Negated,
    /// Not both negated and decayed.
    NotBoth,
}

/// Classes that go parameter by parameter on CUDA, too: torch/optim/_adafactor.py, _muon.py,
/// sparse_adam.py, lbfgs.py (one flat vector) and transformers/optimization.py `Adafactor`.
pub(super) const LOOPS: &[&str] = &["Adafactor", "Muon", "SparseAdam", "LBFGS"];

/// The recipe of a class.
pub(super) fn of(class: &str) -> Option<&'static Recipe> {
    RECIPES.iter().find(|r| r.class == class)
}

/// The first recipe with a loop.
pub(super) fn with(function: &str) -> Option<&'static Recipe> {
    RECIPES.iter().find(|r| r.function == function)
}

/// Loops that earlier releases had under names of their own, and what they are part of now: up to 2.6
/// there was `_single_tensor_adamw` (torch/optim/adamw.py).
const FORMER_LOOPS: &[(&str, &str)] = &[("adamw", "adam")];

/// The loop of a recipe that is called `name`, or was.
pub(super) fn loop_named(name: &str) -> Option<&'static str> {
    let name = FORMER_LOOPS.iter().find(|(former, _)| *former == name).map_or(name, |(_, now)| now);
    with(name).map(|recipe| recipe.function)
}

const GRADS: Local = "grads";
/// A copy of the gradients, by `maximize` or L2 weight decay; one list even with both.
const COPY: Act = Act::Make { local: GRADS, like: "aten::add", when: When::Copied };
const NO_GRADS: Act = Act::Drop(GRADS);
const LAST_DIVISION: End = End { op: "aten::addcdiv_", previous: Previous::Any };

/// Adam's: the root of the second moment.
const ADAM: &[Act] = &[NO_GRADS, COPY, NO_GRADS, make("sqrt", "aten::sqrt")];

const fn make(local: Local, like: &'static str) -> Act {
    Act::Make { local, like, when: When::Always }
}

const RECIPES: &[Recipe] = &[
    Recipe {
        class: "SGD",
        function: "sgd",
        // The momentum's own `add_` follows its `mul_`.
        end: End { op: "aten::add_", previous: Previous::IsNot("aten::mul_") },
        // Nesterov's sum comes after the buffer, and is made in place.
        decays_before: &["aten::mul_", "aten::clone"],
        scalars: Scalars::Host,
        fused: Fused::Supported,
        body: &[NO_GRADS, COPY, Act::State],
        locals: &[GRADS],
    },
    Recipe {
        class: "Adam",
        function: "adam",
        end: LAST_DIVISION,
        decays_before: &[],
        scalars: Scalars::HostUnlessFused,
        fused: Fused::Supported,
        body: ADAM,
        locals: &["sqrt"],
    },
    Recipe {
        class: "AdamW",
        function: "adam",
        end: LAST_DIVISION,
        decays_before: &[],
        scalars: Scalars::HostUnlessFused,
        fused: Fused::Supported,
        body: ADAM,
        locals: &["sqrt"],
    },
    Recipe {
        class: "NAdam",
        function: "nadam",
        end: End { op: "aten::addcdiv_", previous: Previous::Is("aten::addcdiv_") },
        decays_before: &[],
        scalars: Scalars::Host,
        fused: Fused::Unsupported,
        body: &[NO_GRADS, COPY, make("sqrt", "aten::sqrt")],
        locals: &[GRADS, "sqrt"],
    },
    Recipe {
        class: "RAdam",
        function: "radam",
        end: End { op: "aten::add_", previous: Previous::Is("aten::mul") },
        decays_before: &[],
        scalars: Scalars::Host,
        fused: Fused::Unsupported,
        // The roots are taken before the variance is rectified, too: the loop takes none then.
        body: ADAM,
        locals: &["sqrt"],
    },
    Recipe {
        class: "Adamax",
        function: "adamax",
        end: LAST_DIVISION,
        decays_before: &[],
        scalars: Scalars::Host,
        fused: Fused::Unsupported,
        // Absolute values, in place of a copy if there is one.
        body: &[NO_GRADS, make(GRADS, "aten::abs")],
        locals: &[GRADS],
    },
    Recipe {
        class: "RMSprop",
        function: "rmsprop",
        end: LAST_DIVISION,
        decays_before: &[],
        scalars: Scalars::Host,
        fused: Fused::Unsupported,
        body: &[NO_GRADS, COPY, make("avg", "aten::sqrt")],
        locals: &[GRADS, "avg"],
    },
    Recipe {
        class: "Adagrad",
        function: "adagrad",
        end: LAST_DIVISION,
        decays_before: &[],
        scalars: Scalars::Host,
        fused: Fused::Unsupported,
        body: &[
            NO_GRADS,
            COPY,
            make("std", "aten::sqrt"),
            Act::Make { local: "numerator", like: "aten::sqrt", when: When::NotCopied },
            Act::Move { from: GRADS, to: "numerator", when: When::Copied },
        ],
        locals: &["std", "numerator"],
    },
    Recipe {
        class: "Adadelta",
        function: "adadelta",
        end: End { op: "aten::add_", previous: Previous::Is("aten::addcmul_") },
        // The sums with epsilon come after the average's decay.
        decays_before: &["aten::mul_"],
        scalars: Scalars::Host,
        fused: Fused::Unsupported,
        body: &[NO_GRADS, COPY, make("std", "aten::add"), make("deltas", "aten::add")],
        locals: &[GRADS, "std", "deltas"],
    },
    Recipe {
        class: "ASGD",
        function: "asgd",
        // What follows (the average, the new rate) is on the way to the next parameter.
        end: End { op: "aten::mul_", previous: Previous::Is("aten::item") },
        decays_before: &[],
        scalars: Scalars::Device,
        fused: Fused::Unsupported,
        body: &[
            NO_GRADS,
            Act::Make { local: GRADS, like: "aten::neg", when: When::Negated },
            Act::Make { local: "intermediate", like: "aten::add", when: When::NotBoth },
            Act::Drop("intermediate"),
            make("intermediate", "aten::sub"),
            Act::Drop("intermediate"),
            Act::Each(asgd_eta),
            Act::Each(|plan, _| vec![("mus", plan.take(NUMBER))]),
        ],
        locals: &[GRADS, "mus", "etas"],
    },
    Recipe {
        class: "Rprop",
        function: "rprop",
        end: End { op: "aten::copy_", previous: Previous::Is("aten::addcmul_") },
        decays_before: &[],
        scalars: Scalars::Host,
        fused: Fused::Unsupported,
        body: &[
            make("signs", "aten::mul"),
            Act::Each(rprop_factors),
            Act::Each(rprop_gradient),
            Act::KeepLast { of: "signs", by: "sign" },
            Act::Drop("signs"),
            make("grad_signs", "aten::sign"),
        ],
        locals: &["sign", "grad_signs"],
    },
];

/// One 32-bit number.
const NUMBER: Bytes = Bytes(DType::F32.size());

/// `lr / (1 + lambd * lr * step) ** alpha`, with the step on the GPU.
fn asgd_eta(plan: &mut Plan<'_, '_, '_>, _: &Update) -> Vec<(Local, Piece)> {
    let product = plan.take(NUMBER);
    let sum = plan.take(NUMBER);
    plan.free(product);
    let power = plan.take(NUMBER);
    plan.free(sum);
    let reciprocal = plan.take(NUMBER);
    let eta = plan.take(NUMBER);
    plan.free_all([reciprocal, power]);
    vec![("etas", eta)]
}

/// Three assignments by mask, of one byte an element.
fn rprop_factors(plan: &mut Plan<'_, '_, '_>, update: &Update) -> Vec<(Local, Piece)> {
    for _ in 0..3 {
        plan.touch(Bytes(update.elements));
    }
    Vec::new()
}

/// `torch.where(sign.eq(etaminus), 0, grad)`.
fn rprop_gradient(plan: &mut Plan<'_, '_, '_>, update: &Update) -> Vec<(Local, Piece)> {
    let mask = plan.take(Bytes(update.elements));
    let zero = plan.take(NUMBER);
    let gradient = plan.take(update.size);
    plan.free_all([zero, mask, gradient]);
    Vec::new()
}

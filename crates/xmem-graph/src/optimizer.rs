//! Optimizers as their loops over parameters run on a CPU (torch/optim/*.py, `_init_group` and
//! `_single_tensor_*`): the state that they keep, and the temporaries on the way. What CUDA runs instead, lists of
//! parameters at once, is a rule of the lowering.

use crate::dtype::DType;
use crate::eager::Eager;
use crate::eager::arguments::args;
use crate::eager::tensor::Tensor;
use crate::error::GraphError;
use std::collections::BTreeMap;

/// An optimizer of torch.optim, with what matters for memory.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Optimizer {
    /// The class.
    pub class: OptimizerClass,
    /// `momentum` is not zero.
    pub momentum: bool,
    /// `nesterov=True`.
    pub nesterov: bool,
    /// `weight_decay` is not zero.
    pub weight_decay: bool,
    /// `amsgrad=True`.
    pub amsgrad: bool,
    /// `centered=True`.
    pub centered: bool,
    /// `maximize=True`.
    pub maximize: bool,
    /// `foreach`, `fused`: what the script asks for.
    pub implementation: Implementation,
    /// `capturable=True`.
    pub capturable: bool,
}

/// The implementation of an optimizer that a script asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Implementation {
    /// PyTorch chooses.
    #[default]
    Default,
    /// `foreach=True`.
    Foreach,
    /// `fused=True`.
    Fused,
    /// `foreach=False`.
    ForLoop,
}

impl Implementation {
    /// The name in the notes of a recording.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Foreach => "foreach",
            Self::Fused => "fused",
            Self::ForLoop => "for-loop",
        }
    }
}

macro_rules! classes {
    ($($variant:ident $name:literal $class:literal,)*) => {
        /// A class of torch.optim.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum OptimizerClass {
            $(#[doc = concat!("`torch.optim.", $class, "`.")] $variant,)*
        }

        impl OptimizerClass {
            /// All classes.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// The name on a command line.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            /// The name of the class.
            #[must_use]
            pub const fn class(self) -> &'static str {
                match self {
                    $(Self::$variant => $class,)*
                }
            }
        }
    };
}

classes! {
    Sgd "sgd" "SGD",
    Adam "adam" "Adam",
    AdamW "adamw" "AdamW",
    Adamax "adamax" "Adamax",
    NAdam "nadam" "NAdam",
    RAdam "radam" "RAdam",
    RmsProp "rmsprop" "RMSprop",
    Adagrad "adagrad" "Adagrad",
    Adadelta "adadelta" "Adadelta",
    Asgd "asgd" "ASGD",
    Rprop "rprop" "Rprop",
    Adafactor "adafactor" "Adafactor",
}

impl Optimizer {
    /// An optimizer with torch's defaults.
    #[must_use]
    pub fn new(class: OptimizerClass) -> Self {
        Self {
            class,
            momentum: false,
            nesterov: false,
            weight_decay: class == OptimizerClass::AdamW,
            amsgrad: false,
            centered: false,
            maximize: false,
            implementation: Implementation::Default,
            capturable: false,
        }
    }

    /// Reads `adamw`, `sgd:momentum`, `rmsprop:centered:momentum`, or a class's name.
    ///
    /// # Errors
    /// If the class or an option is not known.
    pub fn parse(text: &str) -> Result<Self, GraphError> {
        let mut parts = text.split(':');
        let name = parts.next().unwrap_or_default();
        let is = |class: &&OptimizerClass| {
            class.name().eq_ignore_ascii_case(name) || class.class().eq_ignore_ascii_case(name)
        };
        let unknown = || {
            let known: Vec<&str> = OptimizerClass::ALL.iter().map(|c| c.name()).collect();
            GraphError::Optimizer {
                name: text.to_owned(),
                known: format!(
                    "{}, with :momentum, :nesterov, :weight-decay, :amsgrad, :centered, :foreach, :fused, :for-loop, :capturable",
                    known.join(", ")
                ),
            }
        };
        let mut optimizer = Self::new(*OptimizerClass::ALL.iter().find(is).ok_or_else(unknown)?);
        for option in parts {
            match option {
                "momentum" => optimizer.momentum = true,
                "nesterov" => (optimizer.momentum, optimizer.nesterov) = (true, true),
                "weight-decay" | "weight_decay" => optimizer.weight_decay = true,
                "amsgrad" => optimizer.amsgrad = true,
                "centered" => optimizer.centered = true,
                "foreach" => optimizer.implementation = Implementation::Foreach,
                "fused" => optimizer.implementation = Implementation::Fused,
                "for-loop" => optimizer.implementation = Implementation::ForLoop,
                "capturable" => optimizer.capturable = true,
                _ => return Err(unknown()),
            }
        }
        Ok(optimizer)
    }
}

/// An optimizer at work: its parameters and their state.
pub(crate) struct Running<'a> {
    eager: &'a Eager,
    optimizer: &'a Optimizer,
    groups: Vec<Vec<Tensor>>,
    state: BTreeMap<usize, Vec<Tensor>>,
}

impl<'a> Running<'a> {
    pub(crate) fn new(
        eager: &'a Eager,
        optimizer: &'a Optimizer,
        groups: Vec<Vec<Tensor>>,
    ) -> Self {
        let mut running = Self { eager, optimizer, groups, state: BTreeMap::new() };
        if optimizer.class == OptimizerClass::Adagrad {
            // torch/optim/adagrad.py, `__init__`.
            for parameter in running.groups.concat() {
                let state = vec![running.counter(), running.like("aten::full_like", &parameter)];
                eager.mark("on_device", &state[1]);
                running.state.insert(parameter.identity(), state);
            }
        }
        running
    }

    /// `optimizer.step()`.
    pub(crate) fn step(&mut self) {
        let class = self.optimizer.class.class();
        let groups = self.groups.clone();
        let eager = self.eager;
        eager.annotated(format!("Optimizer.step#{class}.step"), || {
            eager.without_gradients(|| {
                for group in &groups {
                    let with_gradients: Vec<&Tensor> =
                        group.iter().filter(|p| p.grad().is_some()).collect();
                    for parameter in &with_gradients {
                        self.initialize(parameter);
                    }
                    for parameter in with_gradients {
                        self.update(parameter);
                    }
                }
            });
        });
    }

    /// `optimizer.zero_grad()`.
    pub(crate) fn zero_grad(&self, set_to_none: bool) {
        let class = self.optimizer.class.class();
        self.eager.annotated(format!("Optimizer.zero_grad#{class}.zero_grad"), || {
            for parameter in self.groups.iter().flatten() {
                if set_to_none {
                    parameter.set_grad(None);
                } else if let Some(gradient) = parameter.grad() {
                    self.eager.without_gradients(|| {
                        self.eager.call("aten::zero_", args![gradient], || ());
                    });
                }
            }
        });
    }

    /// The gradients that there are, in the order of the parameters.
    pub(crate) fn gradients(&self) -> Vec<Tensor> {
        self.groups.iter().flatten().filter_map(Tensor::grad).collect()
    }

    /// `torch.tensor(0.0)`, which stays on the host.
    fn counter(&self) -> Tensor {
        let counter = self.eager.empty_called(&[], DType::F32);
        self.eager.call("aten::lift_fresh", args![counter], || ());
        counter
    }

    fn like(&self, name: &'static str, x: &Tensor) -> Tensor {
        self.eager.created_like(name, x, None)
    }

    fn zeros(&self, x: &Tensor) -> Tensor {
        self.like("aten::zeros_like", x)
    }

    /// `_init_group`.
    fn initialize(&mut self, parameter: &Tensor) {
        if self.state.contains_key(&parameter.identity()) {
            return;
        }
        let o = self.optimizer;
        let zeros = || self.zeros(parameter);
        let state = match o.class {
            // Momentum buffers are made in the loop.
            OptimizerClass::Sgd | OptimizerClass::Adagrad => return,
            OptimizerClass::Adam | OptimizerClass::AdamW => {
                let mut state = vec![self.counter(), zeros(), zeros()];
                if o.amsgrad {
                    state.push(zeros());
                }
                state
            }
            OptimizerClass::Adamax => vec![self.counter(), zeros(), zeros()],
            OptimizerClass::NAdam => {
                let (step, product) = (self.counter(), self.counter());
                vec![step, product, zeros(), zeros()]
            }
            OptimizerClass::RAdam => vec![self.counter(), zeros(), zeros()],
            OptimizerClass::RmsProp => {
                let mut state = vec![self.counter(), zeros()];
                if o.momentum {
                    state.push(zeros());
                }
                if o.centered {
                    state.push(zeros());
                }
                state
            }
            OptimizerClass::Adadelta => vec![self.counter(), zeros(), zeros()],
            OptimizerClass::Asgd => {
                let (step, eta, mu) = (self.counter(), self.counter(), self.counter());
                vec![step, eta, mu, zeros()]
            }
            OptimizerClass::Rprop => {
                let step = self.counter();
                vec![step, zeros(), self.like("aten::full_like", parameter)]
            }
            OptimizerClass::Adafactor => self.factors(parameter),
        };
        self.state.insert(parameter.identity(), state);
    }

    /// torch/optim/_adafactor.py, `_init_group`: row and column sums of matrices.
    fn factors(&self, parameter: &Tensor) -> Vec<Tensor> {
        let e = self.eager;
        let step = self.counter();
        if parameter.rank() < 2 {
            return vec![step, self.zeros(parameter)];
        }
        let (mut rows, mut columns) = (parameter.dims().to_vec(), parameter.dims().to_vec());
        let last = rows.len() - 1;
        rows[last] = 1;
        columns[last - 1] = 1;
        vec![
            step,
            e.created("aten::new_zeros", &rows, parameter.dtype()),
            e.created("aten::new_zeros", &columns, parameter.dtype()),
        ]
    }

    fn update(&mut self, parameter: &Tensor) {
        let Some(mut gradient) = parameter.grad() else { return };
        let e = self.eager;
        let o = self.optimizer;
        let temporary = |name: &'static str, x: &Tensor| e.call(name, args![x, x], || e.like(x));
        if o.maximize {
            gradient = temporary("aten::neg", &gradient);
        }
        let decoupled = o.class == OptimizerClass::AdamW;
        if o.weight_decay
            && !decoupled
            && o.class != OptimizerClass::Rprop
            && o.class != OptimizerClass::Adafactor
        {
            gradient = e.call("aten::add", args![gradient, parameter, 0.01], || e.like(&gradient));
        }
        let in_place = |name: &'static str, x: &Tensor| e.call(name, args![x, x, 1.0], || ());
        let state = self.state.get(&parameter.identity()).cloned().unwrap_or_default();
        match o.class {
            OptimizerClass::Sgd => {
                if o.momentum {
                    match state.first() {
                        Some(buffer) => {
                            in_place("aten::mul_", buffer);
                            in_place("aten::add_", buffer);
                        }
                        None => {
                            let buffer =
                                e.call("aten::clone", args![gradient], || e.like(&gradient));
                            self.state.insert(parameter.identity(), vec![buffer]);
                        }
                    }
                    if o.nesterov {
                        gradient = e.call("aten::add", args![gradient, gradient, 0.9], || {
                            e.like(&gradient)
                        });
                    }
                }
                e.call("aten::add_", args![parameter, gradient, -0.01], || ());
            }
            OptimizerClass::Adam | OptimizerClass::AdamW => {
                in_place("aten::add_", &state[0]);
                if decoupled && o.weight_decay {
                    in_place("aten::mul_", parameter);
                }
                in_place("aten::lerp_", &state[1]);
                in_place("aten::mul_", &state[2]);
                in_place("aten::addcmul_", &state[2]);
                let root = temporary("aten::sqrt", &state[2]);
                let denominator = temporary("aten::div", &root);
                drop(root);
                in_place("aten::add_", &denominator);
                e.call("aten::addcdiv_", args![parameter, state[1], denominator, -0.001], || ());
            }
            OptimizerClass::Adamax => {
                in_place("aten::lerp_", &state[1]);
                in_place("aten::mul_", &state[2]);
                let absolute = temporary("aten::abs", &gradient);
                in_place("aten::add_", &absolute);
                in_place("aten::maximum", &state[2]);
                drop(absolute);
                e.call("aten::addcdiv_", args![parameter, state[1], state[2], -0.001], || ());
            }
            OptimizerClass::NAdam => {
                in_place("aten::lerp_", &state[2]);
                in_place("aten::mul_", &state[3]);
                in_place("aten::addcmul_", &state[3]);
                let quotient = temporary("aten::div", &state[3]);
                in_place("aten::sqrt_", &quotient);
                in_place("aten::add_", &quotient);
                e.call("aten::addcdiv_", args![parameter, gradient, quotient, -0.001], || ());
                e.call("aten::addcdiv_", args![parameter, state[2], quotient, -0.001], || ());
            }
            OptimizerClass::RAdam => {
                in_place("aten::lerp_", &state[1]);
                in_place("aten::mul_", &state[2]);
                in_place("aten::addcmul_", &state[2]);
                let corrected = temporary("aten::div", &state[1]);
                let scaled = temporary("aten::mul", &corrected);
                e.call("aten::add_", args![parameter, scaled, -1.0], || ());
                drop(corrected);
            }
            OptimizerClass::RmsProp => {
                in_place("aten::mul_", &state[1]);
                in_place("aten::addcmul_", &state[1]);
                let average = temporary("aten::sqrt", &state[1]);
                in_place("aten::add_", &average);
                if o.momentum {
                    in_place("aten::mul_", &state[2]);
                    e.call("aten::addcdiv_", args![state[2], gradient, average], || ());
                    e.call("aten::add_", args![parameter, state[2], -0.01], || ());
                } else {
                    e.call("aten::addcdiv_", args![parameter, gradient, average, -0.01], || ());
                }
            }
            OptimizerClass::Adagrad => {
                in_place("aten::addcmul_", &state[1]);
                let root = temporary("aten::sqrt", &state[1]);
                in_place("aten::add_", &root);
                e.call("aten::addcdiv_", args![parameter, gradient, root, -0.01], || ());
            }
            OptimizerClass::Adadelta => {
                in_place("aten::mul_", &state[1]);
                in_place("aten::addcmul_", &state[1]);
                let deviation = temporary("aten::add", &state[1]);
                in_place("aten::sqrt_", &deviation);
                let delta = temporary("aten::add", &state[2]);
                in_place("aten::sqrt_", &delta);
                in_place("aten::mul_", &state[2]);
                in_place("aten::addcmul_", &state[2]);
                e.call("aten::add_", args![parameter, delta, -1.0], || ());
            }
            OptimizerClass::Asgd => {
                in_place("aten::mul_", parameter);
                in_place("aten::add_", parameter);
                e.call("aten::item", args![state[2]], || ());
                e.call("aten::mul_", args![parameter, state[3]], || ());
            }
            OptimizerClass::Rprop => {
                let product = temporary("aten::mul", &gradient);
                let sign = temporary("aten::sign", &product);
                drop(product);
                let kept = e.call("aten::clone", args![gradient], || e.like(&gradient));
                let direction = temporary("aten::sign", &kept);
                e.call("aten::addcmul_", args![parameter, direction, state[2], -1.0], || ());
                e.call("aten::copy_", args![state[1], kept, false], || ());
                drop(sign);
            }
            OptimizerClass::Adafactor => self.adafactor(parameter, &gradient, &state),
        }
    }

    /// torch/optim/_adafactor.py, `_single_tensor_adafactor`, which CUDA runs as well.
    fn adafactor(&self, parameter: &Tensor, gradient: &Tensor, state: &[Tensor]) {
        let e = self.eager;
        let like = |name: &'static str, x: &Tensor| e.call(name, args![x], || e.like(x));
        let norm = e.call("aten::norm", args![parameter], || e.empty(&[], parameter.dtype()));
        drop(norm);
        let estimate = if let [_, rows, columns] = state {
            let row_norm = e.call("aten::norm", args![gradient], || e.like(rows));
            let row_mean = like("aten::square_", &row_norm);
            e.call("aten::lerp_", args![rows, row_mean], || ());
            let column_norm = e.call("aten::norm", args![gradient], || e.like(columns));
            let column_mean = like("aten::square_", &column_norm);
            e.call("aten::lerp_", args![columns, column_mean], || ());
            let estimate = e.call("aten::matmul", args![rows, columns], || e.like(gradient));
            drop((row_norm, row_mean, column_norm, column_mean));
            e.call("aten::div_", args![estimate, rows], || ());
            estimate
        } else {
            let variance = &state[1];
            let square = like("aten::square", gradient);
            e.call("aten::lerp_", args![variance, square], || ());
            drop(square);
            like("aten::clone", variance)
        };
        e.call("aten::rsqrt_", args![estimate], || ());
        e.call("aten::mul_", args![estimate, gradient], || ());
        let update = estimate;
        let norm = e.call("aten::norm", args![update], || e.empty(&[], update.dtype()));
        drop(norm);
        e.call("aten::add_", args![parameter, update, -0.01], || ());
    }
}

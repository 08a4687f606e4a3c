//! The analysis of a trace: allocations and frees paired into blocks, each with the operator,
//! module and phase it comes from and the role it plays in training.
//!
//! This room knows autograd, optimizers and modules. It knows nothing of GPUs or allocators.

mod args;
mod attribution;
mod autograd;
mod optree;
mod pairing;
mod phases;
mod profile;
mod roles;

pub use args::{Argument, Arguments, DType, TensorArg};
pub use autograd::Autograd;
pub use optree::OpTree;
pub use profile::{Block, Evidence, Iteration, Phase, PhaseSpan, Profile, Role, Tick};

use xmem_trace::{DeviceKind, Trace};
use xmem_types::Diagnostics;

/// Analyses the host memory of a trace.
///
/// Odd content is reported in the diagnostics and never ends the analysis.
#[must_use]
pub fn analyze(mut trace: Trace) -> (Profile, Diagnostics) {
    let mut notes = Diagnostics::default();
    let tree = OpTree::build(&trace.ops);
    let autograd = Autograd::build(&trace.ops, &trace.strings);
    let structure = phases::find(&trace, &tree, &mut notes);
    let pairing::Pairs { mut blocks, rows } =
        pairing::pair(&trace.memory, DeviceKind::Cpu, &mut notes);
    attribution::attribute_ops(&mut blocks, &rows, &trace.memory, &trace, &tree);
    attribution::attribute_python(&mut blocks, &mut trace, &tree, &autograd);
    let arguments = args::ArgumentTable::build(&trace.signatures, &trace.strings);
    let mut profile = Profile {
        blocks,
        tree,
        phases: structure.phases,
        iterations: structure.iterations,
        autograd,
        arguments,
        trace,
    };
    roles::assign(&mut profile, &mut notes);
    (profile, notes)
}

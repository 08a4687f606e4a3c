//! Casts in the code of a model that was exported in 32 bits, in a job whose tensors are narrower.

use super::{Interpreter, Value};
use crate::dtype::DType;
use crate::eager::tensor::Tensor;
use crate::graph::{Argument, Body, Operation, ResultValue, ValueId};

impl Interpreter<'_> {
    /// Casts to 32 bits that changed nothing where the graph was made are of two kinds: code that computes in 32 bits
    /// whatever it is given, and code that returns to the type of its input (`x.to(input_dtype)`). Of the latter kind are
    /// those of values that have 32 bits where others are narrower.
    ///
    /// A cast that changed nothing gave the tensor itself, so that the graph has its result also where the code goes on with
    /// what was cast: outside of the module that casts.
    pub(super) fn narrow_casts(
        &mut self,
        body: &Body,
        node: &Operation,
        arguments: &mut [(&str, Value)],
    ) {
        let Some(narrow) = self.settings.narrow else { return };
        let says_device = match node.target.as_str() {
            "aten.to.dtype" | "aten._to_copy.default" => false,
            // `x.to(device)`, where the type is that of the tensor.
            "aten.to.device" | "aten.to.dtype_layout" => true,
            _ => return,
        };
        let is_wide = |argument: &Argument| match argument {
            Argument::Value(id) => {
                let info = body.values.get(id.0 as usize).and_then(|info| info.tensor.as_ref());
                info.is_some_and(|tensor| tensor.dtype == DType::F32)
            }
            _ => false,
        };
        let was_wide = node.arguments.first().is_some_and(|(_, argument)| is_wide(argument));
        let Some((_, Value::Tensor(tensor))) = arguments.first() else { return };
        let own = tensor.dtype();
        if !was_wide {
            return;
        }
        let kept = match own {
            own if says_device => own,
            DType::F32 => narrow,
            _ => {
                if let (Some(frame), [ResultValue::One(Some(id))]) =
                    (node.modules.last(), node.results.as_slice())
                {
                    let module = frame.path.clone();
                    self.widened.push(Widened { value: *id, module, own: tensor.clone() });
                }
                return;
            }
        };
        for (_, value) in arguments.iter_mut().skip(1) {
            if matches!(value, Value::DType(DType::F32)) {
                *value = Value::DType(kept);
            }
        }
    }
}

/// A value that a module has in 32 bits, and code outside of it as it was.
#[derive(Debug)]
pub(super) struct Widened {
    value: ValueId,
    module: String,
    own: Tensor,
}

impl Interpreter<'_> {
    /// Ends what only modules that are over had in 32 bits.
    pub(super) fn leave_widened(&mut self, node: &Operation, values: &mut [Option<Value>]) {
        if self.widened.is_empty() || node.modules.is_empty() {
            return;
        }
        let is_open = |of: &Widened| node.modules.iter().any(|frame| frame.path == of.module);
        for of in self.widened.extract_if(.., |of| !is_open(of)) {
            if let Some(slot @ Some(_)) = values.get_mut(of.value.0 as usize) {
                *slot = Some(Value::Tensor(of.own));
            }
        }
    }
}

//! Sizes of the inputs: those that the file fixes, and those that it leaves open.

use super::super::fact::Fact;
use super::super::model::{DeclaredValue, Dimension, Model};
use crate::dtype::DType;
use crate::error::GraphError;
use crate::training::Workload;
use std::collections::BTreeMap;

/// The sizes of a run.
pub(super) struct Sizes {
    /// One for each input.
    pub(super) inputs: Vec<Fact>,
    /// Sizes that have names.
    pub(super) symbols: BTreeMap<String, i64>,
    /// Whether no size that the file fixes was changed.
    pub(super) is_declared: bool,
    pub(super) assumptions: Vec<String>,
}

/// Sizes of the inputs. The batch is the first dimension, and the length the second of integers and of sequences; sizes
/// that the file fixes are changed in all inputs that have the same one there.
pub(super) fn sizes(model: &Model, workload: &Workload) -> Result<Sizes, GraphError> {
    let mut sizes = Sizes {
        inputs: Vec::new(),
        symbols: BTreeMap::new(),
        is_declared: true,
        assumptions: Vec::new(),
    };
    let batch = Asked::of(model, 0, |_| true, workload.batch, "the batch size")?;
    let length = Asked::of(model, 1, is_sequence, workload.length, "the length of sequences")?;
    let batch = if let (true, None) = (batch.is_open(), batch.size) {
        sizes.assumptions.push(
            "the file leaves the batch size open: it is 1 unless --batch says another".to_owned(),
        );
        Asked { size: Some(1), ..batch }
    } else {
        batch
    };
    for asked in [&batch, &length] {
        if let (Some(Dimension::Symbol(symbol)), Some(size)) = (&asked.declared, asked.size) {
            sizes.symbols.insert(symbol.clone(), size);
        }
        sizes.is_declared &= !asked.changes_fixed();
    }
    for value in &model.inputs {
        let fact = fact(model, value, &batch, &length, &sizes.symbols)?;
        sizes.inputs.push(fact);
    }
    Ok(sizes)
}

/// Integers and embeddings, whose second dimension is a length.
fn is_sequence(value: &DeclaredValue) -> bool {
    let rank = value.dims.as_ref().map_or(0, Vec::len);
    let is_integer = value.dtype.is_some_and(|dtype| !dtype.is_floating_point());
    rank == 3 || (rank == 2 && is_integer)
}

/// A size that may be asked for.
struct Asked {
    /// What the first input that has it says.
    declared: Option<Dimension>,
    size: Option<i64>,
}

impl Asked {
    fn of(
        model: &Model,
        axis: usize,
        has: impl Fn(&DeclaredValue) -> bool,
        size: Option<i64>,
        what: &'static str,
    ) -> Result<Self, GraphError> {
        let values = model.inputs.iter().filter(|value| has(value));
        let mut dims = values.filter_map(|value| value.dims.as_ref()?.get(axis));
        let declared = dims.next().cloned();
        if declared.is_none() && size.is_some() {
            return Err(GraphError::Fixed { what });
        }
        Ok(Self { declared, size })
    }

    fn is_open(&self) -> bool {
        matches!(self.declared, Some(Dimension::Symbol(_) | Dimension::Open))
    }

    fn changes_fixed(&self) -> bool {
        matches!((&self.declared, self.size), (Some(Dimension::Fixed(own)), Some(size)) if *own != size)
    }

    /// The size in place of a declared one that is the same.
    fn in_place_of(&self, dim: &Dimension) -> Option<i64> {
        self.size.filter(|_| self.declared.as_ref() == Some(dim))
    }
}

fn fact(
    model: &Model,
    value: &DeclaredValue,
    batch: &Asked,
    length: &Asked,
    symbols: &BTreeMap<String, i64>,
) -> Result<Fact, GraphError> {
    let name = model.name(value.name);
    let unknown = |reason: String| GraphError::Size { value: name.to_owned(), reason };
    let dims = value
        .dims
        .as_ref()
        .ok_or_else(|| unknown("the file does not say how many dimensions it has".to_owned()))?;
    let mut sizes = Vec::new();
    for (at, dim) in dims.iter().enumerate() {
        let asked = match at {
            0 => batch.in_place_of(dim),
            1 if is_sequence(value) => length.in_place_of(dim),
            _ => None,
        };
        let known = match dim {
            Dimension::Fixed(size) => Some(*size),
            Dimension::Symbol(symbol) => symbols.get(symbol).copied(),
            Dimension::Open => None,
        };
        let option = if at == 1 && is_sequence(value) { ": name it with --length" } else { "" };
        let size = asked.or(known).ok_or_else(|| {
            let symbol = match dim {
                Dimension::Symbol(symbol) => format!(" (`{symbol}`)"),
                _ => String::new(),
            };
            unknown(format!("the file leaves its dimension {at}{symbol} open{option}"))
        })?;
        sizes.push(size);
    }
    Fact::of(value.dtype.unwrap_or(DType::F32), sizes)
}

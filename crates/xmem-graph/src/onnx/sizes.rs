//! Sizes of views: reshaped, and with or without dimensions of one.

use super::fact::{elements, place};
use crate::error::GraphError;

/// Sizes with at most one of -1, which follows from the others, and zeros for those of the input (ONNX `Reshape`).
pub(super) fn reshaped(
    from: &[i64],
    to: &[i64],
    allows_zero: bool,
) -> Result<Vec<i64>, GraphError> {
    let wrong = || GraphError::Shapes(format!("{from:?} cannot have the sizes {to:?}"));
    let mut dims = Vec::new();
    for (at, &size) in to.iter().enumerate() {
        dims.push(match size {
            0 if !allows_zero => *from.get(at).ok_or_else(wrong)?,
            size if size < -1 => return Err(wrong()),
            size => size,
        });
    }
    let count = elements(from).ok_or_else(wrong)?;
    if let Some(open) = dims.iter().position(|d| *d == -1) {
        let others = dims.iter().enumerate().filter(|(at, _)| *at != open).map(|(_, d)| *d);
        let others: Vec<i64> = others.collect();
        if others.contains(&-1) {
            return Err(wrong());
        }
        let others = elements(&others).ok_or_else(wrong)?;
        if others == 0 || count % others != 0 {
            return Err(wrong());
        }
        dims[open] = count / others;
    }
    if elements(&dims) == Some(count) { Ok(dims) } else { Err(wrong()) }
}

/// Sizes without those of one.
pub(super) fn squeezed(dims: &[i64], axes: Option<&[i64]>) -> Option<Vec<i64>> {
    let axes: Vec<usize> = match axes {
        Some(axes) => axes.iter().map(|a| place(*a, dims.len()).ok()).collect::<Option<_>>()?,
        None => (0..dims.len()).filter(|at| dims[*at] == 1).collect(),
    };
    Some(dims.iter().enumerate().filter(|(at, _)| !axes.contains(at)).map(|(_, &d)| d).collect())
}

/// Sizes with those of one at these places of the result.
pub(super) fn unsqueezed(dims: &[i64], axes: &[i64]) -> Option<Vec<i64>> {
    let rank = dims.len().checked_add(axes.len()).filter(|rank| *rank <= 64)?;
    let axes: Vec<usize> = axes.iter().map(|a| place(*a, rank).ok()).collect::<Option<_>>()?;
    let mut own = dims.iter();
    (0..rank).map(|at| if axes.contains(&at) { Some(1) } else { own.next().copied() }).collect()
}

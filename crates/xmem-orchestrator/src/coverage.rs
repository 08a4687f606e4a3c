//! Which operators are known: alike on the CPU and CUDA, lowered by a rule, or neither.
//!
//! The table `coverage.txt` has one operator a line, with `alike` or the name of its rule. `alike`
//! means that jobs made of that operator asked for the same blocks on both sides: recorded with
//! PyTorch 2.11's CPU build and its CUDA build, kernels stubbed; views, factories and pointwise
//! operators of the same kind (aten/src/ATen/TensorIterator.cpp: the output and nothing else) are
//! listed with them.

use rustc_hash::FxHashMap;
use std::sync::LazyLock;

/// How well an operator's memory on CUDA is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coverage {
    /// What escapes it is what CUDA asks for.
    Alike,
    /// The rule of this name puts in what differs.
    Rule(&'static str),
    /// Nothing is known: what escapes it on the CPU is kept, and CUDA may take more within it.
    Unknown,
}

/// One line of the table.
pub(crate) fn table() -> impl Iterator<Item = (&'static str, &'static str)> {
    include_str!("coverage.txt").lines().filter_map(|line| line.split_once(' '))
}

static TABLE: LazyLock<FxHashMap<&'static str, Coverage>> = LazyLock::new(|| {
    let known = |how| if how == "alike" { Coverage::Alike } else { Coverage::Rule(how) };
    table().map(|(op, how)| (op, known(how))).collect()
});

/// What is known of the operator `name`, as the profiler calls it (`aten::mul`).
///
/// Autograd nodes and the engine's own work (`MulBackward0`, `torch::autograd::AccumulateGrad`,
/// `autograd::engine::…`) are alike: they are the same code on every device
/// (torch/csrc/autograd/FunctionsManual.cpp, accumulate_grad.h); the operators that they call are
/// looked up on their own. Operators of other libraries are unknown.
#[must_use]
pub fn of(name: &str) -> Coverage {
    match TABLE.get(name) {
        Some(&known) => known,
        None if is_autograd(name) => Coverage::Alike,
        None => Coverage::Unknown,
    }
}

/// Whether a profiler name is that of an autograd node or of the engine.
pub(crate) fn is_autograd(name: &str) -> bool {
    let engine = ["autograd::engine::", "torch::autograd::"];
    let node = name.trim_end_matches(|c: char| c.is_ascii_digit());
    engine.iter().any(|e| name.starts_with(e))
        || (!name.contains("::") && node.ends_with("Backward") && node.len() < name.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules;

    #[test]
    fn the_table_is_sorted_without_repeats_and_names_rules_that_exist() {
        let rows: Vec<_> = table().collect();
        assert_eq!(
            rows.len(),
            include_str!("coverage.txt").lines().count(),
            "a line without a state"
        );
        let unsorted = rows.windows(2).find(|w| w[0].0 >= w[1].0);
        assert_eq!(unsorted, None);
        for (op, how) in rows {
            let exists = how == "alike" || rules().iter().any(|r| r.name == how);
            assert!(exists, "{op}: no rule is called {how}");
        }
    }

    #[test]
    fn operators_are_alike_ruled_or_unknown() {
        for (name, expected) in [
            ("aten::mul", Coverage::Alike),
            ("aten::mm", Coverage::Rule("cublas-workspace")),
            ("MulBackward0", Coverage::Alike),
            ("torch::autograd::AccumulateGrad", Coverage::Alike),
            ("autograd::engine::evaluate_function: MulBackward0", Coverage::Alike),
            ("torchvision::nms", Coverage::Unknown),
            ("aten::linalg_svd", Coverage::Unknown),
            ("MyFunctionBackward", Coverage::Unknown),
        ] {
            assert_eq!(of(name), expected, "{name}");
        }
    }
}

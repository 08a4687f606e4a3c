//! Workspaces of cuDNN's batch norm, for inputs whose channels are innermost; others have none.
//!
//! The library documents no formula. These give what 1,172 calls allocated on an H100 with cuDNN 9.19
//! (`traces/measured/h100-80g/libraries.jsonl.zst`), in 32 and 16 bits, all of them exactly. The stand-in for cuDNN of
//! xmem-virtual-gpu (`norms.c`) has the same numbers.

use crate::frame::count::Count;
use xmem_analyzer::{DType, TensorArg};

/// Channels of a group, which has two sums for each of them and of its blocks of rows.
const GROUP: u64 = 64;
const SUMS: u64 = 8;

/// An input as cuDNN sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rows {
    rows: Count,
    groups: u64,
    /// Channels of a group: there is a group of few. Inputs of three channels were measured.
    width: u64,
    half: bool,
}

impl Rows {
    pub(super) fn of(input: &TensorArg) -> Option<Self> {
        let &channels = input.dims.get(1)?;
        let width = if channels <= 4 { 4 } else { GROUP };
        Some(Self {
            rows: Count::elements(input) / channels.max(1),
            groups: channels.div_ceil(width),
            width,
            half: input.dtype == DType::F16,
        })
    }

    /// Bytes for training's forward: each block of rows has a flag, too.
    pub(super) fn forward(&self) -> Count {
        let rows = match (self.width, self.half) {
            (GROUP, false) => 64,
            (GROUP, true) => 160,
            (_, false) => 256,
            (_, true) => 640,
        };
        self.rows.div_ceil(rows) * self.groups * (SUMS * self.width + 4) + self.of_groups() + 16
    }

    /// Bytes for backward: the rest of the rows has no block.
    pub(super) fn backward(&self) -> Count {
        let rows = if self.width == GROUP { 96 } else { 384 };
        (self.rows / rows + 1) * self.groups * SUMS * self.width + self.of_groups()
    }

    fn of_groups(&self) -> Count {
        Count(self.groups) * 4 + 1056
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::measured::{numbers, rows};

    #[test]
    fn workspaces_are_those_measured_on_an_h100() {
        let mut count = 0;
        for row in rows(&["batch_norm"]) {
            let dtype = match row["type"].as_str() {
                Some("float32") => DType::F32,
                Some("float16") => DType::F16,
                // bfloat16 takes kernels of PyTorch's.
                _ => continue,
            };
            let input = TensorArg { dims: numbers(&row["size"]), strides: Vec::new(), dtype };
            let rows = Rows::of(&input).expect("channels");
            let last = |phase: &str| numbers(&row[phase]).last().copied();
            let found = [rows.forward(), rows.backward()].map(|size| Some(size.get()));
            assert_eq!(found, [last("forward"), last("backward")], "{row}");
            count += 1;
        }
        assert_eq!(count, 1172);
    }
}

//! Sizes that cuDNN requests for a stack of recurrent layers (`cudnnGetRNNTempSpaceSizes`).
//!
//! The library documents no formula. These were read from the allocations of 762 calls on an H100 with cuDNN 9.19
//! (`operators.jsonl.zst` and `libraries.jsonl.zst` of `traces/measured/h100-80g`). The reserve is exact in all of them. Of the 648
//! in the latter file, whose sizes vary most, the workspace is exact in 605, and at most 1.5 % too low in the others. In the
//! former it is within 0.5 % in 104 of 114; the others are inference, dropout of a stack in two directions, a projection, and
//! three calls in 16 bits, for which cuDNN takes another algorithm. The stand-in for cuDNN of xmem-virtual-gpu (`recurrent.c`) has the
//! same numbers.

use super::Cell;
use crate::frame::count::Count;

/// A stack of layers as cuDNN sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stack {
    pub(super) cell: Cell,
    /// Steps of all sequences of the batch.
    pub(super) rows: Count,
    /// Sequences.
    pub(super) batch: u64,
    pub(super) inputs: u64,
    pub(super) hidden: u64,
    /// Smaller than `hidden` with a projection.
    pub(super) outputs: u64,
    pub(super) layers: u64,
    pub(super) directions: u64,
    /// The sequences have lengths of their own.
    pub(super) packed: bool,
    pub(super) dropout: bool,
    /// Bytes of an element.
    pub(super) element: u64,
}

/// The way in which cuDNN runs a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Algorithm {
    /// Products of matrices, of all steps at once where possible.
    Products,
    /// One kernel for all steps, which holds the weights: where a cell has few units.
    Persistent,
    /// Sequences of different lengths.
    Packed,
}

impl Algorithm {
    pub(super) const ALL: [Self; 3] = [Self::Products, Self::Persistent, Self::Packed];
}

/// Memory that a workspace has for each layer and direction.
const EACH_LAYER: u64 = 8 << 20;

/// Units of all gates from which on products of matrices are taken: 400 are not, 512 are.
const MANY_UNITS: u64 = 512;

/// Numbers in a workspace: for each step and hidden unit, input, and the larger number of the two; then for each sequence and
/// hidden unit.
struct Terms {
    hidden: u64,
    inputs: u64,
    widest: u64,
    states: u64,
}

impl Stack {
    /// What a training keeps for its backward, bytes: for each step the gates and the cell's state, between layers the
    /// input of the next one, and with dropout a bit for each of its elements.
    pub(super) fn reserve(&self) -> Count {
        let projected = self.outputs != self.hidden;
        let kept = match self.cell {
            Cell::Lstm => 5 * self.hidden + if projected { self.hidden + self.outputs } else { 0 },
            Cell::Gru => 6 * self.hidden,
            Cell::Plain => self.hidden,
        };
        let between = self.layers.saturating_sub(1);
        let row = Count(kept) * self.layers + Count(self.hidden) * between;
        let all = self.rows * self.directions * row * self.element;
        let mask = self.rows * self.hidden * self.directions * self.directions * between / 8;
        let dropped = if self.dropout { mask } else { Count(0) };
        all.next_multiple_of(32) + 256 + dropped
    }

    /// The algorithm that is expected.
    pub(super) fn algorithm(&self) -> Algorithm {
        match self.packed {
            true => Algorithm::Packed,
            false if self.hidden.saturating_mul(self.cell.gates()) < MANY_UNITS => {
                Algorithm::Persistent
            }
            false => Algorithm::Products,
        }
    }

    /// The workspace of forward and backward, bytes.
    pub(super) fn workspace(&self, algorithm: Algorithm) -> Count {
        let Terms { hidden, inputs, widest, states } = self.terms(algorithm);
        let of_steps = self.rows * self.hidden * hidden
            + self.rows * self.inputs * inputs
            + self.rows * self.inputs.max(self.hidden) * widest;
        let of_sequences = Count(self.batch) * self.hidden * states;
        let lengths = if algorithm == Algorithm::Packed { 0 } else { 8 };
        (of_steps + of_sequences + self.matrices()) * self.element
            + Count(EACH_LAYER) * self.layers * self.directions
            + (Count(self.batch) * lengths).next_multiple_of(32)
            + 256
    }

    /// Elements of all weights without their biases.
    fn matrices(&self) -> Count {
        let gates = Count(self.cell.gates()) * self.hidden;
        let projection = match self.outputs == self.hidden {
            true => Count(0),
            false => Count(self.outputs) * self.hidden,
        };
        let layer = |inputs: Count| gates * (inputs + self.outputs) + projection;
        let first = layer(Count(self.inputs));
        let others = layer(Count(self.outputs) * self.directions) * self.layers.saturating_sub(1);
        (first + others) * self.directions
    }

    fn terms(&self, algorithm: Algorithm) -> Terms {
        let layers = self.layers;
        let is_deep = u64::from(layers > 1);
        let is_square = self.inputs == self.hidden;
        let is_wide = self.inputs > self.hidden;
        let (hidden, inputs, widest, states) = match (algorithm, self.cell, self.directions) {
            (Algorithm::Products, Cell::Lstm, 1) => {
                let odd = if is_square && layers % 2 == 1 { layers } else { 0 };
                (5 + u64::from(self.dropout), 1, 0, 10 * layers + odd)
            }
            (Algorithm::Products, Cell::Lstm, _) => (14, 1, 0, 24 * layers),
            (Algorithm::Products, cell, 1) if layers > 1 => match cell == Cell::Gru {
                true if self.takes_all_steps() => (4, 1, 0, 5 * layers),
                _ => (3, 2, 0, 5 * layers + self.steps_at_once()),
            },
            (Algorithm::Products, _, 1) => (4, 2, 0, 5),
            (Algorithm::Products, Cell::Gru, _) => (12, 1 + is_deep, 0, 14 * layers),
            (Algorithm::Products, Cell::Plain, _) => (10 + 2 * is_deep, 2, 0, 14 * layers),
            (Algorithm::Persistent, Cell::Lstm, 1) if is_wide => (23 + is_deep, 1, 0, 8 * layers),
            (Algorithm::Persistent, Cell::Lstm, 1) => (21, 1, 0, 8 * layers),
            (Algorithm::Persistent, Cell::Lstm, _) if is_wide => {
                (38 + 2 * is_deep, 1, 0, 18 * layers)
            }
            (Algorithm::Persistent, Cell::Lstm, _) => (30, 1, 0, 18 * layers),
            (Algorithm::Persistent, Cell::Gru, 1) => (17 + is_deep, 2, 1, 6 * layers),
            (Algorithm::Persistent, Cell::Plain, 1) => (12 + is_deep, 2, 1, 6 * layers),
            (Algorithm::Persistent, Cell::Gru, _) => (20 + 2 * is_deep, 2, 4, 14 * layers),
            (Algorithm::Persistent, Cell::Plain, _) => (15 + 2 * is_deep, 2, 4, 14 * layers),
            (Algorithm::Packed, Cell::Lstm, 1) => (4, 0, 0, 6 * layers),
            (Algorithm::Packed, Cell::Gru, 1) => (3, 0, 0, 3 * layers),
            (Algorithm::Packed, Cell::Plain, 1) => (2, 0, 0, layers),
            (Algorithm::Packed, Cell::Lstm, _) => (12, 0, 0, 16 * layers),
            (Algorithm::Packed, Cell::Gru, _) => (10, 0, 0, 10 * layers),
            (Algorithm::Packed, Cell::Plain, _) => (8, 0, 0, 6 * layers),
        };
        Terms { hidden, inputs, widest, states }
    }

    fn steps(&self) -> u64 {
        self.rows.get() / self.batch.max(1)
    }

    /// Steps that several layers do at once.
    fn steps_at_once(&self) -> u64 {
        let most = match self.batch {
            1 => 96,
            2..20 => 4 * self.layers + 16,
            _ => 4 * self.layers + 8,
        };
        self.steps().min(most)
    }

    /// Returns whether all steps of a GRU with several layers are done at once, where it has few inputs.
    fn takes_all_steps(&self) -> bool {
        let others = self.hidden.saturating_sub(self.inputs);
        self.inputs.saturating_mul(2) < self.hidden
            && Count(self.steps()) * others > Count(self.steps_at_once()) * self.hidden
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::measured::{numbers, rows};

    /// Cell, steps, batch, inputs, units, layers and directions, and what a further word changes; then workspace and
    /// reserve as measured on an H100 with cuDNN 9.19.
    const MEASURED: &str = "
        lstm 20 64 256 256 1 1 -        19071744 6553856
        lstm 20 64 256 256 2 1 -        30147328 14418176
        lstm 20 64 256 256 3 1 -        41485056 22282496
        lstm 20 64 256 256 1 2 -        42205952 13107456
        lstm 20 64 256 256 2 2 -        66847488 28836096
        lstm 64 32 128 512 1 1 -        36307456 20971776
        lstm 50 128 64 1024 1 1 -       164168960 131072256
        lstm 64 32 256 512 2 1 dropout  60031488 46268672
        lstm 100 16 40 100 1 1 -        22360192 3200256
        lstm 35 20 200 200 1 1 half     10797024 1400256
        gru 20 64 256 256 1 1 -         18154240 7864576
        gru 20 64 256 256 3 1 -         38732544 26214656
        gru 20 64 256 256 2 2 -         61604608 34078976
        gru 200 8 256 256 3 2 -         86196544 65536256
        gru 96 64 16 128 3 1 -          87319296 62914816
        rnn 64 32 128 512 1 1 -         28901888 4194560
        rnn 20 64 256 256 2 1 -         39584512 3932416
        rnn 20 64 256 256 2 2 -         68158208 7864576
        lstm 929 64 256 256 1 1 packed  14684416 4756736
        gru 929 64 256 256 2 2 packed   52242688 24733952
        lstm 1104 32 100 128 2 2 packed 43368704 12435712
    ";

    #[test]
    fn sizes_are_those_measured_on_an_h100() {
        for line in MEASURED.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let mut words = line.split_whitespace();
            let cell = match words.next() {
                Some("lstm") => Cell::Lstm,
                Some("gru") => Cell::Gru,
                _ => Cell::Plain,
            };
            let mut number = || words.next().and_then(|word| word.parse::<u64>().ok());
            let sizes: [Option<u64>; 6] = std::array::from_fn(|_| number());
            let [steps, batch, inputs, hidden, layers, directions] = sizes.map(Option::unwrap);
            let with = words.next().expect("a word");
            let packed = with == "packed";
            let stack = Stack {
                cell,
                rows: Count(steps) * if packed { 1 } else { batch },
                batch,
                inputs,
                hidden,
                outputs: hidden,
                layers,
                directions,
                packed,
                dropout: with == "dropout",
                element: if with == "half" { 2 } else { 4 },
            };
            let found = [stack.workspace(stack.algorithm()), stack.reserve()].map(Count::get);
            let measured: Vec<u64> = words.map(|word| word.parse().expect("a size")).collect();
            assert_eq!(found, measured[..], "{line}");
        }
    }

    /// The stand-in for cuDNN is compared with the same table (xmem-virtual-gpu, `tests/workspaces.rs`).
    #[test]
    fn sizes_of_many_shapes_are_close_to_those_measured() {
        let (mut exact, mut all) = (0, 0);
        for row in rows(&["LSTM", "GRU", "RNN"]) {
            let cell = match row["function"].as_str() {
                Some("LSTM") => Cell::Lstm,
                Some("GRU") => Cell::Gru,
                _ => Cell::Plain,
            };
            let [steps, batch, inputs, hidden, layers] = numbers(&row["size"])[..] else {
                panic!("{row}");
            };
            let stack = Stack {
                cell,
                rows: Count(steps) * batch,
                batch,
                inputs,
                hidden,
                outputs: hidden,
                layers,
                directions: if row["both"] == true { 2 } else { 1 },
                packed: false,
                dropout: false,
                element: 4,
            };
            let measured = numbers(&row["forward"]);
            let [.., workspace, reserve] = measured[..] else { panic!("{row}") };
            let found = stack.workspace(stack.algorithm()).get();
            assert_eq!(stack.reserve().get(), reserve, "{row}");
            assert!(found.abs_diff(workspace) * 1000 <= workspace * 15, "{found}: {row}");
            exact += usize::from(found == workspace);
            all += 1;
        }
        assert_eq!((exact, all), (605, 648));
    }
}

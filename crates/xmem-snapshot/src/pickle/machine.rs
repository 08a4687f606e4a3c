//! The machine: one instruction after the other, a stack, marks, a memo.

use super::builder::Builder;
use super::input::Input;
use super::integer::from_twos_complement;
use super::opcode::{self, plain};
use super::tree::Tree;
use super::value::{ContainerId, Value};
use crate::budget::{Budget, Limits};
use crate::error::SnapshotError;

type HistoryStep<T = ()> = Result<T, SnapshotError>;

/// Runs the pickle at the start of `bytes`.
pub(crate) fn read<'a>(
    bytes: &'a [u8],
    limits: &Limits,
    budget: &mut Budget,
) -> Result<Tree<'a>, SnapshotError> {
    check_beginning(bytes)?;
    let machine = Machine {
        input: Input::new(bytes),
        at: 0,
        nesting: limits.nesting,
        // Each put takes two bytes at least, so a larger index is not from a counting writer.
        memo_limit: bytes.len(),
        stack: Vec::new(),
        marks: Vec::new(),
        memo: Vec::new(),
        builder: Builder::new(budget),
    };
    machine.run()
}

/// Tells the files that people take for snapshots from pickles, by their first bytes.
fn check_beginning(bytes: &[u8]) -> HistoryStep {
    let found = match bytes {
        [] => return Err(SnapshotError::Empty),
        [plain::PROTO, 2..=5, ..] | [plain::PROTO] => return Ok(()),
        [plain::PROTO, version @ (0 | 1 | 6..), ..] => {
            return Err(SnapshotError::Protocol { version: *version });
        }
        [b'P', b'K', 3, 4, ..] => {
            "it is a zip archive, perhaps written by torch.save; \
             write it with torch.cuda.memory._dump_snapshot(path)"
        }
        [b'{' | b'[', ..] => "it looks like JSON; is it a profiler trace?",
        _ => {
            "it does not begin like a Python pickle; \
             write it with torch.cuda.memory._dump_snapshot(path)"
        }
    };
    Err(SnapshotError::NotAPickle { found })
}

struct Machine<'a, 'b> {
    input: Input<'a>,
    /// Offset of the current instruction.
    at: usize,
    nesting: usize,
    memo_limit: usize,
    stack: Vec<Value>,
    /// Height of the stack at each open mark.
    marks: Vec<usize>,
    memo: Vec<Option<Value>>,
    builder: Builder<'a, 'b>,
}

impl<'a> Machine<'a, '_> {
    fn run(mut self) -> HistoryStep<Tree<'a>> {
        loop {
            self.at = self.input.at();
            let code = self.input.byte("the pickle (no STOP)")?;
            if code == plain::STOP {
                return self.stop();
            }
            self.step(code)?;
        }
    }

    fn step(&mut self, code: u8) -> HistoryStep {
        match code {
            plain::BINGET => {
                let [index] = self.input.array("BINGET")?;
                self.get("BINGET", usize::from(index))
            }
            plain::LONG_BINGET => {
                let index = u32::from_le_bytes(self.input.array("LONG_BINGET")?);
                self.get("LONG_BINGET", index as usize)
            }
            plain::MEMOIZE => self.put("MEMOIZE", self.memo.len()),
            plain::BINPUT => {
                let [index] = self.input.array("BINPUT")?;
                self.put("BINPUT", usize::from(index))
            }
            plain::LONG_BINPUT => {
                let index = u32::from_le_bytes(self.input.array("LONG_BINPUT")?);
                self.put("LONG_BINPUT", index as usize)
            }
            plain::MARK => self.mark(),

            plain::NONE => self.push(Value::None),
            plain::NEWTRUE => self.push(Value::Bool(true)),
            plain::NEWFALSE => self.push(Value::Bool(false)),
            plain::BININT1 => {
                let [n] = self.input.array("BININT1")?;
                self.push(Value::Int(i32::from(n).into()))
            }
            plain::BININT2 => {
                let n = u16::from_le_bytes(self.input.array("BININT2")?);
                self.push(Value::Int(i32::from(n).into()))
            }
            plain::BININT => {
                let n = i32::from_le_bytes(self.input.array("BININT")?);
                self.push(Value::Int(n.into()))
            }
            plain::LONG1 => {
                let [length] = self.input.array("LONG1")?;
                let bytes = self.input.slice(u64::from(length), "LONG1")?;
                self.long(bytes)
            }
            plain::LONG4 => {
                let length = i32::from_le_bytes(self.input.array("LONG4")?);
                let length = u64::try_from(length)
                    .map_err(|_| self.malformed("LONG4", "its length is negative"))?;
                let bytes = self.input.slice(length, "LONG4")?;
                self.long(bytes)
            }
            plain::BINFLOAT => {
                let bits = u64::from_be_bytes(self.input.array("BINFLOAT")?);
                let float = self.builder.float(bits, self.at)?;
                self.push(float)
            }

            plain::SHORT_BINUNICODE => self.text::<1>("SHORT_BINUNICODE"),
            plain::BINUNICODE => self.text::<4>("BINUNICODE"),
            plain::BINUNICODE8 => self.text::<8>("BINUNICODE8"),
            plain::SHORT_BINBYTES => self.binary::<1>("SHORT_BINBYTES"),
            plain::BINBYTES => self.binary::<4>("BINBYTES"),
            plain::BINBYTES8 => self.binary::<8>("BINBYTES8"),
            plain::BYTEARRAY8 => self.binary::<8>("BYTEARRAY8"),

            plain::EMPTY_LIST => self.empty(Value::List),
            plain::EMPTY_TUPLE => self.empty(Value::Tuple),
            plain::EMPTY_DICT => self.empty(Value::Dict),
            plain::TUPLE1 => self.tuple("TUPLE1", 1),
            plain::TUPLE2 => self.tuple("TUPLE2", 2),
            plain::TUPLE3 => self.tuple("TUPLE3", 3),
            plain::LIST => {
                let from = self.unmark("LIST")?;
                self.gather(Value::List, from)
            }
            plain::TUPLE => {
                let from = self.unmark("TUPLE")?;
                self.gather(Value::Tuple, from)
            }
            plain::DICT => {
                let from = self.unmark("DICT")?;
                self.even("DICT", from)?;
                let dict = self.builder.container(self.at)?;
                self.builder.set(dict, &self.stack[from..], self.at)?;
                self.stack.truncate(from);
                self.push(Value::Dict(dict))
            }
            plain::APPEND => {
                let from = self.below("APPEND", 1)?;
                self.append("APPEND", from)
            }
            plain::APPENDS => {
                let from = self.unmark("APPENDS")?;
                self.append("APPENDS", from)
            }
            plain::SETITEM => {
                let from = self.below("SETITEM", 2)?;
                self.set("SETITEM", from)
            }
            plain::SETITEMS => {
                let from = self.unmark("SETITEMS")?;
                self.even("SETITEMS", from)?;
                self.set("SETITEMS", from)
            }

            plain::PROTO => {
                let [version] = self.input.array("PROTO")?;
                match version {
                    2..=5 => Ok(()),
                    _ => Err(SnapshotError::Protocol { version }),
                }
            }
            plain::FRAME => {
                let length = u64::from_le_bytes(self.input.array("FRAME")?);
                if length > self.input.left() as u64 {
                    let at = self.input.at() + self.input.left();
                    return Err(SnapshotError::Truncated { at, inside: "FRAME" });
                }
                Ok(())
            }
            other => Err(self.not_plain(other)),
        }
    }

    fn not_plain(&self, byte: u8) -> SnapshotError {
        let at = self.at;
        if let Some(opcode) = opcode::name(&opcode::REFUSED, byte) {
            SnapshotError::Refused { opcode, at }
        } else if let Some(opcode) = opcode::name(&opcode::UNSUPPORTED, byte) {
            SnapshotError::Unsupported { opcode, at }
        } else {
            SnapshotError::UnknownOpcode { byte, at }
        }
    }

    fn stop(self) -> HistoryStep<Tree<'a>> {
        if !self.marks.is_empty() {
            return Err(self.malformed("STOP", "a container is still open"));
        }
        let [root] = self.stack[..] else {
            return Err(self.malformed("STOP", "there is not exactly one value"));
        };
        self.builder.finish(root, self.input.left(), self.at)
    }

    fn push(&mut self, value: Value) -> HistoryStep {
        if self.stack.len() == self.stack.capacity() {
            let more = self.stack.len().max(1024);
            self.builder.budget.take::<Value>(more, self.at)?;
            self.stack.reserve_exact(more);
        }
        self.stack.push(value);
        Ok(())
    }

    fn mark(&mut self) -> HistoryStep {
        if self.marks.len() == self.nesting {
            return Err(SnapshotError::TooDeep { at: self.at, limit: self.nesting });
        }
        self.marks.push(self.stack.len());
        Ok(())
    }

    /// Closes the innermost mark; the values above it begin at the returned height.
    fn unmark(&mut self, opcode: &'static str) -> HistoryStep<usize> {
        self.marks.pop().ok_or_else(|| self.malformed(opcode, "no MARK precedes it"))
    }

    /// The height below the topmost `count` values, none of which may be under an open mark.
    fn below(&self, opcode: &'static str, count: usize) -> HistoryStep<usize> {
        let floor = self.marks.last().copied().unwrap_or(0);
        match self.stack.len().checked_sub(count) {
            Some(height) if height >= floor => Ok(height),
            _ => Err(self.malformed(opcode, "too few values before it")),
        }
    }

    fn even(&self, opcode: &'static str, from: usize) -> HistoryStep {
        if (self.stack.len() - from).is_multiple_of(2) {
            return Ok(());
        }
        Err(self.malformed(opcode, "a key has no value"))
    }

    fn empty(&mut self, kind: fn(ContainerId) -> Value) -> HistoryStep {
        let id = self.builder.container(self.at)?;
        self.push(kind(id))
    }

    /// Makes a list or tuple of the values from height `from` on.
    fn gather(&mut self, kind: fn(ContainerId) -> Value, from: usize) -> HistoryStep {
        let id = self.builder.container(self.at)?;
        self.builder.append(id, &self.stack[from..], self.at)?;
        self.stack.truncate(from);
        self.push(kind(id))
    }

    fn tuple(&mut self, opcode: &'static str, count: usize) -> HistoryStep {
        let from = self.below(opcode, count)?;
        self.gather(Value::Tuple, from)
    }

    /// Moves the values from height `from` on to the list below them.
    fn append(&mut self, opcode: &'static str, from: usize) -> HistoryStep {
        let Some(Value::List(list)) = self.target(from) else {
            return Err(self.malformed(opcode, "no list precedes it to append to"));
        };
        self.builder.append(list, &self.stack[from..], self.at)?;
        self.stack.truncate(from);
        Ok(())
    }

    /// Moves the keys and values from height `from` on to the dict below them.
    fn set(&mut self, opcode: &'static str, from: usize) -> HistoryStep {
        let Some(Value::Dict(dict)) = self.target(from) else {
            return Err(self.malformed(opcode, "no dict precedes it to add to"));
        };
        self.builder.set(dict, &self.stack[from..], self.at)?;
        self.stack.truncate(from);
        Ok(())
    }

    fn target(&self, from: usize) -> Option<Value> {
        let floor = self.marks.last().copied().unwrap_or(0);
        let below = from.checked_sub(1).filter(|&below| below >= floor)?;
        Some(self.stack[below])
    }

    fn put(&mut self, opcode: &'static str, index: usize) -> HistoryStep {
        let top = self.below(opcode, 1)?;
        if index >= self.memo_limit {
            return Err(self.malformed(opcode, "its index is larger than the file"));
        }
        if index >= self.memo.len() {
            self.builder.budget.take::<Option<Value>>(index + 1 - self.memo.len(), self.at)?;
            self.memo.resize(index + 1, None);
        }
        self.memo[index] = Some(self.stack[top]);
        Ok(())
    }

    fn get(&mut self, opcode: &'static str, index: usize) -> HistoryStep {
        match self.memo.get(index) {
            Some(&Some(value)) => self.push(value),
            _ => Err(self.malformed(opcode, "nothing was stored under its index")),
        }
    }

    fn long(&mut self, bytes: &[u8]) -> HistoryStep {
        let value = match from_twos_complement(bytes) {
            Some(number) => self.builder.integer(number, self.at)?,
            None => Value::Huge,
        };
        self.push(value)
    }

    /// Text whose length is given in `N` bytes.
    fn text<const N: usize>(&mut self, opcode: &'static str) -> HistoryStep {
        let text = self.counted::<N>(opcode)?;
        let value = self.builder.text(text, self.at)?;
        self.push(value)
    }

    /// Binary data whose length is given in `N` bytes.
    fn binary<const N: usize>(&mut self, opcode: &'static str) -> HistoryStep {
        self.counted::<N>(opcode)?;
        self.push(Value::Binary)
    }

    fn counted<const N: usize>(&mut self, opcode: &'static str) -> HistoryStep<&'a [u8]> {
        let mut length = [0; 8];
        length[..N].copy_from_slice(&self.input.array::<N>(opcode)?);
        self.input.slice(u64::from_le_bytes(length), opcode)
    }

    fn malformed(&self, opcode: &'static str, problem: &'static str) -> SnapshotError {
        SnapshotError::Malformed { opcode, at: self.at, problem }
    }
}

//! A pickle machine for plain data: numbers, text, lists, tuples, dicts; and a pickler.
//!
//! They know what a [`Value`] is and nothing of snapshots. Values live in a [`Tree`], so that the
//! memo (the same frames, mentioned by thousands of entries) costs eight bytes a mention, and
//! dropping or walking a deeply nested or even cyclic file needs no recursion.

mod builder;
mod input;
mod integer;
mod machine;
mod opcode;
mod pickler;
mod shapes;
mod tree;
mod value;

#[cfg(test)]
mod tests;

pub(crate) use machine::read;
pub(crate) use pickler::{MemoIndex, Pickler};
pub(crate) use tree::Tree;
pub(crate) use value::{ContainerId, Value};

//! Damage to the numbers that events have and refer to each other by.

use super::{Kind, each_value, each_without, exchange};
use crate::event::Class;

pub(super) static KINDS: &[Kind] = &[
    Kind::events("event-numbers-missing", "`Ev Idx` removed", |v, d| {
        each_without(v, d, None, "Ev Idx");
    }),
    Kind::events("event-numbers-zero", "`Ev Idx` is 0", |v, d| {
        each_value(v, d, None, "Ev Idx", "0");
    }),
    Kind::events("event-numbers-exchanged", "operators exchange their `Ev Idx`", |v, d| {
        exchange(v, d, Class::Operator, "Ev Idx");
    }),
    Kind::events("external-ids-missing", "`External id` removed", |v, d| {
        each_without(v, d, None, "External id");
    }),
    Kind::events("external-ids-zero", "`External id` is 0", |v, d| {
        each_value(v, d, None, "External id", "0");
    }),
    Kind::events("external-ids-exchanged", "operators exchange their `External id`", |v, d| {
        exchange(v, d, Class::Operator, "External id");
    }),
    Kind::events("sequence-numbers-missing", "`Sequence number` removed", |v, d| {
        each_without(v, d, None, "Sequence number");
    }),
    Kind::events("sequence-numbers-zero", "`Sequence number` is 0", |v, d| {
        each_value(v, d, None, "Sequence number", "0");
    }),
    Kind::events(
        "sequence-numbers-exchanged",
        "operators exchange their `Sequence number`",
        |v, d| {
            exchange(v, d, Class::Operator, "Sequence number");
        },
    ),
    Kind::events("forward-threads-huge", "`Fwd thread id` is 2^64", |v, d| {
        each_value(v, d, None, "Fwd thread id", "18446744073709551616");
    }),
    Kind::events("python-parents-zero", "`Python parent id` is 0", |v, d| {
        each_value(v, d, None, "Python parent id", "0");
    }),
    Kind::events("python-ids-equal", "`Python id` is 1", |v, d| {
        each_value(v, d, None, "Python id", "1");
    }),
    Kind::events("modules-exchanged", "Python calls exchange their names", |v, d| {
        exchange(v, d, Class::Python, "name");
    }),
];

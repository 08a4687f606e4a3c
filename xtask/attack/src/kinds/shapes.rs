//! Damage to shapes, types and other arguments of operators.

use super::{Kind, each, each_value, each_without, exchange};
use crate::event::{Class, Event};
use crate::recording::Variant;

const DIMS: &str = "Input Dims";
const TYPES: &str = "Input type";
const VALUES: &str = "Concrete Inputs";

fn shaped(event: &Event<'_>) -> bool {
    event.class == Class::Operator && event.value(DIMS).is_some_and(has_digit)
}

fn has_digit(text: &str) -> bool {
    text.bytes().any(|byte| byte.is_ascii_digit())
}

/// The text with each number in it replaced.
fn numbers(text: &str, change: impl Fn(u64) -> String) -> String {
    let mut changed = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        let (before, from) = rest.split_at(start);
        let length = from.find(|c: char| !c.is_ascii_digit()).unwrap_or(from.len());
        changed.push_str(before);
        changed.push_str(&change(from[..length].parse().unwrap_or(0)));
        rest = &from[length..];
    }
    changed + rest
}

/// The numbers of each list in the opposite order.
fn reversed(text: &str) -> String {
    let parts: Vec<String> = text
        .split_inclusive(']')
        .map(|part| {
            let Some(start) = part.rfind('[') else { return part.to_owned() };
            let (before, list) = part.split_at(start + 1);
            let (list, close) = list.split_at(list.find(']').unwrap_or(list.len()));
            let list: Vec<&str> = list.split(", ").collect();
            format!("{before}{}{close}", list.into_iter().rev().collect::<Vec<_>>().join(", "))
        })
        .collect();
    parts.concat()
}

/// Removes all that operators say of their inputs.
pub(super) fn remove_all(variant: &mut Variant<'_>) {
    for event in variant.events.iter_mut().filter(|event| event.class == Class::Operator) {
        for key in [DIMS, TYPES, VALUES, "Input Strides"] {
            event.remove(key);
        }
    }
}

pub(super) static KINDS: &[Kind] = &[
    Kind::events("shapes-zero", "every dimension is 0", |v, d| {
        each(v, d, shaped, |event, _| event.change(DIMS, |dims| numbers(dims, |_| "0".to_owned())));
    }),
    Kind::events("shapes-one", "every dimension is 1", |v, d| {
        each(v, d, shaped, |event, _| event.change(DIMS, |dims| numbers(dims, |_| "1".to_owned())));
    }),
    Kind::events("shapes-huge", "every dimension is 2^63", |v, d| {
        each(v, d, shaped, |event, _| {
            event.change(DIMS, |dims| numbers(dims, |_| "9223372036854775808".to_owned()));
        });
    }),
    Kind::events("shapes-negative", "every dimension is negative", |v, d| {
        each(v, d, shaped, |event, _| {
            event.change(DIMS, |dims| numbers(dims, |n| format!("-{n}")));
        });
    }),
    Kind::events("shapes-halved", "every dimension halved", |v, d| {
        each(v, d, shaped, |event, _| {
            event.change(DIMS, |dims| numbers(dims, |n| n.div_ceil(2).to_string()));
        });
    }),
    Kind::events("shapes-doubled", "every dimension doubled", |v, d| {
        each(v, d, shaped, |event, _| {
            event.change(DIMS, |dims| numbers(dims, |n| n.saturating_mul(2).to_string()));
        });
    }),
    Kind::events(
        "shapes-reversed",
        "the dimensions of each input in the opposite order",
        |v, d| {
            each(v, d, shaped, |event, _| event.change(DIMS, reversed));
        },
    ),
    Kind::events("shapes-text", "dimensions are texts", |v, d| {
        each(v, d, shaped, |event, _| {
            event.change(DIMS, |dims| numbers(dims, |n| format!("\"{n}\"")));
        });
    }),
    Kind::events("shapes-empty", "no dimensions", |v, d| {
        each(v, d, shaped, |event, _| event.set(DIMS, "[]"));
    }),
    Kind::events("shapes-missing", "`Input Dims` removed", |v, d| {
        each_without(v, d, Some(Class::Operator), DIMS);
    }),
    Kind::events(
        "all-shapes-missing",
        "everything about inputs removed from all operators, under a head that says `record_shapes: 1`",
        |v, _| remove_all(v),
    ),
    Kind::events("shapes-exchanged", "operators exchange their `Input Dims`", |v, d| {
        exchange(v, d, Class::Operator, DIMS);
    }),
    Kind::events("shapes-nested", "`Input Dims` is a list in 1,000 lists", |v, d| {
        let nested = format!("{}{}", "[".repeat(1000), "]".repeat(1000));
        each(v, d, shaped, |event, _| event.set(DIMS, &nested));
    }),
    Kind::events("types-missing", "`Input type` removed", |v, d| {
        each_without(v, d, Some(Class::Operator), TYPES);
    }),
    Kind::events("types-narrowed", "inputs of type float are of type c10::BFloat16", |v, d| {
        let has =
            |event: &Event<'_>| event.value(TYPES).is_some_and(|types| types.contains("\"float\""));
        each(v, d, has, |event, _| {
            event.change(TYPES, |types| types.replace("\"float\"", "\"c10::BFloat16\""));
        });
    }),
    Kind::events("types-unknown", "every type is one that PyTorch does not have", |v, d| {
        each_value(v, d, Some(Class::Operator), TYPES, "[\"quaternion\", \"quaternion\"]");
    }),
    Kind::events("values-missing", "`Concrete Inputs` removed", |v, d| {
        each_without(v, d, Some(Class::Operator), VALUES);
    }),
    Kind::events("values-zero", "every number in `Concrete Inputs` is 0", |v, d| {
        let has = |event: &Event<'_>| {
            event.class == Class::Operator && event.value(VALUES).is_some_and(has_digit)
        };
        each(v, d, has, |event, _| {
            event.change(VALUES, |values| numbers(values, |_| "0".to_owned()));
        });
    }),
    Kind::events("values-exchanged", "operators exchange their `Concrete Inputs`", |v, d| {
        exchange(v, d, Class::Operator, VALUES);
    }),
    Kind::events("strides-missing", "`Input Strides` removed", |v, d| {
        each_without(v, d, Some(Class::Operator), "Input Strides");
    }),
    Kind::events("args-missing", "`args` of operators removed", |v, d| {
        each_without(v, d, Some(Class::Operator), "args");
    }),
    Kind::events("args-text", "`args` is a text", |v, d| {
        each(v, d, |event| event.value("args").is_some(), |event, _| event.set("args", "\"lost\""));
    }),
    Kind::events("args-nested", "an object in 500 objects before the other arguments", |v, d| {
        let nested = format!("{{\"x\": {}1{}, ", "{\"x\":".repeat(500), "}".repeat(500));
        each(
            v,
            d,
            |event| event.value("args").is_some(),
            |event, _| {
                event.change("args", |args| args.replacen('{', &nested, 1));
            },
        );
    }),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_orders_change_and_nothing_else() {
        assert_eq!(numbers("[[12, 3], [], 4]", |n| (n + 1).to_string()), "[[13, 4], [], 5]");
        assert_eq!(reversed("[[12, 3], [], [[4, 5]]]"), "[[3, 12], [], [[5, 4]]]");
    }
}

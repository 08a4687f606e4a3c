//! Damage to operators, annotations and Python calls, and to what happens in a part of the time.

use super::{Kind, drop_places, drop_share, each, each_value, exchange, places, span};
use crate::dice::Dice;
use crate::event::{Class, Event};
use crate::recording::Variant;

fn is_operator(event: &Event<'_>) -> bool {
    event.class == Class::Operator
}

fn is_backward(event: &Event<'_>) -> bool {
    is_operator(event)
        && (event.name().starts_with("autograd::engine") || event.name().ends_with("Backward0"))
}

fn is_step(event: &Event<'_>) -> bool {
    event.class == Class::Annotation && event.name().starts_with("Optimizer.step")
}

fn timed(event: &Event<'_>) -> bool {
    !matches!(event.class, Class::Other)
}

/// The times of the optimizer's steps, ascending: where they begin and end.
fn steps(variant: &Variant<'_>) -> Vec<(i64, i64)> {
    let steps = variant.events.iter().filter(|event| is_step(event));
    let mut steps: Vec<(i64, i64)> = steps.map(|event| (event.start(), event.end())).collect();
    steps.sort_unstable();
    steps
}

/// The iterations: from the end of one step to the end of the next.
fn iterations(variant: &Variant<'_>) -> Vec<(i64, i64)> {
    let (mut from, _) = span(variant);
    let ends = steps(variant).into_iter().map(|(_, end)| end);
    ends.map(|end| (std::mem::replace(&mut from, end), end)).collect()
}

/// The first iteration, the second, the last, or all but the last, by the strength.
fn lost_iterations(variant: &Variant<'_>, dice: &Dice) -> Vec<(i64, i64)> {
    let iterations = iterations(variant);
    let last = iterations.len().saturating_sub(1);
    let lost = match dice.strength.level() {
        1 => 0..1,
        2 => last.min(1)..last.min(1) + 1,
        3 => last..last + 1,
        _ => 0..last,
    };
    iterations.get(lost).unwrap_or_default().to_vec()
}

/// Removes the events that begin in this part of the time and are of interest.
fn drop_between(variant: &mut Variant<'_>, part: (i64, i64), what: impl Fn(&Event<'_>) -> bool) {
    variant.events.retain(|event| {
        let start = event.start();
        !(timed(event) && what(event) && start > part.0 && start <= part.1)
    });
}

/// The part of the time between two shares of it.
fn part(variant: &Variant<'_>, from: f64, to: f64) -> (i64, i64) {
    let (first, last) = span(variant);
    let at = |share: f64| first + ((last - first) as f64 * share) as i64;
    (at(from), at(to))
}

/// Removes the strength's share of the events concerned with all that happened in them.
fn drop_with_content(
    variant: &mut Variant<'_>,
    dice: &mut Dice,
    concerned: impl Fn(&Event<'_>) -> bool,
) {
    let chosen = dice.choose(places(variant, concerned));
    let mut spans: Vec<(i64, i64)> = chosen
        .iter()
        .map(|&place| (variant.events[place].start(), variant.events[place].end()))
        .collect();
    spans.sort_unstable();
    // The later the beginning, the later the greatest end so far.
    let mut greatest = i64::MIN;
    for span in &mut spans {
        greatest = greatest.max(span.1);
        span.1 = greatest;
    }
    variant.events.retain(|event| {
        let start = event.start();
        let before = spans.partition_point(|span| span.0 <= start);
        !(timed(event) && before > 0 && start <= spans[before - 1].1)
    });
}

/// The operators that no other operator contains, or those that one does.
fn outermost(variant: &Variant<'_>, wanted: bool) -> Vec<usize> {
    let mut operators = places(variant, is_operator);
    operators.sort_by_key(|&place| (variant.events[place].start(), -variant.events[place].end()));
    let mut end = i64::MIN;
    operators.retain(|&place| {
        let event = &variant.events[place];
        let outer = event.start() >= end;
        end = end.max(event.end());
        outer == wanted
    });
    operators
}

fn drop_chosen(variant: &mut Variant<'_>, dice: &mut Dice, from: Vec<usize>) {
    let chosen = dice.choose(from);
    drop_places(variant, &chosen);
}

pub(super) static KINDS: &[Kind] = &[
    Kind::events("operators-lost", "operators removed, their memory kept", |v, d| {
        drop_share(v, d, is_operator);
    }),
    Kind::events(
        "outer-operators-lost",
        "operators that no other contains removed, those inside kept",
        |v, d| {
            let outer = outermost(v, true);
            drop_chosen(v, d, outer);
        },
    ),
    Kind::events("inner-operators-lost", "operators inside of others removed", |v, d| {
        let inner = outermost(v, false);
        drop_chosen(v, d, inner);
    }),
    Kind::events(
        "operators-lost-with-memory",
        "operators removed with all events in their time",
        |v, d| {
            drop_with_content(v, d, is_operator);
        },
    ),
    Kind::events(
        "backward-lost",
        "operators of the backward pass removed with all events in their time",
        |v, d| {
            drop_with_content(v, d, is_backward);
        },
    ),
    Kind::events(
        "backward-operators-lost",
        "autograd's operators removed, their memory kept",
        |v, d| {
            drop_share(v, d, is_backward);
        },
    ),
    Kind::events(
        "forward-operators-lost",
        "operators that are not autograd's removed, their memory kept",
        |v, d| {
            drop_share(v, d, |event| is_operator(event) && !is_backward(event));
        },
    ),
    Kind::events(
        "steps-lost",
        "steps of the optimizer removed with all events in their time: the last, two, all, and everything after the first",
        |v, d| {
            let mut steps = steps(v);
            let level = d.strength.level();
            if level == 4
                && let Some(first) = steps.first().copied()
            {
                drop_between(v, (first.0, i64::MAX), |_| true);
            }
            steps.reverse();
            for step in steps.into_iter().take(level) {
                drop_between(v, (step.0 - 1, step.1), |_| true);
            }
        },
    ),
    Kind::events(
        "step-operators-lost",
        "operators in the optimizer's steps removed, their memory kept",
        |v, d| {
            let steps = steps(v);
            drop_share(v, d, |event| {
                is_operator(event)
                    && steps.iter().any(|step| event.start() >= step.0 && event.start() <= step.1)
            });
        },
    ),
    Kind::events("annotations-lost", "annotations removed", |v, d| {
        drop_share(v, d, |event| event.class == Class::Annotation);
    }),
    Kind::events(
        "step-annotations-lost",
        "annotations of the optimizer's steps removed",
        |v, d| {
            drop_share(v, d, is_step);
        },
    ),
    Kind::events("annotations-renamed", "annotations have another name", |v, d| {
        each_value(v, d, Some(Class::Annotation), "name", "\"x\"");
    }),
    Kind::events("python-lost", "Python calls removed", |v, d| {
        drop_share(v, d, |event| event.class == Class::Python || event.class == Class::Flow);
    }),
    Kind::events("flows-lost", "links from forward to backward removed", |v, d| {
        drop_share(v, d, |event| event.class == Class::Flow);
    }),
    Kind::events(
        "iteration-lost",
        "all events of one iteration removed: the first, the second, the last, all but the last",
        |v, d| {
            for iteration in lost_iterations(v, d) {
                drop_between(v, iteration, |_| true);
            }
        },
    ),
    Kind::events(
        "iteration-memory-lost",
        "memory events of one iteration removed: the first, the second, the last, all but the last",
        |v, d| {
            for iteration in lost_iterations(v, d) {
                drop_between(v, iteration, |event| event.class == Class::Memory);
            }
        },
    ),
    Kind::events(
        "iterations-not-reached",
        "everything after the first or the second step removed, or before the second or the last",
        |v, d| {
            let iterations = iterations(v);
            let (Some(&first), Some(&last)) = (iterations.first(), iterations.last()) else {
                return;
            };
            let second = iterations.get(1).copied().unwrap_or(first);
            let part = match d.strength.level() {
                1 => (second.1, i64::MAX),
                2 => (first.1, i64::MAX),
                3 => (i64::MIN, second.0),
                _ => (i64::MIN, last.0),
            };
            drop_between(v, part, |_| true);
        },
    )
    .leaves_another_job("the recording of fewer iterations, begun or ended between two of them"),
    Kind::events(
        "middle-lost",
        "all events of 1 %, 10 %, 33 % or 80 % of the time removed, from the middle",
        |v, d| {
            let cut = d.strength.cut() / 2.0;
            let part = part(v, 0.5 - cut, 0.5 + cut);
            drop_between(v, part, |_| true);
        },
    ),
    Kind::events(
        "beginning-lost",
        "all events of the first 1 %, 10 %, 33 % or 80 % of the time removed",
        |v, d| {
            let part = part(v, -0.01, d.strength.cut());
            drop_between(v, part, |_| true);
        },
    ),
    Kind::events(
        "end-lost",
        "all events of the last 1 %, 10 %, 33 % or 80 % of the time removed",
        |v, d| {
            let part = part(v, 1.0 - d.strength.cut(), 1.01);
            drop_between(v, part, |_| true);
        },
    ),
    Kind::events(
        "windows-lost",
        "all events in windows of a hundredth of the time removed: one, five, 20, 50",
        |v, d| {
            for _ in 0..[1, 5, 20, 50][d.strength.level() - 1] {
                let from = d.below(100) as f64 / 100.0;
                let part = part(v, from, from + 0.01);
                drop_between(v, part, |_| true);
            }
        },
    ),
    Kind::events("names-exchanged", "operators exchange their names", |v, d| {
        exchange(v, d, Class::Operator, "name");
    }),
    Kind::events("names-garbled", "the last letter of operators' names replaced", |v, d| {
        each(v, d, is_operator, |event, _| {
            event.change("name", |name| format!("{}~\"", &name[..name.len().saturating_sub(2)]));
        });
    }),
    Kind::events("names-empty", "operators' names empty", |v, d| {
        each_value(v, d, Some(Class::Operator), "name", "\"\"");
    }),
    Kind::events("names-missing", "operators' names removed", |v, d| {
        each(v, d, is_operator, |event, _| event.remove("name"));
    }),
    Kind::events("category-changed", "operators are of the category `kernel`", |v, d| {
        each_value(v, d, Some(Class::Operator), "cat", "\"kernel\"");
    }),
    Kind::events("category-missing", "the category of events removed", |v, d| {
        each(v, d, timed, |event, _| event.remove("cat"));
    }),
    Kind::events("threads-changed", "operators on a separate thread", |v, d| {
        each_value(v, d, Some(Class::Operator), "tid", "4242");
    }),
    Kind::events("processes-changed", "events of another process", |v, d| {
        each(v, d, timed, |event, _| event.set("pid", "4242"));
    }),
];

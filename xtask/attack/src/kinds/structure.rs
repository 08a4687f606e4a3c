//! Damage to the list of events: its order, its length, and what is around it.

use super::{Kind, drop_places, drop_share, each, places};
use crate::event::{Class, Event};

fn counts(event: &Event<'_>) -> bool {
    event.class != Class::Other
}

pub(super) static KINDS: &[Kind] = &[
    Kind::events("events-lost", "events of all kinds removed", |v, d| drop_share(v, d, counts)),
    Kind::events(
        "middle-of-file-lost",
        "1 %, 10 %, 33 % or 80 % of the events cut out of the middle of the file, valid JSON",
        |v, d| {
            let number = (v.events.len() as f64 * d.strength.cut()) as usize;
            let from = (v.events.len() - number) / 2;
            v.events.drain(from..from + number);
        },
    ),
    Kind::events(
        "end-of-file-lost",
        "1 %, 10 %, 33 % or 80 % of the events cut off the end, valid JSON",
        |v, d| {
            let number = (v.events.len() as f64 * d.strength.cut()) as usize;
            v.events.truncate(v.events.len() - number);
        },
    ),
    Kind::events(
        "beginning-of-file-lost",
        "1 %, 10 %, 33 % or 80 % of the events cut off the beginning, valid JSON",
        |v, d| {
            let number = (v.events.len() as f64 * d.strength.cut()) as usize;
            v.events.drain(..number);
        },
    ),
    Kind::events(
        "third-of-operators-lost",
        "a third of the operators and of their memory, by file order, from the middle",
        |v, d| {
            for class in [Class::Operator, Class::Memory] {
                let all = places(v, |event| event.class == class);
                let number = all.len() * d.strength.level() / 12;
                let from = all.len() / 3;
                drop_places(v, &all[from..from + number]);
            }
        },
    ),
    Kind::events("events-twice", "events written twice", |v, d| {
        let chosen = d.choose(places(v, counts));
        let mut chosen = chosen.into_iter().peekable();
        let mut events = Vec::with_capacity(v.events.len() * 2);
        for (place, event) in v.events.drain(..).enumerate() {
            if chosen.next_if_eq(&place).is_some() {
                events.push(event.clone());
            }
            events.push(event);
        }
        v.events = events;
    }),
    Kind::events(
        "all-events-repeated",
        "all events written 2, 3, 4 or 5 times, one list after the other",
        |v, d| {
            let once = v.events.clone();
            for _ in 0..d.strength.level() {
                v.events.extend_from_slice(&once);
            }
        },
    ),
    Kind::events("events-shuffled", "events in another order", |v, d| {
        let chosen = d.choose((0..v.events.len()).collect());
        for &place in &chosen {
            let other = chosen[d.below(chosen.len())];
            v.events.swap(place, other);
        }
    }),
    Kind::events("events-null", "events are null", |v, d| {
        each(v, d, counts, |event, _| event.text = "null".into());
    }),
    Kind::events("events-empty", "events are empty objects", |v, d| {
        each(v, d, counts, |event, _| event.text = "{}".into());
    }),
    Kind::events("events-in-lists", "events in separate lists", |v, d| {
        each(v, d, counts, |event, _| event.text = format!("[{}]", event.text).into());
    }),
    Kind::events(
        "head-lost",
        "what is before the events removed: a line, half of it, all but the list, all",
        |v, d| {
            let list = "{\"traceEvents\": [";
            v.head = match d.strength.level() {
                1 => v.head.replacen("\"schemaVersion\": 1,", "", 1),
                2 => v.head.lines().filter(|line| !line.contains("baseTime")).collect(),
                3 => list.to_owned(),
                _ => "[".to_owned(),
            };
            if d.strength.level() == 4 {
                v.tail = "]".to_owned();
            }
        },
    ),
    Kind::events(
        "head-changed",
        "shapes, memory or stacks not recorded, or all three, by the head",
        |v, d| {
            let names = ["record_shapes", "profile_memory", "with_stack"];
            let off = if d.strength.level() == 4 {
                &names[..]
            } else {
                &names[d.strength.level() - 1..][..1]
            };
            for name in off {
                v.head = v.head.replace(&format!("\"{name}\": 1"), &format!("\"{name}\": 0"));
            }
            // Older releases do not write them.
            v.head = v.head.replacen("\"schemaVersion\"", "\"schema\"", 1);
        },
    ),
    Kind::events(
        "tail-lost",
        "what is behind the events removed: the last 1, 10, 100 or 1,000 bytes",
        |v, d| {
            let kept = v.tail.chars().count().saturating_sub(d.strength.places() + 1);
            v.tail = v.tail.chars().take(kept).collect();
        },
    ),
    Kind::splice(
        "other-tail",
        "the last 1 %, 10 %, 33 % or 80 % of the events are those of another trace",
        |v, other, d| {
            let share = d.strength.cut();
            let keep = (v.events.len() as f64 * (1.0 - share)) as usize;
            let from = (other.events.len() as f64 * (1.0 - share)) as usize;
            v.events.truncate(keep);
            v.events.extend_from_slice(&other.events[from..]);
        },
    ),
    Kind::splice(
        "other-middle",
        "1 %, 10 %, 33 % or 80 % of the events are those of another trace, in the middle",
        |v, other, d| {
            let share = d.strength.cut();
            let number = (v.events.len() as f64 * share) as usize;
            let from = (v.events.len() - number) / 2;
            let theirs = (other.events.len() as f64 * share) as usize;
            let start = (other.events.len() - theirs) / 2;
            v.events
                .splice(from..from + number, other.events[start..start + theirs].iter().cloned());
        },
    ),
    Kind::splice(
        "other-memory",
        "memory events replaced by those of another trace",
        |v, other, d| {
            let theirs: Vec<&Event<'_>> =
                other.events.iter().filter(|event| event.class == Class::Memory).collect();
            let chosen = d.choose(places(v, |event| event.class == Class::Memory));
            for (place, other) in chosen.into_iter().zip(theirs) {
                v.events[place] = other.clone();
            }
        },
    ),
    Kind::splice(
        "other-appended",
        "the events of another trace behind its own: 1 %, 10 %, 50 % or all",
        |v, other, d| {
            let number = (other.events.len() as f64 * d.strength.share()) as usize;
            v.events.extend_from_slice(&other.events[..number]);
        },
    ),
];

//! Damage to the times of events.

use super::{Kind, each, each_value, each_without, exchange, places, span};
use crate::event::{Class, Event};

const SECOND: i64 = 1_000_000_000;

fn lasts(event: &Event<'_>) -> bool {
    event.value("dur").is_some()
}

fn timed(event: &Event<'_>) -> bool {
    event.class != Class::Other && event.value("ts").is_some()
}

fn is_memory(event: &Event<'_>) -> bool {
    event.class == Class::Memory
}

pub(super) static KINDS: &[Kind] = &[
    Kind::events("dur-missing", "`dur` removed", |v, d| each_without(v, d, None, "dur")),
    Kind::events("dur-null", "`dur` is null", |v, d| each_value(v, d, None, "dur", "null")),
    Kind::events("dur-nan", "`dur` is NaN", |v, d| each_value(v, d, None, "dur", "NaN")),
    Kind::events("dur-negative", "`dur` has a minus sign", |v, d| {
        each(v, d, lasts, |event, _| event.change("dur", |dur| format!("-{dur}")));
    }),
    Kind::events("dur-zero", "`dur` is 0", |v, d| each_value(v, d, None, "dur", "0")),
    Kind::events("dur-huge", "`dur` is 10^18 microseconds", |v, d| {
        each_value(v, d, None, "dur", "1000000000000000000");
    }),
    Kind::events("dur-text", "`dur` is a text", |v, d| {
        each(v, d, lasts, |event, _| event.change("dur", |dur| format!("\"{dur}\"")));
    }),
    Kind::events("dur-stretched", "`dur` is ten times as long", |v, d| {
        each(v, d, lasts, |event, _| {
            let dur = event.nanos("dur").unwrap_or(0);
            event.set_nanos("dur", dur.saturating_mul(10));
        });
    }),
    Kind::events("dur-halved", "`dur` is half as long", |v, d| {
        each(v, d, lasts, |event, _| {
            let dur = event.nanos("dur").unwrap_or(0);
            event.set_nanos("dur", dur / 2);
        });
    }),
    Kind::events("dur-exchanged", "operators exchange their `dur`", |v, d| {
        exchange(v, d, Class::Operator, "dur");
    }),
    Kind::events("ts-equal", "`ts` is the time of the first event", |v, d| {
        let (first, _) = span(v);
        each(v, d, timed, |event, _| event.set_nanos("ts", first));
    }),
    Kind::events("ts-missing", "`ts` removed", |v, d| each_without(v, d, None, "ts")),
    Kind::events("ts-null", "`ts` is null", |v, d| each_value(v, d, None, "ts", "null")),
    Kind::events("ts-zero", "`ts` is 0", |v, d| each_value(v, d, None, "ts", "0")),
    Kind::events("ts-negative", "`ts` has a minus sign", |v, d| {
        each(v, d, timed, |event, _| event.change("ts", |ts| format!("-{ts}")));
    }),
    Kind::events("ts-text", "`ts` is a text", |v, d| {
        each(v, d, timed, |event, _| event.change("ts", |ts| format!("\"{ts}\"")));
    }),
    Kind::events("ts-exchanged", "operators exchange their `ts`", |v, d| {
        exchange(v, d, Class::Operator, "ts");
    }),
    Kind::events("ts-noise", "`ts` moved by up to a second", |v, d| {
        each(v, d, timed, |event, dice| {
            let ts = event.start() + dice.below(2 * SECOND as usize) as i64 - SECOND;
            event.set_nanos("ts", ts);
        });
    }),
    Kind::events("ts-rounded", "every `ts` rounded to 1 µs, 1 ms, 1 s or 1,000 s", |v, d| {
        let unit = [1_000, SECOND / 1_000, SECOND, 1_000 * SECOND][d.strength.level() - 1];
        for event in v.events.iter_mut().filter(|event| timed(event)) {
            let ts = event.start();
            event.set_nanos("ts", ts - ts % unit);
        }
    }),
    Kind::events(
        "memory-ts-equal",
        "memory events all at the time of the first of them",
        |v, d| {
            let first = v.events.iter().filter(|event| is_memory(event)).map(Event::start).min();
            each(v, d, is_memory, |event, _| event.set_nanos("ts", first.unwrap_or(0)));
        },
    ),
    Kind::events("memory-ts-exchanged", "memory events exchange their `ts`", |v, d| {
        exchange(v, d, Class::Memory, "ts");
    }),
    Kind::events(
        "memory-late",
        "all memory events later by 1 %, 10 %, 50 % or all of the time",
        |v, d| {
            let (first, last) = span(v);
            let shift = ((last - first) as f64 * d.strength.share()) as i64;
            for event in v.events.iter_mut().filter(|event| is_memory(event)) {
                let ts = event.start();
                event.set_nanos("ts", ts + shift);
            }
        },
    ),
    Kind::events(
        "memory-ts-squeezed",
        "times of memory events squeezed into the first part",
        |v, d| {
            let (first, _) = span(v);
            let left = 1.0 - d.strength.share() * 0.99;
            for event in v.events.iter_mut().filter(|event| is_memory(event)) {
                let ts = first + ((event.start() - first) as f64 * left) as i64;
                event.set_nanos("ts", ts);
            }
        },
    ),
    Kind::events(
        "memory-ts-backward",
        "times of memory events mirrored, from the end on",
        |v, d| {
            let mut chosen = places(v, is_memory);
            chosen.sort_by_key(|&place| std::cmp::Reverse(v.events[place].start()));
            chosen.truncate((chosen.len() as f64 * d.strength.share()).ceil() as usize);
            let times: Vec<i64> = chosen.iter().map(|&place| v.events[place].start()).collect();
            for (&place, &ts) in chosen.iter().zip(times.iter().rev()) {
                v.events[place].set_nanos("ts", ts);
            }
        },
    ),
    Kind::events(
        "clock-set-back",
        "the clock set back by a part of the time at half-time",
        |v, d| {
            let (first, last) = span(v);
            let shift = ((last - first) as f64 * d.strength.share()) as i64;
            for event in v.events.iter_mut().filter(|event| timed(event)) {
                let ts = event.start();
                if ts > first + (last - first) / 2 {
                    event.set_nanos("ts", ts - shift);
                }
            }
        },
    ),
    Kind::events(
        "operators-late",
        "all operators later by 1 %, 10 %, 50 % or all of the time",
        |v, d| {
            let (first, last) = span(v);
            let shift = ((last - first) as f64 * d.strength.share()) as i64;
            for event in v.events.iter_mut().filter(|event| event.class == Class::Operator) {
                let ts = event.start();
                event.set_nanos("ts", ts + shift);
            }
        },
    ),
    Kind::events(
        "time-stretched",
        "the second half of the time lasts 2, 3, 4 or 5 times as long",
        |v, d| {
            let (first, last) = span(v);
            let (half, factor) = (first + (last - first) / 2, d.strength.level() as i64 + 1);
            let stretched =
                |time: i64| if time > half { half + (time - half) * factor } else { time };
            for event in v.events.iter_mut().filter(|event| timed(event)) {
                let (start, end) = (stretched(event.start()), stretched(event.end()));
                event.set_nanos("ts", start);
                event.set_nanos("dur", end - start);
            }
        },
    ),
];

//! Damage to memory events.

use super::{Kind, drop_places, drop_share, each, each_value, each_without, exchange, places};
use crate::dice::Dice;
use crate::event::{Class, Event};
use crate::recording::Variant;
use std::collections::BTreeMap;

pub(super) fn is_memory(event: &Event<'_>) -> bool {
    event.class == Class::Memory
}

pub(super) fn size(event: &Event<'_>) -> i64 {
    event.whole("Bytes").unwrap_or(0)
}

fn allocates(event: &Event<'_>) -> bool {
    is_memory(event) && size(event) > 0
}

fn frees(event: &Event<'_>) -> bool {
    is_memory(event) && size(event) < 0
}

/// What counts as large.
const LARGE: i64 = 1 << 20;

/// Allocations with their frees, by address in the order of time.
pub(super) fn pairs(variant: &Variant<'_>) -> Vec<(usize, usize)> {
    let mut order = places(variant, is_memory);
    order.sort_by_key(|&place| variant.events[place].start());
    let mut open = BTreeMap::new();
    let mut pairs = Vec::new();
    for place in order {
        let event = &variant.events[place];
        let Some(address) = event.whole("Addr") else { continue };
        if size(event) > 0 {
            open.insert(address, place);
        } else if let Some(allocation) = open.remove(&address) {
            pairs.push((allocation, place));
        }
    }
    pairs
}

/// The device of a memory event.
fn device(event: &Event<'_>) -> (Option<i64>, Option<i64>) {
    (event.whole("Device Type"), event.whole("Device Id"))
}

/// Computes running totals anew and numbers the events anew, as a profiler would have.
pub(super) fn recount(variant: &mut Variant<'_>) {
    let mut order = places(variant, is_memory);
    order.sort_by_key(|&place| variant.events[place].start());
    let mut totals = BTreeMap::new();
    for place in order {
        let event = &mut variant.events[place];
        let before = event.whole("Total Allocated").unwrap_or(0) - size(event);
        let total = totals.entry(device(event)).or_insert(before);
        *total += size(event);
        event.set("Total Allocated", &total.to_string());
    }
    variant.number_anew();
}

/// Drops the strength's share of allocations with their frees.
fn drop_pairs(variant: &mut Variant<'_>, dice: &mut Dice) {
    let pairs = pairs(variant);
    let chosen = dice.choose((0..pairs.len()).collect());
    let mut dropped: Vec<usize> =
        chosen.into_iter().flat_map(|pair| [pairs[pair].0, pairs[pair].1]).collect();
    dropped.sort_unstable();
    drop_places(variant, &dropped);
}

pub(super) fn scale(event: &mut Event<'_>, key: &str, divisor: i64) {
    let value = event.whole(key).unwrap_or(0);
    event.set(key, &(value / divisor).to_string());
}

pub(super) static KINDS: &[Kind] = &[
    Kind::events("bytes-freed", "`Bytes` of allocations negative: frees", |v, d| {
        each(v, d, allocates, |event, _| event.change("Bytes", |bytes| format!("-{bytes}")));
    }),
    Kind::events("bytes-sign", "the sign of `Bytes` flipped", |v, d| {
        each(v, d, is_memory, |event, _| {
            let value = -size(event);
            event.set("Bytes", &value.to_string());
        });
    }),
    Kind::events("frees-positive", "`Bytes` of frees positive: allocations", |v, d| {
        each(v, d, frees, |event, _| event.change("Bytes", |bytes| bytes.replace('-', "")));
    }),
    Kind::events("bytes-zero", "`Bytes` is 0", |v, d| {
        each_value(v, d, Some(Class::Memory), "Bytes", "0");
    }),
    Kind::events("bytes-missing", "`Bytes` removed", |v, d| {
        each_without(v, d, Some(Class::Memory), "Bytes");
    }),
    Kind::events("bytes-divided", "`Bytes` divided by 1024", |v, d| {
        each(v, d, is_memory, |event, _| scale(event, "Bytes", 1024));
    }),
    Kind::events("bytes-halved", "`Bytes` halved", |v, d| {
        each(v, d, is_memory, |event, _| scale(event, "Bytes", 2));
    }),
    Kind::events(
        "bytes-and-totals-divided",
        "every `Bytes` and running total divided by 2, 4, 64 or 1024",
        |v, d| {
            let divisor = [2, 4, 64, 1024][d.strength.level() - 1];
            for event in v.events.iter_mut().filter(|event| is_memory(event)) {
                scale(event, "Bytes", divisor);
                scale(event, "Total Allocated", divisor);
            }
        },
    ),
    Kind::events("bytes-multiplied", "`Bytes` multiplied by 1024", |v, d| {
        each(v, d, is_memory, |event, _| {
            let value = size(event).saturating_mul(1024);
            event.set("Bytes", &value.to_string());
        });
    }),
    Kind::events("bytes-huge", "`Bytes` is 2^63", |v, d| {
        each_value(v, d, Some(Class::Memory), "Bytes", "9223372036854775808");
    }),
    Kind::events("bytes-text", "`Bytes` is a text", |v, d| {
        each(v, d, is_memory, |event, _| event.change("Bytes", |bytes| format!("\"{bytes}\"")));
    }),
    Kind::events("bytes-exponent", "`Bytes` rounded and written with an exponent", |v, d| {
        each(v, d, is_memory, |event, _| {
            let value = size(event) as f64;
            event.set("Bytes", &format!("{value:.1e}"));
        });
    }),
    Kind::events("bytes-digit-lost", "the last digit of `Bytes` lost", |v, d| {
        let concerned = |event: &Event<'_>| is_memory(event) && size(event).abs() > 9;
        each(v, d, concerned, |event, _| scale(event, "Bytes", 10));
    }),
    Kind::events("bytes-exchanged", "memory events exchange their `Bytes`", |v, d| {
        exchange(v, d, Class::Memory, "Bytes");
    }),
    Kind::events("totals-missing", "`Total Allocated` removed", |v, d| {
        each_without(v, d, Some(Class::Memory), "Total Allocated");
    }),
    Kind::events("totals-zero", "`Total Allocated` is 0", |v, d| {
        each_value(v, d, Some(Class::Memory), "Total Allocated", "0");
    }),
    Kind::events("totals-exchanged", "memory events exchange their `Total Allocated`", |v, d| {
        exchange(v, d, Class::Memory, "Total Allocated");
    }),
    Kind::events(
        "totals-and-bytes-missing",
        "`Total Allocated` removed everywhere, `Bytes` halved",
        |v, d| {
            each(v, d, is_memory, |event, _| scale(event, "Bytes", 2));
            for event in v.events.iter_mut().filter(|event| is_memory(event)) {
                event.remove("Total Allocated");
            }
        },
    ),
    Kind::events("addresses-equal", "`Addr` is that of the first memory event", |v, d| {
        let first = v.events.iter().find(|event| is_memory(event));
        let address = first.and_then(|event| event.value("Addr")).unwrap_or("1").to_owned();
        each_value(v, d, Some(Class::Memory), "Addr", &address);
    }),
    Kind::events("addresses-missing", "`Addr` removed", |v, d| {
        each_without(v, d, Some(Class::Memory), "Addr");
    }),
    Kind::events("addresses-zero", "`Addr` is 0", |v, d| {
        each_value(v, d, Some(Class::Memory), "Addr", "0");
    }),
    Kind::events("addresses-exchanged", "memory events exchange their `Addr`", |v, d| {
        exchange(v, d, Class::Memory, "Addr");
    }),
    Kind::events(
        "addresses-moved",
        "`Addr` of allocations 64 higher, not that of their frees",
        |v, d| {
            each(v, d, allocates, |event, _| {
                let moved = event.whole("Addr").unwrap_or(0).wrapping_add(64);
                event.set("Addr", &moved.to_string());
            });
        },
    ),
    Kind::events("memory-lost", "memory events removed", |v, d| drop_share(v, d, is_memory)),
    Kind::events(
        "every-second-memory-event-lost",
        "every 100th, 10th, 2nd memory event removed, or all but every 2nd",
        |v, d| {
            let step = [100, 10, 2, 2][d.strength.level() - 1];
            let first = usize::from(d.strength.level() == 4);
            let chosen: Vec<usize> =
                places(v, is_memory).into_iter().skip(first).step_by(step).collect();
            drop_places(v, &chosen);
        },
    ),
    Kind::events("allocations-lost", "allocations removed, frees kept", |v, d| {
        drop_share(v, d, allocates);
    }),
    Kind::events("large-allocations-lost", "allocations of a MiB or more removed", |v, d| {
        drop_share(v, d, |event| is_memory(event) && size(event) >= LARGE);
    }),
    Kind::events(
        "largest-allocations-lost",
        "the largest 1, 10, 100 or 1,000 allocations removed",
        |v, d| {
            let mut chosen = places(v, allocates);
            chosen.sort_by_key(|&place| std::cmp::Reverse(size(&v.events[place])));
            chosen.truncate(d.strength.places());
            chosen.sort_unstable();
            drop_places(v, &chosen);
        },
    ),
    Kind::events("small-allocations-lost", "allocations below a MiB removed", |v, d| {
        drop_share(v, d, |event| allocates(event) && size(event) < LARGE);
    }),
    Kind::events("large-memory-lost", "allocations and frees of a MiB or more removed", |v, d| {
        drop_share(v, d, |event| is_memory(event) && size(event).abs() >= LARGE);
    }),
    Kind::events("frees-lost", "frees removed", |v, d| drop_share(v, d, frees)),
    Kind::events("frees-early", "frees moved to the time of their allocation", |v, d| {
        let pairs = pairs(v);
        for pair in d.choose((0..pairs.len()).collect()) {
            let (allocation, free) = pairs[pair];
            let time = v.events[allocation].start();
            v.events[free].set_nanos("ts", time + 1);
        }
    }),
    Kind::events("pairs-lost", "allocations removed with their frees", drop_pairs),
    Kind::events(
        "pairs-lost-recounted",
        "allocations removed with their frees; running totals and event numbers computed anew",
        |v, d| {
            drop_pairs(v, d);
            recount(v);
        },
    ),
    Kind::events(
        "memory-window-lost",
        "memory events of 1 %, 10 %, 33 % or 80 % of the time removed, from the middle",
        |v, d| {
            let mut chosen = places(v, is_memory);
            chosen.sort_by_key(|&place| v.events[place].start());
            let number = (chosen.len() as f64 * d.strength.cut()).ceil() as usize;
            let from = (chosen.len() - number) / 2;
            let mut chosen = chosen[from..from + number].to_vec();
            chosen.sort_unstable();
            drop_places(v, &chosen);
        },
    ),
    Kind::events("memory-twice", "memory events written twice", |v, d| {
        let chosen = d.choose(places(v, is_memory));
        for place in chosen.into_iter().rev() {
            let event = v.events[place].clone();
            v.events.insert(place, event);
        }
    }),
    Kind::events("device-type", "`Device Type` is 1, a GPU", |v, d| {
        each_value(v, d, Some(Class::Memory), "Device Type", "1");
    }),
    Kind::events("device-type-missing", "`Device Type` removed", |v, d| {
        each_without(v, d, Some(Class::Memory), "Device Type");
    }),
    Kind::events("device-id", "`Device Id` is 7", |v, d| {
        each_value(v, d, Some(Class::Memory), "Device Id", "7");
    }),
    Kind::events("memory-renamed", "the name of memory events misspelled", |v, d| {
        each_value(v, d, Some(Class::Memory), "name", "\"[memery]\"");
    }),
    Kind::events("memory-thread", "memory events on a separate thread", |v, d| {
        each_value(v, d, Some(Class::Memory), "tid", "4242");
    }),
    Kind::events("memory-args-missing", "`args` of memory events removed", |v, d| {
        each_without(v, d, Some(Class::Memory), "args");
    }),
];

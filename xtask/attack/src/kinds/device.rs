//! Damage to recordings of a GPU: to what they say of its memory beside the events, one by one and together.

use super::memory::{is_memory, pairs, recount, scale, size};
use super::{Kind, drop_places, each, each_value, each_without, places, shapes};
use crate::dice::Dice;
use crate::event::{Class, Event};
use crate::notes;
use crate::recording::Variant;
use serde_json::Value;
use std::collections::BTreeSet;

const RESERVED: &str = "Total Reserved";

/// What counts as large.
const LARGE: i64 = 1 << 20;

fn is_of_gpu(event: &Event<'_>) -> bool {
    is_memory(event) && event.whole("Device Type") == Some(1)
}

/// Drops the strength's share of large blocks of the GPU, with their frees; the addresses that were dropped, in the
/// order of the allocations.
fn drop_large(variant: &mut Variant<'_>, dice: &mut Dice) -> BTreeSet<i64> {
    let freed: std::collections::BTreeMap<usize, usize> = pairs(variant).into_iter().collect();
    let is_large = |event: &Event<'_>| is_of_gpu(event) && size(event) >= LARGE;
    let chosen = dice.choose(places(variant, is_large));
    let addresses =
        chosen.iter().filter_map(|&place| variant.events[place].whole("Addr")).collect();
    let frees = chosen.iter().filter_map(|place| freed.get(place).copied());
    let mut dropped: Vec<usize> = frees.chain(chosen.iter().copied()).collect();
    dropped.sort_unstable();
    drop_places(variant, &dropped);
    addresses
}

/// Computes reserved memory anew: what is allocated at most so far, in segments of 2 MiB.
fn reserve_anew(variant: &mut Variant<'_>) {
    let mut order = places(variant, is_of_gpu);
    order.sort_by_key(|&place| variant.events[place].start());
    let mut most = 0;
    for place in order {
        let event = &mut variant.events[place];
        most = most.max(event.whole("Total Allocated").unwrap_or(0));
        event.set(RESERVED, &((most + (2 << 20) - 1) / (2 << 20) * (2 << 20)).to_string());
    }
}

/// The highest of a field.
fn highest(variant: &Variant<'_>, key: &str) -> i64 {
    let events = variant.events.iter().filter(|event| is_of_gpu(event));
    events.filter_map(|event| event.whole(key)).max().unwrap_or(0)
}

/// Writes the peaks of the events into the notes.
fn count_peaks_anew(variant: &mut Variant<'_>) {
    let peaks = [
        ("allocated", highest(variant, "Total Allocated")),
        ("reserved", highest(variant, RESERVED)),
    ];
    notes::change(&mut variant.head, |notes| {
        for (key, value) in peaks {
            notes["virtual_gpu"]["peaks"][key] = value.into();
        }
    });
}

fn change_peaks(variant: &mut Variant<'_>, change: impl Fn(i64) -> i64) {
    notes::change(&mut variant.head, |notes| {
        let peaks = notes["virtual_gpu"]["peaks"].as_object_mut();
        for peak in peaks.into_iter().flat_map(|peaks| peaks.values_mut()) {
            *peak = change(peak.as_i64().unwrap_or(0)).into();
        }
    });
}

fn change_history(variant: &mut Variant<'_>, change: impl Fn(&mut Value)) {
    notes::change(&mut variant.head, |notes| {
        let devices = notes["allocator_history"]["devices"].as_array_mut();
        devices.into_iter().flatten().for_each(change);
    });
}

fn change_rest(variant: &mut Variant<'_>, change: impl FnMut(&mut Value)) {
    notes::change_rest(&mut variant.head, |rest| {
        rest["devices"].as_array_mut().into_iter().flatten().for_each(change);
    });
}

fn remove_history(variant: &mut Variant<'_>) {
    notes::change(&mut variant.head, |notes| notes["allocator_history"] = Value::Null);
}

/// Drops entries of a history, of which this says by action and place whether they stay.
fn retain_entries(history: &mut Value, mut stays: impl FnMut(u8, i64) -> bool) {
    let actions = history["actions"].as_str().unwrap_or_default().to_owned();
    let list = |history: &Value, key: &str| history[key].as_array().cloned().unwrap_or_default();
    let (steps, sizes) = (list(history, "addresses"), list(history, "sizes"));
    let mut streams: Vec<Value> = Vec::new();
    for run in list(history, "streams") {
        let count = run[1].as_u64().unwrap_or(0) as usize;
        streams.extend(std::iter::repeat_n(run[0].clone(), count));
    }
    let (mut kept, mut kept_steps, mut kept_sizes) = (String::new(), Vec::new(), Vec::new());
    let mut kept_streams: Vec<Value> = Vec::new();
    let (mut sizes, mut streams) = (sizes.into_iter(), streams.into_iter());
    let (mut address, mut last) = (0, 0);
    for (action, step) in actions.bytes().zip(steps) {
        address += step.as_i64().unwrap_or(0);
        let size = if b"asmru".contains(&action) { sizes.next() } else { None };
        let stream = if action == b'a' { streams.next() } else { None };
        if !stays(action, address * 512) {
            continue;
        }
        kept.push(char::from(action));
        kept_steps.push(Value::from(address - last));
        last = address;
        kept_sizes.extend(size);
        kept_streams.extend(stream.map(|stream| serde_json::json!([stream, 1])));
    }
    history["actions"] = kept.into();
    history["addresses"] = kept_steps.into();
    history["sizes"] = kept_sizes.into();
    history["streams"] = kept_streams.into();
}

/// Says of one after another whether it stays, if a share of all is lost.
fn stays(share: f64) -> impl FnMut() -> bool {
    let mut number = 0.0;
    move || {
        let before = number;
        number += share;
        f64::floor(before) == f64::floor(number)
    }
}

/// Drops a share of the entries of a history.
fn lose_entries(history: &mut Value, share: f64) {
    let mut stays = stays(share);
    retain_entries(history, |_, _| stays());
}

fn divide_sizes(history: &mut Value, divisor: i64) {
    for size in history["sizes"].as_array_mut().into_iter().flatten() {
        *size = (size.as_i64().unwrap_or(0) / divisor).into();
    }
}

fn divide(variant: &mut Variant<'_>, divisor: i64) {
    for event in variant.events.iter_mut().filter(|event| is_of_gpu(event)) {
        for key in ["Bytes", "Total Allocated", RESERVED] {
            scale(event, key, divisor);
        }
    }
}

fn divisor(dice: &Dice) -> i64 {
    [2, 4, 64, 1024][dice.strength.level() - 1]
}

/// Large blocks lost, with all that the file says of memory beside them made to agree.
fn lose_consistently(variant: &mut Variant<'_>, dice: &mut Dice) {
    let addresses = drop_large(variant, dice);
    recount(variant);
    reserve_anew(variant);
    count_peaks_anew(variant);
    change_history(variant, |history| {
        retain_entries(history, |action, address| {
            !b"aFfc".contains(&action) || !addresses.contains(&address)
        });
    });
}

pub(super) static KINDS: &[Kind] = &[
    Kind::events(
        "large-blocks-lost-recounted",
        "blocks of a MiB or more removed with their frees; running totals and event numbers computed anew",
        |v, d| {
            drop_large(v, d);
            recount(v);
        },
    ),
    Kind::events(
        "large-blocks-lost-reserved-anew",
        "the same, with `Total Reserved` computed anew",
        |v, d| {
            drop_large(v, d);
            recount(v);
            reserve_anew(v);
        },
    ),
    Kind::events(
        "large-blocks-lost-counted-anew",
        "the same, with the peaks of the notes computed anew",
        |v, d| {
            drop_large(v, d);
            recount(v);
            reserve_anew(v);
            count_peaks_anew(v);
        },
    ),
    Kind::events(
        "large-blocks-lost-without-history",
        "the same, with the history of the allocator removed",
        |v, d| {
            drop_large(v, d);
            recount(v);
            reserve_anew(v);
            count_peaks_anew(v);
            remove_history(v);
        },
    ),
    Kind::events(
        "large-blocks-lost-everywhere",
        "blocks of a MiB or more removed from events and history; totals, reserved memory and peaks computed anew",
        lose_consistently,
    ),
    Kind::events(
        "large-blocks-lost-without-shapes",
        "the same, with the shapes of all operators removed",
        |v, d| {
            lose_consistently(v, d);
            shapes::remove_all(v);
        },
    ),
    Kind::events(
        "bytes-totals-and-reserved-divided",
        "sizes, running totals and `Total Reserved` of the GPU divided by 2, 4, 64 or 1024",
        |v, d| divide(v, divisor(d)),
    ),
    Kind::events(
        "all-memory-divided",
        "the same, with the peaks and the sizes of the history",
        |v, d| {
            let divisor = divisor(d);
            divide(v, divisor);
            change_peaks(v, |peak| peak / divisor);
            change_history(v, |history| divide_sizes(history, divisor));
        },
    ),
    Kind::events("reserved-missing", "`Total Reserved` removed", |v, d| {
        each_without(v, d, Some(Class::Memory), RESERVED);
    }),
    Kind::events("reserved-zero", "`Total Reserved` is 0", |v, d| {
        each_value(v, d, Some(Class::Memory), RESERVED, "0");
    }),
    Kind::events("reserved-halved", "`Total Reserved` halved", |v, d| {
        each(v, d, is_of_gpu, |event, _| scale(event, RESERVED, 2));
    }),
    Kind::events("peaks-divided", "the peaks of the notes divided by 2, 4, 64 or 1024", |v, d| {
        let divisor = divisor(d);
        change_peaks(v, |peak| peak / divisor);
    }),
    Kind::events("peaks-missing", "the peaks of the notes removed", |v, _| {
        notes::change(&mut v.head, |notes| notes["virtual_gpu"]["peaks"] = Value::Null);
    }),
    Kind::events("history-missing", "the history of the allocator removed", |v, _| {
        remove_history(v);
    }),
    Kind::events("history-entries-lost", "entries of the allocator's history removed", |v, d| {
        let share = d.strength.share();
        change_history(v, |history| lose_entries(history, share));
    }),
    Kind::events("history-sizes-divided", "sizes of the history divided by 2, 4, 64 or 1024", |v, d| {
        let divisor = divisor(d);
        change_history(v, |history| divide_sizes(history, divisor));
    }),
    Kind::events(
        "large-blocks-of-another-job",
        "blocks of a MiB or more, and operators in whose time they were allocated, removed everywhere",
        |v, d| {
            let is_large = |event: &Event<'_>| is_of_gpu(event) && size(event) >= LARGE;
            let times: Vec<i64> =
                places(v, is_large).into_iter().map(|place| v.events[place].start()).collect();
            let dropped = drop_large(v, d);
            let left: BTreeSet<i64> =
                places(v, is_large).into_iter().map(|place| v.events[place].start()).collect();
            let gone: Vec<i64> = times.into_iter().filter(|time| !left.contains(time)).collect();
            v.events.retain(|event| {
                let made = gone.iter().any(|&time| event.start() <= time && time <= event.end());
                event.class != Class::Operator || !event.name().starts_with("aten::") || !made
            });
            recount(v);
            reserve_anew(v);
            count_peaks_anew(v);
            change_history(v, |history| {
                retain_entries(history, |action, address| {
                    !b"aFfc".contains(&action) || !dropped.contains(&address)
                });
            });
            v.number_anew();
        },
    )
    .leaves_another_job("all that the file says of memory agrees"),
    Kind::events("rest-entries-lost", "entries of what follows the recorded iterations removed", |v, d| {
        let share = d.strength.share();
        change_rest(v, |history| lose_entries(history, share));
    }),
    Kind::events(
        "rest-blocks-lost",
        "blocks of what follows the recorded iterations removed, with their frees",
        |v, d| {
            let share = d.strength.share();
            change_rest(v, |history| {
                let mut stays = stays(share);
                let mut gone = BTreeSet::new();
                retain_entries(history, |action, address| match action {
                    b'a' => stays() || !gone.insert(address),
                    b'F' | b'f' => !gone.remove(&address),
                    _ => true,
                });
            });
        },
    ),
    Kind::events(
        "rest-sizes-divided",
        "sizes of what follows the recorded iterations divided by 2, 4, 64 or 1024",
        |v, d| {
            let divisor = divisor(d);
            change_rest(v, |history| divide_sizes(history, divisor));
        },
    ),
    Kind::events("rest-unreadable", "a part of what follows the recorded iterations has no name", |v, _| {
        change_rest(v, |history| history["parts"] = serde_json::json!([["", 0, 0]]));
    }),
    Kind::events("rest-missing", "what follows the recorded iterations removed", |v, _| {
        notes::remove_rest(&mut v.head);
    })
    .leaves_another_job("the file is that of a script that was stopped after its iterations, and its answer says so"),
];

//! The kinds of damage: each with a name, a line that says what it does, and its code.
//!
//! A kind comes in four strengths. Unless its line says something else, they are 1 %, 10 %, 50 % and all of
//! the events concerned, chosen at random.

mod bytes;
mod device;
mod identifiers;
mod memory;
mod numbers;
mod operators;
mod shapes;
pub(crate) mod snapshots;
mod structure;
mod times;

use crate::dice::{Dice, Strength};
use crate::event::{Class, Event};
use crate::recording::{Input, Recording, Variant};

/// A kind of damage.
#[derive(Debug)]
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    pub(crate) what: &'static str,
    damage: Damage,
    pub(crate) leaves: Leaves,
}

/// What is damaged.
#[derive(Debug)]
enum Damage {
    Events(fn(&mut Variant<'_>, &mut Dice)),
    Bytes(fn(&mut Vec<u8>, &mut Dice)),
    /// With the help of another recording.
    Splice(for<'t> fn(&mut Variant<'t>, &Variant<'t>, &mut Dice)),
}

/// What a variant is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leaves {
    /// A recording that is not whole: it must not be said to fit.
    Damaged,
    /// A recording of another job that is consistent in all that a trace says; no reader can tell. That it
    /// fits is counted, and is no finding.
    AnotherJob(&'static str),
}

impl Kind {
    const fn events(
        name: &'static str,
        what: &'static str,
        damage: fn(&mut Variant<'_>, &mut Dice),
    ) -> Self {
        Self { name, what, damage: Damage::Events(damage), leaves: Leaves::Damaged }
    }

    const fn bytes(
        name: &'static str,
        what: &'static str,
        damage: fn(&mut Vec<u8>, &mut Dice),
    ) -> Self {
        Self { name, what, damage: Damage::Bytes(damage), leaves: Leaves::Damaged }
    }

    const fn splice(
        name: &'static str,
        what: &'static str,
        damage: for<'t> fn(&mut Variant<'t>, &Variant<'t>, &mut Dice),
    ) -> Self {
        Self { name, what, damage: Damage::Splice(damage), leaves: Leaves::Damaged }
    }

    const fn leaves_another_job(self, reason: &'static str) -> Self {
        Self { leaves: Leaves::AnotherJob(reason), ..self }
    }

    /// The bytes of one variant of another text; the same bytes if the kind damages events.
    pub(crate) fn apply_to(
        &self,
        text: &[u8],
        name: &str,
        seed: u64,
        strength: Strength,
    ) -> Vec<u8> {
        let mut bytes = text.to_vec();
        if let Damage::Bytes(damage) = self.damage {
            damage(&mut bytes, &mut Dice::new(seed, self.name, name, strength));
        }
        bytes
    }

    /// The bytes of one variant of the recording.
    pub(crate) fn apply(
        &self,
        recording: &Recording,
        other: &Recording,
        seed: u64,
        strength: Strength,
    ) -> Vec<u8> {
        let mut dice = Dice::new(seed, self.name, &recording.name, strength);
        let mut variant = recording.variant();
        match self.damage {
            Damage::Events(damage) => damage(&mut variant, &mut dice),
            Damage::Splice(damage) => damage(&mut variant, &other.variant(), &mut dice),
            Damage::Bytes(damage) => {
                let mut bytes = variant.render();
                damage(&mut bytes, &mut dice);
                return bytes;
            }
        }
        variant.render()
    }
}

/// The kinds that damage any text.
pub(crate) fn of_texts() -> Vec<&'static Kind> {
    [bytes::KINDS, numbers::KINDS].into_iter().flatten().collect()
}

/// The kinds that damage the bytes of any file.
pub(crate) fn of_bytes() -> Vec<&'static Kind> {
    bytes::KINDS.iter().collect()
}

/// Names of all kinds of damage to an input, with their lines, in the order of reports.
pub(crate) fn lines_of(input: Input) -> Vec<(&'static str, &'static str)> {
    let line = |kind: &Kind| (kind.name, kind.what);
    match input {
        Input::HostTrace | Input::GpuTrace => of(input).into_iter().map(line).collect(),
        Input::Snapshot => {
            let own = snapshots::KINDS.iter().map(|kind| (kind.name, kind.what));
            own.chain(of_bytes().into_iter().map(line)).collect()
        }
    }
}

/// All kinds of damage to traces, in the order of reports: those of GPUs have more.
pub(crate) fn of(input: Input) -> Vec<&'static Kind> {
    let device = match input {
        Input::GpuTrace => device::KINDS,
        Input::HostTrace | Input::Snapshot => &[],
    };
    all().into_iter().chain(device).collect()
}

/// All kinds of damage to traces of the host, in the order of reports.
fn all() -> Vec<&'static Kind> {
    [
        times::KINDS,
        memory::KINDS,
        operators::KINDS,
        shapes::KINDS,
        identifiers::KINDS,
        structure::KINDS,
        bytes::KINDS,
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The events of which this is true, as places in the list.
fn places(variant: &Variant<'_>, concerned: impl Fn(&Event<'_>) -> bool) -> Vec<usize> {
    (0..variant.events.len()).filter(|&place| concerned(&variant.events[place])).collect()
}

/// Damages the strength's share of the events concerned.
fn each(
    variant: &mut Variant<'_>,
    dice: &mut Dice,
    concerned: impl Fn(&Event<'_>) -> bool,
    mut damage: impl FnMut(&mut Event<'_>, &mut Dice),
) {
    for place in dice.choose(places(variant, concerned)) {
        damage(&mut variant.events[place], dice);
    }
}

/// Replaces a field in the strength's share of the events that have it.
fn each_value(
    variant: &mut Variant<'_>,
    dice: &mut Dice,
    class: Option<Class>,
    key: &str,
    value: &str,
) {
    let concerned = |event: &Event<'_>| {
        class.is_none_or(|class| event.class == class) && event.value(key).is_some()
    };
    each(variant, dice, concerned, |event, _| event.set(key, value));
}

/// Removes a field from the strength's share of the events that have it.
fn each_without(variant: &mut Variant<'_>, dice: &mut Dice, class: Option<Class>, key: &str) {
    let concerned = |event: &Event<'_>| {
        class.is_none_or(|class| event.class == class) && event.value(key).is_some()
    };
    each(variant, dice, concerned, |event, _| event.remove(key));
}

/// Removes the strength's share of the events concerned.
fn drop_share(variant: &mut Variant<'_>, dice: &mut Dice, concerned: impl Fn(&Event<'_>) -> bool) {
    let chosen = dice.choose(places(variant, concerned));
    drop_places(variant, &chosen);
}

/// Removes the events at these places, which ascend.
fn drop_places(variant: &mut Variant<'_>, chosen: &[usize]) {
    let mut chosen = chosen.iter().copied().peekable();
    let mut place = 0;
    variant.events.retain(|_| {
        let dropped = chosen.next_if_eq(&place).is_some();
        place += 1;
        !dropped
    });
}

/// Exchanges values of a field among the strength's share of the events that have it.
fn exchange(variant: &mut Variant<'_>, dice: &mut Dice, class: Class, key: &str) {
    let concerned = |event: &Event<'_>| event.class == class && event.value(key).is_some();
    let mut chosen = dice.choose(places(variant, concerned));
    if let [only] = chosen[..] {
        chosen = vec![only, places(variant, concerned)[0]];
    }
    let values: Vec<String> = chosen
        .iter()
        .map(|&place| variant.events[place].value(key).unwrap_or_default().to_owned())
        .collect();
    for (&place, value) in
        chosen.iter().zip(values.iter().cycle().skip(1 + dice.below(values.len())))
    {
        variant.events[place].set(key, value);
    }
}

/// The first and the last time of the events.
fn span(variant: &Variant<'_>) -> (i64, i64) {
    let timed = || variant.events.iter().filter(|event| event.class != Class::Other);
    let first = timed().map(Event::start).min().unwrap_or(0);
    (first, timed().map(Event::end).max().unwrap_or(first))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::{SAMPLED, SAMPLED_OF_GPUS};
    use std::collections::BTreeSet;

    #[test]
    fn kinds_have_different_names_and_a_line_each() {
        let kinds = of(Input::GpuTrace);
        assert!(kinds.len() >= 40, "{}", kinds.len());
        let names: BTreeSet<&str> = kinds.iter().map(|kind| kind.name).collect();
        assert_eq!(names.len(), kinds.len());
        for kind in kinds {
            assert!(!kind.what.is_empty() && !kind.what.ends_with('.'), "{}", kind.name);
        }
    }

    #[test]
    fn every_kind_damages_and_does_so_the_same_way_again() {
        let read = |name: &str| {
            Recording::read(&crate::recording::path(name), name).expect("a recorded trace")
        };
        every_kind_damages(all(), [SAMPLED[0], SAMPLED[1]].map(read));
        let of_gpus = device::KINDS.iter().collect();
        every_kind_damages(of_gpus, ["whole_runs/evaluation", SAMPLED_OF_GPUS[1]].map(read));
    }

    fn every_kind_damages(kinds: Vec<&'static Kind>, [recording, other]: [Recording; 2]) {
        let intact = recording.variant().render();
        for kind in kinds {
            let variant = || kind.apply(&recording, &other, 7, Strength::Heavy);
            let first = variant();
            assert!(first == variant(), "{}: not the same twice", kind.name);
            assert!(first != intact, "{}: nothing is damaged", kind.name);
        }
    }
}

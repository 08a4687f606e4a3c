//! Places in program order.

use xmem_analyzer::Tick;
use xmem_types::Nanos;

/// A place in program order: a time of the trace, then a rank among the things at that time.
///
/// Recorded events have rank 0 and are ordered by their tick; a place just before or after an event
/// has a negative or positive rank. Places are made by the draft, from operators, items and marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    time: Nanos,
    tick: u32,
    rank: i32,
}

impl Place {
    /// After everything: the free of a block that stays.
    pub(crate) const NEVER: Self = Self { time: Nanos::MAX, tick: u32::MAX, rank: i32::MAX };

    /// Before every event at a recorded time.
    pub(crate) const fn before(time: Nanos) -> Self {
        Self { time, tick: 0, rank: i32::MIN }
    }

    /// After every event at a recorded time.
    pub(crate) const fn after(time: Nanos) -> Self {
        Self { time, tick: u32::MAX, rank: i32::MAX }
    }

    /// Before every event at a recorded time, and after every event at an earlier one.
    pub(super) const fn just_before(time: Nanos) -> Self {
        Self::after(Nanos(time.0.saturating_sub(1)))
    }

    /// A recorded memory event.
    pub(super) const fn recorded(time: Nanos, tick: Tick) -> Self {
        Self { time, tick: tick.0, rank: 0 }
    }

    pub(super) const fn ranked(self, rank: i32) -> Self {
        Self { rank, ..self }
    }

    /// The time of the trace.
    pub(crate) const fn time(self) -> Nanos {
        self.time
    }

    /// Returns whether this is [`Place::NEVER`].
    pub(crate) fn is_never(self) -> bool {
        self == Self::NEVER
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_in_program_order() {
        let time = Nanos(5);
        let order = [
            Place::after(Nanos(4)),
            Place::before(time),
            Place::before(time).ranked(1),
            Place::recorded(time, Tick(7)),
            Place::recorded(time, Tick(7)).ranked(1),
            Place::recorded(time, Tick(8)),
            Place::after(time).ranked(1),
            Place::after(time),
            Place::NEVER,
        ];
        assert!(order.is_sorted());
        assert_eq!(Place::just_before(time), Place::after(Nanos(4)));
        assert!(Place::NEVER.is_never() && !Place::after(time).is_never());
    }
}

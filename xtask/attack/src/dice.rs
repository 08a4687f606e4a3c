//! Seeded random choices: the same seed, kind, strength and trace always give the same damage.

/// How much of a trace a variant damages. Every kind comes in all four strengths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Strength {
    Slight,
    Light,
    Heavy,
    Full,
}

impl Strength {
    pub(crate) const ALL: [Self; 4] = [Self::Slight, Self::Light, Self::Heavy, Self::Full];

    /// The share of the events concerned that is damaged.
    pub(crate) fn share(self) -> f64 {
        match self {
            Self::Slight => 0.01,
            Self::Light => 0.1,
            Self::Heavy => 0.5,
            Self::Full => 1.0,
        }
    }

    /// The number of places that are damaged, for kinds that count places instead.
    pub(crate) fn places(self) -> usize {
        match self {
            Self::Slight => 1,
            Self::Light => 10,
            Self::Heavy => 100,
            Self::Full => 1000,
        }
    }

    /// The share of a whole that is cut away, for kinds that leave something.
    pub(crate) fn cut(self) -> f64 {
        match self {
            Self::Slight => 0.01,
            Self::Light => 0.1,
            Self::Heavy => 0.33,
            Self::Full => 0.8,
        }
    }

    /// 1 to 4.
    pub(crate) fn level(self) -> usize {
        self as usize + 1
    }
}

/// A generator of random numbers (SplitMix64) with the strength that it decides for.
#[derive(Debug)]
pub(crate) struct Dice {
    state: u64,
    pub(crate) strength: Strength,
}

impl Dice {
    /// The generator of one variant.
    pub(crate) fn new(seed: u64, kind: &str, trace: &str, strength: Strength) -> Self {
        // FNV-1a over the names, so that variants do not share their choices.
        let mut state = 0xcbf2_9ce4_8422_2325 ^ seed;
        for byte in kind.bytes().chain([0]).chain(trace.bytes()).chain([strength as u8]) {
            state = (state ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        Self { state, strength }
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`; 0 if there is none.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        if end == 0 { 0 } else { (self.next() % end as u64) as usize }
    }

    /// The strength's share of these, at least one, at random and in their order.
    pub(crate) fn choose(&mut self, mut from: Vec<usize>) -> Vec<usize> {
        let number = ((from.len() as f64 * self.strength.share()).ceil() as usize).min(from.len());
        for place in 0..number {
            let other = place + self.below(from.len() - place);
            from.swap(place, other);
        }
        from.truncate(number);
        from.sort_unstable();
        from
    }

    /// Different places below `end`, as many as the strength says, ascending.
    pub(crate) fn places(&mut self, end: usize) -> Vec<usize> {
        let mut places: Vec<usize> =
            (0..self.strength.places()).map(|_| self.below(end)).filter(|_| end > 0).collect();
        places.sort_unstable();
        places.dedup();
        places
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_repeat_and_differ_between_variants() {
        let draw = |seed, kind, trace, strength| {
            let mut dice = Dice::new(seed, kind, trace, strength);
            [dice.next(), dice.next()]
        };
        let first = draw(1, "a", "b", Strength::Light);
        assert_eq!(first, draw(1, "a", "b", Strength::Light));
        let others = [
            draw(2, "a", "b", Strength::Light),
            draw(1, "ab", "", Strength::Light),
            draw(1, "a", "c", Strength::Light),
            draw(1, "a", "b", Strength::Full),
        ];
        assert!(others.iter().all(|other| *other != first));
    }

    #[test]
    fn the_share_is_chosen_exactly() {
        for (strength, expected) in Strength::ALL.into_iter().zip([1, 10, 50, 100]) {
            let chosen = Dice::new(0, "k", "t", strength).choose((0..100).collect());
            assert_eq!(chosen.len(), expected);
            assert!(chosen.is_sorted_by(|a, b| a < b));
        }
        let mut dice = Dice::new(0, "k", "t", Strength::Slight);
        assert_eq!(dice.choose(vec![7]), [7]);
        assert!(dice.choose(Vec::new()).is_empty());
        assert!(dice.places(0).is_empty());
    }
}

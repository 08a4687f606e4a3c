//! Orders of lengths: drawn at random, the same for the same seed.

/// The numbers of SplitMix64 (G. L. Steele, D. Lea, C. H. Flood, "Fast Splittable Pseudorandom Number
/// Generators", 2014).
struct SplitMix(u64);

impl SplitMix {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`, each as likely as the others but for 1 part in 2^64 / `bound`.
    fn below(&mut self, bound: usize) -> usize {
        let wide = u128::from(self.next()) * bound as u128;
        (wide >> 64) as usize
    }
}

/// `count` lengths, each drawn from `values` with the same chance.
///
/// # Panics
/// If there are no values.
pub(super) fn draw(values: &[u64], count: usize, seed: u64) -> Vec<u64> {
    assert!(!values.is_empty(), "there are lengths to draw from");
    let mut numbers = SplitMix(seed);
    (0..count).map(|_| values[numbers.below(values.len())]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_order_and_another_seed_another() {
        let values: Vec<u64> = (64..=128).collect();
        let (one, other) = (draw(&values, 50, 1), draw(&values, 50, 2));
        assert_eq!(one, draw(&values, 50, 1));
        assert_ne!(one, other);
        assert!(one.iter().chain(&other).all(|length| values.contains(length)));
    }

    #[test]
    fn all_lengths_come_about_as_often() {
        let drawn = draw(&[1, 2, 3, 4], 40_000, 7);
        for value in 1..=4 {
            let count = drawn.iter().filter(|&&d| d == value).count();
            assert!((9_500..10_500).contains(&count), "{value}: {count}");
        }
    }

    #[test]
    fn the_numbers_are_those_of_the_published_generator() {
        let mut numbers = SplitMix(1_234_567);
        let first = [6_457_827_717_110_365_317, 3_203_168_211_198_807_973];
        assert_eq!([numbers.next(), numbers.next()], first);
    }
}

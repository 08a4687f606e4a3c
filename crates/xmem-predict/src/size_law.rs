//! The size of a block as a function of a number: the length of its iteration, or the value of an option of the script.

use std::collections::{BTreeMap, BTreeSet};
use xmem_types::Bytes;

/// How near a recorded size must be to what a law says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Closeness {
    /// The share of the size by which it may be off.
    share: f64,
    /// The bytes by which it may be off.
    bytes: f64,
}

impl Closeness {
    /// To the byte: sizes are sums of products of extents.
    pub const EXACT: Self = Self { share: 0.0, bytes: 0.5 };

    /// Lengths are padded and rounded, and PyTorch's allocator rounds requests up to multiples of 512 bytes
    /// (`kMinBlockSize` in `c10/core/AllocatorConfig.h`), so that such a difference does not matter.
    pub const ROUNDED: Self = Self { share: 0.002, bytes: 512.0 };

    fn holds(self, value: f64, recorded: f64) -> bool {
        (value - recorded).abs() <= self.bytes.max(self.share * recorded)
    }
}

/// The size of a block by length.
#[derive(Clone, Debug, PartialEq)]
pub struct SizeLaw {
    kind: LawKind,
    /// Recorded sizes by length, at least one.
    points: Vec<(u64, u64)>,
}

/// The kind of a [`SizeLaw`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LawKind {
    /// The same size at all lengths.
    Constant,
    /// An affine function through the shortest and the longest recorded length.
    Affine,
    /// Proportional to the square of the length, as attention scores are.
    Square,
    /// An affine function of the length, rounded up to a multiple of this number, as kernels that work in blocks need.
    Padded(u64),
    /// A polynomial of the second degree through three recorded lengths.
    Quadratic([f64; 3]),
    /// Between recorded lengths along straight lines: no simple law holds.
    Interpolated,
}

/// The numbers to whose multiples lengths are padded, ascending: each divides the next one.
const PADDINGS: [u64; 6] = [8, 16, 32, 64, 128, 256];

/// A length within `bounds` that shows whether sizes are those of padded lengths, and to which numbers; none if the `recorded` ones
/// show it as far as they can.
#[must_use]
pub fn telling_length(recorded: &[u64], (low, high): (u64, u64)) -> Option<u64> {
    // Those that lengths below `high` can show.
    let paddings = PADDINGS.into_iter().filter(|to| to + 1 < high);
    let smaller = |to: u64| if to == PADDINGS[0] { 1 } else { to / 2 };
    let differ =
        |length: u64, to: u64| length.next_multiple_of(to) != length.next_multiple_of(smaller(to));
    let unknown = paddings.filter(|&to| !recorded.iter().any(|&length| differ(length, to)));
    let to = unknown.max()?;
    let middle = (low.max(1) as f64 * high as f64).sqrt() as u64;
    let length = (middle / to).max(1) * to + 1;
    (low < length && length < high).then_some(length)
}

impl SizeLaw {
    /// The simplest law that the recorded sizes follow: constant, affine, the square of the length, affine of the padded length, a
    /// polynomial of the second degree, and else straight lines between them. Two lengths decide between an
    /// affine law and a square: a size that grows exactly as the square does is one.
    ///
    /// Of a polynomial of the second degree, all recorded sizes must be as near as `closeness` says.
    ///
    /// # Panics
    /// If there are no observations.
    #[must_use]
    pub fn fit(observed: &[(u64, Bytes)], closeness: Closeness) -> Self {
        assert!(!observed.is_empty(), "a law has observations");
        // The last iteration of a length counts: the first one of a job is not like the others.
        let by_length: BTreeMap<u64, u64> = observed.iter().map(|(l, s)| (*l, s.get())).collect();
        let points: Vec<(u64, u64)> = by_length.into_iter().collect();
        let (first, last) = (points[0], points[points.len() - 1]);
        let simple = if points.iter().all(|point| point.1 == first.1) {
            LawKind::Constant
        } else if is_square(first, last) {
            LawKind::Square
        } else {
            LawKind::Affine
        };
        let quadratic = through_three(&points).map(LawKind::Quadratic);
        // Two padded lengths lie on a line whatever the sizes are.
        let is_shown = |to: &u64| {
            let padded = points.iter().map(|point| point.0.next_multiple_of(*to));
            padded.collect::<BTreeSet<u64>>().len() > 2
        };
        let padded = PADDINGS.into_iter().filter(is_shown).map(LawKind::Padded);
        let kinds = [simple].into_iter().chain(padded).chain(quadratic);
        let kinds = kinds.chain([LawKind::Interpolated]);
        let laws = kinds.map(|kind| Self { kind, points: points.clone() });
        let follows =
            |law: &Self| points.iter().all(|&(l, s)| closeness.holds(law.value(l), s as f64));
        laws.into_iter().find(follows).expect("straight lines pass through all points")
    }

    /// The kind.
    #[must_use]
    pub const fn kind(&self) -> LawKind {
        self.kind
    }

    /// Returns whether the size at a length was recorded.
    #[must_use]
    pub fn is_recorded(&self, length: u64) -> bool {
        self.points.binary_search_by_key(&length, |point| point.0).is_ok()
    }

    /// The size at a length.
    #[must_use]
    pub fn size(&self, length: u64) -> Bytes {
        if let Ok(at) = self.points.binary_search_by_key(&length, |point| point.0) {
            return Bytes(self.points[at].1);
        }
        let value = self.value(length).round();
        // Beyond the recorded lengths, a law may fall below zero.
        Bytes(if value > 0.0 { value as u64 } else { 0 })
    }

    fn value(&self, length: u64) -> f64 {
        let (first, last) = (self.points[0], self.points[self.points.len() - 1]);
        let l = length as f64;
        match self.kind {
            LawKind::Constant => first.1 as f64,
            LawKind::Affine => along(first, last, length),
            LawKind::Padded(to) => {
                let padded = |length: u64| length.next_multiple_of(to);
                let (one, other) = ((padded(first.0), first.1), (padded(last.0), last.1));
                along(one, other, padded(length))
            }
            LawKind::Square => last.1 as f64 * (l / last.0 as f64).powi(2),
            LawKind::Quadratic([a, b, c]) => a + b * l + c * l * l,
            LawKind::Interpolated => {
                let above = self.points.partition_point(|point| point.0 <= length);
                let above = above.clamp(1, self.points.len() - 1);
                along(self.points[above - 1], self.points[above], length)
            }
        }
    }
}

/// Returns whether sizes grow as the squares of the lengths do, exactly.
fn is_square(one: (u64, u64), other: (u64, u64)) -> bool {
    let [l, s, m, t] = [one.0, one.1, other.0, other.1].map(u128::from);
    s > 0 && s.saturating_mul(m * m) == t.saturating_mul(l * l)
}

fn along(one: (u64, u64), other: (u64, u64), length: u64) -> f64 {
    let slope = (other.1 as f64 - one.1 as f64) / (other.0 as f64 - one.0 as f64);
    one.1 as f64 + slope * (length as f64 - one.0 as f64)
}

/// The polynomial of the second degree through the shortest, a middle and the longest length.
fn through_three(points: &[(u64, u64)]) -> Option<[f64; 3]> {
    let (first, last) = (points.first()?, points.last()?);
    let middle = points.get(points.len() / 2).filter(|_| points.len() > 2)?;
    let [(x, u), (y, v), (z, w)] = [first, middle, last].map(|p| (p.0 as f64, p.1 as f64));
    let (one, two) = ((v - u) / (y - x), (w - v) / (z - y));
    let c = (two - one) / (z - x);
    let b = one - c * (x + y);
    Some([u - b * x - c * x * x, b, c])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn law_within(points: &[(u64, u64)], closeness: Closeness) -> SizeLaw {
        let points: Vec<_> = points.iter().map(|&(l, s)| (l, Bytes(s))).collect();
        SizeLaw::fit(&points, closeness)
    }

    fn law(points: &[(u64, u64)]) -> SizeLaw {
        law_within(points, Closeness::ROUNDED)
    }

    #[test]
    fn the_simplest_law_that_holds_is_taken() {
        for (points, kind, length, size) in [
            (&[(64, 4096), (128, 4096)][..], LawKind::Constant, 96, 4096),
            (&[(64, 64_000), (128, 128_000)], LawKind::Affine, 96, 96_000),
            (&[(64, 65_000), (128, 129_000)], LawKind::Affine, 100, 101_000),
            (&[(64, 4_096_000), (128, 16_384_000)], LawKind::Square, 96, 9_216_000),
            (&[(64, 64_000), (96, 96_000), (128, 128_000)], LawKind::Affine, 80, 80_000),
            (&[(8, 1 << 20)], LawKind::Constant, 80, 1 << 20),
        ] {
            let law = law(points);
            assert_eq!((law.kind(), law.size(length)), (kind, Bytes(size)), "{points:?}");
        }
    }

    #[test]
    fn three_lengths_show_a_sum_of_a_square_and_a_line() {
        let size = |l: u64| 7000 + 1000 * l + 300 * l * l;
        let law = law(&[64, 96, 128].map(|l| (l, size(l))));
        assert!(matches!(law.kind(), LawKind::Quadratic(_)));
        for l in [64, 70, 96, 127, 200] {
            assert_eq!(law.size(l), Bytes(size(l)), "{l}");
        }
    }

    #[test]
    fn an_odd_length_shows_that_sizes_are_those_of_padded_lengths() {
        // The statistics of attention: a float for each of 12 heads and for each position, of which there are a multiple of 32.
        let size = |length: u64| 4 * 12 * length.next_multiple_of(32);
        let of = |lengths: &[u64]| {
            let points: Vec<_> = lengths.iter().map(|&length| (length, size(length))).collect();
            law_within(&points, Closeness::EXACT)
        };
        let powers = [32, 128, 512, 1024];
        assert_eq!(of(&powers).kind(), LawKind::Affine);
        let odd = telling_length(&powers, (32, 1024)).expect("none of them shows it");
        assert_eq!(odd, 161);
        let law = of(&[32, 128, odd, 512, 1024]);
        assert_eq!(law.kind(), LawKind::Padded(32));
        for length in 32..=1024 {
            assert_eq!(law.size(length), Bytes(size(length)), "{length}");
        }
    }

    #[test]
    fn lengths_that_show_paddings_are_asked_for_once_and_within_bounds() {
        for (recorded, bounds, expected) in [
            (&[1, 8, 64][..], (1, 64), None),
            (&[32, 1024], (32, 1024), Some(161)),
            (&[32, 161, 1024], (32, 1024), None),
            (&[32, 64], (32, 64), Some(33)),
            (&[32, 33, 64], (32, 64), None),
            (&[512, 8192], (512, 8192), Some(2049)),
            (&[2, 4, 8], (2, 8), None),
            (&[64, 128], (64, 128), Some(65)),
        ] {
            assert_eq!(telling_length(recorded, bounds), expected, "{recorded:?}");
        }
    }

    #[test]
    fn sizes_in_steps_are_interpolated() {
        let law =
            law(&[(64, 1 << 20), (96, 1 << 20), (128, 1 << 20), (160, 2 << 20), (192, 2 << 20)]);
        assert_eq!(law.kind(), LawKind::Interpolated);
        assert_eq!((law.size(100), law.size(144)), (Bytes::mib(1), Bytes(3 << 19)));
    }

    #[test]
    fn a_size_that_is_a_byte_off_follows_no_exact_law() {
        let points = [(8, 8000), (16, 16_001), (32, 32_000), (64, 64_000)];
        assert_eq!(law(&points).kind(), LawKind::Affine);
        let exact = law_within(&points, Closeness::EXACT);
        assert_eq!((exact.kind(), exact.size(48)), (LawKind::Interpolated, Bytes(48_000)));
        let large: Vec<_> = (1..6).map(|b| (b * 7, 123_457 + b * 7 * 1_234_567_891)).collect();
        let exact = law_within(&large, Closeness::EXACT);
        assert_eq!(
            (exact.kind(), exact.size(9)),
            (LawKind::Affine, Bytes(123_457 + 9 * 1_234_567_891))
        );
    }

    #[test]
    fn the_last_of_equal_lengths_counts_and_no_size_is_negative() {
        assert_eq!(law(&[(64, 1), (64, 9000)]).size(7), Bytes(9000));
        assert_eq!(law(&[(64, 10_000), (128, 90_000)]).size(1), Bytes::ZERO);
    }
}

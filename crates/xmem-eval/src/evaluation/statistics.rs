//! Figures of a list of numbers.

/// Lists that are drawn for an interval of the median, and the seed of the draws: the same list has the same interval.
const DRAWS: usize = 2000;
const SEED: u64 = 0;

/// How numbers are spread.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// How many there are.
    pub count: usize,
    /// The arithmetic mean.
    pub mean: f64,
    /// The median.
    pub median: f64,
    /// The interval of the median at 95 %, by a bootstrap with 2,000 draws.
    pub median_interval: (f64, f64),
    /// The first and the third quartile.
    pub quartiles: (f64, f64),
    /// The 90th percentile.
    pub p90: f64,
    /// The least and the greatest.
    pub extremes: (f64, f64),
}

impl Spread {
    /// The spread of numbers; none without numbers. Percentiles lie on straight lines between two numbers, as NumPy's do by
    /// default.
    #[must_use]
    pub fn new(numbers: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut sorted: Vec<f64> =
            numbers.into_iter().filter(|number| number.is_finite()).collect();
        sorted.sort_by(f64::total_cmp);
        let (&least, &greatest) = (sorted.first()?, sorted.last()?);
        Some(Self {
            count: sorted.len(),
            mean: sorted.iter().sum::<f64>() / sorted.len() as f64,
            median: quantile(&sorted, 0.5),
            median_interval: interval(&sorted),
            quartiles: (quantile(&sorted, 0.25), quantile(&sorted, 0.75)),
            p90: quantile(&sorted, 0.9),
            extremes: (least, greatest),
        })
    }
}

/// The quantile of ascending numbers, of which there is at least one.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let place = share * (sorted.len() - 1) as f64;
    let (below, above) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
    below + (above - below) * place.fract()
}

/// The interval of the median at 95 %: of medians of as many numbers, drawn with repetition.
fn interval(sorted: &[f64]) -> (f64, f64) {
    let mut random = fastrand::Rng::with_seed(SEED);
    // How often each number is drawn: nothing has to be sorted.
    let mut drawn = vec![0_u32; sorted.len()];
    let mut medians: Vec<f64> = (0..DRAWS)
        .map(|_| {
            drawn.fill(0);
            for _ in 0..sorted.len() {
                drawn[random.usize(..sorted.len())] += 1;
            }
            median_of_drawn(sorted, &drawn)
        })
        .collect();
    medians.sort_by(f64::total_cmp);
    (quantile(&medians, 0.025), quantile(&medians, 0.975))
}

/// The median of ascending numbers of which each occurs as often as it was drawn, as many in all as there are numbers.
fn median_of_drawn(sorted: &[f64], drawn: &[u32]) -> f64 {
    let mut middle = [(sorted.len() - 1) / 2, sorted.len() / 2].into_iter().peekable();
    let (mut passed, mut sum) = (0, 0.0);
    for (number, count) in sorted.iter().zip(drawn) {
        passed += *count as usize;
        while middle.next_if(|place| *place < passed).is_some() {
            sum += number;
        }
    }
    sum / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// `numpy.percentile([1, 2, 3, 4, 10], [25, 50, 75, 90])` is `[2, 3, 4, 7.6]`.
    #[test]
    fn percentiles_are_those_of_numpy() {
        let spread = Spread::new([10.0, 3.0, 1.0, 4.0, 2.0]).expect("numbers");
        assert_eq!((spread.count, spread.mean, spread.median), (5, 4.0, 3.0));
        assert_eq!(spread.quartiles, (2.0, 4.0));
        assert!((spread.p90 - 7.6).abs() < 1e-12);
        assert_eq!(spread.extremes, (1.0, 10.0));
    }

    #[test]
    fn nothing_has_no_spread() {
        assert_eq!(Spread::new([]), None);
        assert_eq!(Spread::new([f64::NAN]), None);
    }

    proptest! {
        #[test]
        fn a_median_by_counts_is_that_of_sorted_numbers(places in prop::collection::vec(0..20_usize, 20)) {
            let sorted: Vec<f64> = (0..20).map(|at| f64::from(at * at)).collect();
            let mut drawn = [0; 20];
            places.iter().for_each(|place| drawn[*place] += 1);
            let mut numbers: Vec<f64> = places.iter().map(|place| sorted[*place]).collect();
            numbers.sort_by(f64::total_cmp);
            prop_assert_eq!(median_of_drawn(&sorted, &drawn), quantile(&numbers, 0.5));
        }

        #[test]
        fn figures_are_in_order(numbers in prop::collection::vec(0.0..1e12_f64, 1..40)) {
            let spread = Spread::new(numbers).expect("numbers");
            let (low, high) = spread.median_interval;
            let order = [spread.extremes.0, spread.quartiles.0, spread.median, spread.quartiles.1, spread.p90.max(spread.quartiles.1), spread.extremes.1];
            prop_assert!(order.is_sorted(), "{order:?}");
            prop_assert!(spread.extremes.0 <= low && low <= high && high <= spread.extremes.1);
        }
    }
}

//! The jobs of an evaluation: all combinations of the values of factors, or a sample of them.

use std::fmt;

/// A job on a device, by the values of its factors (`model`, `optimizer`, `batch`, `device`).
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Configuration(Vec<(String, String)>);

impl Configuration {
    /// A configuration of factors with their values.
    #[must_use]
    pub fn new(values: impl IntoIterator<Item = (String, String)>) -> Self {
        Self(values.into_iter().collect())
    }

    /// The value of a factor.
    #[must_use]
    pub fn value(&self, factor: &str) -> Option<&str> {
        self.0.iter().find(|(name, _)| name == factor).map(|(_, value)| value.as_str())
    }

    /// Adds a factor, unless it is there.
    pub fn or_insert(&mut self, factor: &str, value: &str) {
        if self.value(factor).is_none() {
            self.0.push((factor.to_owned(), value.to_owned()));
        }
    }

    /// The configuration with other values of factors.
    #[must_use]
    pub fn with(&self, others: &Self) -> Self {
        let mut changed = self.clone();
        changed.0.retain(|(factor, _)| others.value(factor).is_none());
        changed.0.extend(others.0.iter().cloned());
        changed
    }

    /// The factors with their values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(factor, value)| (factor.as_str(), value.as_str()))
    }
}

impl fmt::Display for Configuration {
    /// The values: `MobileNetV2 Adam 200 rtx3060-12g`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let values: Vec<&str> = self.iter().map(|(_, value)| value).collect();
        f.write_str(&values.join(" "))
    }
}

/// All combinations of the values of factors. Only those that are asked for are made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grid(pub Vec<(String, Vec<String>)>);

impl Grid {
    /// The number of combinations.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.0.iter().fold(1, |count: u64, (_, values)| count.saturating_mul(values.len() as u64))
    }

    /// Returns whether there is none: a factor has no value.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The combination with a number below [`len`](Self::len); the last factor changes first.
    #[must_use]
    pub fn get(&self, mut number: u64) -> Configuration {
        let mut values: Vec<(String, String)> = self
            .0
            .iter()
            .rev()
            .map(|(factor, values)| {
                let value = &values[(number % values.len() as u64) as usize];
                number /= values.len() as u64;
                (factor.clone(), value.clone())
            })
            .collect();
        values.reverse();
        Configuration(values)
    }
}

/// Draws `count` numbers below `total`, each at most once and all with the same probability, ascending. The same seed draws
/// the same numbers.
#[must_use]
pub fn sample(total: u64, count: u64, seed: u64) -> Vec<u64> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut drawn = std::collections::BTreeSet::new();
    // Floyd's method: each step adds one number that is not there.
    for last in total.saturating_sub(count)..total {
        let number = random.u64(..=last);
        if !drawn.insert(number) {
            drawn.insert(last);
        }
    }
    drawn.into_iter().collect()
}

/// The numbers below `count` in random order, the same for the same seed: whoever stops on the way has a sample.
#[must_use]
pub fn shuffled(count: usize, seed: u64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    fastrand::Rng::with_seed(seed).shuffle(&mut order);
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn grid() -> Grid {
        let factor = |name: &str, values: &[&str]| {
            (name.to_owned(), values.iter().map(|&value| value.to_owned()).collect())
        };
        Grid(vec![
            factor("model", &["VGG16", "ResNet101"]),
            factor("batch", &["200", "300", "400"]),
        ])
    }

    #[test]
    fn a_grid_has_each_combination_once() {
        let all: Vec<String> = (0..grid().len()).map(|at| grid().get(at).to_string()).collect();
        let expected = [
            "VGG16 200",
            "VGG16 300",
            "VGG16 400",
            "ResNet101 200",
            "ResNet101 300",
            "ResNet101 400",
        ];
        assert_eq!(all, expected);
        assert_eq!(Grid(vec![("batch".to_owned(), vec![])]).len(), 0);
    }

    #[test]
    fn a_configuration_knows_its_factors() {
        let mut one = grid().get(4);
        assert_eq!(one.value("batch"), Some("300"));
        one.or_insert("batch", "1");
        one.or_insert("zero_grad", "start");
        assert_eq!(one.to_string(), "ResNet101 300 start");
    }

    proptest! {
        #[test]
        fn a_sample_has_as_many_numbers_as_there_can_be(total in 0..500_u64, count in 0..600_u64, seed: u64) {
            let drawn = sample(total, count, seed);
            prop_assert_eq!(drawn.len() as u64, count.min(total));
            prop_assert!(drawn.iter().all(|&number| number < total));
            prop_assert!(drawn.windows(2).all(|pair| pair[0] < pair[1]));
            prop_assert_eq!(drawn, sample(total, count, seed));
            let mut order = shuffled(total as usize, seed);
            order.sort_unstable();
            prop_assert_eq!(order, (0..total as usize).collect::<Vec<_>>());
        }
    }
}

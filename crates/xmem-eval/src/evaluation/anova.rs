//! Analysis of variance: which factors an error depends on.

use super::configuration::Configuration;
use statrs::distribution::{ContinuousCDF, FisherSnedecor};
use std::collections::BTreeMap;

/// The effect of a factor, by a one-way analysis of variance.
#[derive(Clone, Debug, PartialEq)]
pub struct FactorEffect {
    /// The factor.
    pub factor: String,
    /// Degrees of freedom between and within the groups.
    pub degrees: (usize, usize),
    /// The variance between the groups over that within them; infinite if there is none within.
    pub f: f64,
    /// The probability of such an `f`, or a greater one, without an effect.
    pub p: f64,
    /// The share of the variance that lies between the groups (η²).
    pub eta_squared: f64,
}

/// The effects of factors on numbers: one analysis a factor, without interactions. Factors with one value, or with a value
/// for each number, are left out.
#[must_use]
pub fn effects(numbers: &[(&Configuration, f64)], factors: &[&str]) -> Vec<FactorEffect> {
    factors.iter().filter_map(|factor| effect(numbers, factor)).collect()
}

fn effect(numbers: &[(&Configuration, f64)], factor: &str) -> Option<FactorEffect> {
    let mut groups: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for (configuration, number) in numbers {
        groups.entry(configuration.value(factor)?).or_default().push(*number);
    }
    let degrees = (groups.len().checked_sub(1)?, numbers.len() - groups.len());
    if degrees.0 == 0 || degrees.1 == 0 {
        return None;
    }
    let mean = |numbers: &[f64]| numbers.iter().sum::<f64>() / numbers.len() as f64;
    let all: Vec<f64> = numbers.iter().map(|&(_, number)| number).collect();
    let grand = mean(&all);
    let between: f64 =
        groups.values().map(|group| group.len() as f64 * (mean(group) - grand).powi(2)).sum();
    let within: f64 = groups
        .values()
        .map(|group| {
            let mean = mean(group);
            group.iter().map(|number| (number - mean).powi(2)).sum::<f64>()
        })
        .sum();
    let f = (between / degrees.0 as f64) / (within / degrees.1 as f64);
    let distribution = FisherSnedecor::new(degrees.0 as f64, degrees.1 as f64).ok()?;
    let p = match f {
        _ if f.is_nan() => return None,
        f64::INFINITY => 0.0,
        _ => distribution.sf(f),
    };
    let eta_squared = between / (between + within);
    Some(FactorEffect { factor: factor.to_owned(), degrees, f, p, eta_squared })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(groups: &[(&str, &[f64])]) -> Vec<(Configuration, f64)> {
        groups
            .iter()
            .flat_map(|(value, numbers)| {
                numbers.iter().map(|&n| {
                    (Configuration::new([("optimizer".to_owned(), (*value).to_owned())]), n)
                })
            })
            .collect()
    }

    fn effect_of(groups: &[(&str, &[f64])]) -> Option<FactorEffect> {
        let numbers = numbers(groups);
        let borrowed: Vec<_> =
            numbers.iter().map(|(configuration, n)| (configuration, *n)).collect();
        effects(&borrowed, &["optimizer"]).pop()
    }

    /// `scipy.stats.f_oneway([6, 8, 4, 5, 3, 4], [8, 12, 9, 11, 6, 8], [13, 9, 11, 8, 7, 12])` gives F = 9.264705882352942 and
    /// p = 0.0023987773293929083; η² is 84 / (84 + 68).
    #[test]
    fn the_effect_is_that_of_scipy() {
        let effect = effect_of(&[
            ("SGD", &[6.0, 8.0, 4.0, 5.0, 3.0, 4.0]),
            ("Adam", &[8.0, 12.0, 9.0, 11.0, 6.0, 8.0]),
            ("AdamW", &[13.0, 9.0, 11.0, 8.0, 7.0, 12.0]),
        ])
        .expect("three groups");
        assert_eq!(effect.degrees, (2, 15));
        assert!((effect.f - 9.264_705_882_352_942).abs() < 1e-12, "{effect:?}");
        assert!((effect.p - 0.002_398_777_329_392_908_3).abs() < 1e-12, "{effect:?}");
        assert!((effect.eta_squared - 84.0 / 152.0).abs() < 1e-12, "{effect:?}");
    }

    #[test]
    fn a_factor_without_groups_to_compare_has_no_effect() {
        assert_eq!(effect_of(&[("SGD", &[1.0, 2.0])]), None);
        assert_eq!(effect_of(&[("SGD", &[1.0]), ("Adam", &[2.0])]), None);
        assert_eq!(effect_of(&[("SGD", &[1.0, 1.0]), ("Adam", &[1.0])]), None);
    }
}

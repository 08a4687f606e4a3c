//! Round figures for an axis in bytes.

use xmem::Bytes;
use xmem::types::{GIB, KIB, MIB};

/// The marks of an axis that reaches up to `highest`: at most six steps, then the label of each.
pub(super) fn marks(highest: Bytes) -> Vec<(Bytes, String)> {
    let (unit, name) = match highest.get() {
        GIB.. => (GIB, "GiB"),
        MIB.. => (MIB, "MiB"),
        _ => (KIB, "KiB"),
    };
    // In hundredths of the unit, so that steps are whole numbers.
    let highest = highest.get().saturating_mul(100) / unit;
    let mut step = 10;
    let mut factors = [2, 5, 10].into_iter().cycle();
    let mut decade = 10;
    while highest / step > 6 {
        let factor = factors.next().unwrap_or(10);
        step = decade * factor;
        if factor == 10 {
            decade = step;
        }
    }
    let label = |hundredths: u64| match hundredths % 100 {
        0 => format!("{} {name}", hundredths / 100),
        _ => format!("{:.1} {name}", hundredths as f64 / 100.0),
    };
    (0..=highest / step)
        .map(|number| (Bytes((number * step).saturating_mul(unit) / 100), label(number * step)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_round() {
        let labels = |bytes| -> Vec<String> {
            marks(Bytes(bytes)).into_iter().map(|(_, label)| label).collect()
        };
        assert_eq!(labels(187 * MIB), ["0 MiB", "50 MiB", "100 MiB", "150 MiB"]);
        assert_eq!(
            labels(5 * GIB / 2),
            ["0 GiB", "0.5 GiB", "1 GiB", "1.5 GiB", "2 GiB", "2.5 GiB"]
        );
        assert_eq!(labels(78 * GIB), ["0 GiB", "20 GiB", "40 GiB", "60 GiB"]);
        assert_eq!(labels(512), ["0 KiB", "0.1 KiB", "0.2 KiB", "0.3 KiB", "0.4 KiB", "0.5 KiB"]);
        assert!(marks(Bytes(u64::MAX)).len() < 8);
    }

    #[test]
    fn marks_are_at_what_they_say() {
        assert_eq!(marks(Bytes::gib(5))[1], (Bytes::gib(1), "1 GiB".to_owned()));
    }
}

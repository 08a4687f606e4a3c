//! Bars and timelines made of block characters.

use xmem::Bytes;
use xmem::predict::Curve;

const EIGHTHS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const PARTS: [char; 8] = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];

/// The number of rows of a timeline.
const HEIGHT: usize = 5;

/// A horizontal bar of `width` columns, filled to `part` of `whole`.
pub(crate) fn bar(part: Bytes, whole: Bytes, width: usize) -> String {
    if whole == Bytes::ZERO {
        return String::new();
    }
    let eighths = (u128::from(part.get()) * (width as u128 * 8) / u128::from(whole.get())) as usize;
    let mut text = "█".repeat(eighths / 8);
    if !eighths.is_multiple_of(8) {
        text.push(PARTS[eighths % 8]);
    } else if eighths == 0 && part > Bytes::ZERO {
        text.push(PARTS[1]);
    }
    text
}

/// Values from 0 to 1 as a line of block characters.
pub(crate) fn line(values: &[f64]) -> String {
    let level = |value: f64| (value.clamp(0.0, 1.0) * 7.0).round() as usize;
    values.iter().map(|&value| EIGHTHS[1 + level(value)]).collect()
}

/// Values as columns of block characters, the highest row first; `top` fills a column.
pub(crate) fn columns(values: &[Bytes], top: Bytes) -> Vec<String> {
    let level = |value: Bytes| {
        let full = (HEIGHT * 8) as u128;
        let top = u128::from(top.get()).max(1);
        (u128::from(value.get()) * full).div_ceil(top).min(full) as usize
    };
    (0..HEIGHT)
        .rev()
        .map(|row| {
            let cell = |&v: &Bytes| EIGHTHS[level(v).saturating_sub(row * 8).min(8)];
            values.iter().map(cell).collect::<String>().trim_end().to_owned()
        })
        .collect()
}

/// The curve's allocated memory in `width` columns, each the highest of what it stands for.
pub(crate) fn squeeze(curve: &Curve, width: usize) -> Vec<Bytes> {
    let values = &curve.allocated;
    if values.is_empty() {
        return Vec::new();
    }
    (0..width)
        .map(|x| {
            let from = x * values.len() / width;
            let to = ((x + 1) * values.len() / width).max(from + 1);
            values[from..to].iter().copied().max().unwrap_or_default()
        })
        .collect()
}

/// The line under a timeline of `width` columns: `└0` where iteration 0 begins, and so on, as far
/// as they fit.
pub(crate) fn marks(curve: &Curve, width: usize) -> String {
    let points = curve.allocated.len().max(1);
    let mut line = String::new();
    for &(iteration, point) in &curve.iterations {
        // The first column that the point has a share in.
        let x = (point * width).div_ceil(points);
        let label = format!("└{}", iteration.0);
        let length = line.chars().count();
        let fits = x + label.chars().count() <= width;
        if fits && (length == 0 || x > length) {
            line += &" ".repeat(x - length);
            line += &label;
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;
    use xmem::types::IterationId;

    fn curve(values: &[u64], starts: &[usize]) -> Curve {
        let allocated: Vec<Bytes> = values.iter().copied().map(Bytes).collect();
        let iterations =
            starts.iter().enumerate().map(|(i, &s)| (IterationId::new(i), s)).collect();
        Curve { reserved: allocated.clone(), allocated, iterations, requests: values.len() as u64 }
    }

    #[test]
    fn a_bar_is_as_long_as_its_part() {
        assert_eq!(bar(Bytes(5), Bytes(10), 8), "████");
        assert_eq!(bar(Bytes(10), Bytes(10), 8), "████████");
        assert_eq!(bar(Bytes(9), Bytes(16), 8), "████▌");
        assert_eq!(bar(Bytes(1), Bytes(10_000), 8), "▏");
        assert_eq!(bar(Bytes(0), Bytes(10), 8), "");
        assert_eq!(bar(Bytes(0), Bytes(0), 8), "");
    }

    #[test]
    fn a_curve_rises_to_the_top() {
        let values: Vec<Bytes> = (0..=40).map(Bytes).collect();
        expect![[r#"
            |                                 ▁▂▃▄▅▆▇█
            |                         ▁▂▃▄▅▆▇█████████
            |                 ▁▂▃▄▅▆▇█████████████████
            |         ▁▂▃▄▅▆▇█████████████████████████
            | ▁▂▃▄▅▆▇█████████████████████████████████"#]]
        .assert_eq(&format!("|{}", columns(&values, Bytes(40)).join("\n|")));
    }

    #[test]
    fn squeezing_loses_no_peak_and_marks_keep_their_place() {
        let mut values = vec![1; 100];
        values[37] = 50;
        let curve = curve(&values, &[0, 30, 33, 60]);
        let points = squeeze(&curve, 10);
        assert_eq!(points.len(), 10);
        assert_eq!(points[3], Bytes(50));
        assert_eq!(marks(&curve, 10), "└0 └1 └3");
        assert_eq!(squeeze(&curve, 500)[185..190], [Bytes(50); 5]);
    }
}

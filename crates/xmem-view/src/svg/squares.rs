//! Rectangles in proportion to weights that are as square as can be.
//!
//! Source: Bruls, Huizing and van Wijk, "Squarified Treemaps", 2000.

/// A rectangle: x, y, width, height.
pub(super) type Rect = (f64, f64, f64, f64);

/// Divides a rectangle among weights, which are sorted, largest first. Weights of zero get no area.
pub(super) fn divide(weights: &[f64], within: Rect) -> Vec<Rect> {
    let sum: f64 = weights.iter().sum();
    let (mut x, mut y, mut width, mut height) = within;
    if sum <= 0.0 || width <= 0.0 || height <= 0.0 {
        return vec![(x, y, 0.0, 0.0); weights.len()];
    }
    let scale = width * height / sum;
    let mut rects = Vec::with_capacity(weights.len());
    let mut rest = weights;
    while !rest.is_empty() {
        let side = width.min(height);
        let (count, area) = row(rest, scale, side);
        // A row lies along the shorter side.
        let depth = if side > 0.0 { area / side } else { 0.0 };
        let mut along = 0.0;
        for weight in &rest[..count] {
            let length = if depth > 0.0 { weight * scale / depth } else { 0.0 };
            rects.push(if width >= height {
                (x, y + along, depth, length)
            } else {
                (x + along, y, length, depth)
            });
            along += length;
        }
        if width >= height {
            x += depth;
            width = (width - depth).max(0.0);
        } else {
            y += depth;
            height = (height - depth).max(0.0);
        }
        rest = &rest[count..];
    }
    rects
}

/// The number of weights whose rectangles are least elongated in one row along `side`, and their area.
fn row(weights: &[f64], scale: f64, side: f64) -> (usize, f64) {
    let largest = weights[0] * scale;
    let mut area = largest;
    let mut count = 1;
    while count < weights.len() {
        let next = weights[count] * scale;
        if next <= 0.0 {
            return (weights.len(), area);
        }
        let smallest = weights[count - 1] * scale;
        if elongation(largest, next, area + next, side) > elongation(largest, smallest, area, side)
        {
            break;
        }
        area += next;
        count += 1;
    }
    (count, area)
}

/// The longest side over the shortest one, of the worst rectangle in a row.
fn elongation(largest: f64, smallest: f64, area: f64, side: f64) -> f64 {
    let (square, side) = (area * area, side * side);
    (side * largest / square).max(square / (side * smallest))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the paper: a rectangle of 6 by 4.
    #[test]
    fn areas_are_in_proportion_and_nearly_square() {
        let weights = [6.0, 6.0, 4.0, 3.0, 2.0, 2.0, 1.0];
        let rects = divide(&weights, (0.0, 0.0, 6.0, 4.0));
        for (rect, weight) in rects.iter().zip(weights) {
            assert!((rect.2 * rect.3 - weight).abs() < 1e-9, "{rect:?} {weight}");
        }
        assert_eq!(rects[0], (0.0, 0.0, 3.0, 2.0));
        assert_eq!(rects[1], (0.0, 2.0, 3.0, 2.0));
        let right = rects.iter().map(|rect| rect.0 + rect.2).fold(0.0, f64::max);
        assert!((right - 6.0).abs() < 1e-9);
    }

    #[test]
    fn nothing_has_no_area() {
        assert_eq!(divide(&[], (0.0, 0.0, 6.0, 4.0)), []);
        let rects = divide(&[1.0, 0.0, 0.0], (0.0, 0.0, 6.0, 4.0));
        assert_eq!(rects[0], (0.0, 0.0, 6.0, 4.0));
        assert_eq!((rects.len(), rects[2].2 * rects[2].3), (3, 0.0));
    }
}

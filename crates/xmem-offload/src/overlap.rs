//! The time in which both streams are busy.

use xmem_types::Nanos;

/// A span of time.
pub(crate) type Span = (Nanos, Nanos);

/// The spans joined where they touch or overlap.
pub(crate) fn union(mut spans: Vec<Span>) -> Vec<Span> {
    spans.sort_unstable();
    let mut joined: Vec<Span> = Vec::new();
    for (start, end) in spans {
        match joined.last_mut() {
            Some(last) if start <= last.1 => last.1 = last.1.max(end),
            _ => joined.push((start, end)),
        }
    }
    joined
}

/// The time in all spans; they do not overlap.
pub(crate) fn total(spans: &[Span]) -> Nanos {
    spans.iter().map(|&(start, end)| end - start).sum()
}

/// The time that is in spans of both lists. Each is sorted, and without overlaps.
pub(crate) fn shared(a: &[Span], b: &[Span]) -> Nanos {
    let (mut i, mut j, mut time) = (0, 0, Nanos::ZERO);
    while let (Some(x), Some(y)) = (a.get(i), b.get(j)) {
        let (start, end) = (x.0.max(y.0), x.1.min(y.1));
        time = time + (end - start).max(Nanos::ZERO);
        if x.1 <= y.1 { i += 1 } else { j += 1 }
    }
    time
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spans(of: &[(i64, i64)]) -> Vec<Span> {
        of.iter().map(|&(start, end)| (Nanos(start), Nanos(end))).collect()
    }

    #[test]
    fn time_in_both_lists_is_counted_once() {
        let a = union(spans(&[(5, 9), (0, 3), (2, 4), (20, 30)]));
        assert_eq!(a, spans(&[(0, 4), (5, 9), (20, 30)]));
        let b = spans(&[(3, 6), (8, 22), (29, 40)]);
        assert_eq!(shared(&a, &b), Nanos(1 + 1 + 1 + 2 + 1));
        assert_eq!(shared(&a, &[]), Nanos::ZERO);
        assert_eq!(total(&a), Nanos(18));
    }
}

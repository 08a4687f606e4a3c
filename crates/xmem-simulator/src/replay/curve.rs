//! Allocated and reserved bytes over the requests.

use super::Peak;
use crate::allocator::RequestIndex;
use xmem_types::Bytes;

/// Allocated and reserved bytes after each request. Reserved bytes change rarely and are kept as
/// steps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Curve {
    allocated: Vec<Bytes>,
    /// From which request on the reserved bytes have which value.
    reserved: Vec<(RequestIndex, Bytes)>,
}

/// A stretch of the curve: the highest values of some consecutive requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CurveBucket {
    /// The first request of the stretch.
    pub first: RequestIndex,
    /// The last request of the stretch.
    pub last: RequestIndex,
    /// The highest allocated bytes.
    pub allocated: Bytes,
    /// The highest reserved bytes.
    pub reserved: Bytes,
}

impl Curve {
    pub(super) fn with_capacity(requests: usize) -> Self {
        Self { allocated: Vec::with_capacity(requests), reserved: Vec::new() }
    }

    pub(super) fn push(&mut self, allocated: Bytes, reserved: Bytes) {
        if self.reserved.last().is_none_or(|&(_, known)| known != reserved) {
            self.reserved.push((RequestIndex(self.allocated.len()), reserved));
        }
        self.allocated.push(allocated);
    }

    /// The number of requests it covers.
    #[must_use]
    pub fn len(&self) -> usize {
        self.allocated.len()
    }

    /// Returns whether there was no request.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.allocated.is_empty()
    }

    /// Allocated bytes after each request.
    #[must_use]
    pub fn allocated(&self) -> &[Bytes] {
        &self.allocated
    }

    /// Reserved bytes after request `at`; zero beyond the end of an empty curve.
    #[must_use]
    pub fn reserved_at(&self, at: RequestIndex) -> Bytes {
        let after = self.reserved.partition_point(|&(from, _)| from <= at);
        after.checked_sub(1).map_or(Bytes::ZERO, |row| self.reserved[row].1)
    }

    /// Both figures after each request, in order.
    pub fn iter(&self) -> impl Iterator<Item = Peak> + '_ {
        let mut steps = self.reserved.iter().peekable();
        let mut reserved = Bytes::ZERO;
        self.allocated.iter().enumerate().map(move |(row, &allocated)| {
            let request = RequestIndex(row);
            while let Some(&(_, value)) = steps.next_if(|(from, _)| *from <= request) {
                reserved = value;
            }
            Peak { request, allocated, reserved }
        })
    }

    /// The curve in at most `buckets` stretches of equal length, each with its highest values, so
    /// that no peak is lost.
    #[must_use]
    pub fn buckets(&self, buckets: usize) -> Vec<CurveBucket> {
        let length = self.len().div_ceil(buckets.max(1)).max(1);
        let mut list: Vec<CurveBucket> = Vec::with_capacity(buckets.min(self.len()));
        for point in self.iter() {
            match list.last_mut() {
                Some(bucket) if point.request.0 < bucket.first.0 + length => {
                    bucket.last = point.request;
                    bucket.allocated = bucket.allocated.max(point.allocated);
                    bucket.reserved = bucket.reserved.max(point.reserved);
                }
                _ => list.push(CurveBucket {
                    first: point.request,
                    last: point.request,
                    allocated: point.allocated,
                    reserved: point.reserved,
                }),
            }
        }
        list
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_keep_the_highest_values_of_each_stretch() {
        let mut curve = Curve::with_capacity(5);
        for (allocated, reserved) in [(1, 10), (4, 10), (2, 10), (3, 20), (0, 20)] {
            curve.push(Bytes(allocated), Bytes(reserved));
        }
        let reserved: Vec<_> = curve.iter().map(|p| p.reserved.get()).collect();
        assert_eq!(reserved, [10, 10, 10, 20, 20]);
        assert_eq!(curve.reserved_at(RequestIndex(2)), Bytes(10));
        assert_eq!(curve.reserved_at(RequestIndex(4)), Bytes(20));
        let buckets: Vec<_> = curve
            .buckets(2)
            .iter()
            .map(|b| (b.first.0, b.last.0, b.allocated.get(), b.reserved.get()))
            .collect();
        assert_eq!(buckets, [(0, 2, 4, 10), (3, 4, 3, 20)]);
        assert!(curve.buckets(0).len() == 1 && Curve::default().buckets(3).is_empty());
    }
}

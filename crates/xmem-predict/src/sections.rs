//! The requests of each iteration.

use std::ops::Range;
use xmem_types::IterationId;

/// The requests of a job by iteration. Sections are in order and leave nothing out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sections(Vec<(Option<IterationId>, Range<usize>)>);

impl Sections {
    /// Sections of `count` requests, `starts` being the first request of each iteration.
    pub(crate) fn new(starts: &[usize], count: usize) -> Self {
        let mut sections = Vec::with_capacity(starts.len() + 1);
        let first = starts.first().copied().unwrap_or(count);
        if first > 0 {
            sections.push((None, 0..first));
        }
        for (i, &start) in starts.iter().enumerate() {
            let end = starts.get(i + 1).copied().unwrap_or(count);
            sections.push((Some(IterationId::new(i)), start..end));
        }
        Self(sections)
    }

    /// The requests of the iterations `from..to`; what comes before iteration 0 belongs to it.
    pub(crate) fn of_iterations(&self, from: IterationId, to: IterationId) -> Range<usize> {
        let selected = |id: &Option<IterationId>| {
            let id = id.unwrap_or(IterationId(0));
            from <= id && id < to
        };
        let mut range: Option<Range<usize>> = None;
        for (_, r) in self.0.iter().filter(|(id, _)| selected(id)) {
            range = Some(range.map_or(r.clone(), |known| known.start..r.end));
        }
        range.unwrap_or(0..0)
    }

    /// The sections that `within` touches, cut to it.
    pub(crate) fn clipped(
        &self,
        within: &Range<usize>,
    ) -> impl Iterator<Item = (Option<IterationId>, Range<usize>)> {
        let within = within.clone();
        self.0.iter().filter_map(move |(id, r)| {
            let range = r.start.max(within.start)..r.end.min(within.end);
            (!range.is_empty()).then_some((*id, range))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_before_the_first_iteration_belongs_to_it() {
        let sections = Sections::new(&[2, 5], 9);
        let id = IterationId;
        assert_eq!(sections.of_iterations(id(0), id(1)), 0..5);
        assert_eq!(sections.of_iterations(id(1), id(2)), 5..9);
        assert_eq!(sections.of_iterations(id(0), id(2)), 0..9);
    }
}

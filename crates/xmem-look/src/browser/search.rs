//! The search for a text in the list that is shown.

use super::Browser;
use crate::layout::List;

/// The direction of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    Forward,
    Backward,
}

impl Browser {
    /// Selects the next row that has the text, after the selected one and then from the other end.
    pub(super) fn seek(&mut self, direction: Direction) {
        if self.query.is_empty() {
            return;
        }
        let query = self.query.to_lowercase();
        let found = match self.list {
            List::Tree => self.seek_node(&query, direction),
            List::Blocks => self.seek_block(&query, direction),
        };
        if !found {
            self.remark = format!("nothing here has `{}`", self.query);
        }
    }

    fn seek_node(&mut self, query: &str, direction: Direction) -> bool {
        let all = self.tree.all();
        let selected = self.tree.selected().map(|row| &row.path);
        let from = selected.and_then(|path| all.iter().position(|other| other == path));
        let has =
            |row: usize| all[row].last().is_some_and(|name| name.to_lowercase().contains(query));
        let found =
            order(all.len(), from.unwrap_or(0), direction).into_iter().find(|&row| has(row));
        if let Some(row) = found {
            self.tree.reveal(&all[row]);
        }
        found.is_some()
    }

    fn seek_block(&mut self, query: &str, direction: Direction) -> bool {
        let timeline = &self.subject.timeline;
        let has = |row: usize| {
            let block = &timeline.blocks[self.blocks.rows[row] as usize];
            let texts = [block.op, block.module, block.line].map(|id| timeline.text(id));
            let words = texts.into_iter().chain([block.role.name(), block.rule.unwrap_or("")]);
            words.into_iter().any(|text| text.to_lowercase().contains(query))
        };
        let rows = order(self.blocks.rows.len(), self.blocks.selected, direction);
        let found = rows.into_iter().find(|&row| has(row));
        if let Some(row) = found {
            self.blocks.select(row);
        }
        found.is_some()
    }
}

/// The rows after one, all the way round to itself.
fn order(count: usize, from: usize, direction: Direction) -> Vec<usize> {
    let step = |by: usize| match direction {
        Direction::Forward => (from + by) % count,
        Direction::Backward => (from + count - by) % count,
    };
    (1..=count).map(step).collect()
}

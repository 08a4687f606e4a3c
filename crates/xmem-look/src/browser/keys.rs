//! What keys do.

use super::Browser;
use super::search::Direction;
use crate::key::{Key, KeyOutcome};
use crate::layout::List;
use xmem::predict::BlockKey;

/// The fewest moments that a window shows.
const SHORTEST: u32 = 8;

/// The columns of a large step of the cursor.
const LARGE_STEP: usize = 10;

/// The keys that choose what blocks are told apart by.
pub(crate) const KEYS: [(char, BlockKey); 5] = [
    ('1', BlockKey::Role),
    ('2', BlockKey::Module),
    ('3', BlockKey::Line),
    ('4', BlockKey::Op),
    ('5', BlockKey::Stack),
];

impl Browser {
    /// The state after a key.
    pub fn press(&mut self, key: Key) -> KeyOutcome {
        self.remark.clear();
        match key {
            Key::Interrupt => return KeyOutcome::Quit,
            _ if self.shows_help => self.shows_help = false,
            _ if self.prompt.is_some() => self.type_key(key),
            Key::Char('q') => return KeyOutcome::Quit,
            _ => self.act(key),
        }
        KeyOutcome::Continue
    }

    fn act(&mut self, key: Key) {
        match key {
            Key::Char('?') => self.shows_help = true,
            Key::Char('/') => self.prompt = Some(String::new()),
            Key::Char('n') => self.seek(Direction::Forward),
            Key::Char('N') => self.seek(Direction::Backward),
            Key::Left | Key::Char('h') => self.step(-1),
            Key::Right | Key::Char('l') => self.step(1),
            Key::Char('H') => self.step(-(LARGE_STEP as isize)),
            Key::Char('L') => self.step(LARGE_STEP as isize),
            Key::Char(',') => self.go_to(self.cursor.saturating_sub(1)),
            Key::Char('.') => self.go_to(self.cursor.saturating_add(1)),
            Key::Char('[') => self.change_iteration(Direction::Backward),
            Key::Char(']') => self.change_iteration(Direction::Forward),
            Key::Char('p') => self.go_to(self.subject.timeline.peak),
            Key::Char('r') => self.go_to(self.subject.timeline.reserved_peak),
            Key::Char('o') => match self.subject.timeline.out_of_memory {
                Some(moment) => self.go_to(moment),
                None => "memory does not run out on this device".clone_into(&mut self.remark),
            },
            Key::Char('+' | '=') => self.zoom(Direction::Forward),
            Key::Char('-') => self.zoom(Direction::Backward),
            Key::Char('0') => {
                self.window = self.whole();
                self.redraw();
            }
            Key::Tab => {
                self.list = match self.list {
                    List::Tree => List::Blocks,
                    List::Blocks => List::Tree,
                };
            }
            Key::Char('b') => self.show_blocks(),
            Key::Escape => self.show_all(),
            Key::Enter | Key::Char(' ') => {
                if self.list == List::Tree && !self.tree.toggle() {
                    self.show_blocks();
                }
            }
            Key::Up | Key::Char('k') => self.move_by(-1),
            Key::Down | Key::Char('j') => self.move_by(1),
            Key::PageUp => self.move_by(-(self.layout().page() as isize)),
            Key::PageDown => self.move_by(self.layout().page() as isize),
            Key::Home | Key::Char('g') => self.move_by(isize::MIN),
            Key::End | Key::Char('G') => self.move_by(isize::MAX),
            Key::Char(letter) => {
                if let Some(&(_, key)) = KEYS.iter().find(|(known, _)| *known == letter) {
                    self.change_key(key);
                }
            }
            Key::Backspace | Key::Interrupt => {}
        }
    }

    /// A key of a text that is being typed.
    fn type_key(&mut self, key: Key) {
        let Some(text) = &mut self.prompt else { return };
        match key {
            Key::Char(letter) => text.push(letter),
            Key::Backspace => {
                let was_empty = text.pop().is_none();
                if was_empty {
                    self.prompt = None;
                }
            }
            Key::Enter => {
                let text = std::mem::take(text);
                self.prompt = None;
                // An empty text repeats the last search.
                if !text.is_empty() {
                    self.query = text;
                }
                self.seek(Direction::Forward);
            }
            Key::Escape => self.prompt = None,
            _ => {}
        }
    }

    /// Moves the cursor by columns.
    fn step(&mut self, by: isize) {
        let columns = &self.chart.columns;
        let Some(at) = self.chart.column_of(self.cursor) else { return };
        let last = columns.len() - 1;
        let to = at.saturating_add_signed(by).min(last);
        // With fewer moments than columns, several columns are the same moments.
        let is_other = |column: &usize| columns[*column].moments != columns[at].moments;
        let found = match by < 0 {
            true => (0..=to).rev().find(is_other),
            false => (to..=last).find(is_other),
        };
        let Some(to) = found else {
            let beyond =
                if by < 0 { self.window.start.checked_sub(1) } else { Some(self.window.end) };
            if let Some(moment) = beyond {
                self.go_to(moment);
            }
            return;
        };
        self.go_to(columns[to].highest);
    }

    /// Halves or doubles the window around the cursor.
    fn zoom(&mut self, direction: Direction) {
        let whole = self.whole();
        let length = self.window.end - self.window.start;
        let longest = whole.end - whole.start;
        let other = match direction {
            Direction::Forward => (length / 2).max(SHORTEST.min(longest)),
            Direction::Backward => length.saturating_mul(2).min(longest),
        };
        if other == length || length == 0 {
            return;
        }
        let before = u64::from(self.cursor.saturating_sub(self.window.start));
        let before = (before * u64::from(other) / u64::from(length)) as u32;
        let start = self.cursor.saturating_sub(before).clamp(whole.start, whole.end - other);
        self.window = start..start + other;
        self.redraw();
    }

    /// Moves the cursor to the beginning of the iteration, and then of the one before, or to the next one.
    fn change_iteration(&mut self, direction: Direction) {
        let mut starts: Vec<u32> = Vec::new();
        let mut last = None;
        for span in &self.subject.timeline.phases {
            if span.iteration != last {
                last = span.iteration;
                starts.push(span.moments.start);
            }
        }
        let found = match direction {
            Direction::Forward => starts.iter().find(|start| **start > self.cursor),
            Direction::Backward => starts.iter().rev().find(|start| **start < self.cursor),
        };
        if let Some(&start) = found {
            self.go_to(start);
        }
    }

    fn change_key(&mut self, key: BlockKey) {
        if key != self.key {
            self.key = key;
            self.tree = super::TreeList::new(&self.subject.timeline, self.cursor, key);
        }
        self.list = List::Tree;
    }

    /// Lists the blocks of the selected node.
    fn show_blocks(&mut self) {
        if self.list == List::Tree
            && let Some(row) = self.tree.selected()
        {
            let name = row.name().to_owned();
            self.blocks.show_node(&self.subject.timeline, self.tree.blocks(), &name);
            self.list = List::Blocks;
        }
    }

    /// Lists all blocks again, or goes back to the tree.
    fn show_all(&mut self) {
        if self.list == List::Blocks && self.blocks.of.is_some() {
            self.blocks.show(&self.subject.timeline, self.cursor);
        }
        self.list = List::Tree;
    }

    /// Moves the selection of the list.
    fn move_by(&mut self, rows: isize) {
        match self.list {
            List::Tree => self.tree.select(self.tree.selected.saturating_add_signed(rows)),
            List::Blocks => self.blocks.select(self.blocks.selected.saturating_add_signed(rows)),
        }
    }
}

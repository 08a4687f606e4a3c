//! Keys, as far as they mean something.

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

/// A key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// A character.
    Char(char),
    /// Arrow to the left.
    Left,
    /// Arrow to the right.
    Right,
    /// Arrow up.
    Up,
    /// Arrow down.
    Down,
    /// A page up.
    PageUp,
    /// A page down.
    PageDown,
    /// To the beginning.
    Home,
    /// To the end.
    End,
    /// Enter.
    Enter,
    /// Escape.
    Escape,
    /// Tabulator.
    Tab,
    /// Backspace.
    Backspace,
    /// Ctrl-C.
    Interrupt,
}

/// What follows a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyOutcome {
    /// The next key.
    Continue,
    /// The end.
    Quit,
}

impl Key {
    /// The key of an event of the terminal; none of others, and of keys that are released.
    pub(crate) fn of(event: &KeyEvent) -> Option<Self> {
        if event.kind == KeyEventKind::Release {
            return None;
        }
        let has = |modifier| event.modifiers.contains(modifier);
        Some(match event.code {
            KeyCode::Char('c' | 'd') if has(KeyModifiers::CONTROL) => Self::Interrupt,
            KeyCode::Char(_) if has(KeyModifiers::CONTROL) || has(KeyModifiers::ALT) => {
                return None;
            }
            KeyCode::Char(letter) => Self::Char(letter),
            KeyCode::Left => Self::Left,
            KeyCode::Right => Self::Right,
            KeyCode::Up => Self::Up,
            KeyCode::Down => Self::Down,
            KeyCode::PageUp => Self::PageUp,
            KeyCode::PageDown => Self::PageDown,
            KeyCode::Home => Self::Home,
            KeyCode::End => Self::End,
            KeyCode::Enter => Self::Enter,
            KeyCode::Esc => Self::Escape,
            KeyCode::Tab | KeyCode::BackTab => Self::Tab,
            KeyCode::Backspace => Self::Backspace,
            _ => return None,
        })
    }
}

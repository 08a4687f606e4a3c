//! Colors, or what stands for them.

use ratatui_core::style::{Color, Modifier, Style};
use xmem::analyzer::Role;

/// Whether the terminal has colors, and the user wants them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Palette {
    /// Areas are colored.
    Color,
    /// Areas are filled with letters.
    Letters,
}

/// The meaning of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ink {
    Plain,
    Heading,
    Faint,
    Warning,
    Selected,
}

impl Palette {
    /// The style of a text.
    pub(super) fn style(self, ink: Ink) -> Style {
        let style = Style::new();
        match (ink, self) {
            (Ink::Plain, _) => style,
            (Ink::Heading, _) => style.add_modifier(Modifier::BOLD),
            (Ink::Faint, _) => style.add_modifier(Modifier::DIM),
            (Ink::Warning, Self::Color) => style.fg(Color::Yellow),
            (Ink::Warning, Self::Letters) => style.add_modifier(Modifier::BOLD),
            (Ink::Selected, _) => style.add_modifier(Modifier::REVERSED),
        }
    }

    /// The style of the area of a role.
    pub(super) fn role(self, name: &str) -> Style {
        let color = match role(name) {
            Some(Role::Parameter) => Color::Blue,
            Some(Role::Buffer) => Color::LightBlue,
            Some(Role::Gradient) => Color::Red,
            Some(Role::OptimizerState) => Color::Magenta,
            Some(Role::Activation) => Color::Green,
            Some(Role::Input) => Color::Cyan,
            Some(Role::Temporary) => Color::Yellow,
            Some(Role::Workspace) => Color::LightRed,
            _ => Color::DarkGray,
        };
        match self {
            Self::Color => Style::new().fg(color),
            Self::Letters => Style::new(),
        }
    }

    /// The style of the line of reserved memory.
    pub(super) fn reserved(self) -> Style {
        Style::new()
    }
}

/// The letter of the area of a role.
pub(super) fn letter(name: &str) -> char {
    match role(name) {
        Some(Role::Parameter) => 'P',
        Some(Role::Buffer) => 'B',
        Some(Role::Gradient) => 'G',
        Some(Role::OptimizerState) => 'O',
        Some(Role::Activation) => 'A',
        Some(Role::Input) => 'I',
        Some(Role::Temporary) => 'T',
        Some(Role::Workspace) => 'W',
        _ => 'u',
    }
}

fn role(name: &str) -> Option<Role> {
    Role::ALL.into_iter().find(|role| role.name() == name)
}

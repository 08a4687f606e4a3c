//! The colors of areas: those of Okabe and Ito ("Color Universal Design", 2008), which people with any kind of color
//! vision can tell apart, and two grays.

use xmem::analyzer::Role;
use xmem::predict::StackedGroup;

/// A color, in both color schemes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Palette {
    Blue,
    Sky,
    Orange,
    Green,
    Purple,
    Yellow,
    Silver,
    Vermilion,
    Gray,
}

pub(crate) const STYLE: &str = "\
.blue{fill:#0072b2}.sky{fill:#56b4e9}.orange{fill:#e69f00}.green{fill:#009e73}.purple{fill:#cc79a7}\
.yellow{fill:#f0e442}.silver{fill:#b6bdc5}.vermilion{fill:#d55e00}.gray{fill:#6e7781}";

pub(crate) const DARK_STYLE: &str = "\
.blue{fill:#2384c1}.sky{fill:#4ea3d3}.orange{fill:#d08f00}.green{fill:#058e69}.purple{fill:#ba6e98}\
.yellow{fill:#d9ce3b}.silver{fill:#8b949e}.vermilion{fill:#c45803}.gray{fill:#57606a}";

impl Palette {
    /// The color of a role, in every picture.
    pub(crate) fn of_role(role: Role) -> Self {
        match role {
            Role::Parameter => Self::Blue,
            Role::Buffer => Self::Sky,
            Role::Gradient => Self::Orange,
            Role::OptimizerState => Self::Green,
            Role::Activation => Self::Purple,
            Role::Input => Self::Yellow,
            Role::Temporary => Self::Silver,
            Role::Workspace => Self::Vermilion,
            _ => Self::Gray,
        }
    }

    /// The color of a role by its name; gray for none.
    pub(crate) fn of_role_named(name: &str) -> Self {
        Role::ALL.into_iter().find(|role| role.name() == name).map_or(Self::Gray, Self::of_role)
    }

    /// The colors of groups that have none of their own, by their names: gray where the name is not known, silver for
    /// the small ones together.
    pub(crate) fn of_groups<'a>(names: impl Iterator<Item = &'a str>) -> Vec<Self> {
        const ORDER: [Palette; 7] = [
            Palette::Blue,
            Palette::Orange,
            Palette::Green,
            Palette::Purple,
            Palette::Sky,
            Palette::Vermilion,
            Palette::Yellow,
        ];
        let mut colors = ORDER.into_iter();
        names
            .map(|name| match name {
                "" => Self::Gray,
                StackedGroup::OTHER => Self::Silver,
                _ => colors.next().unwrap_or(Self::Silver),
            })
            .collect()
    }

    /// The class of an area.
    pub(crate) const fn fill(self) -> &'static str {
        match self {
            Self::Blue => "blue",
            Self::Sky => "sky",
            Self::Orange => "orange",
            Self::Green => "green",
            Self::Purple => "purple",
            Self::Yellow => "yellow",
            Self::Silver => "silver",
            Self::Vermilion => "vermilion",
            Self::Gray => "gray",
        }
    }

    /// The class of a text on an area: that with more contrast, by the ratio of WCAG 2.
    pub(crate) const fn text(self) -> &'static str {
        match self {
            Self::Blue | Self::Gray => "small ondark",
            _ => "small onlight",
        }
    }
}

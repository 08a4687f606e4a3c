//! The places of the parts on a screen.

/// The smallest screen.
const SMALLEST: (u16, u16) = (50, 14);

/// From this width on, the tree and the blocks stand side by side.
const WIDE: u16 = 130;

/// Rows for the details of a block, and for the path of a part of the tree.
const DETAILS: [u16; 2] = [4, 1];

/// The list below the chart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum List {
    /// What is allocated, by name.
    Tree,
    /// The blocks.
    Blocks,
}

/// Columns at the left of the chart, for sizes.
pub(crate) const MARGIN: u16 = 11;

/// The rows of a screen, from the top: the headline, the chart with two rows below it and a legend, the cursor, the
/// heading of the lists with their rows, the details of a block, and the keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) width: u16,
    pub(crate) height: u16,
    pub(crate) chart: u16,
    pub(crate) list: u16,
}

impl Layout {
    /// The layout with a list, which decides how much is said about its selected row.
    pub(crate) fn new(width: u16, height: u16, list: List) -> Self {
        // Headline, phases, iterations, legend, cursor, heading, keys.
        let rows = height.saturating_sub(7);
        let chart = (rows * 2 / 5).clamp(2, 20);
        let [of_block, of_node] = DETAILS;
        let details = if list == List::Tree && width < WIDE { of_node } else { of_block };
        Self { width, height, chart, list: rows.saturating_sub(chart + details) }
    }

    pub(crate) fn is_too_small(&self) -> bool {
        self.width < SMALLEST.0 || self.height < SMALLEST.1
    }

    /// The smallest screen, for people.
    pub(crate) fn smallest() -> String {
        format!("{}x{}", SMALLEST.0, SMALLEST.1)
    }

    /// Columns of the chart.
    pub(crate) fn columns(&self) -> usize {
        usize::from(self.width.saturating_sub(MARGIN)).max(1)
    }

    /// Rows of a list.
    pub(crate) fn page(&self) -> usize {
        usize::from(self.list).max(1)
    }

    /// The columns of the tree, if the blocks stand beside it.
    pub(crate) fn split(&self) -> Option<u16> {
        (self.width >= WIDE).then_some(self.width / 2)
    }

    /// The first row of the chart.
    pub(crate) fn chart_top(&self) -> u16 {
        1
    }

    /// The row of phases; that of iterations, the legend and the cursor follow.
    pub(crate) fn phases(&self) -> u16 {
        self.chart_top() + self.chart
    }

    /// The row of the headings of lists.
    pub(crate) fn heading(&self) -> u16 {
        self.phases() + 4
    }

    /// The first row of details.
    pub(crate) fn details(&self) -> u16 {
        self.heading() + 1 + self.list
    }
}

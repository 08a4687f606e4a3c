//! Tables that tasks print: for a terminal, or for the book.

/// The form of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Aligned columns.
    Text,
    /// Markdown, for the book.
    Markdown,
}

/// A table of which the first columns are words, and the others figures.
pub(crate) struct Table<const N: usize> {
    pub(crate) head: [&'static str; N],
    /// The number of columns with words.
    pub(crate) words: usize,
    pub(crate) rows: Vec<[String; N]>,
}

impl<const N: usize> Table<N> {
    /// The lines of the table in Markdown.
    pub(crate) fn markdown(&self) -> String {
        let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
        let figures = N - self.words;
        let rule = format!("|{}{}\n", "---|".repeat(self.words), "--:|".repeat(figures));
        let rows = self.rows.iter().map(|row| line(row));
        [line(&self.head.map(str::to_owned)), rule].into_iter().chain(rows).collect()
    }

    /// The lines of the table with columns as wide as their widest cell: words to the left, figures to the right.
    pub(crate) fn aligned(&self) -> String {
        let head = self.head.map(str::to_owned);
        let lines = || std::iter::once(&head).chain(&self.rows);
        let width = |column: usize| lines().map(|line| line[column].chars().count()).max();
        let widths: Vec<usize> = (0..N).filter_map(width).collect();
        let padded = |line: &[String; N]| {
            let cells: Vec<String> = line
                .iter()
                .zip(&widths)
                .enumerate()
                .map(|(column, (cell, &width))| match column < self.words {
                    true => format!("{cell:width$}"),
                    false => format!("{cell:>width$}"),
                })
                .collect();
            cells.join("  ") + "\n"
        };
        lines().map(padded).collect()
    }
}

/// Bytes in MiB.
pub(crate) fn mib(bytes: f64) -> f64 {
    bytes / (1024.0 * 1024.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table<3> {
        let row = |cells: [&str; 3]| cells.map(str::to_owned);
        Table {
            head: ["case", "size", "error"],
            words: 1,
            rows: vec![row(["≥ a", "1.0", "+0.10 %"]), row(["a_long_name", "1200.5", "–"])],
        }
    }

    #[test]
    fn words_stand_to_the_left_and_figures_to_the_right() {
        assert_eq!(
            table().aligned(),
            "case           size    error\n\
             ≥ a             1.0  +0.10 %\n\
             a_long_name  1200.5        –\n"
        );
    }

    #[test]
    fn markdown_says_which_columns_are_figures() {
        assert_eq!(
            table().markdown(),
            "| case | size | error |\n|---|--:|--:|\n| ≥ a | 1.0 | +0.10 % |\n| a_long_name | 1200.5 | – |\n"
        );
    }
}

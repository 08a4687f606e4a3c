//! Aligned columns.

use crate::style::{Ink, Style, keep_end};
use std::collections::BTreeSet;
use xmem::types::printable;

/// The alignment of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Right,
    /// Left, and shortened at the beginning if the line is too long; the last such column first.
    Rest,
}

/// Rows under headings.
pub(crate) struct Table {
    columns: Vec<(String, Align)>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new(columns: &[(&'static str, Align)]) -> Self {
        Self::named(columns.iter().map(|&(name, align)| (name.to_owned(), align)).collect())
    }

    /// A table whose headings are data.
    pub(crate) const fn named(columns: Vec<(String, Align)>) -> Self {
        Self { columns, rows: Vec::new() }
    }

    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        let printable = |cell: String| printable(&cell).into_owned();
        self.rows.push(cells.into_iter().map(printable).collect());
    }

    /// The table, indented by two; columns that are empty in every row are left out.
    pub(crate) fn render(&self, style: &Style) -> String {
        let shown: Vec<usize> = (0..self.columns.len())
            .filter(|&c| self.rows.iter().any(|r| !r[c].is_empty()))
            .collect();
        let widths = self.widths(&shown, style.columns());
        let mut page = String::new();
        let headings: Vec<&str> = self.columns.iter().map(|c| c.0.as_str()).collect();
        let heading = self.line(&shown, &widths, |c| headings[c]);
        page += &format!("  {}\n", style.paint(Ink::Faint, &heading));
        for row in &self.rows {
            page += &format!("  {}\n", self.line(&shown, &widths, |c| &row[c]));
        }
        page
    }

    fn widths(&self, shown: &[usize], columns: usize) -> Vec<usize> {
        let longest = |&c: &usize| {
            let cells = self.rows.iter().map(|r| r[c].chars().count());
            cells.chain([self.columns[c].0.chars().count()]).max().unwrap_or(0)
        };
        let mut widths: Vec<usize> = shown.iter().map(longest).collect();
        let mut over = (2 + widths.iter().sum::<usize>() + 2 * widths.len().saturating_sub(1))
            .saturating_sub(columns);
        for (width, c) in
            widths.iter_mut().zip(shown).rev().filter(|(_, c)| self.columns[**c].1 == Align::Rest)
        {
            let least = self.least_width(*c, 12.min(*width), *width);
            let cut = over.min(*width - least);
            *width -= cut;
            over -= cut;
        }
        widths
    }

    /// The least width from `from` to `to` at which no two cells of a column look the same that are not.
    fn least_width(&self, c: usize, from: usize, to: usize) -> usize {
        let cells: BTreeSet<&str> = self.rows.iter().map(|row| row[c].as_str()).collect();
        let differ = |width: &usize| {
            let shown: BTreeSet<_> = cells.iter().map(|cell| keep_end(cell, *width)).collect();
            shown.len() == cells.len()
        };
        (from..to).find(differ).unwrap_or(to)
    }

    fn line<'a>(
        &self,
        shown: &[usize],
        widths: &[usize],
        cell: impl Fn(usize) -> &'a str,
    ) -> String {
        let mut line = String::new();
        for (&c, &width) in shown.iter().zip(widths) {
            let text = cell(c);
            line += &match self.columns[c].1 {
                Align::Left => format!("{text:<width$}  "),
                Align::Right => format!("{text:>width$}  "),
                Align::Rest => format!("{:<width$}  ", keep_end(text, width)),
            };
        }
        line.trim_end().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::style::Color;

    #[test]
    fn two_traces_were_shown_under_one_shortened_name() {
        let mut table = Table::new(&[("trace", Align::Rest), ("note", Align::Left)]);
        let names = ["first", "second"]
            .map(|run| format!("experiments/{run}/with/a/long/name/trace.json.zst"));
        for name in &names {
            table.row([name.clone(), "x".repeat(60)]);
        }
        let page = table.render(&Style { color: Color::Plain, width: 80 });
        let shown: Vec<&str> =
            page.lines().skip(1).filter_map(|l| l.split_whitespace().next()).collect();
        assert_eq!(shown.len(), 2, "{page}");
        assert_ne!(shown[0], shown[1], "{page}");
        assert!(shown[0].starts_with('…'), "{page}");
    }
}

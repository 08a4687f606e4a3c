//! The page of the book: what figures and results come to.

use super::catalogue::Source;
use super::figures::{Figure, Results, Run};
use crate::table::Table;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;
use xmem_task::{Error, repo};

const PAGE: &str = "docs/results/published-figures.md";

const HEAD: &str = "# Published figures, source by source

Figures that others **measured on GPUs** and published with their scripts. The same scripts, at the commit of the figure,
ran on a [virtual GPU](../reference/virtual-gpu.md) of the same kind: PyTorch's CUDA build, kernels stubbed. \"Equal\" is
equal in all published digits, and counts as no error; other errors are shares of the published figure.
`cargo xtask published` repeats it, and writes this page. [Against published measurements](published.md) has figures that
were compared by hand.
";

/// The most figures of a group, on average, of a source that are shown one by one.
const MAX_OF_A_GROUP: usize = 2;

/// A figure with what its run gave, if it ran.
type Pair<'a> = (&'a Figure, Option<f64>);

/// Writes the page.
pub(super) fn write(sources: &[Source]) -> Result<(), Error> {
    let path = path();
    std::fs::write(&path, text(sources)?).map_err(Error::file(path))
}

fn path() -> PathBuf {
    repo::root().join(PAGE)
}

/// The page.
fn text(sources: &[Source]) -> Result<String, Error> {
    let mut body = String::new();
    let mut rows = Vec::new();
    for source in sources {
        let figures = source.figures()?;
        let results = Results::read(&source.name)?;
        let pairs = figures.iter().map(|figure| (figure, results.of(figure)));
        let [devices, count, ran, equal, median, p90, worst] = Summary::of(pairs).cells();
        let link = format!("[{}](#{})", source.publisher(), anchor(source.publisher()));
        rows.push([link, devices, count, ran, equal, median, p90, worst]);
        body += &section(source, &figures, &results);
    }
    let head =
        ["source", "GPUs", "figures", "ran", "equal", "median error", "90th percentile", "worst"];
    let table = Table { head, words: 2, rows };
    Ok(format!("{HEAD}\n{}{body}", table.markdown()))
}

fn anchor(title: &str) -> String {
    title.to_lowercase().replace('/', "")
}

fn section(source: &Source, figures: &[Figure], results: &Results) -> String {
    let mut groups: BTreeMap<(&str, &str), Vec<Pair<'_>>> = BTreeMap::new();
    for figure in figures {
        let group = (figure.run.group.as_str(), figure.run.device.as_str());
        groups.entry(group).or_default().push((figure, results.of(figure)));
    }
    // A few figures are shown themselves.
    let table = match figures.len() <= MAX_OF_A_GROUP * groups.len() {
        true => figures_one_by_one(figures, results),
        false => figures_by_group(groups),
    };
    let mut text = format!(
        "\n## {}\n\n{}, license {}.\n\n{}\n\n{}",
        source.publisher(),
        link(source),
        source.license,
        source.about.trim(),
        table,
    );
    if !source.cause.is_empty() {
        text += "\nWhat is known about the differences:\n\n";
        for (group, cause) in &source.cause {
            _ = writeln!(text, "- `{group}`: {}", cause.trim().replace('\n', "\n  "));
        }
    }
    text
}

/// Each figure with its result.
fn figures_one_by_one(figures: &[Figure], results: &Results) -> String {
    let rows = figures.iter().map(|figure| {
        let Run { group, device, .. } = &figure.run;
        let result = results.of(figure);
        let difference = result.map(|result| per_cent(figure.error(result)));
        let none = || "–".to_owned();
        [
            format!("`{group}`"),
            format!("`{device}`"),
            figure.key.clone(),
            format!("{} {}", figure.text, figure.unit),
            result.map_or_else(none, |result| result.to_string()),
            difference.unwrap_or_else(none),
        ]
    });
    let head = ["group", "device", "memory", "published", "virtual GPU", "difference"];
    Table { head, words: 3, rows: rows.collect() }.markdown()
}

/// What the figures of each group come to.
fn figures_by_group(groups: BTreeMap<(&str, &str), Vec<Pair<'_>>>) -> String {
    let rows = groups.into_iter().map(|((group, device), pairs)| {
        let [_, figures, ran, equal, median, p90, worst] = Summary::of(pairs.into_iter()).cells();
        [format!("`{group}`"), format!("`{device}`"), figures, ran, equal, median, p90, worst]
    });
    let head =
        ["group", "device", "figures", "ran", "equal", "median error", "90th percentile", "worst"];
    Table { head, words: 2, rows: rows.collect() }.markdown()
}

fn link(source: &Source) -> String {
    format!("[{}](https://github.com/{})", source.title, source.publisher())
}

/// Errors of results.
struct Summary<'a> {
    figures: usize,
    devices: Vec<&'a str>,
    equal: usize,
    /// Of those that ran, by size.
    errors: Vec<f64>,
}

impl<'a> Summary<'a> {
    fn of(pairs: impl Iterator<Item = Pair<'a>>) -> Self {
        let pairs: Vec<_> = pairs.collect();
        let mut devices: Vec<&str> = pairs.iter().map(|(figure, _)| &*figure.run.device).collect();
        devices.sort_unstable();
        devices.dedup();
        let ran: Vec<(&Figure, f64)> =
            pairs.iter().filter_map(|(figure, result)| Some((*figure, (*result)?))).collect();
        let mut errors: Vec<f64> =
            ran.iter().map(|(figure, result)| figure.error(*result)).collect();
        errors.sort_by(|one, other| one.abs().total_cmp(&other.abs()));
        let equal = ran.iter().filter(|(figure, result)| figure.equals(*result)).count();
        Self { figures: pairs.len(), devices, equal, errors }
    }

    /// The devices, the numbers of figures, of those that ran and of equal ones, and three errors.
    fn cells(&self) -> [String; 7] {
        let at = |share: f64| {
            let last = self.errors.len().checked_sub(1)?;
            self.errors.get((last as f64 * share).round() as usize)
        };
        let error = |error: Option<&f64>| error.map_or("–".to_owned(), |error| per_cent(*error));
        let size = |error: Option<&f64>| {
            error.map_or("–".to_owned(), |error| per_cent(error.abs()).replace('+', ""))
        };
        [
            self.devices.join(", "),
            self.figures.to_string(),
            self.errors.len().to_string(),
            self.equal.to_string(),
            size(at(0.5)),
            size(at(0.9)),
            error(at(1.0)),
        ]
    }
}

fn per_cent(share: f64) -> String {
    match share * 100.0 {
        0.0 => "0".to_owned(),
        small if small.abs() < 0.01 => format!("{small:+.4} %"),
        other => format!("{other:+.2} %"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::published::catalogue;

    #[test]
    fn the_page_is_what_the_results_come_to() {
        let sources = catalogue::read().expect("the catalogue");
        let text = text(&sources).expect("the page");
        let kept = std::fs::read_to_string(path()).expect("the page of the book");
        assert!(kept == text, "run cargo xtask published --page-only");
    }
}

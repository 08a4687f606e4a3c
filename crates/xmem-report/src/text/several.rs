//! Several traces: a row each.

use super::look::Look;
use super::setup;
use super::tabular::{Align, Tabular};
use xmem::{Answer, Verdict};

/// A table of answers; traces without one have a row that says so.
#[must_use]
pub fn table<'a>(
    entries: impl IntoIterator<Item = (&'a str, Option<&'a Answer>)>,
    look: &Look,
) -> String {
    let mut table = Tabular::new(&[
        ("trace", Align::Rest),
        ("verdict", Align::Left),
        ("allocated", Align::Right),
        ("reserved", Align::Right),
        ("nvidia-smi", Align::Right),
        ("headroom", Align::Right),
        ("min capacity", Align::Right),
        ("peak", Align::Left),
    ]);
    let (traces, answers): (Vec<&str>, Vec<_>) = entries.into_iter().unzip();
    let allocators = allocators(answers.iter().flatten().copied(), look);
    for (name, answer) in short_names(&traces).iter().zip(answers) {
        match answer {
            Some(answer) => table.row(row(name, answer)),
            None => {
                let mut cells = vec![String::new(); 8];
                "UNREADABLE".clone_into(&mut cells[1]);
                name.clone_into(&mut cells[0]);
                table.row(cells);
            }
        }
    }
    table.render(look) + &allocators
}

/// The allocators that are not the usual one.
fn allocators<'a>(answers: impl Iterator<Item = &'a Answer>, look: &Look) -> String {
    let mut told: Vec<String> = answers
        .filter(|answer| !setup::is_usual(&answer.setup))
        .map(|answer| setup::lines(&answer.setup, "trace", look))
        .collect();
    told.sort();
    told.dedup();
    if told.is_empty() { String::new() } else { format!("\n{}", told.concat()) }
}

/// Paths without the folders and the file name that all of them share.
fn short_names(paths: &[&str]) -> Vec<String> {
    let parts: Vec<Vec<&str>> = paths.iter().map(|p| p.split('/').collect()).collect();
    let shortest = parts.iter().map(Vec::len).min().unwrap_or(0);
    let shared = |at: &dyn Fn(&[&str]) -> Option<String>| {
        parts.windows(2).all(|pair| at(&pair[0]) == at(&pair[1]))
    };
    let part = |p: &[&str], i: usize| p.get(i).map(|&t| t.to_owned());
    let head = (0..shortest.saturating_sub(1)).take_while(|&i| shared(&|p| part(p, i))).count();
    let tail = (1..shortest - head.min(shortest))
        .take_while(|&i| shared(&|p| part(p, p.len() - i)))
        .count();
    parts.iter().map(|p| p[head..p.len() - tail].join("/")).collect()
}

fn row(trace: &str, answer: &Answer) -> [String; 8] {
    let peak = &answer.peak;
    let verdict = match answer.verdict {
        Verdict::Fits => "FITS",
        Verdict::DoesNotFit => "DOES NOT FIT",
        Verdict::Withheld => "NO VERDICT",
    };
    let headroom = match (answer.headroom(), answer.shortfall()) {
        (_, Some(short)) => format!("-{short}"),
        (Some(free), None) => free.to_string(),
        (None, None) => String::new(),
    };
    [
        trace.to_owned(),
        verdict.to_owned(),
        peak.allocated.to_string(),
        peak.reserved.to_string(),
        peak.device.to_string(),
        headroom,
        answer.min_capacity.map(|c| c.to_string()).unwrap_or_default(),
        peak.at.as_ref().map(super::places::moment_in_short).unwrap_or_default(),
    ]
}

#[cfg(test)]
mod tests {
    use super::short_names;

    #[test]
    fn what_all_paths_share_is_left_out() {
        let short = |paths: &[&str]| short_names(paths).join(" ");
        assert_eq!(short(&["t/a/trace.json", "t/b/trace.json"]), "a b");
        assert_eq!(short(&["t/a.json", "t/b.json"]), "a.json b.json");
        assert_eq!(short(&["a.json", "t/a.json"]), "a.json t/a.json");
        assert_eq!(short(&["t/a.json", "t/a.json"]), "a.json a.json");
        assert_eq!(short(&["-", "x"]), "- x");
        assert_eq!(short(&["t/a/x/trace.json", "t/b/trace.json"]), "a/x b");
        assert_eq!(short(&[]), "");
    }
}

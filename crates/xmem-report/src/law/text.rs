//! For people.

use crate::style::{Ink, Style, wrap};
use xmem_studies::law::{LawPoint, LawTable};

/// How far a law reaches, and how far it can be trusted: one or two lines.
#[must_use]
pub fn law(law: &LawTable, style: &Style) -> String {
    let (Some(first), Some(last)) = (law.points.first(), law.points.last()) else {
        return String::new();
    };
    let heading = format!("Memory as a function of {}", law.subject.name);
    let mut text = format!("{}\n", style.paint(Ink::Heading, &heading));
    let (count, last) = (law.recorded.len(), last.value);
    text +=
        &format!("  {} from {} to {last}, by {count} recordings\n", law.subject.name, first.value);
    let needs = examples(law).map(|point| format!("{} needs {}", point.value, point.needs));
    text += &wrapped(&needs.collect::<Vec<_>>().join("; "), style);
    text + &match law.worst() {
        Some((allocated, needs)) => format!(
            "  {} of them left out in turn, and found again: allocated {}, needs {}\n",
            law.checks.len(),
            share(allocated),
            share(needs)
        ),
        None => "  not held against a further recording\n".to_owned(),
    }
}

/// The powers of two, and the ends.
fn examples(law: &LawTable) -> impl Iterator<Item = &LawPoint> {
    let (first, last) = (law.points.first(), law.points.last());
    let is_end =
        move |point: &LawPoint| [first, last].into_iter().flatten().any(|end| end == point);
    law.points.iter().filter(move |point| point.value.is_power_of_two() || is_end(point))
}

fn wrapped(text: &str, style: &Style) -> String {
    wrap(text, style.columns() - 2).iter().map(|line| format!("  {line}\n")).collect()
}

fn share(of: f64) -> String {
    match of {
        0.0 => "to the byte".to_owned(),
        small if small < 0.0005 => "within 0.1 %".to_owned(),
        some => format!("within {:.1} %", (some * 1000.0).ceil() / 10.0),
    }
}

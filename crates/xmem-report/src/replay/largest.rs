//! The largest blocks of an answer, equal ones of several layers in one row.

use crate::replay::text::moment_in;
use crate::style::{Ink, Style, keep_end};
use xmem::Answer;
use xmem::predict::LiveBlock;

/// Whether a row of the largest blocks has a line for its source.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sources {
    Shown,
    LeftOut,
}

/// Blocks that differ in the number of a layer at most, as one row.
struct Alike<'a> {
    block: &'a LiveBlock,
    count: usize,
    /// The module, with `*` for numbers in which the blocks differ.
    module: Option<String>,
}

/// The largest blocks in rows.
fn alike(blocks: &[LiveBlock]) -> Vec<Alike<'_>> {
    let key = |block: &LiveBlock| {
        let origin = &block.origin;
        let module = origin.module.as_deref().map(without_numbers);
        let place = (origin.iteration, origin.phase, origin.op().map(str::to_owned));
        (block.bytes, block.role, block.rule, place, module, origin.line.clone())
    };
    let mut rows: Vec<(_, Alike<'_>)> = Vec::new();
    for block in blocks {
        let own = key(block);
        match rows.iter_mut().rev().find(|(known, _)| *known == own) {
            Some((_, row)) => {
                row.count += 1;
                let modules = row.module.as_deref().zip(block.origin.module.as_deref());
                row.module = modules.map(|(one, other)| in_common(one, other));
            }
            None => {
                let module = block.origin.module.clone();
                rows.push((own, Alike { block, count: 1, module }));
            }
        }
    }
    rows.into_iter().map(|(_, row)| row).collect()
}

/// Runs of digits, and what is between them.
fn runs(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let first = rest.chars().next()?;
        let is_number = first.is_ascii_digit() || first == '*';
        let end = rest.find(|c: char| (c.is_ascii_digit() || c == '*') != is_number);
        let (run, left) = rest.split_at(end.unwrap_or(rest.len()));
        rest = left;
        Some(run)
    })
}

fn without_numbers(text: &str) -> String {
    let star = |run| if is_number(run) { "*" } else { run };
    runs(text).map(star).collect()
}

fn is_number(run: &str) -> bool {
    run.starts_with(|c: char| c.is_ascii_digit() || c == '*')
}

/// Two names that differ in numbers only, with `*` for those.
fn in_common(one: &str, other: &str) -> String {
    runs(one).zip(runs(other)).map(|(a, b)| if a == b { a } else { "*" }).collect()
}

/// The largest blocks alive at the peak, in at most so many rows.
pub(crate) fn largest(
    answer: &Answer,
    most_rows: usize,
    sources: Sources,
    style: &Style,
) -> String {
    let heading = style.paint(Ink::Heading, "Largest blocks alive at the peak");
    let mut page = String::new();
    for Alike { block, count, module } in alike(&answer.memory.largest).into_iter().take(most_rows)
    {
        let place = &block.origin;
        let count = match count {
            1 => String::new(),
            n => format!("{n} ×"),
        };
        let rule = block.rule.map(|rule| format!("[{rule}]"));
        let made =
            [place.op(), rule.as_deref()].into_iter().flatten().collect::<Vec<_>>().join(" ");
        let made = keep_end(&made, style.columns().saturating_sub(66));
        let line = format!(
            "  {count:>4} {:>11}  {:<15}  {:<27}  {made}",
            block.bytes.to_string(),
            block.role.name().replace('_', " "),
            moment_in(answer, place),
        );
        page += &format!("{}\n", line.trim_end());
        let source = [module.as_deref(), place.line.as_deref()];
        let source = source.into_iter().flatten().collect::<Vec<_>>().join(", ");
        if !source.is_empty() && sources == Sources::Shown {
            let source = keep_end(&source, style.columns().saturating_sub(20));
            page += &format!("{:20}{}\n", "", style.paint(Ink::Faint, &source));
        }
    }
    if page.is_empty() { page } else { format!("{heading}\n{page}") }
}

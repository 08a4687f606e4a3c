//! The answer as text.

use crate::style::{Ink, Style, wrap};
use crate::table::{Align, Table};
use xmem::Bytes;
use xmem::types::printable;
use xmem_studies::fit::{FewestWith, Figures, FitAnswer, LargestWith, Tried, VariedOption};

const COLUMNS: [(&str, Align); 5] = [
    ("measure", Align::Left),
    ("needs", Align::Right),
    ("fits", Align::Left),
    ("step time", Align::Right),
    ("changes", Align::Left),
];

/// The indentation of text below a heading.
const INDENT: &str = "  ";

/// The complete answer: the job as it is, what each measure does, what fits, the largest values, and how to run it.
#[must_use]
pub fn fit(answer: &FitAnswer, style: &Style) -> String {
    let parts = [
        headline(answer, style),
        measures(answer, style),
        over_gpus(answer, style),
        suggestion(answer, style),
        largest(answer, style),
        fewest(answer, style),
        answer.law.as_ref().map(|law| crate::law::text::law(law, style)).unwrap_or_default(),
        notes(answer, style),
    ];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n")
}

/// One line: whether it fits, what it needs, and what makes it fit.
#[must_use]
pub fn fit_brief(answer: &FitAnswer) -> String {
    let mut line = format!("{}  needs {}", words(answer), against(answer, &answer.base));
    if let Some(tried) = answer.suggestion() {
        line += &format!("; fits with {}", answer.names(&tried.measures));
        if let Some(gpus) = answer.gpus(&tried.measures) {
            line += &format!(" over {gpus} GPUs");
        }
    }
    for with in &answer.largest {
        if let (Some(option), Some(value)) = (&answer.option, with.found.fits) {
            line += &format!(
                "; largest {}: {value}{}",
                option.name,
                with_names(answer, &with.measures)
            );
        }
    }
    for with in &answer.fewest {
        if let (Some(option), Some(value)) = (&answer.option, with.found.fits) {
            line +=
                &format!("; fewest {}: {value}{}", option.name, with_names(answer, &with.measures));
        }
    }
    format!("{}\n", printable(&line))
}

const fn words(answer: &FitAnswer) -> &'static str {
    if answer.base.fits { "FITS" } else { "DOES NOT FIT" }
}

/// `31.2 GiB of 23.5 GiB on rtx4090-24g`.
fn against(answer: &FitAnswer, figures: &Figures) -> String {
    format!("{} of {} on {}", figures.needs, answer.room, answer.device.name)
}

fn headline(answer: &FitAnswer, style: &Style) -> String {
    let (words, ink) = (words(answer), if answer.base.fits { Ink::Good } else { Ink::Bad });
    let is_own = answer.option.as_ref().is_none_or(|option| option.value.is_some());
    let about = if is_own { "as it is" } else { "as recorded first" };
    let needs = against(answer, &answer.base);
    let beyond = (!answer.base.fits)
        .then(|| format!(": {} too much", answer.base.needs.saturating_sub(answer.room)));
    format!(
        "{} {about}: needs {needs}{}\n{INDENT}{}\n",
        style.paint(ink, words),
        beyond.unwrap_or_default(),
        style.paint(Ink::Faint, &printable(&answer.command)),
    )
}

fn measures(answer: &FitAnswer, style: &Style) -> String {
    let Some(ladder) = &answer.ladder else { return String::new() };
    let mut table = Table::new(&COLUMNS);
    let base = &answer.base;
    let mut tried: Vec<&Tried> =
        ladder.single.iter().filter(|tried| tried.recorded.is_ok()).collect();
    let needs =
        |tried: &Tried| tried.recorded.as_ref().map_or(Bytes::ZERO, |figures| figures.needs);
    tried.sort_by_key(|tried| std::cmp::Reverse(needs(tried)));
    let (helpful, useless): (Vec<&Tried>, Vec<&Tried>) =
        tried.into_iter().partition(|tried| needs(tried) < base.needs);
    helpful.into_iter().chain(&ladder.combined).for_each(|tried| row(&mut table, answer, tried));
    let mut text = style
        .paint(
            Ink::Heading,
            "With measures (the least memory with which each recording runs; step time is a model)",
        )
        .into_owned()
        + "\n";
    let page = table.render(style);
    text += if ladder.single.iter().all(|tried| tried.recorded.is_err()) {
        "  none of the measures could be applied\n"
    } else {
        &page
    };
    if !useless.is_empty() {
        let names: Vec<String> =
            useless.iter().map(|tried| answer.names(&tried.measures)).collect();
        text += &indented(&format!("no less memory with: {}", names.join(", ")), style);
    }
    text + &failed(answer, &ladder.single, style)
}

/// A row of what was recorded, if it was.
fn row(table: &mut Table, answer: &FitAnswer, tried: &Tried) {
    if let Ok(figures) = &tried.recorded {
        table.row([
            together(answer, &tried.measures),
            figures.needs.to_string(),
            fits(figures).to_owned(),
            time(figures, &answer.base),
            changes(answer, &tried.measures).to_owned(),
        ]);
    }
}

/// Why some could not be recorded.
fn failed(answer: &FitAnswer, all: &[Tried], style: &Style) -> String {
    let failed = all.iter().filter_map(|tried| Some((tried, tried.recorded.as_ref().err()?)));
    let line = |(tried, reason): (&Tried, &String)| {
        indented(&format!("{}: {reason}", answer.names(&tried.measures)), style)
    };
    failed.map(line).collect()
}

/// The job divided over several GPUs.
fn over_gpus(answer: &FitAnswer, style: &Style) -> String {
    let Some(over) = &answer.over_gpus else { return String::new() };
    let heading = format!(
        "Over several GPUs, each a {} with the batch of the script (a step is of more samples)",
        answer.device.name
    );
    let mut text = format!("{}\n", style.paint(Ink::Heading, &heading));
    if over.tried.iter().any(|tried| tried.recorded.is_ok()) {
        let mut table = Table::new(&COLUMNS);
        over.tried.iter().for_each(|tried| row(&mut table, answer, tried));
        text += &table.render(style);
    }
    text + &failed(answer, &over.tried, style)
}

/// Whether a variant fits, and only just: cached memory is released for it.
const fn fits(figures: &Figures) -> &'static str {
    match (figures.fits, figures.has_room) {
        (true, true) => "YES",
        (true, false) => "tight",
        (false, _) => "no",
    }
}

/// Measures that are taken together, in words.
fn together(answer: &FitAnswer, measures: &[usize]) -> String {
    let name = |&at: &usize| {
        let measure = &answer.measures[at];
        match measure.gpus {
            Some(gpus) => {
                let name = measure.name.split('=').next().unwrap_or_default();
                format!("{name} over {gpus} GPUs")
            }
            None => measure.name.clone(),
        }
    };
    measures.iter().map(name).collect::<Vec<_>>().join(" + ")
}

/// The time of a step against that of the job as it is (`+14 %`).
fn time(figures: &Figures, base: &Figures) -> String {
    figures.time_against(base).map_or_else(String::new, |factor| {
        let percent = (factor - 1.0) * 100.0;
        if percent.abs() < 0.5 { "+0 %".to_owned() } else { format!("{percent:+.0} %") }
    })
}

/// What some measures change, at the most.
fn changes(answer: &FitAnswer, measures: &[usize]) -> &'static str {
    let order = ["nothing", "rounding", "training"];
    let place = |at: &usize| order.iter().position(|name| *name == answer.measures[*at].changes);
    order[measures.iter().filter_map(place).max().unwrap_or(0)]
}

fn suggestion(answer: &FitAnswer, style: &Style) -> String {
    let has_tried = answer.ladder.is_some() || answer.over_gpus.is_some();
    if answer.base.fits || !has_tried {
        return String::new();
    }
    let Some(tried) = answer.suggestion() else {
        let smallest = answer.ladder.as_ref().and_then(|ladder| ladder.smallest());
        let least = smallest.and_then(|tried| {
            let figures = tried.recorded.as_ref().ok()?;
            Some(format!(
                "; the least{} is {}, with {}",
                if answer.over_gpus.is_some() { " on one GPU" } else { "" },
                figures.needs,
                together(answer, &tried.measures)
            ))
        });
        let text = format!("Nothing that was tried makes it fit{}.", least.unwrap_or_default());
        return wrap(&text, style.columns()).join("\n") + "\n";
    };
    let heading = format!("Fits with {}", together(answer, &tried.measures));
    let mut text = format!("{}\n", style.paint(Ink::Heading, &heading));
    for &at in &tried.measures {
        let measure = &answer.measures[at];
        let places = measure.places.as_ref().map(|places| format!(" ({places})"));
        text += &indented(&format!("{}{}", measure.title, places.unwrap_or_default()), style);
        text += &format!("{INDENT}{INDENT}{}\n", printable(&measure.code));
    }
    if let Some(proof) = answer.proof {
        let runs = match proof.runs {
            true => format!("It ran with the memory of {}", answer.device.name),
            false => format!("It did not run with the memory of {}", answer.device.name),
        };
        let less = format!("{} less than it needs", proof.less);
        let below = match proof.fails_below {
            Some(true) => format!(", and ran out of memory with {less}"),
            Some(false) => format!(", and with {less}, too"),
            None => String::new(),
        };
        text += &indented(&format!("{runs}{below}."), style);
    }
    text += &format!("{INDENT}run it: {}\n", printable(&answer.run_command(&tried.measures)));
    text
}

fn largest(answer: &FitAnswer, style: &Style) -> String {
    let Some(option) = &answer.option else { return String::new() };
    if answer.largest.is_empty() {
        return String::new();
    }
    let heading = format!("Largest {} that fits", option.name);
    let mut text = format!("{}\n", style.paint(Ink::Heading, &heading));
    for with in &answer.largest {
        text += &indented(&line(answer, option, with), style);
    }
    text
}

fn fewest(answer: &FitAnswer, style: &Style) -> String {
    let Some(option) = answer.option.as_ref().filter(|_| !answer.fewest.is_empty()) else {
        return String::new();
    };
    let heading = format!("Fewest {} that fit, each on a {}", option.name, answer.device.name);
    let mut text = format!("{}\n", style.paint(Ink::Heading, &heading));
    for FewestWith { measures, found } in &answer.fewest {
        let needs = |value: u64| found.points.get(&value).map(|figures| figures.needs);
        let names = in_words(answer, measures);
        let recorded = |value: Option<u64>| Some((value?, needs(value?)?));
        let mut line = match (recorded(found.fits), recorded(found.fails)) {
            (Some((fits, needs)), None) => format!("{fits} {names} (each needs {needs})"),
            (Some((fits, needs)), Some((fails, more))) => {
                format!("{fits} {names} (each needs {needs}; of {fails}, each needs {more})")
            }
            (None, Some((fails, more))) => format!("none {names}: of {fails}, each needs {more}"),
            (None, None) => format!("not known {names}"),
        };
        if let Some((value, reason)) = found.refused.iter().next() {
            line += &format!("; {value} could not be recorded: {reason}");
        }
        text += &indented(&line, style);
    }
    text
}

fn line(answer: &FitAnswer, option: &VariedOption, with: &LargestWith) -> String {
    let found = &with.found;
    let needs = |value: u64| found.points.get(&value).map(|figures| figures.needs);
    let names = in_words(answer, &with.measures);
    let text = match (found.fits, found.fails) {
        (Some(fits), fails) => {
            let needed = needs(fits).map(|needs| format!(" (needs {needs}")).unwrap_or_default();
            let next = match fails {
                Some(fails) => needs(fails).map(|needs| format!("; {fails} needs {needs})")),
                None if fits >= option.range.high => Some("; the range ends there)".to_owned()),
                None => Some(")".to_owned()),
            };
            format!("{fits} {names}{needed}{}", next.unwrap_or_default())
        }
        (None, Some(fails)) => {
            let needs = needs(fails).map(|needs| format!(": {fails} needs {needs}"));
            let none = if found.is_proven(option.range) { "none" } else { "not known" };
            format!("{none} {names}{}", needs.unwrap_or_default())
        }
        (None, None) => format!("not known {names}"),
    };
    if found.is_proven(option.range) {
        return text;
    }
    match found.refused.iter().next() {
        Some((value, reason)) => format!("{text}; {value} could not be recorded: {reason}"),
        None if found.fits.is_none() => format!("{text}; smaller ones were not tried"),
        None => format!("{text}; those between were not tried"),
    }
}

/// The job as it is, or with measures.
fn in_words(answer: &FitAnswer, measures: &[usize]) -> String {
    match measures.is_empty() {
        true => "as it is".to_owned(),
        false => format!("with {}", together(answer, measures)),
    }
}

fn with_names(answer: &FitAnswer, measures: &[usize]) -> String {
    match measures.is_empty() {
        true => " as it is".to_owned(),
        false => format!(" with {}", answer.names(measures)),
    }
}

fn notes(answer: &FitAnswer, style: &Style) -> String {
    let mut text = String::new();
    for note in &answer.notes {
        text += &wrap(&format!("note: {note}"), style.columns()).join("\n");
        text += "\n";
    }
    let recordings = match answer.recordings {
        1 => "1 recording".to_owned(),
        count => format!("{count} recordings"),
    };
    text + &format!("{recordings} in {:.0} s\n", answer.took.as_secs_f64())
}

fn indented(text: &str, style: &Style) -> String {
    let lines = wrap(&printable(text), style.columns() - INDENT.len());
    lines.iter().map(|line| format!("{INDENT}{line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use xmem::types::Nanos;
    use xmem_studies::fit::{Measure, OverGpus, Proof};

    #[test]
    fn a_job_that_is_divided_says_over_how_many_gpus() {
        let device = xmem::find("rtx3070-8g").expect("a known device").clone();
        let (room, figures) = (device.memory, |mib, fits, step| Figures {
            needs: Bytes::mib(mib),
            fits,
            has_room: fits,
            step: Some(Nanos(step)),
        });
        let mut answer = FitAnswer::new(
            "python train.py".to_owned(),
            device,
            room,
            figures(16_000, false, 1000),
        );
        let measure = |gpus: u32| Measure {
            name: format!("fsdp={gpus}"),
            title: format!("FSDP over {gpus} GPUs"),
            changes: "training",
            code: "fully_shard(model)".to_owned(),
            gpus: gpus.try_into().ok(),
            places: Some(format!("6 Block over {gpus} GPUs")),
        };
        answer.measures = [2, 4, 8].map(measure).to_vec();
        let tried = |at, recorded| Tried { measures: vec![at], recorded };
        let fits = tried(1, Ok(figures(7000, true, 1100)));
        let all = vec![tried(0, Ok(figures(10_000, false, 1200))), fits.clone()];
        answer.over_gpus = Some(OverGpus { tried: all, fits: Some(fits) });
        answer.proof = Some(Proof { runs: true, less: Bytes::mib(2), fails_below: None });
        let style = Style { color: crate::style::Color::Plain, width: 100 };
        expect_test::expect![[r#"
            DOES NOT FIT as it is: needs 15.62 GiB of 7.57 GiB on rtx3070-8g: 8.05 GiB too much
              python train.py

            Over several GPUs, each a rtx3070-8g with the batch of the script (a step is of more samples)
              measure              needs  fits  step time  changes
              fsdp over 2 GPUs  9.77 GiB  no        +20 %  training
              fsdp over 4 GPUs  6.84 GiB  YES       +10 %  training

            Fits with fsdp over 4 GPUs
              FSDP over 4 GPUs (6 Block over 4 GPUs)
                fully_shard(model)
              It ran with the memory of rtx3070-8g.
              run it: xmem run --with fsdp=4 -- torchrun --nproc-per-node 4 train.py

            0 recordings in 0 s
        "#]].assert_eq(&fit(&answer, &style));
        expect_test::expect![[r#"
            DOES NOT FIT  needs 15.62 GiB of 7.57 GiB on rtx3070-8g; fits with fsdp=4 over 4 GPUs
        "#]]
        .assert_eq(&fit_brief(&answer));
    }
}

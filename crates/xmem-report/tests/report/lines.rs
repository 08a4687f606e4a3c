//! Answers line by line, and back.

use crate::sample;
use serde_json::Value;
use std::collections::BTreeSet;
use xmem::Verdict;
use xmem_report::json::{Document, Rules};
use xmem_report::lines::{LineFormat, ReadLinesError, ReadSummary, WrittenAnswer, read_lines};

const FORMS: [LineFormat; 2] = [LineFormat::Json, LineFormat::Csv];

/// Three answers and an error, the third of the four.
fn page(form: LineFormat) -> String {
    let error = xmem::find("none\nsuch").expect_err("unknown");
    let answers = [("a", sample::fits()), ("b,\"b\"", sample::does_not_fit())];
    let mut page = form.header();
    for (trace, answer) in &answers {
        page += &form.line(&Document::answer(trace, "-d \"x, y\"", answer, Rules::Omit));
    }
    page += &form.line(&Document::error("c", None, ("XM0211", &error)));
    page += &form.line(&Document::answer("d", "-d d", &sample::withheld(), Rules::Omit));
    page
}

/// The answers in a text, their lines, and what else is there.
fn back(
    form: LineFormat,
    text: &str,
) -> (Vec<WrittenAnswer>, String, Result<ReadSummary, ReadLinesError>) {
    let (mut answers, mut kept) = (Vec::new(), Vec::new());
    let found = read_lines(form, text.as_bytes(), |answered, line| {
        answers.push(answered);
        kept.extend_from_slice(line);
        Ok(())
    });
    (answers, String::from_utf8(kept).expect("UTF-8"), found)
}

#[test]
fn what_is_written_is_read_back() {
    let answered = |trace: &str, settings: &str, verdict| WrittenAnswer {
        trace: trace.to_owned(),
        settings: Some(settings.to_owned()),
        verdict,
    };
    for form in FORMS {
        let (answers, kept, found) = back(form, &page(form));
        let expected = [
            answered("a", "-d \"x, y\"", Verdict::Fits),
            answered("b,\"b\"", "-d \"x, y\"", Verdict::DoesNotFit),
            answered("d", "-d d", Verdict::Withheld),
        ];
        assert_eq!(answers, expected);
        assert_eq!(found.expect("readable"), ReadSummary { header: true, unusable: 1 });
        let (again, same, found) = back(form, &(form.header() + &kept));
        assert_eq!((again, same, found.expect("readable").unusable), (answers, kept, 0));
    }
}

#[test]
fn every_cut_leaves_the_answers_before_it() {
    for form in FORMS {
        let page = page(form);
        let (all, ..) = back(form, &page);
        for cut in (0..page.len()).filter(|&cut| page.is_char_boundary(cut)) {
            let whole = page[..cut].matches('\n').count();
            let torn = cut > 0 && !page[..cut].ends_with('\n');
            let rows = whole.saturating_sub(usize::from(form == LineFormat::Csv));
            let errors = usize::from(rows > 2);
            let (answers, _, found) = back(form, &page[..cut]);
            assert_eq!(answers, all[..rows - errors], "{cut}");
            let found = found.expect("readable");
            assert_eq!(found.unusable, errors as u64 + u64::from(torn), "{cut}");
            assert_eq!(found.header, form == LineFormat::Json || whole > 0, "{cut}");
        }
    }
}

#[test]
fn each_row_is_one_line() {
    let page = page(LineFormat::Csv);
    assert_eq!(page.lines().count(), 5);
    assert!(page.contains("none such"), "{page}");
}

/// A column that no document has would always be empty.
#[test]
fn every_column_is_a_value_of_a_document() {
    let answer = sample::does_not_fit();
    let error = xmem::find("x").expect_err("unknown");
    let documents = [
        LineFormat::Json.line(&Document::answer("t", "s", &answer, Rules::Omit)),
        LineFormat::Json.line(&Document::error("t", None, ("XM0211", &error))),
    ];
    let documents = documents.map(|line| serde_json::from_str::<Value>(&line).expect("JSON"));
    let header = LineFormat::Csv.header();
    let columns: Vec<&str> = header.trim_end().split(',').collect();
    assert_eq!(columns.iter().collect::<BTreeSet<_>>().len(), columns.len());
    for column in columns {
        let pointer = format!("/{}", column.replace('.', "/"));
        assert!(documents.iter().any(|d| d.pointer(&pointer).is_some()), "{column}");
    }
}

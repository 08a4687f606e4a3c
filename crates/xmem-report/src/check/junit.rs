//! JUnit's XML, as CI systems read it.

use super::json::CheckDocument;
use super::words;
use quick_xml::escape::escape;
use xmem::types::printable;

/// A test suite with a case for each job: a failure where it is expected not to fit or needs more than its baseline
/// allows, an error where there is no verdict.
#[must_use]
pub fn junit(documents: &[CheckDocument]) -> String {
    let failed = documents.iter().filter(|document| kind(document) == Some("failure")).count();
    let errors = documents.iter().filter(|document| kind(document) == Some("error")).count();
    let counts = format!("tests=\"{}\" failures=\"{failed}\" errors=\"{errors}\"", documents.len());
    let mut page = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites {counts}>\n  \
         <testsuite name=\"xmem check\" {counts}>\n"
    );
    for document in documents {
        let name = printable(&document.trace);
        page += &format!(
            "    <testcase classname=\"xmem.{}\" name=\"{}\"",
            escape(document.device.name.as_str()),
            escape(name.as_ref()),
        );
        let headline = words::headline(document);
        let text = words::details(document).join("\n");
        page += &match kind(document) {
            Some(kind) => format!(
                ">\n      <{kind} message=\"{}\">{}</{kind}>\n    </testcase>\n",
                escape(headline.as_str()),
                escape(text.as_str()),
            ),
            None => format!(
                ">\n      <system-out>{}</system-out>\n    </testcase>\n",
                escape(format!("{headline}\n{text}").trim_end()),
            ),
        };
    }
    page + "  </testsuite>\n</testsuites>\n"
}

fn kind(document: &CheckDocument) -> Option<&'static str> {
    match document.decision() {
        _ if document.grew() || document.is_expected_to_fail() => Some("failure"),
        xmem_gate::Decision::NoVerdict => Some("error"),
        _ => None,
    }
}

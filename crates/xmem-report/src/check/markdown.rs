//! For a comment or a summary in Markdown.

use super::json::CheckDocument;
use super::words;
use crate::markdown::cell;
use xmem::Bytes;

/// A table of all jobs, and below it the details of those about which there is more to say.
#[must_use]
pub fn markdown(documents: &[CheckDocument]) -> String {
    let mut page = String::from("| job | decision | needs | of | on |\n|---|---|--:|--:|---|\n");
    for document in documents {
        let need = document.need_bytes.map_or_else(|| "–".to_owned(), |b| Bytes(b).to_string());
        page += &format!(
            "| {} | **{}** | {need} | {} | {} |\n",
            cell(&document.trace),
            words::decision(document).to_lowercase(),
            Bytes(document.device.memory_bytes),
            cell(&document.device.name),
        );
    }
    for document in documents {
        let details = words::details(document);
        if details.is_empty() {
            continue;
        }
        page += &format!("\n**{}**: {}\n\n", cell(&document.trace), cell(&words::need(document)));
        for line in details {
            let indent = if line.starts_with(' ') { "  " } else { "" };
            page += &format!("{indent}- {}\n", cell(line.trim()));
        }
    }
    page
}

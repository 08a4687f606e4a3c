//! Lines for the plug-in of Slurm: `key=value`.

use super::json::CheckDocument;
use super::words;
use xmem::types::printable;

/// What the plug-in is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlurmAnswer<'a> {
    /// The document that decides: the worst one. None if the job was not checked.
    pub document: Option<&'a CheckDocument>,
    /// The name of the action.
    pub action: &'a str,
    /// Why it was not checked, if it was not.
    pub note: Option<&'a str>,
    /// A line of the site for users whose job is not let through unchanged.
    pub help: Option<&'a str>,
}

/// The longest message, in characters: a terminal shows it after `sbatch: error: `.
const MESSAGE: usize = 300;

/// The lines: `decision`, `action`, then what is known of `device`, `peak_mib`, `room_mib` and `stamp`, and
/// any number of `message`.
#[must_use]
pub fn slurm(answer: &SlurmAnswer<'_>) -> String {
    let mut page = String::new();
    let mut line = |key: &str, value: &str| {
        let value = printable(value);
        let short: String = value.chars().take(MESSAGE).collect();
        let end = if short.len() < value.len() { "…" } else { "" };
        page += &format!("{key}={short}{end}\n");
    };
    line("decision", answer.document.map_or("not_checked", |document| document.decision.as_str()));
    line("action", answer.action);
    if let Some(document) = answer.document {
        line("device", &document.device.name);
        let room =
            document.device.memory_bytes - document.margin_bytes.min(document.device.memory_bytes);
        if let Some(need) = document.need_bytes {
            line("peak_mib", &need.div_ceil(1 << 20).to_string());
            line("stamp", &stamp(document, need));
        }
        line("room_mib", &(room >> 20).to_string());
        if answer.action != "admit" {
            line("message", &words::headline(document));
            words::details(document).iter().for_each(|text| line("message", text.trim()));
        }
    }
    if let Some(note) = answer.note {
        line("message", note);
    }
    if let Some(help) = answer.help.filter(|_| answer.action != "admit") {
        line("message", help);
    }
    page
}

/// What is written into the job: the least memory of a device, in MiB, with which it may run.
fn stamp(document: &CheckDocument, need: u64) -> String {
    let least = match document.tight_by.as_deref() {
        // The lower end of the range fits.
        Some("may_fit") => need.min(document.device.memory_bytes),
        _ => need,
    };
    format!(
        "xmem:v1:need_mib={}:device={}:decision={}",
        least >> 20,
        document.device.name,
        document.decision,
    )
}

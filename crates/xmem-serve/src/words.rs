//! Messages for users. Kubernetes cuts warnings of more than 120 characters (Kubernetes API reference,
//! AdmissionResponse).

use xmem::Need;
use xmem::types::printable;
use xmem_gate::kubernetes::TemplateCheck;
use xmem_gate::{Decision, TightBy};

/// The longest warning, in characters.
const WARNING: usize = 120;

/// The longest message of a rejection, in characters.
const MESSAGE: usize = 2000;

/// A warning: one line.
pub(crate) fn warning(text: &str) -> String {
    shortened(&printable(text), WARNING)
}

/// The message of a rejection: the decisions, and the line of the site.
pub(crate) fn rejection(checks: &[&TemplateCheck], help: Option<&str>) -> String {
    let lines = checks.iter().map(|check| decision(check));
    let lines: Vec<String> = lines.chain(help.map(str::to_owned)).collect();
    shortened(&printable(&lines.join("; ")), MESSAGE)
}

/// A decision in one line.
pub(crate) fn decision(check: &TemplateCheck) -> String {
    let place = match check.place.as_str() {
        "" => String::new(),
        place => format!(" ({place})"),
    };
    let (Some(need), Some(device)) = (check.need, &check.device) else {
        let why = check.unchecked.as_ref().map_or_else(String::new, |why| format!(": {why}"));
        return format!("xmem: GPU memory not checked{why}{place}");
    };
    let memory = device.memory;
    // An annotation has one figure.
    let known = Need { least: need, ample: need };
    let needs = known.against(memory, &device.name);
    let text = match (check.decision, check.tight_by) {
        said @ (Decision::DoesNotFit, _) => {
            format!("does not fit: {needs}{}", known.because(memory, said))
        }
        (Decision::OverRequested, _) => {
            let smaller = check.smaller.as_ref().map_or("a smaller GPU", |d| d.name.as_str());
            format!("over-requested: {needs}; {smaller} is enough")
        }
        (_, Some(TightBy::Placement)) => {
            format!("tight: {needs}, fits only on larger GPUs that it may get")
        }
        (_, Some(_)) => format!("tight: {needs} with {} to stay free", check.margin),
        _ => format!("fits: {needs}"),
    };
    format!("xmem: {text}{place}")
}

fn shortened(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    text.chars().take(most - 1).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_are_printable_and_short() {
        let long = warning(&format!("a\u{1b}[31m\n{}", "é".repeat(200)));
        assert_eq!(long.chars().count(), 120);
        assert!(long.ends_with("é…") && !long.contains(['\u{1b}', '\n']), "{long}");
        assert_eq!(warning("short"), "short");
    }
}

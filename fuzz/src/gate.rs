//! What the fuzz target of the gate checks.

use xmem::types::printable;
use xmem_gate::{
    Directives, JobRequest, Margin, Policy, Site, SlurmCommand, SlurmOptions, Unresolved,
};
use xmem_report::check::{CheckDocument, SlurmAnswer, baseline_json, read_baseline, slurm};

/// Reading ends; what is read leads to devices that the site has, and is written so that it is read again.
pub(crate) fn gate(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let (first, rest) = text.split_once('\0').unwrap_or((text, text));
    let site = Site::from_toml(first).unwrap_or_default();
    for partition in site.partitions.keys() {
        let rules = site.rules_of_partitions(std::slice::from_ref(partition));
        assert!(rules.gpu.is_none_or(|gpu| gpu < site.gpus.len()), "{rules:?}");
    }
    let script = Directives::of_script(rest).unwrap_or_default();
    let options = SlurmOptions::from_json(rest).unwrap_or_default();
    let words: Vec<String> = rest.split_whitespace().map(str::to_owned).collect();
    let command = SlurmCommand::new(&words);
    let mut requests = vec![script.request(), options.request(&script)];
    requests.extend(command.submissions(|_| None).iter().map(|options| options.request(&script)));
    for request in requests.into_iter().flatten().chain(rest.parse::<JobRequest>().ok()) {
        match site.candidates(&request) {
            Ok(found) => {
                assert!(!found.devices.is_empty(), "{request:?}");
                assert!(found.devices.is_sorted_by_key(|device| device.memory), "{request:?}");
            }
            Err(Unresolved::NoGpu) => assert!(!request.asks_for_gpus(), "{request:?}"),
            Err(_) => assert!(request.asks_for_gpus(), "{request:?}"),
        }
    }
    std::hint::black_box((options.traces(&script), command.script()));
    if let Ok(margin) = rest.parse::<Margin>() {
        let capacity = xmem::Bytes(data.len() as u64 * 1_234_567_891);
        assert!(margin.of(capacity) <= capacity, "{margin}");
    }
    std::hint::black_box(rest.parse::<Policy>().is_ok());

    if let Ok(baseline) = read_baseline(rest) {
        let written = baseline_json(&baseline);
        assert_eq!(read_baseline(&written).as_ref().map(baseline_json), Ok(written));
    }
    if let Some(document) = CheckDocument::from_json(rest) {
        let answer = SlurmAnswer {
            document: Some(&document),
            action: "warn",
            note: Some(rest),
            help: Some(first),
        };
        let page = slurm(&answer);
        assert!(page.lines().all(|line| line.contains('=') && printable(line) == line), "{page}");
        assert_eq!(CheckDocument::from_json(&document.to_json()), Some(document));
    }
}

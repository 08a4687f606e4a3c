//! The trace for Perfetto, read without Perfetto.

use crate::protobuf::Message;
use crate::run::Recorded;
use std::collections::BTreeMap;
use xmem::Bytes;
use xmem::analyzer::Role;

/// A track: its name, and what happens on it.
#[derive(Debug, Default)]
struct Track {
    name: String,
    parent: Option<u64>,
    /// Time, kind and value; kinds are 1 for a begin, 2 for an end, 3 for an instant, 4 for a value.
    events: Vec<(u64, u64, u64)>,
    /// Names of slices and instants.
    names: Vec<String>,
}

/// The tracks by number.
fn tracks(trace: &[u8]) -> BTreeMap<u64, Track> {
    let mut tracks: BTreeMap<u64, Track> = BTreeMap::new();
    let mut names = BTreeMap::new();
    for (number, packet) in Message::read(trace).messages(1).enumerate() {
        assert_eq!(packet.number(10), Some(1), "one sequence");
        assert_eq!(packet.number(13), Some(if number == 0 { 3 } else { 2 }), "flags");
        if let Some(track) = packet.message(60) {
            let new = Track {
                name: track.text(2).expect("a name").to_owned(),
                parent: track.number(5),
                ..Track::default()
            };
            assert!(new.parent.is_none_or(|parent| tracks.contains_key(&parent)));
            assert!(tracks.insert(track.number(1).expect("a number"), new).is_none());
        }
        if let Some(interned) = packet.message(12) {
            for name in interned.messages(2) {
                let text = name.text(2).expect("a text").to_owned();
                assert!(names.insert(name.number(1).expect("a number"), text).is_none());
            }
        }
        let Some(event) = packet.message(11) else { continue };
        let track = event.number(11).and_then(|track| tracks.get_mut(&track)).expect("a track");
        let kind = event.number(9).expect("a kind");
        match kind {
            1 => track.names.push(names[&event.number(10).expect("a name")].clone()),
            3 => track.names.push(event.text(23).expect("a name").to_owned()),
            _ => {}
        }
        let value = event.number(30).unwrap_or_default();
        track.events.push((packet.number(8).expect("a time"), kind, value));
    }
    tracks
}

/// The tracks of a trace by name.
fn by_name(trace: &[u8]) -> BTreeMap<String, Track> {
    tracks(trace).into_values().map(|track| (track.name.clone(), track)).collect()
}

fn highest(track: &Track) -> u64 {
    track.events.iter().map(|event| event.2).max().unwrap_or_default()
}

#[test]
fn counters_reach_the_peaks_and_slices_close() {
    for path in
        ["gpt2_adamw/trace.json.zst", "mlp_adam/trace.json.zst", "late/resnet18_sgdm.json.zst"]
    {
        let recorded = Recorded::trace(path);
        let run = recorded.run();
        let tracks = by_name(&xmem_view::perfetto(&run));
        let peak = &run.answer.memory.peak;
        assert_eq!(highest(&tracks["allocated"]), peak.allocated.get(), "{path}");
        assert_eq!(highest(&tracks["requested"]), peak.requested.get(), "{path}");
        assert_eq!(highest(&tracks["reserved"]), peak.reserved.get(), "{path}");
        for share in run.answer.memory.by_role.iter().filter(|share| share.bytes > Bytes::ZERO) {
            assert!(highest(&tracks[share.role.name()]) >= share.bytes.get(), "{path}");
        }
        for track in tracks.values() {
            let in_order = track.events.is_sorted_by_key(|event| event.0);
            assert!(in_order, "{path}: times on {} go on", track.name);
            let mut open = 0_u32;
            for event in &track.events {
                match event.1 {
                    1 => open += 1,
                    2 => open = open.checked_sub(1).expect("an open slice"),
                    _ => {}
                }
            }
            assert_eq!(open, 0, "{path}: all slices on {} end", track.name);
        }
        let slices = |name: &str| -> usize {
            let of = tracks.values().filter(|track| track.name.starts_with(name));
            of.map(|track| track.names.len()).sum()
        };
        let profile = run.job.profile();
        assert_eq!(slices("Operators"), profile.op_count(), "{path}");
        assert_eq!(slices("Modules"), profile.module_calls().len(), "{path}");
        assert_eq!(tracks["Iterations"].names.len(), profile.iterations.len(), "{path}");
        assert_eq!(tracks["Phases"].names.len(), profile.phases.len(), "{path}");
    }
}

#[test]
fn the_first_event_is_at_the_origin() {
    let recorded = Recorded::trace("gpt2_adamw/trace.json.zst");
    let tracks = tracks(&xmem_view::perfetto(&recorded.run()));
    let times = || tracks.values().flat_map(|track| &track.events).map(|event| event.0);
    assert_eq!(times().min(), Some(0));
    // The recording took seconds.
    assert!(times().max().is_some_and(|last| (1_000_000..60_000_000_000).contains(&last)));
}

#[test]
fn memory_that_runs_out_is_an_instant() {
    let recorded = Recorded::with_capacity("gpt2_adamw/trace.json.zst", Bytes::mib(600));
    let tracks = by_name(&xmem_view::perfetto(&recorded.run()));
    let marks = &tracks["Peaks"].names;
    assert!(marks.iter().any(|name| name.starts_with("out of memory: ")), "{marks:?}");
    let fits = Recorded::trace("gpt2_adamw/trace.json.zst");
    let tracks = by_name(&xmem_view::perfetto(&fits.run()));
    assert!(!tracks["Peaks"].names.iter().any(|name| name.starts_with("out of memory")));
}

#[test]
fn roles_add_up_at_every_time() {
    let recorded = Recorded::trace("mlp_adam/trace.json.zst");
    let tracks = by_name(&xmem_view::perfetto(&recorded.run()));
    let last = |track: &Track| track.events.last().map_or(0, |event| event.2);
    let roles = Role::ALL.into_iter().filter_map(|role| tracks.get(role.name()));
    assert_eq!(roles.map(last).sum::<u64>(), last(&tracks["allocated"]));
}

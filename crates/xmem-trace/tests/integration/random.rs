//! Random traces, well-formed and mangled, through the same checks that the fuzz targets make.

#[path = "../../../../fuzz/src/traces.rs"]
mod targets;

use proptest::collection::vec;
use proptest::prelude::*;

/// White space that JSON allows.
fn space() -> impl Strategy<Value = &'static str> {
    prop_oneof![
        4 => Just(""),
        2 => Just(" "),
        1 => Just("\n  "),
        1 => Just("\r\n\t"),
    ]
}

fn string() -> impl Strategy<Value = String> {
    prop_oneof![
        proptest::sample::select(
            &[
                "\"aten::mm\"",
                "\"[memory]\"",
                "\"[OutOfMemory]\"",
                "\"X\"",
                "\"i\"",
                "\"s\"",
                "\"f\"",
                "\"M\"",
                "\"cpu_op\"",
                "\"user_annotation\"",
                "\"python_function\"",
                "\"fwdbwd\"",
                "\"kernel\"",
                "\"\"",
                "\"a \\\" ] } b\"",
                "\"\\\\\"",
                "\"\\u00e9\\ud83d\\ude00\"",
                "\"0x1f\"",
                "\"é\"",
                "\"1.5\"",
            ][..]
        )
        .prop_map(str::to_owned),
        "[a-z{}\\[\\], :]{0,40}".prop_map(|text| format!("\"{text}\"")),
    ]
}

fn number() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<i64>().prop_map(|n| n.to_string()),
        any::<u64>().prop_map(|n| n.to_string()),
        (0u64..10_000_000_000_000, 0u32..1000)
            .prop_map(|(whole, part)| format!("{whole}.{part:03}")),
        (any::<i32>(), 0u32..10_000).prop_map(|(whole, part)| format!("{whole}.{part}")),
        (0i64..100, -30i32..30).prop_map(|(n, e)| format!("{n}e{e}")),
        Just("-0".to_owned()),
        Just("123456789012345678901234567890".to_owned()),
        Just("1e999".to_owned()),
    ]
}

fn value() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        3 => string(),
        3 => number(),
        1 => proptest::sample::select(&["null", "true", "false"][..]).prop_map(str::to_owned),
    ];
    leaf.prop_recursive(3, 16, 5, |inner| {
        prop_oneof![
            (vec((space(), inner.clone(), space()), 0..5)).prop_map(|items| {
                let items: Vec<_> = items.iter().map(|(a, v, b)| format!("{a}{v}{b}")).collect();
                format!("[{}]", items.join(","))
            }),
            vec((space(), string(), space(), inner), 0..4).prop_map(|items| object(&items)),
        ]
    })
}

type Entry = (&'static str, String, &'static str, String);

fn object(entries: &[Entry]) -> String {
    let entries: Vec<_> =
        entries.iter().map(|(a, key, b, value)| format!("{a}{key}{b}:{a}{value}{b}")).collect();
    format!("{{{}}}", entries.join(","))
}

fn key(keys: &'static [&'static str]) -> impl Strategy<Value = String> {
    prop_oneof![
        9 => proptest::sample::select(keys).prop_map(|key| format!("\"{key}\"")),
        1 => string(),
    ]
}

const ARGS: &[&str] = &[
    "Addr",
    "Bytes",
    "Total Allocated",
    "Device Type",
    "Device Id",
    "Sequence number",
    "Fwd thread id",
    "Input Dims",
    "Input type",
    "Input Strides",
    "Concrete Inputs",
    "Ev Idx",
    "Input D\\u0069ms",
];
const KEYS: &[&str] =
    &["ph", "cat", "name", "pid", "tid", "ts", "dur", "id", "args", "bp", "t\\u0073"];

/// An event whose fields are mostly what they should be.
fn event() -> impl Strategy<Value = String> {
    let args =
        vec((space(), key(ARGS), space(), value()), 0..8).prop_map(|entries| object(&entries));
    let usual = |name: &'static str, value: BoxedStrategy<String>| {
        (space(), Just(format!("\"{name}\"")), space(), value)
    };
    let kind = proptest::sample::select(
        &[
            ("\"X\"", "\"cpu_op\""),
            ("\"X\"", "\"user_annotation\""),
            ("\"X\"", "\"python_function\""),
            ("\"i\"", "\"cpu_instant_event\""),
            ("\"s\"", "\"fwdbwd\""),
            ("\"f\"", "\"fwdbwd\""),
            ("\"X\"", "\"kernel\""),
            ("\"X\"", "null"),
        ][..],
    );
    let fields = kind.prop_flat_map(move |(phase, category)| {
        let name = prop_oneof![3 => string(), 1 => Just("\"[memory]\"".to_owned())];
        (
            usual("ph", Just(phase.to_owned()).boxed()),
            usual("cat", Just(category.to_owned()).boxed()),
            usual("name", name.boxed()),
            usual("ts", number().boxed()),
            usual("dur", number().boxed()),
            usual("pid", prop_oneof![number(), string(), Just("7".to_owned())].boxed()),
            usual("id", prop_oneof![number(), string()].boxed()),
        )
    });
    let args = (space(), Just("\"args\"".to_owned()), space(), args);
    (fields, args, vec((space(), key(KEYS), space(), value()), 0..2), any::<u64>()).prop_map(
        |(fields, args, more, seed)| {
            let (a, b, c, d, e, f, g) = fields;
            let mut entries = vec![a, b, c, d, e, f, g, args];
            entries.extend(more);
            // A cheap shuffle: the order of keys must not matter.
            for i in (1..entries.len()).rev() {
                entries.swap(i, (seed >> (3 * i)) as usize % (i + 1));
            }
            object(&entries)
        },
    )
}

fn trace() -> impl Strategy<Value = String> {
    let element = prop_oneof![12 => event(), 1 => value()];
    let list = vec((space(), element, space()), 0..12).prop_map(|events| {
        let events: Vec<_> = events.iter().map(|(a, e, b)| format!("{a}{e}{b}")).collect();
        format!("[{}]", events.join(","))
    });
    const TOP: &[&str] =
        &["schemaVersion", "baseTimeNanoseconds", "with_stack", "deviceProperties", "x"];
    let header = || vec((space(), key(TOP), space(), value()), 0..3);
    (list, header(), header(), space(), any::<bool>()).prop_map(
        |(list, before, after, space, bare)| {
            if bare {
                return format!("{space}{list}{space}");
            }
            let mut entries = before;
            entries.push((space, "\"traceEvents\"".to_owned(), space, list));
            entries.extend(after);
            format!("{space}{}{space}", object(&entries))
        },
    )
}

/// Changes to a text: at a place (as a fraction), what is put there, how much is removed.
fn damage() -> impl Strategy<Value = Vec<(f64, &'static [u8], usize)>> {
    const PIECES: &[&[u8]] = &[
        b"",
        b"\"",
        b"{",
        b"}",
        b"[",
        b"]",
        b",",
        b"\\",
        b"\n",
        b"\n  {\n    \"ph\": ",
        b"NaN",
        b"\xff",
        b"\0",
        b":",
        b"\n  ],\n  \"traceName\": ",
        b"\\ud800",
    ];
    vec((0.0..1.0f64, proptest::sample::select(PIECES), 0usize..3), 1..4)
}

fn apply(text: &str, changes: &[(f64, &[u8], usize)]) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    for (place, piece, removed) in changes {
        let at = (bytes.len() as f64 * place) as usize;
        let end = (at + removed).min(bytes.len());
        bytes.splice(at..end, piece.iter().copied());
    }
    bytes
}

/// Events as they stand in a list, mostly with recorded arguments in Kineto's order.
fn events() -> impl Strategy<Value = String> {
    let array = || prop_oneof![4 => array(), 1 => value()];
    let usual = (array(), array(), array(), array(), any::<bool>()).prop_map(
        |(concrete, types, strides, dims, spread)| {
            let between = if spread { "\n    " } else { " " };
            format!(
                "{{{between}\"ph\": \"X\",{between}\"cat\": \"cpu_op\",{between}\"name\": \"aten::mm\", \"pid\": 7,{between}\
                 \"tid\": 7, \"ts\": 4381361023722.286, \"dur\": 15.1,{between}\"args\": {{{between}\
                 \"External id\": 1,\"Record function id\": 0, \"Concrete Inputs\": {concrete}, \
                 \"Input type\": {types}, \"Input Strides\": {strides}, \"Input Dims\": {dims}, \
                 \"Ev Idx\": 12{between}}}{between}}}"
            )
        },
    );
    vec(prop_oneof![3 => usual, 1 => event()], 1..6).prop_map(|events| events.join(","))
}

fn array() -> impl Strategy<Value = String> {
    proptest::sample::select(
        &[
            "[]",
            "[[], []]",
            "[[256, 1], [-1]]",
            "[\"float\", \"Scalar\"]",
            "[\"a } ] b\", \"\"]",
            "[\"]\", \"}\", \"\\\"}\"]",
            "[[1, 2]",
            "[nan]",
        ][..],
    )
    .prop_map(str::to_owned)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    #[test]
    fn well_formed_traces_read_the_same_by_both_readers(text in trace()) {
        targets::differential(text.as_bytes());
        targets::splitter(text.as_bytes());
        targets::parsers(text.as_bytes());
    }

    #[test]
    fn damaged_traces_read_the_same_however_they_are_cut(text in trace(), changes in damage()) {
        let text = apply(&text, &changes);
        targets::splitter(&text);
        targets::differential(&text);
        targets::parsers(&text);
        targets::ingest(&text);
    }

    #[test]
    fn both_parsers_of_events_come_to_the_same(events in events(), changes in damage()) {
        targets::parsers(events.as_bytes());
        targets::parsers(&apply(&events, &changes));
    }

    #[test]
    fn any_bytes_are_survived(bytes in vec(any::<u8>(), 0..300)) {
        for head in [&b""[..], b"[", b"{\"traceEvents\":[", b"\x1f\x8b\x08\0", b"\x28\xb5\x2f\xfd"] {
            let text = [head, &bytes].concat();
            targets::ingest(&text);
            targets::splitter(&text);
            targets::parsers(&text);
        }
    }
}

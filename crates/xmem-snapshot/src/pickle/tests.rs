//! The machine against hand-written instructions.

use super::opcode::{REFUSED, UNSUPPORTED};
use super::{Tree, Value, read};
use crate::budget::{Budget, Limits};
use crate::error::SnapshotError;
use expect_test::expect;
use std::fmt::Write as _;
use xmem_types::Bytes;

fn run<'a>(bytes: &'a [u8], limits: &Limits) -> Result<Tree<'a>, SnapshotError> {
    read(bytes, limits, &mut Budget::new(limits))
}

/// The value as Python would print it, a container within itself as `…`.
fn shown(bytes: &[u8]) -> String {
    match run(bytes, &Limits::default()) {
        Ok(tree) => {
            let mut text = String::new();
            print(&tree, tree.root, 0, &mut text);
            text
        }
        Err(error) => format!("error: {error}"),
    }
}

fn print(tree: &Tree<'_>, value: Value, depth: usize, to: &mut String) {
    match value {
        Value::None => to.push_str("None"),
        Value::Bool(flag) => write!(to, "{flag}").unwrap(),
        Value::Int(_) | Value::Wide(_) => write!(to, "{}", tree.integer(value).unwrap()).unwrap(),
        Value::Unsigned(_) => write!(to, "{}", tree.natural(value).unwrap().unwrap()).unwrap(),
        Value::Huge => to.push_str("huge"),
        Value::Float(_) => write!(to, "{:?}", tree.float(value).unwrap()).unwrap(),
        Value::Text(id) => write!(to, "'{}'", String::from_utf8_lossy(tree.text(id))).unwrap(),
        Value::Binary => to.push_str("bytes"),
        Value::List(_) | Value::Tuple(_) | Value::Dict(_) if depth == 4 => to.push('…'),
        Value::List(id) | Value::Tuple(id) | Value::Dict(id) => {
            let (open, close) = match value {
                Value::List(_) => ('[', ']'),
                Value::Tuple(_) => ('(', ')'),
                _ => ('{', '}'),
            };
            to.push(open);
            for (i, &item) in tree.items(id).iter().enumerate() {
                if i > 0 {
                    to.push_str(", ");
                }
                if let Some(&key) = tree.keys(id).get(i) {
                    print(tree, key, depth + 1, to);
                    to.push_str(": ");
                }
                print(tree, item, depth + 1, to);
            }
            to.push(close);
        }
    }
}

/// PROTO, the instructions, STOP.
fn pickle(body: &[u8]) -> Vec<u8> {
    [b"\x80\x04", body, b"."].concat()
}

#[test]
fn each_instruction_builds_its_value() {
    for (body, value) in [
        (&b"N"[..], "None"),
        (b"\x88", "true"),
        (b"\x89", "false"),
        (b"K\xff", "255"),
        (b"M\xff\xff", "65535"),
        (b"J\xff\xff\xff\xff", "-1"),
        (b"\x8a\x00", "0"),
        (b"\x8a\x01\x80", "-128"),
        (b"\x8a\x06\x00\x00\x00\x00\x00\x7f", "139637976727552"),
        // The C++ pickler writes eight bytes always.
        (b"\x8a\x08\x00\x00\x00\x00\x00\x7f\x00\x00", "139637976727552"),
        (b"\x8a\x09\xff\xff\xff\xff\xff\xff\xff\xff\x00", "18446744073709551615"),
        (b"\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x00\x01", "huge"),
        (b"\x8b\x02\x00\x00\x00\x00\x01", "256"),
        (b"G\x3f\xf8\x00\x00\x00\x00\x00\x00", "1.5"),
        (b"\x8c\x02hi", "'hi'"),
        (b"X\x02\x00\x00\x00hi", "'hi'"),
        (b"\x8d\x02\x00\x00\x00\x00\x00\x00\x00hi", "'hi'"),
        (b"C\x02hi", "bytes"),
        (b"B\x02\x00\x00\x00hi", "bytes"),
        (b"\x8e\x02\x00\x00\x00\x00\x00\x00\x00hi", "bytes"),
        (b"\x96\x02\x00\x00\x00\x00\x00\x00\x00hi", "bytes"),
        (b"]", "[]"),
        (b")", "()"),
        (b"}", "{}"),
        (b"]K\x01a", "[1]"),
        (b"](K\x01K\x02e", "[1, 2]"),
        (b"](e", "[]"),
        (b"(K\x01K\x02l", "[1, 2]"),
        (b"(K\x01K\x02K\x03K\x04t", "(1, 2, 3, 4)"),
        (b"K\x01\x85", "(1)"),
        (b"K\x01K\x02\x86", "(1, 2)"),
        (b"K\x01K\x02K\x03\x87", "(1, 2, 3)"),
        (b"}K\x01K\x02s", "{1: 2}"),
        (b"}(K\x01K\x02K\x03K\x04u", "{1: 2, 3: 4}"),
        (b"(K\x01K\x02d", "{1: 2}"),
        (b"\x95\x02\x00\x00\x00\x00\x00\x00\x00K\x01", "1"),
        // Memo: counted, short and long index; a list filled after it was stored.
        (b"]\x94h\x00a", "[[[[…]]]]"),
        (b"]q\x05](K\x01eh\x05a\x86", "([], [1, []])"),
        (b"\x8c\x01ar\x00\x00\x00\x00j\x00\x00\x00\x00\x86", "('a', 'a')"),
        (b"]\x94K\x01ah\x00K\x02a\x86", "([1, 2], [1, 2])"),
    ] {
        assert_eq!(shown(&pickle(body)), value, "{body:02x?}");
    }
}

#[test]
fn containers_that_grow_after_others_were_filled_keep_their_elements() {
    for (body, value) in [
        // At once, and again and again after another one.
        (&b"]K\x01aK\x02a(K\x03K\x04eK\x05a"[..], "[1, 2, 3, 4, 5]"),
        (b"(]\x94K\x01a]K\x02ah\x00K\x03aK\x04a(K\x05et", "([1, 3, 4, 5], [2], [1, 3, 4, 5])"),
        (b"}\x94K\x01K\x02sK\x03K\x04s", "{1: 2, 3: 4}"),
        (
            b"(}\x94(K\x01K\x02u}(K\x01K\x03uh\x00(K\x04K\x05K\x06K\x07uK\x08K\x09st",
            "({1: 2, 4: 5, 6: 7, 8: 9}, {1: 3}, {1: 2, 4: 5, 6: 7, 8: 9})",
        ),
        // The same keys in another order, and a key twice.
        (b"}(K\x01K\x02K\x03K\x04u}(K\x03K\x02K\x01K\x04u\x86", "({1: 2, 3: 4}, {3: 2, 1: 4})"),
        (b"}(K\x01K\x02K\x01K\x03u", "{1: 2, 1: 3}"),
        (b"}(u}\x94(K\x01K\x02u(u\x86", "({}, {1: 2})"),
    ] {
        assert_eq!(shown(&pickle(body)), value, "{body:02x?}");
    }
}

#[test]
fn instructions_that_reach_outside_the_file_are_refused_by_name_and_place() {
    for (byte, name) in REFUSED {
        let bytes = [b"\x80\x04]".as_slice(), &[byte], b"os\nsystem\n."].concat();
        match run(&bytes, &Limits::default()) {
            Err(SnapshotError::Refused { opcode, at: 3 }) => assert_eq!(opcode, name),
            other => panic!("{name}: {other:?}"),
        }
    }
    expect![[r#"
        error: refused: GLOBAL at byte 2 makes Python load or run code, and a memory snapshot is plain data; do not open this file with Python's pickle either"#]]
    .assert_eq(&shown(b"\x80\x02cos\nsystem\n(X\x02\x00\x00\x00idtR."));
}

#[test]
fn every_other_byte_is_plain_or_told_by_name() {
    let plain: Vec<u8> = (0..=255)
        .filter(|byte| match run(&[0x80, 4, *byte], &Limits::default()) {
            Err(SnapshotError::Unsupported { opcode, at: 2 }) => {
                assert!(UNSUPPORTED.contains(&(*byte, opcode)));
                false
            }
            Err(SnapshotError::UnknownOpcode { byte: shown, at: 2 }) => {
                assert_eq!(shown, *byte);
                assert!(UNSUPPORTED.iter().chain(&REFUSED).all(|(known, _)| known != byte));
                false
            }
            Err(SnapshotError::Refused { .. }) => false,
            Err(SnapshotError::Truncated { .. } | SnapshotError::Malformed { .. }) => true,
            other => panic!("{byte:#04x}: {other:?}"),
        })
        .collect();
    assert_eq!(plain.len(), 38, "{plain:02x?}");
}

#[test]
fn what_cannot_be_carried_out_is_told_with_instruction_and_place() {
    let shown: String = [
        &b"a"[..],
        b"]a",
        b"K\x01K\x02a",
        b"](a",
        b"(K\x01e",
        b"](K\x01",
        b"e",
        b"K\x01(K\x02e",
        b"]K\x01K\x02s",
        b"}K\x01s",
        b"}(K\x01u",
        b"(K\x01d",
        b"](K\x01\x86",
        b"\x94",
        b"h\x07",
        b"Nr\xff\xff\xff\xff",
        b"]q\x05h\x04",
        b"\x8b\xff\xff\xff\xff",
        b"NN",
        b"",
    ]
    .iter()
    .map(|body| format!("{}\n", shown(&pickle(body))))
    .collect();
    expect![[r#"
        error: APPEND at byte 2: too few values before it; the file is damaged
        error: APPEND at byte 3: no list precedes it to append to; the file is damaged
        error: APPEND at byte 6: no list precedes it to append to; the file is damaged
        error: APPEND at byte 4: too few values before it; the file is damaged
        error: APPENDS at byte 5: no list precedes it to append to; the file is damaged
        error: STOP at byte 6: a container is still open; the file is damaged
        error: APPENDS at byte 2: no MARK precedes it; the file is damaged
        error: APPENDS at byte 7: no list precedes it to append to; the file is damaged
        error: SETITEM at byte 7: no dict precedes it to add to; the file is damaged
        error: SETITEM at byte 5: no dict precedes it to add to; the file is damaged
        error: SETITEMS at byte 6: a key has no value; the file is damaged
        error: DICT at byte 5: a key has no value; the file is damaged
        error: TUPLE2 at byte 6: too few values before it; the file is damaged
        error: MEMOIZE at byte 2: too few values before it; the file is damaged
        error: BINGET at byte 2: nothing was stored under its index; the file is damaged
        error: LONG_BINPUT at byte 3: its index is larger than the file; the file is damaged
        error: BINGET at byte 5: nothing was stored under its index; the file is damaged
        error: LONG4 at byte 2: its length is negative; the file is damaged
        error: STOP at byte 4: there is not exactly one value; the file is damaged
        error: STOP at byte 2: there is not exactly one value; the file is damaged
    "#]]
    .assert_eq(&shown);
}

#[test]
fn what_is_no_pickle_is_told_apart() {
    let shown: String = [
        &b""[..],
        b"PK\x03\x04",
        b"{\"traceEvents\": []}",
        b"(dp0\n.",
        b"\x80",
        b"\x80\x01N.",
        b"\x80\x06N.",
        b"\x80\x04N\x80\x07.",
        b"\x80\x04",
        b"\x80\x04K",
        b"\x80\x04\x8c\x05ab",
        b"\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\xff",
        b"\x80\x04\x95\x40\x00\x00\x00\x00\x00\x00\x00N.",
    ]
    .iter()
    .map(|bytes| format!("{}\n", shown(bytes)))
    .collect();
    expect![[r#"
        error: the file is empty; write it again with torch.cuda.memory._dump_snapshot(path)
        error: not a memory snapshot: it is a zip archive, perhaps written by torch.save; write it with torch.cuda.memory._dump_snapshot(path)
        error: not a memory snapshot: it looks like JSON; is it a profiler trace?
        error: not a memory snapshot: it does not begin like a Python pickle; write it with torch.cuda.memory._dump_snapshot(path)
        error: the file ends at byte 1, in the middle of PROTO; it is cut off: copy it again or let the job finish writing it
        error: pickle protocol 1 is not supported; write the file again with protocol 2 to 5
        error: pickle protocol 6 is not supported; write the file again with protocol 2 to 5
        error: pickle protocol 7 is not supported; write the file again with protocol 2 to 5
        error: the file ends at byte 2, in the middle of the pickle (no STOP); it is cut off: copy it again or let the job finish writing it
        error: the file ends at byte 3, in the middle of BININT1; it is cut off: copy it again or let the job finish writing it
        error: the file ends at byte 6, in the middle of SHORT_BINUNICODE; it is cut off: copy it again or let the job finish writing it
        error: the file ends at byte 11, in the middle of BINUNICODE8; it is cut off: copy it again or let the job finish writing it
        error: the file ends at byte 13, in the middle of FRAME; it is cut off: copy it again or let the job finish writing it
    "#]].assert_eq(&shown);
}

#[test]
fn bytes_after_stop_are_counted() {
    let tree = run(b"\x80\x02N.more", &Limits::default()).unwrap();
    assert_eq!(tree.trailing, 4);
}

#[test]
fn open_containers_are_bounded() {
    let limits = Limits { nesting: 3, ..Limits::default() };
    run(&pickle(b"(((ttt"), &limits).expect("three are allowed");
    match run(&pickle(b"((((tttt"), &limits) {
        Err(SnapshotError::TooDeep { at: 5, limit: 3 }) => {}
        other => panic!("{other:?}"),
    }
}

#[test]
fn values_nested_without_marks_are_read_and_dropped_without_recursion() {
    let deep = 1_000_000;
    let body = [vec![b']'; deep], vec![b'a'; deep - 1]].concat();
    let bytes = pickle(&body);
    let tree = run(&bytes, &Limits::default()).expect("lists in lists");
    assert_eq!(tree.container_count(), deep);
}

#[test]
fn memory_is_bounded_whatever_it_is_needed_for() {
    let limits = Limits { memory: Bytes(100_000), ..Limits::default() };
    let many = 50_000;
    let mut large_index = vec![b'N'; 20_000];
    large_index.extend(b"r\x00\x4e\x00\x00");
    for (what, body) in [
        ("stack", vec![b'N'; many]),
        ("containers", [b"(".as_slice(), &vec![b']'; many], b"t"].concat()),
        ("elements", [b"]\x94".as_slice(), &b"h\x00a".repeat(many)].concat()),
        ("memo", [b"N".as_slice(), &vec![0x94; many]].concat()),
        ("memo index", large_index),
        ("texts", [b"]".as_slice(), &b"\x8c\x00a".repeat(many)].concat()),
        ("numbers", [b"]".as_slice(), &b"\x8a\x05\0\0\0\0\x01a".repeat(many)].concat()),
    ] {
        match run(&pickle(&body), &limits) {
            Err(SnapshotError::TooLarge { limit: Bytes(100_000), .. }) => {}
            other => panic!("{what}: {:?}", other.map(|_| ())),
        }
    }
}

#[test]
fn a_value_mentioned_often_is_stored_once() {
    // 10,000 mentions of a list of 1,000 elements: 80 MB if copied.
    let body =
        [b"](".as_slice(), b"](", &b"K\x01".repeat(1000), b"e\x94", &b"h\x00".repeat(10_000), b"e"]
            .concat();
    let limits = Limits { memory: Bytes(500_000), ..Limits::default() };
    let bytes = pickle(&body);
    let tree = run(&bytes, &limits).expect("fits when shared");
    assert_eq!(tree.container_count(), 2);
}

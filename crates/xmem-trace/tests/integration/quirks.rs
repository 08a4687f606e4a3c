//! One small trace for every oddity that profilers are known to write.
#![allow(clippy::disallowed_methods, reason = "tests write the files that they read")]

use crate::support;

use expect_test::{Expect, expect};
use std::io::Write;
use support::{assert_same, read_with, show};
use xmem_trace::{ReadOptions, Trace, read_bytes, read_path, reference};

/// Reads `text` in several ways, which must all agree, and compares a listing of it.
fn check(text: impl AsRef<[u8]>, expected: &Expect) {
    let text = text.as_ref();
    let (trace, diagnostics) = read_with(text, 256 << 10, 1);
    for (chunk, threads) in [(64, 1), (200, 3)] {
        let (other, found) = read_with(text, chunk, threads);
        assert_same(&other, &trace, &format!("chunk {chunk}"));
        assert_eq!(found, diagnostics, "chunk {chunk}");
    }
    if let Ok((plain, _)) = reference::read(text) {
        assert_same(&trace, &plain, "plain reader");
    }
    expected.assert_eq(&show(&trace, &diagnostics));
}

fn trace_of(text: &str) -> Trace {
    read_with(text.as_bytes(), 256 << 10, 1).0
}

#[test]
fn current_format() {
    check(
        r#"
  {
    "schemaVersion": 1,
    "deviceProperties": [
    ],
      "with_stack": 1,
      "record_shapes": 1,
  "displayTimeUnit": "ms",
  "baseTimeNanoseconds": 1790857026000000000,
  "traceEvents": [
  {
    "ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 7, "tid": 7,
    "ts": 4377048581575.383, "dur": 8.593,
    "args": {
      "External id": 3,"Sequence number": 12, "Fwd thread id": 1, "Concrete Inputs": ["", "[1, 1]"], "Input type": ["float", "ScalarList"], "Input Strides": [[256, 1], []], "Input Dims": [[8192, 256], []], "Ev Idx": 2
    }
  },
  {
    "ph": "s", "id": 246, "pid": 7, "tid": 7, "ts": 4377048581575.383,
    "cat": "fwdbwd", "name": "fwdbwd"
  },
  {
    "ph": "X", "cat": "user_annotation", "name": "ProfilerStep#1", "pid": 7, "tid": 7,
    "ts": 4377048581500.000, "dur": 500.001, "args": { "External id": 1, "Ev Idx": 0 }
  },
  {
    "ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]",
    "pid": 7, "tid": 7,
    "ts": 4377048581576.001,
    "args": {
      "Total Reserved": 0, "Total Allocated": 512, "Bytes": -128, "Device Id": -1, "Device Type": 0, "Addr": 140220551913536, "finished": false, "Ev Idx": 9
    }
  },
  {
    "ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[OutOfMemory]",
    "pid": 7, "tid": 7, "ts": 4377048581577.000,
    "args": { "Total Reserved": 4096, "Total Allocated": 512, "Bytes": 99, "Device Id": 1, "Device Type": 1 }
  },
  {
    "ph": "X", "cat": "python_function", "name": "train.py(163): <module>", "pid": 7, "tid": 7,
    "ts": 4377048573700.436, "dur": 10036926.194,
    "args": { "Python parent id": null, "Python id": 1, "Ev Idx": 20715 }
  },
  {
    "ph": "X", "cat": "Trace", "ts": 4377048573628.546, "dur": 10.084,
    "pid": "Spans", "tid": "PyTorch Profiler", "name": "PyTorch Profiler (0)", "args": { "Op count": 0 }
  },
  {
    "name": "Record Window End", "ph": "i", "s": "g", "pid": "", "tid": "", "ts": 4377058671191.932
  }
  ],
  "traceName": "cpu_trace.json"
}"#,
        &expect![[r#"
            header Some(1790857026000000000) Some(1) ["with_stack", "record_shapes"] []
                   displayTimeUnit=ms
                   traceName=cpu_trace.json
            Operator "aten::mm" 4377048581575383 +8593 @7/7 seq=12 fwd=1 [[[8192,256],[]] ["float","ScalarList"] [[256,1],[]] ["","[1, 1]"]]
            Annotation "ProfilerStep#1" 4377048581500000 +500001 @7/7 seq=-1 fwd=0 [   ]
            Python "train.py(163): <module>" 4377048573700436 +10036926194 @7/7
            Memory 4377048581576001 0x7f87a42fe040 -128 total=512 Cpu:-1 @7/7 oom=false
            Memory 4377048581577000 0x0 99 total=512 Cuda:1 @7/7 oom=true
            Flow Start 246 4377048581575383 @7/7
            other "Trace" 1
            other "i" 1
            8 events
            note: gpu-trace x1 None: the job was recorded on a GPU (1 device memory events)
        "#]],
    );
}

#[test]
fn torch_1_9_has_other_names_and_no_category_on_memory() {
    check(
        r#"{"traceEvents": [
  {"ph": "X", "cat": "Operator", "name": "aten::add", "pid": 25738, "tid": "25738",
    "ts": 1623142623460121, "dur": 5,
    "args": {"Device": 25738, "External id": 2, "Input dims": [[2, 3], []], "Fwd thread id": 0, "Sequence number": 4}},
  {"ph": "i", "s": "t", "name": "[memory]", "pid": 25738, "tid": 25738, "ts": 1623142623460122,
    "args": {"Device Type": 0, "Device Id": -1, "Bytes": 4, "Profiler Event Index": 4}},
  {"ph": "X", "cat": "Kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 1623142623460123, "dur": 1, "args": {"device": 0}}
], "deviceProperties": [{"id": 0, "name": "Tesla V100", "numSms": 80}]}"#,
        &expect![[r#"
            header None None [] ["Tesla V100"]
            Operator "aten::add" 1623142623460121000 +5000 @25738/25738 seq=4 fwd=0 [[[2,3],[]]   ]
            Memory 1623142623460122000 0x0 4 total=-1 Cpu:-1 @25738/25738 oom=false
            other "Kernel" 1
            3 events
            note: gpu-trace x1 None: the job was recorded on a GPU (1 device activities, Tesla V100)
        "#]],
    );
}

#[test]
fn legacy_exporter_writes_no_category_at_all() {
    check(
        r#"[{"name": "aten::empty", "ph": "X", "ts": 12.5, "dur": 3.25, "tid": 1, "pid": "CPU functions", "args": {}},
{"name": "sgemm", "ph": "X", "ts": 13, "dur": 1, "tid": 0, "pid": "CUDA functions", "args": {}}]"#,
        &expect![[r#"
            Operator "aten::empty" 12500 +3250 @CPU functions/1 seq=-1 fwd=0 [   ]
            other "X" 1
            2 events
        "#]],
    );
}

#[test]
fn key_order_white_space_and_repeated_keys_do_not_matter() {
    let compact = r#"{"traceEvents":[{"ph":"X","cat":"cpu_op","name":"aten::mm","pid":1,"tid":2,"ts":1.5,"dur":2,"args":{"Input Dims":[[2,"a b"],[]],"Sequence number":3,"Input type":["float"]}}]}"#;
    let spread = "\n{ \"traceEvents\"\t:\r\n[ { \"args\" : { \"Input type\" : [ \"float\" ] , \"Sequence number\" : 9 , \"Sequence number\" : 3 , \"Input Dims\" : [ [ 2 , \"a b\" ] , [ ] ] } , \"dur\" : 2 , \"ts\" : 7 , \"ts\" : 1.500 , \"tid\" : \"2\" , \"pid\" : 1 , \"name\" : \"aten\\u003a:mm\" , \"c\\u0061t\" : \"cpu_op\" , \"ph\" : \"X\" } ] }\n";
    assert_same(&trace_of(spread), &trace_of(compact), "spread out");
}

#[test]
fn times_keep_every_nanosecond() {
    check(
        r#"[{"ph":"X","cat":"cpu_op","name":"a","ts":1795232304855791.123,"dur":0.001},
{"ph":"X","cat":"cpu_op","name":"b","ts":1795232304855791,"dur":0},
{"ph":"X","cat":"cpu_op","name":"c","ts":"7887237999999.999","dur":"1e3"},
{"ph":"X","cat":"cpu_op","name":"d","ts":7887237999999.999,"dur":1.0005},
{"ph":"X","cat":"cpu_op","name":"e","ts":-3.5,"dur":-1},
{"ph":"X","cat":"cpu_op","name":"f","ts":1.25e3,"dur":null}]"#,
        &expect![[r#"
            Operator "a" 1795232304855791123 +1 @/ seq=-1 fwd=0 [   ]
            Operator "b" 1795232304855791000 +0 @/ seq=-1 fwd=0 [   ]
            Operator "c" 7887237999999999 +1000000 @/ seq=-1 fwd=0 [   ]
            Operator "d" 7887237999999999 +1001 @/ seq=-1 fwd=0 [   ]
            Operator "e" -3500 +0 @/ seq=-1 fwd=0 [   ]
            Operator "f" 1250000 +0 @/ seq=-1 fwd=0 [   ]
            6 events
            note: negative-duration x1 None: an event ends before it starts; its duration is set to zero
        "#]],
    );
}

#[test]
fn integers_beyond_64_bits_do_not_spoil_an_event() {
    check(
        r#"[{"ph":"i","name":"[memory]","ts":1,"args":{"Bytes":8,"Addr":18446744073709551615,"Total Allocated":1e400,"x":123456789012345678901234567890}},
{"ph":"i","name":"[memory]","ts":2,"args":{"Bytes":8,"Addr":"0x7f00","Device Type":6,"Device Id":3}}]"#,
        &expect![[r#"
            Memory 1000 0xffffffffffffffff 8 total=-1 Cpu:-1 @/ oom=false
            Memory 2000 0x7f00 8 total=-1 Cuda:3 @/ oom=false
            2 events
            note: gpu-trace x1 None: the job was recorded on a GPU (1 device memory events)
        "#]],
    );
}

#[test]
fn bare_words_raw_characters_and_odd_escapes_are_repaired() {
    check(
        b"{\"traceEvents\": [
{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"aten::mm\", \"ts\": 1, \"dur\": 2, \"args\": {\"memory bandwidth (GB/s)\": inf, \"Sequence number\": NaN}},
{\"ph\": \"X\", \"cat\": \"user_annotation\", \"name\": \"two\nlines \x01 \xff\", \"ts\": 3, \"dur\": 2},
{\"ph\": \"X\", \"cat\": \"python_function\", \"name\": \"C:\\Users\\x.py(1): f\", \"ts\": 4, \"dur\": 2},
{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"lone \\ud800\", \"ts\": 5, \"dur\": Infinity},
{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"fine\", \"ts\": 6, \"dur\": 2}
]}",
        &expect![[r#"
            Operator "aten::mm" 1000 +2000 @/ seq=-1 fwd=0 [   ]
            Annotation "two\\nlines \\u0001 �" 3000 +2000 @/ seq=-1 fwd=0 [   ]
            Operator "lone �" 5000 +0 @/ seq=-1 fwd=0 [   ]
            Operator "fine" 6000 +2000 @/ seq=-1 fwd=0 [   ]
            Python "C:\\Users\\x.py(1): f" 4000 +2000 @/
            5 events
            note: repaired-event x4 Some(ByteOffset(18)): an event is not standard JSON (bare NaN, unescaped characters or the like); it was repaired
        "#]],
    );
}

#[test]
fn an_event_that_is_odd_only_in_its_bytes_keeps_its_escapes() {
    check(
        b"[{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"a\", \"ts\": 1, \"dur\": 2, \"args\": {\"Input type\": [\"\xff\\ud800\"]}}]",
        &expect![[r#"
            Operator "a" 1000 +2000 @/ seq=-1 fwd=0 [ ["�\ud800"]  ]
            1 events
            note: repaired-event x1 Some(ByteOffset(1)): an event is not standard JSON (bare NaN, unescaped characters or the like); it was repaired
        "#]],
    );
}

#[test]
fn many_odd_events_in_a_row_are_read_all_the_same() {
    let event = |i: usize| {
        let name = if i.is_multiple_of(3) { "a\\u0062" } else { "ab" };
        format!(
            r#"{{"ph": "X", "cat": "cpu_op", "name": "{name}", "pid": 1, "tid": 1, "ts": {i}}}"#
        )
    };
    let events: Vec<String> = (0..200).map(event).collect();
    let trace = trace_of(&format!("[{}]", events.join(",")));
    assert_eq!(trace.ops.len(), 200);
    assert!(trace.ops.name.iter().all(|&name| trace.strings.resolve(name) == "ab"));
    assert!(trace.ops.start.iter().map(|t| t.0).eq((0..200).map(|i| i * 1000)));
}

#[test]
fn unescaped_quotes_cost_no_other_event() {
    check(
        r#"{
  "traceEvents": [
  {
    "ph": "X", "cat": "user_annotation", "name": "say "hi"", "pid": 1, "tid": 1,
    "ts": 1.000, "dur": 1.000,
    "args": { "External id": 1 }
  },
  {
    "ph": "X", "cat": "user_annotation", "name": "5" wide", "pid": 1, "tid": 1,
    "ts": 2.000, "dur": 1.000,
    "args": { "External id": 2 }
  },
  {
    "ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1,
    "ts": 3.000, "dur": 1.000,
    "args": { "Concrete Inputs": ["a "quoted" word", ""], "Input Dims": [[1], []] }
  },
  {
    "ph": "X", "cat": "cpu_op", "name": "odd" one", "pid": 1, "tid": 1,
    "ts": 4.000, "dur": 1.000
  }
  ],
  "traceName": "x.json"
}"#,
        &expect![[r#"
            header None None [] []
                   traceName=x.json
            Annotation "say \"hi\"" 1000 +1000 @1/1 seq=-1 fwd=0 [   ]
            Annotation "5\" wide" 2000 +1000 @1/1 seq=-1 fwd=0 [   ]
            Operator "aten::mm" 3000 +1000 @1/1 seq=-1 fwd=0 [[[1],[]]   ["a \"quoted\" word",""]]
            Operator "odd\" one" 4000 +1000 @1/1 seq=-1 fwd=0 [   ]
            4 events
            note: repaired-event x4 Some(ByteOffset(23)): an event is not standard JSON (bare NaN, unescaped characters or the like); it was repaired
        "#]],
    );
}

#[test]
fn a_bad_event_is_one_diagnostic_with_its_place() {
    check(
        r#"{"traceEvents": [
{"ph": "X", "cat": "cpu_op", "name": "a", "ts": 1, "dur": 1},
{"ph": "X", "cat": "cpu_op", "name": "no time", "dur": 1},
{"ph": "X", "cat": "cpu_op" "name": ]]]]},
{"ph": "X", "cat": "cpu_op", "name": "never seen"}]}"#,
        &expect![[r#"
            Operator "a" 1000 +1000 @/ seq=-1 fwd=0 [   ]
            1 events
            warning: bad-header x1 Some(ByteOffset(177)): the text after the events is not JSON and is ignored
            warning: bad-event x2 Some(ByteOffset(80)): an event is ignored: its `ts` is missing or not a time
        "#]],
    );
    check(
        r#"{"traceEvents": [
{"ph": "i", "name": "[memory]", "ts": 1, "args": {"Addr": 1}}, 17, null, "text", [1, 2], {}, {"ph": "s", "cat": "fwdbwd", "id": "x", "ts": 2},
{"ph": "X", "cat": "cpu_op", "name" "b", "ts": 1, "dur": 1},,
{"ph": "X", "cat": "cpu_op", "name": "c", "ts": 1, "dur": 1},
]}"#,
        &expect![[r#"
            Operator "c" 1000 +1000 @/ seq=-1 fwd=0 [   ]
            1 events
            warning: bad-event x8 Some(ByteOffset(18)): an event is ignored: a memory event without `Bytes`
        "#]],
    );
}

#[test]
fn brackets_that_do_not_match_lose_one_event() {
    let mut text = String::from("{\"traceEvents\": [\n");
    for i in 0..200 {
        let bad = if i == 50 { "[" } else { "" };
        text += &format!(
            "  {{\n    \"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"op{i}\", \"ts\": {i}, \"dur\": 1,\n    \"args\": {{ \"Input Dims\": {bad}[[1]] }}\n  }},\n"
        );
    }
    text += "  ]\n}";
    let options = ReadOptions { event_limit: xmem_types::Bytes(2000), ..ReadOptions::default() };
    for chunk in [64, 500, 100_000] {
        let options = ReadOptions { chunk: xmem_types::Bytes(chunk), ..options.clone() };
        let (trace, diagnostics) = read_bytes(text.as_bytes(), &options).expect("a trace");
        let bad = diagnostics.get("bad-event").map_or(0, |d| d.count);
        assert_eq!((trace.ops.len(), bad), (199, 1), "chunk {chunk}: {diagnostics:?}");
    }
}

#[test]
fn the_list_may_come_first_and_header_values_may_be_anything() {
    check(
        r#"{"traceEvents": [{"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "python"}}],
 "baseTimeNanoseconds": 1790857026000000000, "with_stack": 1, "profile_memory": 0, "nan": NaN,
 "distributedInfo": {"backend": "nccl", "note": "a, ] b"}, "host_name": "h\u00f6st", "x": [1, {"y": "}"}], "schemaVersion": 1}"#,
        &expect![[r#"
            header Some(1790857026000000000) Some(1) ["with_stack"] []
                   nan=NaN
                   distributedInfo={"backend":"nccl","note":"a, ] b"}
                   host_name=höst
                   x=[1,{"y":"}"}]
            other "M" 1
            1 events
        "#]],
    );
}

#[test]
fn header_keys_that_are_no_utf8_are_read() {
    check(
        b"{\"a\xff\\n\": 1, \"traceEvents\": []}",
        &expect![[r#"
        header None None [] []
               a�\n=1
        0 events
    "#]],
    );
}

#[test]
fn threads_are_told_apart_by_process_and_thread() {
    check(
        r#"[{"ph":"X","cat":"cpu_op","name":"a","pid":1,"tid":2,"ts":1,"dur":1},
{"ph":"X","cat":"cpu_op","name":"a","pid":1,"tid":3,"ts":1,"dur":1},
{"ph":"X","cat":"cpu_op","name":"a","pid":"1","tid":"2","ts":1,"dur":1},
{"ph":"X","cat":"cpu_op","name":"a","pid":2,"tid":"main","ts":1,"dur":1},
{"ph":"X","cat":"cpu_op","name":"a","ts":1,"dur":1}]"#,
        &expect![[r#"
            Operator "a" 1000 +1000 @1/2 seq=-1 fwd=0 [   ]
            Operator "a" 1000 +1000 @1/3 seq=-1 fwd=0 [   ]
            Operator "a" 1000 +1000 @1/2 seq=-1 fwd=0 [   ]
            Operator "a" 1000 +1000 @2/main seq=-1 fwd=0 [   ]
            Operator "a" 1000 +1000 @/ seq=-1 fwd=0 [   ]
            5 events
        "#]],
    );
}

#[test]
fn compressed_input_is_known_by_its_content() {
    let text = br#"{"traceEvents":[{"ph":"X","cat":"cpu_op","name":"a","ts":1,"dur":1}]}"#;
    let expected = read_bytes(text, &ReadOptions::default()).expect("a trace").0;
    let gzip = |text: &[u8]| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(text).expect("in memory");
        encoder.finish().expect("in memory")
    };
    let zstd = |text: &[u8]| zstd::encode_all(text, 1).expect("in memory");
    let members = [gzip(&text[..20]), gzip(&text[20..])].concat();
    let frames = [zstd(&text[..20]), zstd(&text[20..])].concat();
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (name, bytes) in [
        ("plain.gz", text.to_vec()),
        ("gzip.json", gzip(text)),
        ("members", members),
        ("zstd.txt", zstd(text)),
        ("frames", frames),
    ] {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).expect("writable");
        let (trace, diagnostics) = read_path(&path, &ReadOptions::default()).expect(name);
        assert_same(&trace, &expected, name);
        assert!(diagnostics.is_empty(), "{name}: {diagnostics:?}");
    }
}

//! The lines of blocks: those of the calls in a function, where `xmem profile` found them, rather than that of its `def`.

use crate::support::{Detail, Recorder};
use xmem_analyzer::{Profile, analyze};
use xmem_trace::Trace;
use xmem_types::Diagnostics;

/// `main` makes a tensor, calls `forward`, which adds and multiplies in two lines, and makes another one.
fn recorded(lines: &str) -> (Profile, Diagnostics) {
    let mut r = Recorder::new(Detail::Everything);
    r.call("train.py(41): main", |r| {
        r.empty(1);
        r.call("nn.Module: Net_0", |r| {
            r.call("torch/nn/modules/module.py(1791): _call_impl", |r| {
                r.call("train.py(7): forward", |r| {
                    r.op("aten::add", &[], |r| r.alloc(2));
                    r.op("aten::mul", &[], |r| r.alloc(3));
                });
            });
        });
        r.empty(4);
    });
    let mut trace: Trace = r.trace;
    trace.header.extra.push(("xmem_lines".to_owned(), lines.to_owned()));
    analyze(trace)
}

fn lines_of(profile: &Profile) -> Vec<&str> {
    profile.blocks.iter().map(|block| profile.text(block.line)).collect()
}

#[test]
fn a_block_has_the_line_that_ran_its_operator_and_not_that_of_the_def() {
    // main at 1 us, its operator at 2, Net at 5, forward at 7, add at 8, mul at 11, the last operator at 17.
    let lines =
        r#"{"schema":"xmem.lines.1","starts":[2000,3000,3000,3000,6000],"lines":[44,45,9,10,47]}"#;
    let (profile, notes) = recorded(lines);
    assert!(notes.get("recording-lines").is_none(), "{notes:?}");
    assert_eq!(
        lines_of(&profile),
        [
            "train.py(44): main",
            "train.py(9): forward",
            "train.py(10): forward",
            "train.py(47): main"
        ]
    );
}

#[test]
fn lines_of_another_form_are_not_used() {
    let defs = [
        "train.py(41): main",
        "train.py(7): forward",
        "train.py(7): forward",
        "train.py(41): main",
    ];
    for bad in [
        "7",
        r#"{"schema":"xmem.lines.2","starts":[2000],"lines":[44]}"#,
        r#"{"schema":"xmem.lines.1","starts":[2000],"lines":[]}"#,
    ] {
        let (profile, notes) = recorded(bad);
        assert!(notes.get("recording-lines").is_some(), "{bad}");
        assert_eq!(lines_of(&profile), defs, "{bad}");
    }
}

#[test]
fn the_operator_of_a_block_is_the_one_that_asked_for_it_and_not_aten_empty() {
    let mut r = Recorder::new(Detail::Everything);
    let empty = |r: &mut Recorder| r.op("aten::empty", &[], |r| r.alloc(1));
    r.op("aten::linear", &[], |r| r.op("aten::addmm", &[], empty));
    r.op("aten::clone", &[], |r| {
        r.op("aten::empty_like", &[], |r| r.op("aten::empty_strided", &[], |r| r.alloc(1)))
    });
    r.annotation("mine", |r| r.op("aten::empty_like", &[], empty));
    r.op("aten::add", &[], |r| r.alloc(1));
    let (profile, _) = analyze(r.trace);
    let asking = profile.blocks.iter().filter_map(|block| block.op);
    let asking: Vec<&str> = asking.map(|op| profile.op_name(profile.asking_op(op))).collect();
    assert_eq!(asking, ["aten::addmm", "aten::clone", "aten::empty_like", "aten::add"]);
}

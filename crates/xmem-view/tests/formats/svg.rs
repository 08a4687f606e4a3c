//! The pictures.

use crate::run::Recorded;
use quick_xml::Reader;
use quick_xml::events::Event;
use std::collections::BTreeMap;
use xmem::Bytes;
use xmem::analyzer::Role;
use xmem::predict::BlockKey;
use xmem_view::SvgView;

/// An element: its name and attributes.
type Element = (String, BTreeMap<String, String>);

/// The elements of a document, which must be well-formed.
fn elements(text: &str) -> Vec<Element> {
    let mut reader = Reader::from_str(text);
    reader.config_mut().check_end_names = true;
    let mut found = Vec::new();
    loop {
        match reader.read_event().expect("well-formed XML") {
            Event::Start(tag) | Event::Empty(tag) => {
                let name = String::from_utf8(tag.name().as_ref().to_vec()).expect("UTF-8");
                let attributes = tag.attributes().map(|attribute| {
                    let attribute = attribute.expect("an attribute");
                    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("UTF-8");
                    (text(attribute.key.as_ref()), text(&attribute.value))
                });
                found.push((name, attributes.collect()));
            }
            Event::Eof => return found,
            _ => {}
        }
    }
}

/// The area of all rectangles of a class.
fn area(elements: &[Element], class: &str) -> f64 {
    let number = |element: &Element, key: &str| element.1[key].parse::<f64>().expect("a number");
    elements
        .iter()
        .filter(|element| element.0 == "rect" && element.1.get("class").is_some_and(|c| c == class))
        .map(|element| number(element, "width") * number(element, "height"))
        .sum()
}

#[test]
fn pictures_are_well_formed_and_accessible_for_every_key() {
    let recorded = Recorded::trace("gpt2_adamw/trace.json.zst");
    let run = recorded.run();
    for key in BlockKey::ALL.into_iter().map(Some).chain([None]) {
        for view in [SvgView::Timeline, SvgView::Treemap, SvgView::Both] {
            let text = xmem_view::svg(&run, view, key);
            let elements = elements(&text);
            assert_eq!(elements[0].1["role"], "img");
            assert_eq!((elements[1].0.as_str(), elements[2].0.as_str()), ("title", "desc"));
            let foreign = ["script", "image", "foreignObject", "a", "use"];
            assert!(elements.iter().all(|element| !foreign.contains(&element.0.as_str())));
            let peak = format!("{} allocated", run.answer.memory.peak.allocated);
            assert!(text.contains(&peak), "{view:?} {key:?}");
            assert!(text.len() < 200_000, "{view:?} {key:?}: {} bytes", text.len());
            assert!(!text.contains("NaN") && !text.contains("inf"), "{view:?} {key:?}");
        }
    }
}

#[test]
fn areas_of_the_treemap_are_in_proportion() {
    let recorded = Recorded::trace("gpt2_adamw/trace.json.zst");
    let run = recorded.run();
    let elements = elements(&xmem_view::svg(&run, SvgView::Treemap, Some(BlockKey::Role)));
    let colors = [
        (Role::Parameter, "blue edge"),
        (Role::OptimizerState, "green edge"),
        (Role::Activation, "purple edge"),
        (Role::Temporary, "silver edge"),
        (Role::Workspace, "vermilion edge"),
    ];
    for share in &run.answer.memory.by_role {
        let Some((_, class)) = colors.iter().find(|(role, _)| *role == share.role) else {
            continue;
        };
        let expected = share.bytes.get() as f64 / run.answer.memory.peak.allocated.get() as f64;
        let drawn = area(&elements, class) / (920.0 * 420.0);
        assert!((drawn - expected).abs() < 0.002, "{}: {drawn} {expected}", share.role.name());
    }
}

#[test]
fn a_device_that_is_too_small_has_its_limit_in_the_picture() {
    let recorded = Recorded::with_capacity("gpt2_adamw/trace.json.zst", Bytes::mib(600));
    let text = xmem_view::svg(&recorded.run(), SvgView::Timeline, None);
    assert!(text.contains(">out of memory</text>") && text.contains("does not fit"));
    assert!(text.contains("of device memory for the allocator"));
}

#[test]
fn a_run_without_memory_is_a_picture() {
    let recorded = Recorded::text(r#"{"traceEvents": []}"#);
    let text = xmem_view::svg(&recorded.run(), SvgView::Both, None);
    elements(&text);
    assert!(text.contains("no GPU memory is requested"));
}

/// Names come from traces, and documents are opened in browsers.
#[test]
fn hostile_names_stay_text() {
    let trace = r#"{"traceEvents": [
        {"ph": "X", "cat": "cpu_op", "name": "</text><script>alert(1)</script>", "pid": 1, "tid": 1, "ts": 1, "dur": 5},
        {"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "pid": 1, "tid": 1, "ts": 2,
         "args": {"Bytes": 83886080, "Addr": 64, "Device Type": 0, "Device Id": -1}}
    ]}"#;
    let recorded = Recorded::text(trace);
    for key in [BlockKey::Op, BlockKey::Stack] {
        let text = xmem_view::svg(&recorded.run(), SvgView::Both, Some(key));
        assert!(elements(&text).iter().all(|element| element.0 != "script"));
        assert!(text.contains("&lt;script&gt;"));
    }
}

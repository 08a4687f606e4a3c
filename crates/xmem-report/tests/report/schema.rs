//! Every document validates against its published schema.

use crate::sample;
use crate::schema_check::check;
use serde_json::{Value, json};
use xmem_report::json::{
    self, DevicesDocument, Document, ErrorDocument, InspectDocument, ReplayDocument, Rules,
};

const REPLAY: &str = include_str!("../../../../docs/schema/xmem.replay.2.schema.json");
const ERROR: &str = include_str!("../../../../docs/schema/xmem.error.1.schema.json");
const INSPECT: &str = include_str!("../../../../docs/schema/xmem.inspect.2.schema.json");
const DEVICES: &str = include_str!("../../../../docs/schema/xmem.devices.1.schema.json");

fn parse(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

fn valid(schema: &str, document: &str) {
    check(&parse(schema), &parse(document)).expect("valid");
}

#[test]
fn answers_follow_their_schema() {
    let answers = [sample::fits(), sample::does_not_fit(), sample::only_just(), sample::withheld()];
    for answer in answers {
        for rules in [Rules::Omit, Rules::Explain] {
            valid(REPLAY, &json::pretty(&ReplayDocument::new("t.json", "-d t", &answer, rules)));
        }
    }
}

#[test]
fn an_answer_without_anything_follows_its_schema() {
    let mut answer = sample::fits();
    answer.memory.peak = xmem::predict::Peak::default();
    answer.memory.curve = xmem::predict::Curve::default();
    answer.trace = xmem::TraceFacts::default();
    answer.memory.largest.clear();
    valid(REPLAY, &json::pretty(&ReplayDocument::new("t.json", "-d t", &answer, Rules::Omit)));
}

#[test]
fn the_other_documents_follow_their_schemas() {
    valid(DEVICES, &json::pretty(&DevicesDocument::new(xmem::devices::devices())));
    let answer = sample::withheld();
    let inspect = InspectDocument::new("t.json", &answer.trace, &answer.findings);
    valid(INSPECT, &json::pretty(&inspect));
    let error = xmem::find("nonesuch").expect_err("unknown");
    for settings in [None, Some("-d t")] {
        valid(ERROR, &json::line(&ErrorDocument::new("t.json", settings, ("XM0211", &error))));
    }
}

#[test]
fn a_line_is_one_line_and_keeps_the_order_of_keys() {
    let answer = sample::fits();
    let line = json::line(&Document::answer("t.json", "-d t", &answer, Rules::Omit));
    assert_eq!(line.matches('\n').count(), 1);
    assert!(line.starts_with(r#"{"schema":"xmem.replay/2","trace":"t.json","verdict":"fits","#));
    let document = parse(&line);
    let roles: Vec<&String> = document["by_role"].as_object().expect("object").keys().collect();
    let order: Vec<&str> = xmem::analyzer::Role::ALL.iter().map(|r| r.name()).collect();
    assert_eq!(roles, order);
}

#[test]
fn the_checker_finds_violations() {
    let document =
        parse(&json::pretty(&ReplayDocument::new("t", "-d t", &sample::fits(), Rules::Omit)));
    let schema = parse(REPLAY);
    for (pointer, wrong, complaint) in [
        ("/verdict", Value::from("maybe"), "$.verdict"),
        ("/peak/device_bytes", Value::from("12"), "$.peak.device_bytes"),
        ("/peak/allocated_bytes", Value::from(-1), "below 0"),
        ("/by_role", Value::Object(serde_json::Map::new()), "`parameter` is missing"),
        ("/largest_blocks/0/origin/phase", Value::from("lunch"), "$.largest_blocks[0].origin"),
    ] {
        let mut broken = document.clone();
        *broken.pointer_mut(pointer).expect("present") = wrong;
        let error = check(&schema, &broken).expect_err(pointer);
        assert!(error.contains(complaint), "{pointer}: {error}");
    }
    let pair = json!({
        "prefixItems": [{ "type": "integer" }, { "type": "string" }],
        "minItems": 2,
        "maxItems": 2,
    });
    check(&pair, &json!([1, "a"])).expect("a pair");
    for wrong in [json!([1]), json!(["a", 1]), json!([1, "a", 2])] {
        check(&pair, &wrong).expect_err(&wrong.to_string());
    }
    let mut more = document;
    more["surprise"] = Value::Null;
    assert!(check(&schema, &more).expect_err("unknown key").contains("surprise"));
}

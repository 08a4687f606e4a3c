//! The JSON Schemas of the documents, derived from their types. `UPDATE_EXPECT=1 cargo test -p xmem-report schemas`
//! writes those in `docs/schema`.

mod layout;
mod names;

pub(crate) use names::{NameOf, bytes_by_role};

use crate::check::CheckDocument;
use crate::check::baseline::BaselineDocument;
use crate::convolutions::ConvolutionsDocument;
use crate::devices::json::DevicesDocument;
use crate::diff::json::DifferenceDocument;
use crate::error::ErrorDocument;
use crate::eval::json::EvalDocument;
use crate::fit::json::FitDocument;
use crate::fit::kept::MeasuresDocument;
use crate::inspect::json::InspectDocument;
use crate::law::json::LawDocument;
use crate::lengths::json::LengthsDocument;
use crate::offload::json::OffloadDocument;
use crate::plan::hints::HintsDocument;
use crate::plan::json::PlanDocument;
use crate::plan_run::json::PlanRunDocument;
use crate::ranks::json::RanksDocument;
use crate::replay::json::ReplayDocument;
use crate::simulate::json::{EndLine, SimulateDocument, StepLine};
use crate::snapshot_info::json::SnapshotInfoDocument;
use crate::snapshot_replay::json::SnapshotReplayDocument;
use crate::tune::json::TuneDocument;
use crate::validate::json::ValidateDocument;
use crate::variants::json::VariantsDocument;
use expect_test::expect_file;
use schemars::JsonSchema;
use std::collections::BTreeSet;

/// The schema of a document by the value of its key `schema`.
type Published = (&'static str, fn(&str) -> String);

const PUBLISHED: [Published; 26] = [
    ("xmem.baseline/1", schema::<BaselineDocument>),
    ("xmem.check/1", schema::<CheckDocument>),
    ("xmem.convolutions.1", schema::<ConvolutionsDocument<'_>>),
    ("xmem.devices/1", schema::<DevicesDocument<'_>>),
    ("xmem.diff/1", schema::<DifferenceDocument<'_>>),
    ("xmem.error/1", schema::<ErrorDocument<'_>>),
    ("xmem.eval/1", schema::<EvalDocument<'_>>),
    ("xmem.fit/1", schema::<FitDocument<'_>>),
    ("xmem.inspect/2", schema::<InspectDocument<'_>>),
    ("xmem.law/1", schema::<LawDocument>),
    ("xmem.lengths/1", schema::<LengthsDocument<'_>>),
    ("xmem.measures.1", schema::<MeasuresDocument<'_>>),
    ("xmem.offload/1", schema::<OffloadDocument<'_>>),
    ("xmem.plan-hints/2", schema::<HintsDocument>),
    ("xmem.plan-run/2", schema::<PlanRunDocument<'_>>),
    ("xmem.plan/1", schema::<PlanDocument<'_>>),
    ("xmem.ranks/1", schema::<RanksDocument<'_>>),
    ("xmem.replay/2", schema::<ReplayDocument<'_>>),
    ("xmem.simulate-end/1", schema::<EndLine<'_>>),
    ("xmem.simulate-step/1", schema::<StepLine>),
    ("xmem.simulate/1", schema::<SimulateDocument<'_>>),
    ("xmem.snapshot-info/2", schema::<SnapshotInfoDocument<'_>>),
    ("xmem.snapshot-replay/2", schema::<SnapshotReplayDocument<'_>>),
    ("xmem.tune/1", schema::<TuneDocument<'_>>),
    ("xmem.validate/1", schema::<ValidateDocument<'_>>),
    ("xmem.variants/1", schema::<VariantsDocument<'_>>),
];

/// Those of what xmem-report does not write: the recorder in Python does, and people the site file.
const WRITTEN_BY_HAND: [&str; 4] =
    ["xmem.lines.1", "xmem.recording.1", "xmem.rest.1", "xmem.site.1"];

fn schema<D: JsonSchema>(name: &str) -> String {
    layout::published(name, layout::generator().into_root_schema_for::<D>())
}

fn file_of(name: &str) -> String {
    format!("{}.schema.json", name.replace('/', "."))
}

#[test]
fn published_schemas_are_those_of_the_documents() {
    for (name, schema) in PUBLISHED {
        let path = format!("../../../docs/schema/{}", file_of(name));
        expect_file![path].assert_eq(&schema(name));
    }
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the folder of schemas is part of the repository")]
fn every_published_schema_is_of_a_document() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/schema");
    let files = std::fs::read_dir(folder).expect("the folder of schemas");
    let files = files.map(|file| file.expect("a file").file_name().into_string().expect("UTF-8"));
    let found: BTreeSet<String> = files.filter(|name| name.ends_with(".schema.json")).collect();
    let names = PUBLISHED.iter().map(|(name, _)| *name).chain(WRITTEN_BY_HAND);
    assert_eq!(found, names.map(file_of).collect());
}

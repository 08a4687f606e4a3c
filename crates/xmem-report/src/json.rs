//! The machine-readable formats. Every document has a `schema` field; sizes are integers in bytes.
//! Keys have the order of the structs here and never depend on the content: absent values are
//! `null`. The JSON Schemas are part of the documentation.

pub use crate::convolutions::ConvolutionsDocument;
pub use crate::devices::json::DevicesDocument;
pub use crate::diff::json::DifferenceDocument;
pub use crate::document::Document;
pub use crate::encode::{is_document, line, pretty};
pub use crate::error::ErrorDocument;
pub use crate::eval::json::EvalDocument;
pub use crate::fit::json::FitDocument;
pub use crate::fit::kept::MeasuresDocument;
pub use crate::inspect::json::InspectDocument;
pub use crate::law::json::{LawDocument, ReadLawError, is_law, read_law};
pub use crate::lengths::json::LengthsDocument;
pub use crate::offload::json::OffloadDocument;
pub use crate::plan::hints::{HintsDocument, HintsDocumentError, HintsScope, read_hints};
pub use crate::plan::json::{PlanDetail, PlanDocument};
pub use crate::plan_run::json::{PlanRunDocument, PlanRunFigures};
pub use crate::ranks::json::RanksDocument;
pub use crate::replay::json::{ReplayDocument, Rules};
pub use crate::replay::read::{AnswerError, read_answer};
pub use crate::simulate::json::{SegmentDetail, SimulateForm, SimulateWriter};
pub use crate::simulate::operations::{OperationsError, read_operations};
pub use crate::snapshot_info::json::SnapshotInfoDocument;
pub use crate::snapshot_replay::json::SnapshotReplayDocument;
pub use crate::tune::json::TuneDocument;
pub use crate::validate::json::ValidateDocument;
pub use crate::variants::json::VariantsDocument;

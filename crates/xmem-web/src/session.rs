//! One graph, and what is asked about it.

use crate::about::About;
use crate::error::SessionError;
use crate::settings::PageSettings;
use xmem::{Estimate, find};
use xmem_estimate::{GraphJob, Source};
use xmem_report::json::{self, Document, Rules};

/// A page's graph, which is read once.
#[derive(Debug, Default)]
pub struct Session {
    graph: Option<(String, Source)>,
}

impl Session {
    /// Reads a graph that answers call `name`, and returns what it leaves open, as JSON. A graph that cannot be read leaves
    /// the one before in its place.
    ///
    /// # Errors
    /// If it is no graph, or a damaged one.
    pub fn open(&mut self, name: &str, bytes: &[u8]) -> Result<String, SessionError> {
        let source = Source::read(bytes.to_vec())?;
        let about = json::line(&About::of(&source)?);
        self.graph = Some((name.to_owned(), source));
        Ok(about)
    }

    /// The answer under these settings, as `xmem estimate --format json` writes it.
    ///
    /// # Errors
    /// If the settings cannot be read, do not go with the graph, or the graph cannot be estimated.
    pub fn answer(&self, settings: &str) -> Result<String, SessionError> {
        let (name, source) = self.graph.as_ref().ok_or(SessionError::NoGraph)?;
        let settings: PageSettings = serde_json::from_str(settings)?;
        let estimate = Estimate::builder(find(&settings.device)?.clone()).build();
        let workload = settings.job()?.workload(source)?;
        let job = GraphJob { source, workload: &workload, name };
        let answer = job.answer(&job.act()?, &estimate)?;
        Ok(json::pretty(&Document::answer(&job.answer_name(), "", &answer, Rules::Omit)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    const GPT2: &[u8] = include_bytes!("../../../traces/graphs/big_gpt2s_adam_b6.pt2");

    #[test]
    fn a_graph_is_introduced_by_what_it_leaves_open_and_by_its_job() {
        let mut session = Session::default();
        let about = session.open("gpt2.pt2", GPT2).expect("a graph");
        let about: Value = serde_json::from_str(&about).expect("JSON");
        assert_eq!((&about["batch"], &about["length"]), (&json!(6), &Value::Null));
        assert_eq!(about["job"]["optimizers"], json!(["adam"]));
        assert_eq!(about["parameters"], 124_439_808);
        assert_eq!(about["repeated"][0], json!({"pattern": "model.transformer.h.*", "count": 12}));
    }

    #[test]
    fn a_file_that_is_no_graph_leaves_the_one_before() {
        let mut session = Session::default();
        session.open("gpt2.pt2", GPT2).expect("a graph");
        let error = session.open("cut.pt2", &GPT2[..GPT2.len() / 2]).expect_err("cut off");
        assert!(error.words().starts_with("cannot read the file: cannot read the archive"));
        let answer = session.answer(r#"{"device": "a100-40g", "batch": 2}"#).expect("an answer");
        assert!(answer.contains(r#""trace": "gpt2.pt2 --batch 2""#), "{answer}");
    }
}

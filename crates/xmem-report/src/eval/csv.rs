//! The evaluation as rows: one for each estimate of each job.

use xmem_eval::evaluation::Evaluation;

/// The rows under their headings.
#[must_use]
pub fn evaluation(evaluation: &Evaluation) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let columns = evaluation.columns();
    let mut put = |row: Vec<String>| {
        writer.write_record(row).expect("rows have one length, and memory takes them");
    };
    put(columns.iter().map(|column| column.name.clone()).collect());
    let rows = columns.first().map_or(0, |column| column.values.len());
    for row in 0..rows {
        put(columns.iter().map(|column| column.values.text(row)).collect());
    }
    let bytes = writer.into_inner().expect("memory takes everything");
    String::from_utf8(bytes).expect("cells are text")
}

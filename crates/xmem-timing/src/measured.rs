//! Measured durations of operators, as a table that replaces the roofline.

use crate::model::TimeModel;
use xmem_types::Nanos;

/// The first line of a table.
const HEADER: &str = "op,duration_us";

/// The reason why a table of measured durations was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MeasuredTableError {
    /// The first line is another.
    #[error("the first line of a table of durations is `{HEADER}`")]
    Header,
    /// A line is not a name, a comma and a number.
    #[error("line {line}: expected the name of an operator, a comma and microseconds")]
    Line {
        /// Counted from 1.
        line: usize,
    },
}

impl TimeModel {
    /// Takes the durations of a table: a first line `op,duration_us`, then a line for each operator with its name as
    /// traces have it (`aten::mm`) and microseconds. A later line replaces an earlier one; empty lines are skipped.
    ///
    /// # Errors
    /// If the table has another first line, or a line is not of this form. The model is unchanged then.
    pub fn measure(&mut self, table: &str) -> Result<(), MeasuredTableError> {
        let mut lines = table.lines().map(str::trim);
        if lines.next() != Some(HEADER) {
            return Err(MeasuredTableError::Header);
        }
        let mut measured = self.measured.clone();
        for (index, text) in lines.enumerate().filter(|(_, text)| !text.is_empty()) {
            let row = text.rsplit_once(',').and_then(|(name, duration)| {
                let duration: f64 = duration.trim().parse().ok()?;
                let is_row = !name.trim().is_empty() && duration.is_finite() && duration >= 0.0;
                is_row.then(|| (name.trim().to_owned(), Nanos((duration * 1e3).round() as i64)))
            });
            let (name, duration) = row.ok_or(MeasuredTableError::Line { line: index + 2 })?;
            measured.insert(name, duration);
        }
        self.measured = measured;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operator::{Precision, Work};
    use xmem_devices::find;
    use xmem_types::Bytes;

    #[test]
    fn a_measured_duration_replaces_the_roofline() {
        let mut model = TimeModel::of(find("a100-40g").expect("built in"));
        let table = "op,duration_us\r\naten::mm, 12.5\n\naten::view,1\naten::mm,0.25\n";
        model.measure(table).expect("valid");
        let work = Work { flops: 1 << 40, bytes: Bytes::ZERO, precision: Precision::Float32 };
        for (name, expected) in [("aten::mm", Nanos(250)), ("aten::view", Nanos(1000))] {
            assert_eq!(model.operator_duration(name, &work), expected);
        }
        assert!(model.operator_duration("aten::bmm", &work) > Nanos(1000));
    }

    #[test]
    fn a_line_that_is_no_duration_is_refused_with_its_number() {
        let mut model = TimeModel::of(find("a100-40g").expect("built in"));
        for (table, expected) in [
            ("", MeasuredTableError::Header),
            ("op,ms\n", MeasuredTableError::Header),
            ("op,duration_us\naten::mm\n", MeasuredTableError::Line { line: 2 }),
            ("op,duration_us\na,1\n\nb,-1\n", MeasuredTableError::Line { line: 4 }),
            ("op,duration_us\na,NaN\n", MeasuredTableError::Line { line: 2 }),
            ("op,duration_us\n,1\n", MeasuredTableError::Line { line: 2 }),
        ] {
            assert_eq!(model.measure(table), Err(expected), "{table:?}");
        }
        assert!(model.measured.is_empty());
    }
}

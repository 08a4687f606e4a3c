//! Measured runs from a table.

use super::error::EvalFailure;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;
use xmem::Bytes;
use xmem_eval::evaluation::{Configuration, EstimatedRun, SecondRound};

/// A measured run, with what others estimated.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Reading {
    /// Its factors.
    pub(super) configuration: Configuration,
    /// The measured peak.
    pub(super) peak: Bytes,
    pub(super) out_of_memory: bool,
    /// The memory of the device, if the table has it.
    pub(super) capacity: Option<Bytes>,
    /// Published estimates by estimator.
    pub(super) estimates: BTreeMap<String, EstimatedRun>,
}

/// The columns about the run; the others are factors, or about an estimator.
const PEAK: &str = "peak_bytes";
const OUT_OF_MEMORY: &str = "out_of_memory";
const CAPACITY: &str = "capacity_bytes";

/// The column that says where a row is from.
const SOURCE: &str = "source";

/// The columns about an estimator, after its name and a point.
const MEMORY: &str = "memory_bytes";
const SECOND_OUT_OF_MEMORY: &str = "second_out_of_memory";
const SECOND_ERROR: &str = "second_error";
const RUNTIME: &str = "runtime_s";

/// A row by column.
type Row<'a> = BTreeMap<&'a str, &'a str>;

/// Reads a table of runs.
pub(super) fn read(path: &Path) -> Result<Vec<Reading>, EvalFailure> {
    let text = std::fs::read_to_string(path)
        .map_err(|source| EvalFailure::Read { path: path.to_owned(), source })?;
    parse(&text).map_err(|reason| EvalFailure::Readings { path: path.to_owned(), reason })
}

fn parse(text: &str) -> Result<Vec<Reading>, String> {
    let mut reader = csv::ReaderBuilder::new().comment(Some(b'#')).from_reader(text.as_bytes());
    let headers = reader.headers().map_err(|error| error.to_string())?.clone();
    if let Some(missing) =
        [PEAK, OUT_OF_MEMORY].iter().find(|name| !headers.iter().any(|h| h == **name))
    {
        return Err(format!("it has no column `{missing}`"));
    }
    let estimators: Vec<&str> = headers
        .iter()
        .filter_map(|column| column.rsplit_once('.'))
        .filter(|(_, figure)| *figure == MEMORY)
        .map(|(name, _)| name)
        .collect();
    let is_factor = |column: &str| {
        ![PEAK, OUT_OF_MEMORY, CAPACITY, SOURCE].contains(&column) && !column.contains('.')
    };
    let mut readings = Vec::new();
    for record in reader.records() {
        let record = record.map_err(|error| error.to_string())?;
        let line = record.position().map_or(0, csv::Position::line);
        let row: Row<'_> = headers.iter().zip(record.iter()).collect();
        let at = |reason: String| format!("line {line}: {reason}");
        let factors = headers
            .iter()
            .filter(|column| is_factor(column) && !row[*column].is_empty())
            .map(|column| (column.to_owned(), row[column].to_owned()));
        let mut estimates = BTreeMap::new();
        for &name in &estimators {
            if let Some(estimate) = estimate(&row, name).map_err(at)? {
                estimates.insert(name.to_owned(), estimate);
            }
        }
        let Some(peak) = number(&row, PEAK).map_err(at)? else {
            return Err(at(format!("`{PEAK}` is empty")));
        };
        readings.push(Reading {
            configuration: Configuration::new(factors),
            peak: Bytes(peak as u64),
            out_of_memory: truth(&row, OUT_OF_MEMORY).map_err(at)?.unwrap_or(false),
            capacity: number(&row, CAPACITY).map_err(at)?.map(|bytes| Bytes(bytes as u64)),
            estimates,
        });
    }
    Ok(readings)
}

/// The estimate of one estimator; none where the row has none, or a negative number for a job that it cannot estimate.
fn estimate(row: &Row<'_>, name: &str) -> Result<Option<EstimatedRun>, String> {
    let of = |figure: &str| format!("{name}.{figure}");
    let Some(memory) = number(row, &of(MEMORY))?.filter(|memory| *memory >= 0.0) else {
        return Ok(None);
    };
    let second = truth(row, &of(SECOND_OUT_OF_MEMORY))?;
    let error = number(row, &of(SECOND_ERROR))?;
    let memory = Bytes(memory as u64);
    Ok(Some(EstimatedRun {
        memory,
        reserve: memory,
        range: None,
        out_of_memory: truth(row, &of(OUT_OF_MEMORY))?.unwrap_or(false),
        second: second.map(|out_of_memory| SecondRound { out_of_memory, error }),
        runtime: number(row, &of(RUNTIME))?
            .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()),
        classes: None,
    }))
}

fn number(row: &Row<'_>, column: &str) -> Result<Option<f64>, String> {
    match row.get(column).copied().unwrap_or_default() {
        "" => Ok(None),
        text => match text.parse::<f64>() {
            Ok(number) if number.is_finite() => Ok(Some(number)),
            _ => Err(format!("`{column}` is `{text}`, expected a number")),
        },
    }
}

fn truth(row: &Row<'_>, column: &str) -> Result<Option<bool>, String> {
    match row.get(column).copied().unwrap_or_default() {
        "" => Ok(None),
        "true" => Ok(Some(true)),
        "false" => Ok(Some(false)),
        text => Err(format!("`{column}` is `{text}`, expected true or false")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_factors_a_peak_and_estimates() {
        let readings = parse(
            "# runs of others\n\
             model,batch,device,peak_bytes,out_of_memory,a.b.memory_bytes,a.b.out_of_memory,a.b.second_out_of_memory,a.b.second_error,a.b.runtime_s,llmem.memory_bytes\n\
             VGG16,200,rtx3060-12g,1048576,false,2097152.0,false,true,,1.5,-1\n\
             VGG19,,rtx3060-12g,1048576,true,,,,,,\n",
        )
        .expect("a table");
        assert_eq!(readings[0].configuration.to_string(), "VGG16 200 rtx3060-12g");
        assert_eq!(readings[1].configuration.to_string(), "VGG19 rtx3060-12g");
        assert_eq!((readings[0].peak, readings[1].out_of_memory), (Bytes::mib(1), true));
        let expected = EstimatedRun {
            memory: Bytes::mib(2),
            reserve: Bytes::mib(2),
            range: None,
            out_of_memory: false,
            second: Some(SecondRound { out_of_memory: true, error: None }),
            runtime: Some(Duration::from_millis(1500)),
            classes: None,
        };
        assert_eq!(readings[0].estimates, BTreeMap::from([("a.b".to_owned(), expected)]));
        assert!(readings[1].estimates.is_empty());
    }

    #[test]
    fn what_is_wrong_with_a_table_is_named() {
        for (text, expected) in [
            ("model,peak_bytes\n", "it has no column `out_of_memory`"),
            (
                "peak_bytes,out_of_memory\n1,no\n",
                "line 2: `out_of_memory` is `no`, expected true or false",
            ),
            (
                "peak_bytes,out_of_memory\nx,true\n",
                "line 2: `peak_bytes` is `x`, expected a number",
            ),
            ("peak_bytes,out_of_memory\n,true\n", "line 2: `peak_bytes` is empty"),
        ] {
            assert_eq!(parse(text).expect_err(text), expected);
        }
    }
}

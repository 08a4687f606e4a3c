//! Two recordings of the same job, figure by figure and request by request.

use crate::traces::SNAPSHOT;
use std::fmt;
use std::path::{Path, PathBuf};
use toml::{Table, Value};
use xmem_snapshot::{DeviceIndex, Limits};
use xmem_task::{Error, TaskError};
use xmem_types::RequestKind;

/// A figure that differs.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Difference {
    /// The keys that lead to it (`peak.reserved-bytes`).
    key: String,
    new: String,
    kept: String,
    /// True for peaks and counts of the whole job; the others are values at one moment.
    pub(super) is_of_peaks: bool,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}, kept {}", self.key, self.new, self.kept)
    }
}

/// Tables of `expected.toml` that do not say what the job did.
const ABOUT: [&str; 6] =
    ["schema", "how", "device", "versions", "min-capacity", "allocator-config"];
/// Keys of figures that hold for the moment at which the script asked, not for the job.
const MOMENTS: [&str; 2] = ["allocated-bytes", "reserved-bytes"];

/// The figures that differ.
pub(super) fn figures(new: &Table, kept: &Table) -> Vec<Difference> {
    let mut found = Vec::new();
    for key in keys(new, kept).filter(|key| !ABOUT.contains(&key.as_str())) {
        values(&key, new.get(&key), kept.get(&key), &mut found);
    }
    found
}

fn keys<'a>(new: &'a Table, kept: &'a Table) -> impl Iterator<Item = String> + 'a {
    let added = kept.keys().filter(|key| !new.contains_key(*key));
    new.keys().chain(added).cloned()
}

fn values(at: &str, new: Option<&Value>, kept: Option<&Value>, found: &mut Vec<Difference>) {
    match (new, kept) {
        (Some(Value::Table(new)), Some(Value::Table(kept))) => {
            for key in keys(new, kept) {
                values(&format!("{at}.{key}"), new.get(&key), kept.get(&key), found);
            }
        }
        (Some(Value::Array(new)), Some(Value::Array(kept))) => {
            for row in 0..new.len().max(kept.len()) {
                values(&format!("{at}.{row}"), new.get(row), kept.get(row), found);
            }
        }
        (new, kept) if new == kept => {}
        (new, kept) => {
            let text = |value: Option<&Value>| value.map_or("nothing".to_owned(), Value::to_string);
            let last = at.rsplit('.').next().unwrap_or(at);
            let is_moment = MOMENTS.contains(&last) && !at.starts_with("peak.");
            found.push(Difference {
                key: at.to_owned(),
                new: text(new),
                kept: text(kept),
                is_of_peaks: !is_moment,
            });
        }
    }
}

/// How the requests of two recordings differ; none if they are the same in the same order, up to frees after
/// the job: some snapshots were written before its tensors went out of scope, others after.
pub(super) fn histories(new: &Path, kept: &Path) -> Result<Option<String>, Error> {
    let [new, kept] = [requests(&new.join(SNAPSHOT))?, requests(&kept.join(SNAPSHOT))?];
    Ok(history(&new, &kept))
}

/// A snapshot of the CUDA side cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot read the snapshot {}", .path.display())]
struct UnreadableError {
    path: PathBuf,
    #[source]
    source: Box<xmem_snapshot::SnapshotError>,
}

impl TaskError for UnreadableError {}

/// An allocation of so many bytes, or the free of the allocation with this number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Request {
    Alloc(u64),
    Free(u32),
}

fn requests(path: &Path) -> Result<Vec<Request>, Error> {
    let bytes = std::fs::read(path).map_err(Error::file(path))?;
    let (snapshot, _) = xmem_snapshot::read(&bytes, &Limits::default())
        .map_err(|source| UnreadableError { path: path.to_owned(), source: Box::new(source) })?;
    let recorded = snapshot.requests(DeviceIndex(0));
    Ok(recorded
        .requests
        .iter()
        .map(|request| match request.kind {
            RequestKind::Alloc { size, .. } => Request::Alloc(size.get()),
            _ => Request::Free(request.block.0),
        })
        .collect())
}

fn history(new: &[Request], kept: &[Request]) -> Option<String> {
    let same = new.iter().zip(kept).take_while(|(new, kept)| new == kept).count();
    let is_free = |request: &Request| matches!(request, Request::Free(_));
    if (same == new.len() || same == kept.len())
        && new[same..].iter().chain(&kept[same..]).all(is_free)
    {
        return None;
    }
    let sizes = |requests: &[Request]| {
        let mut sizes: Vec<u64> = requests
            .iter()
            .filter_map(|request| match request {
                Request::Alloc(size) => Some(*size),
                Request::Free(_) => None,
            })
            .collect();
        sizes.sort_unstable();
        sizes
    };
    Some(if sizes(new) == sizes(kept) {
        format!("the same allocations, in another order from request {same} of {} on", kept.len())
    } else {
        format!("{} requests, kept {}; the first {same} are equal", new.len(), kept.len())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(new: &str, kept: &str) -> Vec<(String, bool)> {
        let table = |text: &str| toml::from_str(text).expect("a table");
        let differences = figures(&table(new), &table(kept));
        differences.into_iter().map(|d| (d.key, d.is_of_peaks)).collect()
    }

    #[test]
    fn peaks_are_told_from_values_at_a_moment() {
        /// Figures that are new, figures that are kept, and the differences.
        type Row<'a> = (&'a str, &'a str, &'a [(&'a str, bool)]);
        let rows: [Row<'_>; 6] = [
            ("how = 'a'\n[peak]\nsegments = 1", "how = 'b'\n[peak]\nsegments = 1", &[]),
            (
                "[peak]\nreserved-bytes = 1",
                "[peak]\nreserved-bytes = 2",
                &[("peak.reserved-bytes", true)],
            ),
            ("[after-init]\nreserved-bytes = 1", "", &[("after-init", true)]),
            (
                "[[iteration]]\nallocated-bytes = 1\nmax-allocated-bytes = 3",
                "[[iteration]]\nallocated-bytes = 2\nmax-allocated-bytes = 4",
                &[
                    ("iteration.0.allocated-bytes", false),
                    ("iteration.0.max-allocated-bytes", true),
                ],
            ),
            ("parameters = 1", "parameters = 2", &[("parameters", true)]),
            ("", "[counts]\nooms = 1", &[("counts", true)]),
        ];
        for (new, kept, wanted) in rows {
            let wanted: Vec<(String, bool)> =
                wanted.iter().map(|(key, peaks)| ((*key).to_owned(), *peaks)).collect();
            assert_eq!(found(new, kept), wanted, "{new} / {kept}");
        }
    }

    #[test]
    fn histories_are_equal_reordered_or_different() {
        use Request::{Alloc, Free};
        let kept = [Alloc(8), Alloc(4), Free(0)];
        assert_eq!(history(&kept, &kept), None);
        let text = history(&[Alloc(8), Free(0), Alloc(4)], &kept).expect("another order");
        assert_eq!(text, "the same allocations, in another order from request 1 of 3 on");
        assert_eq!(history(&kept[..2], &kept), None, "a free after the job");
        let text = history(&kept[..1], &kept).expect("an allocation that is missing");
        assert_eq!(text, "1 requests, kept 3; the first 1 are equal");
        let text = history(&[Alloc(8), Alloc(5)], &kept).expect("another size");
        assert_eq!(text, "2 requests, kept 3; the first 1 are equal");
    }
}

//! What a job did in two iterations, as the library writes it (`native/observed.c`, `observed_write`).

use std::collections::BTreeMap;
use thiserror::Error;
use xmem_types::{BlockId, Bytes, Request, RequestKind, StreamId};

/// The requests of a job in two iterations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Observed {
    /// The requests; blocks are numbered without gaps.
    pub requests: Vec<Request>,
    /// The first request of each iteration.
    pub starts: Vec<usize>,
}

/// Text that is no such file.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("line {0} of what a job was observed to do is damaged")]
pub struct ObservedError(usize);

impl Observed {
    /// Reads the text of the file.
    ///
    /// # Errors
    /// If a line is none of `a ADDRESS BYTES`, `f ADDRESS` and `mark`.
    pub fn read(text: &str) -> Result<Self, ObservedError> {
        let mut observed = Self { requests: Vec::new(), starts: vec![0] };
        let mut live: BTreeMap<&str, BlockId> = BTreeMap::new();
        let mut blocks = 0;
        for (number, line) in text.lines().enumerate() {
            let damaged = || ObservedError(number + 1);
            let words: Vec<&str> = line.split(' ').collect();
            match words[..] {
                ["a", address, size] => {
                    let size = Bytes(size.parse().map_err(|_| damaged())?);
                    let block = BlockId::new(blocks);
                    blocks += 1;
                    live.insert(address, block);
                    let kind = RequestKind::Alloc { size, stream: StreamId::default() };
                    observed.requests.push(Request { block, kind });
                }
                // What is not live was made before.
                ["f", address] => observed.requests.extend(
                    live.remove(address).map(|block| Request { block, kind: RequestKind::Free }),
                ),
                ["mark"] => observed.starts.push(observed.requests.len()),
                _ => return Err(damaged()),
            }
        }
        // The end of the last one.
        observed.starts.truncate(observed.starts.len().saturating_sub(1).max(1));
        Ok(observed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_followed_by_their_addresses() {
        let text = "a 1000 512\nf 9\nf 1000\nmark\na 1000 1024\nmark\n";
        let observed = Observed::read(text).expect("read");
        let blocks: Vec<u32> = observed.requests.iter().map(|request| request.block.0).collect();
        assert_eq!((blocks, observed.starts), (vec![0, 0, 1], vec![0, 2]));
    }

    #[test]
    fn a_damaged_line_is_named() {
        assert_eq!(Observed::read("mark\na 1"), Err(ObservedError(2)));
    }
}

//! A cache of recorded arguments: the text of all arrays of one operator's arguments repeats with every
//! iteration, and is read as JSON the first time only.

use crate::columns::SignatureId;
use crate::event::ArgFields;
use crate::pool::Pool;
use std::ops::Range;

/// Bytes of text beyond which the cache is emptied before the next chunk.
const CACHE_LIMIT: usize = 1 << 20;

/// The keys of an operator's arguments from the first array to the last.
#[derive(Debug, Default)]
pub(crate) struct ArgumentCache {
    texts: Pool,
    rows: Vec<Row>,
    chunk: u64,
}

#[derive(Debug)]
struct Row {
    /// The ranges of the arrays in the text: dims, types, strides, concrete.
    arrays: [Option<Range<u32>>; 4],
    /// The chunk that used it last, and its signature there.
    signature: Option<(u64, SignatureId)>,
}

impl ArgumentCache {
    /// A new chunk begins: signatures of the last one mean nothing any more.
    pub(crate) fn next_chunk(&mut self) {
        self.chunk += 1;
        if self.texts.size() > CACHE_LIMIT {
            self.texts.clear();
            self.rows.clear();
        }
    }

    /// The row of a text, if it was read before.
    #[inline]
    pub(crate) fn find(&self, text: &[u8]) -> Option<u32> {
        self.texts.find(text)
    }

    /// Sets the arrays of a row, which lie in `text`: the row's text once more.
    #[inline]
    pub(crate) fn recall<'a>(&self, row: u32, text: &'a [u8], args: &mut ArgFields<'a>) {
        let [dims, types, strides, concrete] = &self.rows[row as usize].arrays;
        let part = |range: &Option<Range<u32>>| {
            range.as_ref().map(|r| &text[r.start as usize..r.end as usize])
        };
        args.dims = part(dims);
        args.types = part(types);
        args.strides = part(strides);
        args.concrete = part(concrete);
        args.cached = Some(row);
    }

    /// Remembers a text in which the arrays of `args` lie, as was found by reading all of it.
    pub(crate) fn remember<'a>(&mut self, text: &'a [u8], args: &mut ArgFields<'a>) {
        let place = |part: Option<&[u8]>| {
            let part = part?;
            let start = part.as_ptr().addr() - text.as_ptr().addr();
            Some(u32::try_from(start).ok()?..u32::try_from(start + part.len()).ok()?)
        };
        let arrays = [args.dims, args.types, args.strides, args.concrete].map(place);
        let (row, new) = self.texts.insert(text);
        if new {
            self.rows.push(Row { arrays, signature: None });
        }
        args.cached = Some(row);
    }

    /// The signature of a row, if this chunk has used it.
    #[inline]
    pub(crate) fn signature(&self, row: u32) -> Option<SignatureId> {
        let (chunk, signature) = self.rows[row as usize].signature?;
        (chunk == self.chunk).then_some(signature)
    }

    /// Sets the signature of a row for this chunk.
    pub(crate) fn set_signature(&mut self, row: u32, signature: SignatureId) {
        self.rows[row as usize].signature = Some((self.chunk, signature));
    }
}

//! Reads of rows from outside their writer: in batches, by key, from the range that stores them.
//!
//! Everything that the service reads goes this way, so the caller need not know who owns a row. An answer to
//! a question is checked after it was read, because a deposed owner may have read rows that a later owner has
//! changed. Only questions of callers may be answered by replicas (`replica_reads`). The work of the service
//! itself reads from owners alone.

use std::sync::Arc;

use doppel_model::signature::Signature;
use doppel_model::{PageId, RangeId, ShardId};
use doppel_protocol::{Question, RangeMap, Tier1Error};
use serde::de::DeserializeOwned;

use crate::peers::{PeerError, Peers};
use crate::rows::key;
use crate::rows::record::{PageRecord, decode};
use crate::service::ownership::ranges::RangeRegistry;
use doppel_protocol::range_owner::EncodedRow;

/// Rows of one piece, unless the caller wants fewer.
pub(in crate::service) const PIECE_ROWS: usize = 1_000;

/// A reader of the rows of all ranges.
#[derive(Clone)]
pub(crate) struct RowReader {
    map: RangeMap,
    peers: Arc<dyn Peers>,
    /// The registry that says whether an owner of this process may answer. `None` for work that answers no
    /// question.
    answering: Option<Arc<RangeRegistry>>,
    /// The question to answer, if replicas may answer it.
    question: Option<Question>,
}

/// Takes a key and a row, and returns whether to continue.
type RowVisitor<'e> = dyn FnMut(&[u8], &[u8]) -> Result<bool, Tier1Error> + 'e;

/// A signature, or `None` if the page has none.
pub(crate) type ReadSignature = Result<Option<Arc<Signature>>, Tier1Error>;

impl RowReader {
    pub(in crate::service) fn new(
        map: RangeMap,
        peers: Arc<dyn Peers>,
        answering: Option<Arc<RangeRegistry>>,
    ) -> Self {
        Self { map, peers, answering, question: None }
    }

    /// Like this reader, but for one question, which replicas may answer.
    pub(in crate::service) fn for_question(&self, question: &Question) -> Self {
        Self { question: Some(question.clone()), ..self.clone() }
    }

    /// The registry and the question, if the reader answers a question.
    fn replica_source(&self) -> Option<(&RangeRegistry, &Question)> {
        Some((self.answering.as_deref()?, self.question.as_ref()?))
    }

    /// Reads rows of one range, like [`Peers::rows`].
    fn read(&self, range: RangeId, keys: &[Vec<u8>]) -> Result<Vec<Option<Vec<u8>>>, Tier1Error> {
        let rows = match self.replica_source() {
            Some((ranges, question)) => ranges.rows_for(question, range, keys)?,
            None => self.read_checked(range, || self.peers.rows(range, keys))?,
        };
        if rows.is_empty() && !keys.is_empty() {
            return Err(PeerError::unreachable(range, "its answer has no rows").into());
        }
        Ok(rows)
    }

    /// Reads from the owner of a range, and checks afterwards that an owner of this process may still answer.
    fn read_checked<T>(
        &self,
        range: RangeId,
        read: impl FnOnce() -> Result<T, PeerError>,
    ) -> Result<T, Tier1Error> {
        let owner = self.answering.as_ref().and_then(|ranges| ranges.local_owner(range));
        let found = read()?;
        owner.map_or(Ok(()), |owner| owner.check())?;
        Ok(found)
    }

    pub(in crate::service) fn shards(&self) -> u16 {
        self.map.shards()
    }

    /// The shard that stores a page.
    pub(in crate::service) fn shard_of(&self, page: PageId) -> ShardId {
        page.shard(self.map.shards())
    }

    /// Rows in the order of their keys.
    pub(in crate::service) fn bytes(&self, keys: Vec<Vec<u8>>) -> Result<Vec<Option<Vec<u8>>>, Tier1Error> {
        let mut found: Vec<Option<Vec<u8>>> = Vec::new();
        found.resize_with(keys.len(), || None);
        let mut by_range: Vec<(Vec<usize>, Vec<Vec<u8>>)> = vec![Default::default(); self.map.count()];
        for (at, key) in keys.into_iter().enumerate() {
            let (places, keys) = &mut by_range[usize::from(key::range_of(self.map, &key).0)];
            places.push(at);
            keys.push(key);
        }
        for (range, (places, keys)) in self.map.ranges().zip(by_range) {
            let mut read = 0;
            while read < keys.len() {
                for row in self.read(range, &keys[read..])? {
                    found[places[read]] = row;
                    read += 1;
                }
            }
        }
        Ok(found)
    }

    /// Records in the order of their keys.
    pub(in crate::service) fn records<T: DeserializeOwned>(
        &self,
        keys: &[Vec<u8>],
    ) -> Result<Vec<Option<T>>, Tier1Error> {
        let rows = self.bytes(keys.to_vec())?;
        let decoded = keys.iter().zip(rows).map(|(key, row)| row.map(|row| decode(key, &row)).transpose());
        Ok(decoded.collect::<Result<_, _>>()?)
    }

    /// One record, or `None` if there is none.
    pub(in crate::service) fn record<T: DeserializeOwned>(
        &self,
        key: Vec<u8>,
    ) -> Result<Option<T>, Tier1Error> {
        Ok(self.records(&[key])?.pop().flatten())
    }

    /// Records of pages, in the order of the pages.
    pub(in crate::service) fn pages(&self, pages: &[PageId]) -> Result<Vec<Option<PageRecord>>, Tier1Error> {
        let keys: Vec<_> = pages.iter().map(|page| key::page(self.shard_of(*page), *page)).collect();
        self.records(&keys)
    }

    /// Signatures of the first pages: as many as one read returns, and at least one.
    pub(in crate::service) fn first_signatures(
        &self,
        pages: &[PageId],
    ) -> Result<Vec<ReadSignature>, Tier1Error> {
        let Some(first) = pages.first() else { return Ok(Vec::new()) };
        let range = self.map.of_page(*first);
        let of_range = pages.iter().take_while(|page| self.map.of_page(**page) == range);
        let keys: Vec<Vec<u8>> = of_range.map(|page| key::signature(self.shard_of(*page), *page)).collect();
        Ok(pages.iter().zip(self.read(range, &keys)?).map(signature_of).collect())
    }

    /// Signatures in the order of their pages.
    pub(in crate::service) fn signatures(&self, pages: &[PageId]) -> Result<Vec<ReadSignature>, Tier1Error> {
        let keys = pages.iter().map(|page| key::signature(self.shard_of(*page), *page)).collect();
        Ok(pages.iter().zip(self.bytes(keys)?).map(signature_of).collect())
    }

    /// The signature of one page.
    pub(in crate::service) fn signature(&self, page: PageId) -> ReadSignature {
        self.first_signatures(&[page])?.pop().unwrap_or(Ok(None))
    }

    /// Up to `limit` rows of one range from `from` to before `to`. Returns fewer if the rows are long, and
    /// none at the end.
    pub(in crate::service) fn piece(
        &self,
        from: &[u8],
        to: &[u8],
        limit: usize,
    ) -> Result<Vec<EncodedRow>, Tier1Error> {
        if limit == 0 {
            return Ok(Vec::new());
        }
        let range = key::range_of(self.map, from);
        match self.replica_source() {
            Some((ranges, question)) => Ok(ranges.scan_for(question, range, (from, to), limit)?),
            None => self.read_checked(range, || self.peers.scan(range, from, to, limit)),
        }
    }

    /// Calls `each` for all rows of one range from `from` to before `to`, piece by piece, until it returns
    /// false.
    pub(in crate::service) fn for_each_row(
        &self,
        from: &[u8],
        to: &[u8],
        each: &mut RowVisitor<'_>,
    ) -> Result<(), Tier1Error> {
        let mut from = from.to_vec();
        loop {
            let piece = self.piece(&from, to, PIECE_ROWS)?;
            let Some((last, _)) = piece.last() else { return Ok(()) };
            from = key::after(last);
            for (key, value) in &piece {
                if !each(key, value)? {
                    return Ok(());
                }
            }
        }
    }
}

fn signature_of((page, row): (&PageId, Option<Vec<u8>>)) -> ReadSignature {
    let Some(bytes) = row else { return Ok(None) };
    Signature::from_bytes(&bytes)
        .map(|signature| Some(Arc::new(signature)))
        .map_err(|error| Tier1Error::Damaged(format!("the signature of page {page:?}: {error}")))
}

//! Direct access to the signatures of all ranges of this process, for an index in the same process.

use std::sync::Arc;

use doppel_model::PageId;
use doppel_protocol::{EachSignature, RangeMap, SignaturePlace, SourceError, StoredSignatures, Tier1Error};

use crate::rows::key;
use crate::service::index_side::IndexSide;
use crate::storage::database::Database;
use crate::storage::signatures::SignatureId;

/// Bits of a place below the segment, and bits of the segment below the range. A segment has at most 2^28
/// bytes before its last signature, and a collection has at most 2^10 ranges.
const OFFSET_BITS: u32 = 28;
const SEGMENT_BITS: u32 = 26;

/// The databases of all ranges.
struct LocalSignatures {
    map: RangeMap,
    databases: Vec<Arc<Database>>,
}

impl IndexSide {
    /// The signatures on this machine. `None` if a range has no database, or if another process owns a range
    /// or may come to own one.
    pub(in crate::service) fn stored_signatures(&self) -> Option<Arc<dyn StoredSignatures>> {
        if self.ranges.has_others() || !self.ranges.owns_all() {
            return None;
        }
        let owners = self.ranges.owners();
        let databases = owners.iter().map(|owner| owner.database.clone()).collect::<Option<Vec<_>>>()?;
        Some(Arc::new(LocalSignatures { map: self.collection.map, databases }))
    }
}

impl StoredSignatures for LocalSignatures {
    fn place(&self, page: PageId) -> Result<Option<SignaturePlace>, SourceError> {
        let (range, shard) = (self.map.of_page(page), page.shard(self.map.shards()));
        let id = self.databases[usize::from(range.0)].signature_id(&key::signature(shard, page));
        Ok(id.map_err(Tier1Error::from)?.map(|id| place(range.0, id)))
    }

    fn read(&self, place: SignaturePlace, buffer: &mut Vec<u8>) -> Result<(), SourceError> {
        let (range, id) = id(place);
        let database = self.databases.get(range);
        let database = database.ok_or_else(|| {
            SourceError::Damaged(format!("a signature names range {range}, which does not exist"))
        })?;
        Ok(database.read_signature(id, buffer).map_err(Tier1Error::from)?)
    }

    fn each(&self, each: &mut EachSignature<'_>) -> Result<(), SourceError> {
        for (range, database) in (0..).zip(&self.databases) {
            let signatures = database.signatures().map_err(Tier1Error::from)?;
            let read = signatures.for_each(&mut |id, bytes| each(place(range, id), bytes));
            read.map_err(Tier1Error::from)?;
        }
        Ok(())
    }
}

fn place(range: u16, SignatureId { segment, offset, bytes }: SignatureId) -> SignaturePlace {
    let upper = u64::from(range) << SEGMENT_BITS | u64::from(segment);
    SignaturePlace { at: upper << OFFSET_BITS | u64::from(offset), bytes }
}

fn id(SignaturePlace { at, bytes }: SignaturePlace) -> (usize, SignatureId) {
    let below = |bits: u32, of: u64| of & ((1 << bits) - 1);
    let (upper, offset) = (at >> OFFSET_BITS, below(OFFSET_BITS, at) as u32);
    let segment = below(SEGMENT_BITS, upper) as u32;
    ((upper >> SEGMENT_BITS) as usize, SignatureId { segment, offset, bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_place_encodes_its_range_and_its_id() {
        for range in [0, 1, 1_023] {
            for (segment, offset) in [(0, 16), (7, 1 << 27), ((1 << 26) - 1, (1 << 28) - 1)] {
                let one = SignatureId { segment, offset, bytes: 900 };
                assert_eq!(id(place(range, one)), (usize::from(range), one));
            }
        }
    }
}

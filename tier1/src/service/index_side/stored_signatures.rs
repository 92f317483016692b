//! Direct access to the signatures of all ranges of this process, for an index in the same process.

use std::sync::Arc;

use doppel_model::{PageId, RangeId};
use doppel_protocol::{EachSignature, RangeMap, SignaturePlace, SourceError, StoredSignatures, Tier1Error};

use crate::rows::key;
use crate::service::index_side::IndexSide;
use crate::storage::database::Database;
use crate::storage::signatures::SignatureId;

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
        Ok(id.map_err(Tier1Error::from)?.map(|id| id.place_in(range)))
    }

    fn read(&self, place: SignaturePlace, buffer: &mut Vec<u8>) -> Result<(), SourceError> {
        let (range, id) = SignatureId::at_place(place);
        let database = self.databases.get(range);
        let database = database.ok_or_else(|| {
            SourceError::Damaged(format!("a signature names range {range}, which does not exist"))
        })?;
        Ok(database.read_signature(id, buffer).map_err(Tier1Error::from)?)
    }

    fn each(&self, each: &mut EachSignature<'_>) -> Result<(), SourceError> {
        for (range, database) in (0..).map(RangeId).zip(&self.databases) {
            let signatures = database.signatures().map_err(Tier1Error::from)?;
            let read = signatures.for_each(&mut |id, bytes| each(id.place_in(range), bytes));
            read.map_err(Tier1Error::from)?;
        }
        Ok(())
    }
}

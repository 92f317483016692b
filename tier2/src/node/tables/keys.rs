//! The keys under which entries are listed, and those that a search looks up.

use doppel_model::signature::Signature;
use rayon::ThreadPool;

use super::IndexTables;
use crate::node::partition::candidates::{self, EntryKeys};
use crate::node::partition::families::{Families, Listing};
use crate::node::partition::local_index::LocalIndex;

impl IndexTables {
    /// The keys of an entry in a partition.
    pub(crate) fn entry_keys(&self, partition: LocalIndex, signature: &Signature) -> EntryKeys {
        self.listing(&self.partitions[partition.index()].families, signature).keys
    }

    /// How an entry is listed in a partition with these families.
    pub(crate) fn listing(&self, families: &Families, signature: &Signature) -> Listing {
        families.listing(self.policy.metric(), self.band_seed, signature, self.band_keys(signature))
    }

    /// The family keys that a search looks up in a partition, besides the keys of its bands.
    pub(crate) fn search_keys(
        &self,
        partition: LocalIndex,
        signature: &Signature,
        bands: &EntryKeys,
    ) -> EntryKeys {
        let families = &self.partitions[partition.index()].families;
        families.search_keys(self.policy.metric(), self.band_seed, signature, bands)
    }

    /// Begins to insert the entries of a store into empty partitions. No search finds them until
    /// [`end_filling`](Self::end_filling).
    pub(crate) fn begin_filling(&mut self) {
        self.partitions.iter_mut().for_each(|partition| partition.candidates.begin_filling());
    }

    /// Ends filling the partitions.
    pub(crate) fn end_filling(&mut self, pool: Option<&ThreadPool>) {
        self.partitions.iter_mut().for_each(|partition| partition.candidates.end_filling(pool));
    }

    /// The keys of the bands of a signature.
    pub(crate) fn band_keys(&self, signature: &Signature) -> EntryKeys {
        candidates::band_keys(self.policy, self.band_seed, signature)
    }
}

//! Storing the findings of a search in the tables: centers, counts, and fetched signatures.

use doppel_model::signature::Signature;
use hashbrown::HashSet;

use super::Core;
use crate::node::partition::bands::BandKey;
use crate::node::partition::columns::Center;
use crate::node::partition::local_index::LocalIndex;
use crate::node::search::findings::{AdoptedCenter, SearchFindings};
use crate::node::tables::EntryRef;
use crate::seed::Seeded;

impl Core {
    /// Stores a fetched signature in place of one that could not be read. A migrated copy of the entry need
    /// not be updated: it was made with the signature, or fetches it itself.
    pub(crate) fn rewrite(&mut self, entry: EntryRef, signature: &Signature) {
        self.release(entry);
        let page = self.tables.partition(entry).columns.page(entry.slot);
        let record = self.signatures.keep(page, signature);
        self.tables.partition_mut(entry).columns.set_record(entry.slot, record);
    }

    /// Stores the findings of a search in the tables.
    pub(crate) fn learn(&mut self, findings: &SearchFindings) {
        let tables = &mut self.tables;
        for (probe, comparisons) in &findings.probed_partitions {
            let partition = &mut tables.partitions[probe.index()];
            partition.received += u64::from(!findings.continues);
            partition.comparisons += u64::from(*comparisons);
        }
        if let Some((entry, band_keys)) = &findings.new_center {
            tables.set_is_center(*entry, band_keys);
        }
        if let Some((entry, centers)) = findings.centers {
            tables.set_centers(entry, centers, &findings.band_keys);
        }
        // A whole cluster may get another center at once. Each bucket is cut into runs once for all of them.
        let mut runs: HashSet<(LocalIndex, BandKey), Seeded> = HashSet::default();
        for AdoptedCenter { entry, center, band_keys } in &findings.adopted_centers {
            let present = tables.partition(*entry).columns.center(entry.slot);
            // The entry may have been searched for in the meantime.
            if present == Center::UNKNOWN || tables.has_left(present) {
                let partition = tables.partition_mut(*entry);
                partition.columns.set_center(entry.slot, *center);
                partition.note_change(entry.slot);
                runs.extend(band_keys.iter().map(|band_key| (entry.partition, *band_key)));
            }
        }
        for (partition, band_key) in runs {
            let partition = &mut tables.partitions[partition.index()];
            partition.bands.rebuild_runs(band_key, &partition.columns);
        }
        for list_visits in &findings.list_visits {
            let partition = &mut tables.partitions[list_visits.partition.index()];
            partition.bands.add_visits(list_visits.band_key, list_visits.steps, &partition.columns);
        }
        for (entry, signature) in &findings.fetched {
            self.rewrite(*entry, signature);
        }
    }
}

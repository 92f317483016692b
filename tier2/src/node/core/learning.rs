//! Storing the findings of a search in the tables: centers, counts, and fetched signatures.

use doppel_model::signature::Signature;
use hashbrown::HashSet;

use super::Core;
use crate::node::partition::candidates::TableKey;
use crate::node::partition::columns::Center;
use crate::node::partition::local_index::LocalIndex;
use crate::node::search::findings::{AdoptedCenter, ListVisits, SearchFindings};
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
        if let Some((entry, keys)) = &findings.new_center {
            tables.set_is_center(*entry, keys);
        }
        if let Some((entry, centers)) = findings.centers {
            tables.set_centers(entry, centers, &findings.keys);
        }
        // A whole cluster may get another center at once. Each bucket is cut into runs once for all of them.
        let mut runs: HashSet<(LocalIndex, TableKey), Seeded> = HashSet::default();
        for AdoptedCenter { entry, center, keys } in &findings.adopted_centers {
            let present = tables.partition(*entry).columns.center(entry.slot);
            // The entry may have been searched for in the meantime.
            if present == Center::UNKNOWN || tables.has_left(present) {
                let partition = tables.partition_mut(*entry);
                partition.columns.set_center(entry.slot, *center);
                partition.note_change(entry.slot);
                runs.extend(keys.iter().map(|key| (entry.partition, *key)));
            }
        }
        for (partition, key) in runs {
            let partition = &mut tables.partitions[partition.index()];
            partition.candidates.rebuild_runs(key, &partition.columns);
        }
        for ListVisits { partition, list, visits } in &findings.list_visits {
            let partition = &mut tables.partitions[partition.index()];
            partition.candidates.add_visits(*list, *visits, tables.crowding, &partition.columns);
        }
        for (entry, signature) in &findings.fetched {
            self.rewrite(*entry, signature);
        }
    }
}

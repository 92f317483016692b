//! What the tables learn from a search: centers, counts, and signatures that had to be fetched.

use doppel_model::signature::Signature;
use hashbrown::HashSet;

use super::bands::BandKey;
use super::columns::Center;
use super::core::Core;
use super::found::Found;
use super::local_index::LocalIndex;
use super::tables::EntryRef;
use crate::seed::Seeded;

impl Core {
    /// Stores a signature again that could not be read. A copy of the entry need not know: it was made with the
    /// signature, or fetches it itself.
    pub(crate) fn rewrite(&mut self, entry: EntryRef, signature: &Signature) {
        self.release(entry);
        let page = self.tables.partition(entry).columns.page(entry.slot);
        let record = self.signatures.keep(page, signature);
        self.tables.partition_mut(entry).columns.set_record(entry.slot, record);
    }

    /// Takes in what a search found out.
    pub(crate) fn learn(&mut self, found: &Found) {
        let tables = &mut self.tables;
        for (probe, comparisons) in &found.probed_partitions {
            let partition = &mut tables.partitions[probe.index()];
            partition.received += u64::from(!found.continues);
            partition.comparisons += u64::from(*comparisons);
        }
        if let Some((entry, band_keys)) = &found.new_center {
            tables.set_is_center(*entry, band_keys);
        }
        if let Some((entry, centers)) = found.centers {
            tables.set_centers(entry, centers, &found.band_keys);
        }
        // A whole cluster may get another center at once, so its runs are made anew once.
        let mut runs: HashSet<(LocalIndex, BandKey), Seeded> = HashSet::default();
        for (entry, center, band_keys) in &found.adopted {
            let present = tables.partition(*entry).columns.center(entry.slot);
            // It may have been searched for in the meantime.
            if present == Center::UNKNOWN || tables.has_left(present) {
                let partition = tables.partition_mut(*entry);
                partition.columns.set_center(entry.slot, *center);
                partition.note(entry.slot);
                runs.extend(band_keys.iter().map(|band_key| (entry.partition, *band_key)));
            }
        }
        for (partition, band_key) in runs {
            let partition = &mut tables.partitions[partition.index()];
            partition.bands.recut(band_key, &partition.columns);
        }
        for passed in &found.passed {
            let partition = &mut tables.partitions[passed.partition.index()];
            partition.bands.passed(passed.band_key, passed.steps, &partition.columns);
        }
        for (entry, signature) in &found.fetched {
            self.rewrite(*entry, signature);
        }
    }
}

//! Feeding: a range names to a node everything that the node must store.
//!
//! During feeding, the node has no position in the range, and answers nothing. At the end, the node has
//! exactly what was named. It removes pages of the range that were not named, as if it had received the lost
//! orders that removed them. A node that was restored from a snapshot is told only about pages that have
//! changed since.
//!
//! A changed page is removed before it is named again, even if it has the same content. The page may have
//! left and come back. Entries may still have it as their center, and that link ended when the page left. If
//! it is unknown which pages have changed, all entries lose their centers.

use std::collections::BTreeMap;

use doppel_model::{ContentHash, Epoch, PageId, RangeId};
use doppel_protocol::PageRange;
use doppel_protocol::index_node::NodeError;
use hashbrown::HashSet;

use super::{LocalNode, lock};
use crate::seed::Seeded;

/// The feedings that are under way, by range.
#[derive(Default)]
pub(super) struct Feedings(BTreeMap<RangeId, Feeding>);

/// The state of one feeding.
struct Feeding {
    epoch: Epoch,
    /// Pages and contents that were named and are stored here.
    named: HashSet<(PageId, ContentHash), Seeded>,
    /// Changed pages that are not removed yet. `None` if the range names all its pages.
    changed: Option<HashSet<PageId, Seeded>>,
}

impl Feedings {
    /// Notes that a page that was named is stored here.
    pub(super) fn note_named(&mut self, ranges: &[PageRange], page: PageId, content: ContentHash) {
        if self.0.is_empty() {
            return;
        }
        let feeding = PageRange::of(ranges, page).and_then(|range| self.0.get_mut(&range));
        if let Some(feeding) = feeding.filter(|feeding| feeding.changed.is_none()) {
            feeding.named.insert((page, content));
        }
    }
}

impl LocalNode {
    /// Begins the feeding of a range, whose position the node forgets. `changes` says whether the range names
    /// only pages that have changed since the snapshot.
    pub(super) fn begin_feeding(
        &self,
        feedings: &mut Feedings,
        range: RangeId,
        epoch: Epoch,
        changes: bool,
    ) -> Result<(), NodeError> {
        self.check_epoch(feedings, range, epoch)?;
        self.hosted_mut().positions.remove(&range);
        if !changes {
            self.write().tables.forget_centers();
            lock(&self.interrupted).clear();
        }
        let changed = changes.then(HashSet::default);
        feedings.0.insert(range, Feeding { epoch, named: HashSet::default(), changed });
        Ok(())
    }

    /// Notes that these pages of a range have changed since the snapshot.
    pub(super) fn note_changed(feedings: &mut Feedings, range: RangeId, pages: Vec<PageId>) {
        if let Some(changed) = feedings.0.get_mut(&range).and_then(|feeding| feeding.changed.as_mut()) {
            changed.extend(pages);
        }
    }

    /// Removes the changed pages. This must happen before the node takes in a page that is named.
    pub(super) fn remove_changed(&self, feedings: &mut Feedings) -> Result<(), NodeError> {
        for (range, feeding) in &mut feedings.0 {
            let Some(changed) = feeding.changed.as_mut().filter(|changed| !changed.is_empty()) else {
                continue;
            };
            self.remove_where(*range, &|page, _| changed.contains(&page))?;
            changed.clear();
        }
        Ok(())
    }

    /// Ends the feeding of a range, which has named everything up to `index`.
    pub(super) fn end_feeding(
        &self,
        feedings: &mut Feedings,
        range: RangeId,
        (epoch, index): (Epoch, u64),
    ) -> Result<(), NodeError> {
        self.check_epoch(feedings, range, epoch)?;
        if let Some(Feeding { named, changed, .. }) = feedings.0.get(&range) {
            if changed.is_none() {
                let removed = self.remove_where(range, &|page, content| !named.contains(&(page, content)))?;
                if removed > 0 {
                    tracing::warn!(
                        range = range.0,
                        pages = removed,
                        "removed pages that the range no longer has"
                    );
                }
            }
            feedings.0.remove(&range);
        }
        let is_last = self.hosted().unfed_ranges().all(|unfed| unfed == range);
        if is_last {
            // Contents that no range has claimed have no page. They must be gone before the node answers.
            self.drop_unclaimed()?;
        }
        let mut hosted = self.hosted_mut();
        // If the end is repeated, the position must not go back.
        let position = hosted.positions.entry(range).or_insert((epoch, index));
        *position = (epoch.max(position.0), index.max(position.1));
        hosted.resumed.remove(&range);
        Ok(())
    }

    /// Refuses an owner of the range if a later owner has called already.
    fn check_epoch(&self, feedings: &Feedings, range: RangeId, epoch: Epoch) -> Result<(), NodeError> {
        let position = self.hosted().positions.get(&range).map(|(epoch, _)| *epoch);
        let present = position.max(feedings.0.get(&range).map(|feeding| feeding.epoch));
        match present.filter(|present| epoch < *present) {
            Some(present) => Err(NodeError::StaleEpoch { present }),
            None => Ok(()),
        }
    }

    /// Removes the pages of a range that `is_selected` accepts. Returns their number.
    fn remove_where(
        &self,
        range: RangeId,
        is_selected: &dyn Fn(PageId, ContentHash) -> bool,
    ) -> Result<usize, NodeError> {
        let ranges = self.hosted().ranges.clone();
        let mut selected: Vec<(PageId, ContentHash)> = Vec::new();
        {
            let core = self.read();
            for entry in core.tables.entries() {
                let partition = core.tables.partition(entry);
                // An entry from the file that no page has claimed has no page.
                if partition.columns.is_unclaimed(entry.slot) {
                    continue;
                }
                let content = partition.columns.content(entry.slot);
                let pages = partition.pages_of(entry.slot).map(|page| (page, content));
                selected.extend(
                    pages.filter(|one| {
                        is_selected(one.0, one.1) && PageRange::of(&ranges, one.0) == Some(range)
                    }),
                );
            }
        }
        // Sorted, so that the same feeding of the same node produces the same index.
        selected.sort_unstable();
        let count = selected.len();
        for (page, content) in selected {
            self.remove(range, page, content)?;
        }
        Ok(count)
    }
}

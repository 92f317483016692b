//! A range tells a node everything that it must have.
//!
//! While it does, the node has no position of the range, and answers nothing. At the end it has exactly what it was
//! told: pages of the range that were not named are removed, as if the orders that removed them had not been lost. A
//! node that has taken up a snapshot is told only of the pages that have changed since.
//!
//! A page that has changed is removed before it is named again, also when its content is the same: it may have left and
//! come back, and what other entries know of it, as their center, was over when it left. Where it is not known what has
//! changed, no entry keeps its center.

use std::collections::BTreeMap;

use doppel_model::{ContentHash, Epoch, PageId, RangeId};
use doppel_protocol::PageRange;
use doppel_protocol::index_node::NodeError;
use hashbrown::HashSet;

use super::{LocalNode, lock};
use crate::seed::Seeded;

/// The feedings that are under way.
#[derive(Default)]
pub(super) struct Feedings(BTreeMap<RangeId, Feeding>);

struct Feeding {
    epoch: Epoch,
    /// What was named and is stored here.
    told: HashSet<(PageId, ContentHash), Seeded>,
    /// The pages that have changed and are still as the snapshot has them; none where it is told of all pages.
    changed: Option<HashSet<PageId, Seeded>>,
}

impl Feedings {
    /// A page that was named is stored here.
    pub(super) fn note(&mut self, ranges: &[PageRange], page: PageId, content: ContentHash) {
        if self.0.is_empty() {
            return;
        }
        let feeding = PageRange::of(ranges, page).and_then(|range| self.0.get_mut(&range));
        if let Some(feeding) = feeding.filter(|feeding| feeding.changed.is_none()) {
            feeding.told.insert((page, content));
        }
    }
}

impl LocalNode {
    /// Forgets the position of a range, which begins to tell what there is.
    pub(super) fn begin_feeding(
        &self,
        feedings: &mut Feedings,
        (range, epoch, changes): (RangeId, Epoch, bool),
    ) -> Result<(), NodeError> {
        self.check_epoch(feedings, range, epoch)?;
        self.hosted_mut().positions.remove(&range);
        if !changes {
            self.write().tables.forget_centers();
            lock(&self.interrupted).clear();
        }
        let changed = changes.then(HashSet::default);
        feedings.0.insert(range, Feeding { epoch, told: HashSet::default(), changed });
        Ok(())
    }

    /// These pages of a range have changed since the snapshot.
    pub(super) fn note_changed(feedings: &mut Feedings, range: RangeId, pages: Vec<PageId>) {
        if let Some(changed) = feedings.0.get_mut(&range).and_then(|feeding| feeding.changed.as_mut()) {
            changed.extend(pages);
        }
    }

    /// Removes the pages that have changed. Nothing that is named may be taken in before.
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

    /// A range has told everything up to this index.
    pub(super) fn end_feeding(
        &self,
        feedings: &mut Feedings,
        range: RangeId,
        (epoch, index): (Epoch, u64),
    ) -> Result<(), NodeError> {
        self.check_epoch(feedings, range, epoch)?;
        if let Some(Feeding { told, changed, .. }) = feedings.0.get(&range) {
            if changed.is_none() {
                let removed = self.remove_where(range, &|page, content| !told.contains(&(page, content)))?;
                if removed > 0 {
                    tracing::warn!(
                        range = range.0,
                        pages = removed,
                        "pages that are no more were still stored"
                    );
                }
            }
            feedings.0.remove(&range);
        }
        let is_last = self.hosted().unfed_ranges().all(|unfed| unfed == range);
        if is_last {
            // Before the node answers: what nobody has claimed has no page.
            self.drop_unclaimed()?;
        }
        let mut hosted = self.hosted_mut();
        // The end that is told again does not take the position back.
        let position = hosted.positions.entry(range).or_insert((epoch, index));
        *position = (epoch.max(position.0), index.max(position.1));
        hosted.resumed.remove(&range);
        Ok(())
    }

    /// Whether no later owner of the range has been heard.
    fn check_epoch(&self, feedings: &Feedings, range: RangeId, epoch: Epoch) -> Result<(), NodeError> {
        let position = self.hosted().positions.get(&range).map(|(epoch, _)| *epoch);
        let present = position.max(feedings.0.get(&range).map(|feeding| feeding.epoch));
        match present.filter(|present| epoch < *present) {
            Some(present) => Err(NodeError::StaleEpoch { present }),
            None => Ok(()),
        }
    }

    /// Removes pages of a range with their contents. Returns how many there were.
    fn remove_where(
        &self,
        range: RangeId,
        goes: &dyn Fn(PageId, ContentHash) -> bool,
    ) -> Result<usize, NodeError> {
        let ranges = self.hosted().ranges.clone();
        let mut going: Vec<(PageId, ContentHash)> = Vec::new();
        {
            let core = self.read();
            for entry in core.tables.entries() {
                let partition = core.tables.partition(entry);
                // An entry of the file that nobody has claimed has no page.
                if partition.columns.is_unclaimed(entry.slot) {
                    continue;
                }
                let content = partition.columns.content(entry.slot);
                let pages = partition.pages_of(entry.slot).map(|page| (page, content));
                going.extend(
                    pages.filter(|one| goes(one.0, one.1) && PageRange::of(&ranges, one.0) == Some(range)),
                );
            }
        }
        // The same feeding of the same node leaves the same index.
        going.sort_unstable();
        let count = going.len();
        for (page, content) in going {
            self.remove(range, page, content)?;
        }
        Ok(count)
    }
}

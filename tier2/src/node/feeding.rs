//! A range tells a node everything that it must have.
//!
//! While it does, the node has no position of the range, and answers nothing. At the end it has exactly what it was
//! told: pages of the range that were not named are removed, as if the orders that removed them had not been lost. A
//! node that has taken up a snapshot is told only of the pages that have changed since, and removes only these.

use std::collections::BTreeMap;

use doppel_model::{ContentHash, Epoch, PageId, RangeId};
use doppel_protocol::PageRange;
use doppel_protocol::index_node::NodeError;
use hashbrown::HashSet;

use super::LocalNode;
use crate::seed::Seeded;

/// The feedings that are under way.
#[derive(Default)]
pub(super) struct Feedings(BTreeMap<RangeId, Feeding>);

struct Feeding {
    epoch: Epoch,
    /// What was named and is stored here.
    told: HashSet<(PageId, ContentHash), Seeded>,
    /// The pages that it is told of; none for all.
    changed: Option<HashSet<PageId, Seeded>>,
}

impl Feeding {
    /// Whether a page that is stored should not be.
    fn is_untold(&self, page: PageId, content: ContentHash) -> bool {
        self.changed.as_ref().is_none_or(|changed| changed.contains(&page))
            && !self.told.contains(&(page, content))
    }
}

impl Feedings {
    /// A page that was named is stored here.
    pub(super) fn note(&mut self, ranges: &[PageRange], page: PageId, content: ContentHash) {
        if self.0.is_empty() {
            return;
        }
        if let Some(feeding) = PageRange::of(ranges, page).and_then(|range| self.0.get_mut(&range)) {
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

    /// A range has told everything up to this index.
    pub(super) fn end_feeding(
        &self,
        feedings: &mut Feedings,
        range: RangeId,
        (epoch, index): (Epoch, u64),
    ) -> Result<(), NodeError> {
        self.check_epoch(feedings, range, epoch)?;
        if let Some(feeding) = feedings.0.get(&range) {
            self.remove_untold(range, feeding)?;
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

    /// Removes the pages of a range that it has not named.
    fn remove_untold(&self, range: RangeId, feeding: &Feeding) -> Result<(), NodeError> {
        let ranges = self.hosted().ranges.clone();
        let mut untold: Vec<(PageId, ContentHash)> = Vec::new();
        if feeding.changed.as_ref().is_none_or(|changed| !changed.is_empty()) {
            let core = self.read();
            for entry in core.tables.entries() {
                let partition = core.tables.partition(entry);
                // An entry of the file that nobody has claimed has no page.
                if partition.columns.is_unclaimed(entry.slot) {
                    continue;
                }
                let content = partition.columns.content(entry.slot);
                let pages = partition.pages_of(entry.slot).map(|page| (page, content));
                untold.extend(pages.filter(|one| {
                    feeding.is_untold(one.0, one.1) && PageRange::of(&ranges, one.0) == Some(range)
                }));
            }
        }
        // The same feeding of the same node leaves the same index.
        untold.sort_unstable();
        if !untold.is_empty() && feeding.changed.is_none() {
            tracing::warn!(%range, pages = untold.len(), "pages that are no more were still stored");
        }
        for (page, content) in untold {
            self.remove(range, page, content)?;
        }
        Ok(())
    }
}

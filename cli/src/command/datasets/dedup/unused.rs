//! Options that have no effect in a run: a run that groups all pages at once has no index, no pages that wait, and no retention.

use super::Dedup;
use crate::given::listed;

/// What counts only where a collection is kept or recorded page by page.
const OF_COLLECTIONS: [&str; 3] = ["shards", "ranges", "detect-language"];

/// What counts only where pages are recorded one by one.
const OF_RECORDING: [&str; 10] = [
    "index-nodes",
    "partitions",
    "dimensions",
    "snapshot-every",
    "pending-max",
    "low-cohesion-percent",
    "keep-dead",
    "keep-purged",
    "keep-merged",
    "keep-audit",
];

impl Dedup {
    /// What to say of options that were given and have no effect; none where all have one. `makes` says that the run makes a data
    /// directory as a whole.
    pub(super) fn unused(&self, makes: bool) -> Option<String> {
        if self.incremental || (self.data.is_some() && !makes) {
            return None;
        }
        let mut unused = self.given.among(&OF_RECORDING);
        let mut counts = "with --incremental, and in `doppel serve`";
        if self.data.is_none() {
            let of_collections = self.given.among(&OF_COLLECTIONS);
            // Where one of each kind was given, what helps both is said.
            if unused.is_empty() && !of_collections.is_empty() {
                counts = "with --data or --incremental";
            }
            unused.extend(of_collections);
        }
        let (has, count) = if unused.len() == 1 { ("has", "It counts") } else { ("have", "They count") };
        let says = || {
            format!(
                "{} {has} no effect, because all pages are grouped at once. {count} {counts}",
                listed(&unused)
            )
        };
        (!unused.is_empty()).then(says)
    }
}

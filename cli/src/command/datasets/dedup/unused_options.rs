//! Finds options that have no effect in a run. A run that groups all pages at once has no pending pages and no
//! retention. Of its index only the number of dimensions can be chosen.

use super::Dedup;
use crate::given_options::listed;

/// Options that have an effect only in a stored collection or if pages are recorded one by one.
const OF_COLLECTIONS: [&str; 4] = ["shards", "ranges", "dimensions", "detect-language"];

/// Options that have an effect only if pages are recorded one by one.
const OF_RECORDING: [&str; 9] = [
    "index-nodes",
    "partitions",
    "snapshot-every",
    "pending-max",
    "low-cohesion-percent",
    "keep-dead",
    "keep-purged",
    "keep-merged",
    "keep-audit",
];

impl Dedup {
    /// Returns a message that names the given options without an effect, or `None` if all have an effect.
    /// `makes` says that the run creates a data directory as a whole.
    pub(super) fn describe_unused_options(&self, makes_directory: bool) -> Option<String> {
        if self.incremental || (self.data.is_some() && !makes_directory) {
            return None;
        }
        let mut unused = self.given.among(&OF_RECORDING);
        let mut counts = "with --incremental, and in `doppel serve`";
        if self.data.is_none() {
            let of_collections = self.given.among(&OF_COLLECTIONS);
            // If options of both kinds were given, the message names the condition that gives both an effect.
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

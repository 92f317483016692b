//! Distinct contents of a replay that are live in the end, and the pairs among them.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use doppel_baseline::ContentId;
use doppel_control::layout;
use doppel_model::signature::Signature;
use doppel_model::{ContentHash, PageUrl, Tau, Timestamp};
use doppel_protocol::Body;
use doppel_terminal::exit::Failure;
use serde::Serialize;

use crate::papers::clustering::collection::{Version, all_pairs};
use crate::papers::clustering::replay::{Fetch, Replay};

/// Number of bins of the length distribution per doubling of the length.
const BINS: f64 = 2.0;

/// Distinct contents that are live in the end.
pub(super) struct DistinctContents {
    /// Signatures in the order of their hashes.
    pub(super) contents: Vec<Arc<Signature>>,
    /// Indices of the contents, by the baseline's ids.
    indices: HashMap<ContentId, u32>,
}

/// Number of contents of about the same length.
#[derive(Debug, Serialize)]
pub(super) struct LengthBin {
    /// Smallest number of distinct shingles in the bin.
    pub(super) from: u32,
    pub(super) contents: usize,
}

impl DistinctContents {
    /// Finds the contents that are live after the last fetch.
    ///
    /// # Errors
    /// If no content is live in the end.
    pub(super) fn new(replay: &Replay) -> Result<Self, Failure> {
        let mut newest: HashMap<&PageUrl, (Timestamp, &Fetch)> = HashMap::new();
        for fetch in &replay.fetches {
            let page = &fetch.submission;
            let known = newest.get(&page.url).map(|(at, _)| *at);
            if known.is_none_or(|known| known <= page.fetched_at) {
                newest.insert(&page.url, (page.fetched_at, fetch));
            }
        }
        let mut distinct: BTreeMap<ContentHash, (Arc<Signature>, ContentId)> = BTreeMap::new();
        for (_, fetch) in newest.into_values() {
            if let (Body::Content(signature), Version::Content(id)) = (&fetch.submission.body, &fetch.version)
                && signature.tokens() > 0
            {
                distinct.insert(signature.content(), (Arc::clone(signature), *id));
            }
        }
        if distinct.is_empty() {
            return Err(layout::no_content("the input"));
        }
        let indices = (0..).zip(distinct.values()).map(|(place, (_, id))| (*id, place)).collect();
        Ok(Self { contents: distinct.into_values().map(|(signature, _)| signature).collect(), indices })
    }

    /// Finds every pair of contents for which F is true, by their indices.
    pub(super) fn pairs(&self, replay: &Replay, tau: Tau) -> Vec<(u32, u32)> {
        let place = |id: &ContentId| self.indices.get(id).copied();
        let pairs = all_pairs(&replay.contents, tau);
        pairs.iter().filter_map(|(a, b)| Some((place(a)?, place(b)?))).collect()
    }

    /// Counts the contents of each length.
    pub(super) fn lengths(&self) -> Vec<LengthBin> {
        let mut bins: Vec<LengthBin> = Vec::new();
        let mut lengths: Vec<u32> = self.contents.iter().map(|content| content.size()).collect();
        lengths.sort_unstable();
        for power in 0.. {
            let from = |power: i32| 2_f64.powf(f64::from(power) / BINS).round() as u32;
            let below = |end| lengths.partition_point(|length| *length < end);
            let (this, next) = (from(power), from(power + 1));
            if below(this) == lengths.len() {
                break;
            }
            if next > this {
                bins.push(LengthBin { from: this, contents: below(next) - below(this) });
            }
        }
        bins
    }
}

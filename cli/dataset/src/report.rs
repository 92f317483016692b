//! Writes the report of `doppel dedup` as one HTML page: what was read, what can be removed, sizes of groups,
//! similarities, examples, and hosts that mirror each other.
//!
//! | module | responsibility |
//! |---|---|
//! | `pages` | iterates over all live pages, as often as needed |
//! | `figures` | counts everything, in two passes over the pages |
//! | `similarities`, `examples`, `mirrors` | count the histogram, the largest groups, the pairs of hosts |
//! | `texts` | reads the texts of the examples from the inputs again |
//! | `html`, `groups_html`, `escaped` | write the page, and escape foreign text in it |
//!
//! Memory is bounded for collections of any size. It holds counters, at most [`EXAMPLES`] groups with a few
//! pages each, the bounded pairs of hosts of [`SavingsCounter`](doppel_engine::savings::SavingsCounter), and
//! a bounded piece of each text. The page contains no dates except those of the records, so two runs write
//! the same bytes.

mod escaped;
mod examples;
mod figures;
mod groups_html;
mod html;
mod mirrors;
mod pages;
mod similarities;
mod texts;

use std::io::Write;

use doppel_inputs::arguments::InputArgs;
use doppel_inputs::records::record_names::RecordNames;
use doppel_model::pairwise::Signer;
use doppel_tier1::bulk::Unit;

use crate::accounts::Accounts;
use crate::collection_groups::CollectionGroups;
use crate::summary::IngestSummary;
use crate::weights::Weights;
use figures::Figures;
pub use pages::{Pages, RecordedPages};
use texts::Texts;

/// Number of largest groups that the report shows.
pub const EXAMPLES: usize = 20;

/// Data of a run that the report shows.
pub struct Run<'r> {
    /// Number of records by outcome.
    pub accounts: &'r Accounts,
    /// Whether pages or records are judged.
    pub unit: Unit,
    /// Names of the records, if each record is judged on its own.
    pub record_names: Option<&'r RecordNames>,
    /// Inputs as they can be read again.
    pub inputs: &'r InputArgs,
    /// Inputs as the user named them.
    pub names: &'r [String],
    /// Whether the dates of pages are the same in every run.
    pub is_dated: bool,
    /// Whether pages may be on record that are not in the inputs.
    pub has_earlier: bool,
    /// Signer of the collection, which knows its policy.
    pub signer: &'r Signer,
    /// What the run has read and recorded.
    pub ingest: &'r IngestSummary,
    /// Groups of the collection, with at least [`EXAMPLES`] of the largest ones.
    pub groups: &'r CollectionGroups,
    /// Sizes of the records in bytes.
    pub weights: &'r Weights,
}

impl Run<'_> {
    /// Writes the report on these pages.
    ///
    /// # Errors
    /// If pages cannot be read again, or `out` cannot be written. Inputs that cannot be read again are no
    /// error, but the report mentions them.
    pub fn write(&self, pages: &mut dyn Pages, out: &mut dyn Write) -> anyhow::Result<()> {
        let figures = Figures::of(pages, self.groups, (self.weights, self.unit), self.signer.policy())?;
        let texts = Texts::find(&figures.examples, self);
        out.write_all(html::page(self, &figures, &texts).into_string().as_bytes())?;
        Ok(())
    }
}

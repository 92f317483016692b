//! The report of `doppel dedup` as one page of HTML: what was read, what can be removed, how large groups and similarities are, examples, and
//! which hosts mirror each other.
//!
//! | module | what |
//! |---|---|
//! | `pages` | all live pages, read as often as needed |
//! | `figures` | everything that is counted, in two passes over them |
//! | `similarities`, `examples`, `mirrors` | the histogram, the largest groups, the pairs of hosts |
//! | `texts` | the texts of the examples, by a second look into the inputs |
//! | `html`, `groups_html`, `escaped` | the page, and the text of strangers in it |
//!
//! Memory is bounded whatever the collection is: counters, at most [`EXAMPLES`] groups with a few pages of each, the bounded pairs of hosts
//! of [`SavingsCounter`](doppel_engine::savings::SavingsCounter), and a bounded piece of each text. The page names no time but those of the
//! records, so that two runs write the same bytes.

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

use doppel_dataset::accounts::Accounts;
use doppel_dataset::weights::Weights;
use doppel_inputs::arguments::InputArgs;
use doppel_inputs::records::record_names::RecordNames;
use doppel_model::pairwise::Signer;
use doppel_tier1::bulk::Unit;

use crate::found::CollectionGroups;
use crate::summary::Fed;
use figures::Figures;
pub(crate) use pages::{Pages, Recorded};
use texts::Texts;

/// The largest groups that are shown.
pub(crate) const EXAMPLES: usize = 20;

/// What the report is of.
pub(crate) struct Run<'r> {
    /// What became of the records.
    pub(crate) accounts: &'r Accounts,
    /// Whether pages or records are judged.
    pub(crate) unit: Unit,
    /// What records are called, where each is judged on its own.
    pub(crate) record_names: Option<&'r RecordNames>,
    /// The inputs as they can be read again.
    pub(crate) inputs: &'r InputArgs,
    /// The inputs as the user named them.
    pub(crate) names: &'r [String],
    /// Whether the dates of pages are the same in every run.
    pub(crate) is_dated: bool,
    /// Whether pages may be on record that are not in the inputs.
    pub(crate) has_earlier: bool,
    pub(crate) signer: &'r Signer,
    pub(crate) fed: &'r Fed,
    /// With at least [`EXAMPLES`] of the largest groups.
    pub(crate) found: &'r CollectionGroups,
    pub(crate) weights: &'r Weights,
}

impl Run<'_> {
    /// Writes the report on these pages.
    ///
    /// # Errors
    /// When pages cannot be read again, or `out` cannot be written. Inputs that cannot be read again are no error: the report says so.
    pub(crate) fn write(&self, pages: &mut dyn Pages, out: &mut dyn Write) -> anyhow::Result<()> {
        let figures = Figures::of(pages, self.found, (self.weights, self.unit), self.signer.policy())?;
        let texts = Texts::look(&figures.examples, self);
        out.write_all(html::page(self, &figures, &texts).into_string().as_bytes())?;
        Ok(())
    }
}

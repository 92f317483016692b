//! Counts all figures of the report in two passes over the live pages. The second pass counts the pages
//! of the pairs of hosts that the first pass has selected, and collects examples of the largest groups.

use doppel_contract::Status;
use doppel_contract::answer::Savings;
use doppel_engine::limits::MIRRORS_COUNTED;
use doppel_engine::savings::{CountedPage, SavingsCounter};
use doppel_model::pairwise::Policy;
use doppel_tier1::bulk::Unit;

use super::examples::{Example, Examples};
use super::mirrors::{self, Mirrors};
use super::pages::Pages;
use super::similarities::Similarities;
use crate::accounts;
use crate::collection_groups::CollectionGroups;
use crate::weights::{Weight, Weights};

/// Statuses of pages, in the order in which the report shows them.
const STATUSES: [Status; 7] = [
    Status::Unique,
    Status::Winner,
    Status::Secondary,
    Status::Unresolved,
    Status::Dead,
    Status::Pending,
    Status::Duplicate,
];

/// Figures of the report.
#[derive(Debug)]
pub(super) struct Figures {
    /// Number and size of the pages of each status that occurs.
    pub(super) statuses: Vec<(Status, Weight)>,
    /// Redirects to existing records. They are kept if each record is judged on its own.
    pub(super) redirects: Weight,
    /// What can be removed, by the kind of comparison that finds it.
    pub(super) savings: Savings,
    pub(super) similarities: Similarities,
    /// Largest groups, each with a few of its pages.
    pub(super) examples: Vec<Example>,
    pub(super) mirrors: Mirrors,
}

impl Figures {
    /// Reads all pages twice. Data that does not fit in memory is sorted in unnamed files in the directory of
    /// temporary files.
    ///
    /// # Errors
    /// If pages cannot be read, or there is no space for temporary files.
    pub(super) fn of(
        pages: &mut dyn Pages,
        groups: &CollectionGroups,
        (weights, unit): (&Weights, Unit),
        policy: Policy,
    ) -> anyhow::Result<Self> {
        let mut statuses = STATUSES.map(|status| (status, Weight::default()));
        let mut redirects = Weight::default();
        let mut similarities = Similarities::default();
        let mut counting = SavingsCounter::new(policy, &std::env::temp_dir());
        if unit == Unit::Record {
            counting = counting.keeping_redirects();
        }
        pages.each(&mut |page| {
            let line = &page.line;
            let bytes = weights.of(&page);
            let is_kept_redirect = line.status == Status::Duplicate
                && accounts::removal((line.status, page.content), unit).is_none();
            if is_kept_redirect {
                redirects.add(bytes);
            } else {
                let of_status = statuses.iter_mut().find(|(status, _)| *status == line.status);
                of_status.into_iter().for_each(|(_, weight)| weight.add(bytes));
                if line.status == Status::Duplicate {
                    similarities.add(&page);
                }
            }
            let of = line.duplicate_of.as_ref();
            let page = CountedPage {
                url: &line.url,
                status: line.status,
                of,
                content: page.content,
                is_copy: page.is_copy(),
                bytes,
            };
            Ok(counting.add(&page)?)
        })?;
        // Both directions of a pair are added up before the list is cut.
        let savings = counting.finish_with(MIRRORS_COUNTED, false, &|| false)?;
        let mut mirrors = mirrors::MirrorPairCounter::of(&savings);
        let mut examples = Examples::of(groups);
        pages.each(&mut |page| {
            mirrors.add(&page.line);
            examples.add(&page, (weights.of(&page), unit));
            Ok(())
        })?;
        Ok(Self {
            redirects,
            statuses: statuses.into_iter().filter(|(_, weight)| weight.pages > 0).collect(),
            savings,
            similarities,
            examples: examples.finish(),
            mirrors: mirrors.finish(),
        })
    }
}

#[cfg(test)]
mod tests;

//! Reads the groups of a collection that has no work left, as the summary and the report show them.

use std::collections::BTreeMap;
use std::path::Path;

use doppel_contract::{Counters, Status};
use doppel_model::{GroupId, PageUrl};
use doppel_protocol::{GroupFilter, GroupState, GroupSummary, Tier1Api};
use doppel_terminal::output::plural;
use doppel_tier1::bulk::{BulkGroup, GroupedCollection};
use serde::{Serialize, Serializer};

/// Groups or members that are read at a time.
const PAGE: usize = 1_000;

/// Groups of a collection that has no work left.
#[derive(Debug, Default)]
pub struct CollectionGroups {
    /// Numbers of pages of the collection, by status.
    pub pages: Counters,
    /// Numbers of groups, by what links their pages.
    pub groups: GroupCounts,
    /// Largest groups; the group with most pages comes first.
    pub largest: Vec<LargestGroup>,
    /// Number of groups and number of their pages, for each binary logarithm of the number of pages in a
    /// group, rounded down. Key 3 stands for groups of 8 to 15 pages.
    pub sizes: BTreeMap<u32, (u64, u64)>,
}

/// Numbers of groups, by what links their pages.
#[derive(Debug, Default, Serialize)]
pub struct GroupCounts {
    /// Groups whose members all have the same content.
    pub exact: u64,
    /// Groups in which at least one member has another content.
    pub near: u64,
    /// Groups of one content and redirects to it.
    pub redirects: u64,
    /// Groups with too many distinct contents. All their pages with content are kept.
    pub quarantined: u64,
    /// Pages with content in quarantined groups.
    #[serde(skip)]
    pub quarantined_pages: u64,
}

impl GroupCounts {
    fn quarantine(&mut self, is_quarantined: bool, pages: u64) {
        if is_quarantined {
            self.quarantined += 1;
            self.quarantined_pages += pages;
        }
    }

    /// Returns a warning if groups are in quarantine, because their kept pages may contain near-duplicates.
    /// In a stored collection, a larger limit does not end a quarantine. With references, near-duplicates of these are
    /// removed all the same.
    pub fn warning(&self, collection: Option<&Path>, has_references: bool) -> Option<String> {
        let Self { quarantined, quarantined_pages, .. } = *self;
        let (groups, are) = (plural(quarantined, "group"), if quarantined == 1 { "is" } else { "are" });
        let pages = plural(quarantined_pages, "page");
        (quarantined > 0).then(|| {
            let except = if has_references { " but near-duplicates of a reference" } else { "" };
            let kept = format!(
                "{groups} {are} quarantined: all {pages} with content are kept{except}, near-duplicates among them, because"
            );
            match collection {
                None => format!(
                    "{kept} there are more distinct contents than --group-members-max allows; look at what they have in common, then pass \
                     a larger number or a stricter --policy"
                ),
                Some(dir) => format!(
                    "{kept} there were more distinct contents than --group-members-max allowed. A larger number does not end a quarantine: \
                     under `doppel serve --data {}`, find the groups with `doppel report groups` and look at what their pages have in \
                     common; if they belong together, `doppel repair ID` ends it, and otherwise a new collection needs a stricter --policy",
                    dir.display()
                ),
            }
        })
    }
}

/// A large group, as the summary of a run lists it.
#[derive(Debug, Serialize)]
pub struct LargestGroup {
    /// Id of the group as text, such as `g12-0`.
    #[serde(serialize_with = "as_text")]
    pub group: GroupId,
    /// Number of its pages.
    pub pages: u64,
    /// Whether all its pages with content have the same content.
    pub exact: bool,
    /// Winner of the group, if the group has one.
    pub winner: Option<PageUrl>,
}

/// Figures of the members of a group.
#[derive(Debug, Clone, Copy, Default)]
struct Members {
    pages: u64,
    contents: u64,
    same: bool,
}

impl CollectionGroups {
    /// Reads the groups of a quiescent tier 1.
    ///
    /// # Errors
    /// If a record is damaged.
    pub fn in_tier1(tier1: &dyn Tier1Api, top: usize) -> anyhow::Result<Self> {
        let mut collection = Self { pages: tier1.totals()?.counters, ..Self::default() };
        let mut after = None;
        loop {
            let piece = tier1.groups(GroupFilter::All, after, PAGE)?;
            let Some(last) = piece.last() else { break };
            after = Some(last.group);
            for GroupSummary { group, winner, quarantined, .. } in
                piece.into_iter().filter(|g| g.state == GroupState::Active)
            {
                let members = Members::of(tier1, group)?;
                collection.groups.quarantine(quarantined, members.contents);
                collection.add(group, winner, members);
            }
            collection.keep(top);
        }
        Ok(collection)
    }

    /// Collects the groups of a collection that was grouped at once. Lists the `top` largest groups.
    pub fn in_bulk(grouped: &GroupedCollection, top: usize) -> Self {
        let mut collection = Self { pages: grouped.counters, ..Self::default() };
        for group in grouped.groups.iter().filter(|group| group.has_judged()) {
            let BulkGroup { pages, contents, protected, same, quarantined, .. } = *group;
            collection.groups.quarantine(quarantined, contents - protected);
            collection.add(group.group, Some(group.winner.clone()), Members { pages, contents, same });
        }
        collection.keep(top);
        collection
    }

    /// Replaces the usual winners of the largest groups by their winners in a market, which
    /// `winner_in_market` returns.
    ///
    /// # Errors
    /// If `winner_in_market` fails.
    pub fn prefer(
        &mut self,
        mut winner_in_market: impl FnMut(GroupId, &PageUrl) -> anyhow::Result<PageUrl>,
    ) -> anyhow::Result<()> {
        for LargestGroup { group, winner, .. } in &mut self.largest {
            *winner = winner.take().map(|usual| winner_in_market(*group, &usual)).transpose()?;
        }
        Ok(())
    }

    fn add(&mut self, group: GroupId, winner: Option<PageUrl>, members: Members) {
        let kind = match members {
            Members { contents: 0 | 1, .. } => &mut self.groups.redirects,
            Members { same: true, .. } => &mut self.groups.exact,
            Members { same: false, .. } => &mut self.groups.near,
        };
        *kind += 1;
        let (groups, pages) = self.sizes.entry(members.pages.max(1).ilog2()).or_default();
        *groups += 1;
        *pages += members.pages;
        self.largest.push(LargestGroup { group, pages: members.pages, exact: members.same, winner });
    }

    /// Keeps only the `top` largest groups, so that memory does not grow with the number of groups.
    pub fn keep(&mut self, top: usize) {
        self.largest.sort_by(|a, b| b.pages.cmp(&a.pages).then_with(|| a.winner.cmp(&b.winner)));
        self.largest.truncate(top);
    }
}

fn as_text<S: Serializer>(group: &GroupId, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(group)
}

impl LargestGroup {
    /// Returns the group as a row of the summary: number of pages, kind, winner.
    pub fn row(&self) -> Vec<String> {
        let kind = if self.exact { "exact" } else { "near" };
        vec![
            plural(self.pages, "page"),
            kind.to_owned(),
            self.winner.as_ref().map(ToString::to_string).unwrap_or_default(),
        ]
    }
}

impl Members {
    fn of(tier1: &dyn Tier1Api, group: GroupId) -> anyhow::Result<Self> {
        let mut members = Self { same: true, ..Self::default() };
        let mut first = None;
        let mut after = None;
        while let Some(view) = tier1.group(group, after, PAGE, true)? {
            for member in &view.members {
                members.pages += 1;
                if let Some(content) = member.content {
                    members.contents += 1;
                    members.same &= *first.get_or_insert(content) == content;
                    debug_assert_ne!(member.line.status, Status::Dead);
                }
            }
            after = view.next;
            if after.is_none() {
                break;
            }
        }
        Ok(members)
    }
}

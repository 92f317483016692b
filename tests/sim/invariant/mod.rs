//! The invariants: some hold for the whole state at rest, others for answers at any moment. Each file checks
//! one invariant.

pub(crate) mod acknowledged;
pub(crate) mod advice;
pub(crate) mod at_once;
pub(crate) mod cover;
pub(crate) mod feed;
pub(crate) mod forwards;
pub(crate) mod idempotent;
pub(crate) mod no_missed_pair;
pub(crate) mod one_group;
pub(crate) mod one_winner;
pub(crate) mod outboxes;
pub(crate) mod replicas;

use std::collections::BTreeMap;

use doppel_model::{GroupId, PageId, ShardId};
use doppel_tier1::simulation::{DecodedRow, GroupRow, MemberRow, PageRow};

use crate::sim::model::{Component, Page, url};
use crate::sim::violation::Checked;
use crate::sim::world::World;

/// The rows of all stores at rest, and the groups that the model expects.
pub(crate) struct Snapshot {
    pub(crate) pages: BTreeMap<PageId, PageRow>,
    pub(crate) groups: BTreeMap<GroupId, GroupRow>,
    /// For each merged group, the group into which it merged.
    pub(crate) forwards: BTreeMap<GroupId, GroupId>,
    pub(crate) members: Vec<MemberRow>,
    /// Pairs of a page and a redirect that ends at the page.
    pub(crate) inbound_redirects: Vec<(PageId, PageId)>,
    /// Pairs of a page and a redirect that leads directly to the page.
    pub(crate) sources: Vec<(PageId, PageId)>,
    /// Pairs of a page with a normalised URL and a page with another spelling of that URL.
    pub(crate) spellings: Vec<(PageId, PageId)>,
    pub(crate) signatures: BTreeMap<PageId, doppel_model::ContentHash>,
    pub(crate) feed: Vec<(ShardId, u64, PageId)>,
    pub(crate) outbox: usize,
    pub(crate) forwarding_entries: Vec<(GroupId, PageId)>,
    pub(crate) components: Vec<Component>,
    /// For every page with content that is not kept: the kept page that it is a duplicate of.
    pub(crate) cover: BTreeMap<Page, Page>,
}

impl Snapshot {
    pub(crate) fn of(world: &World) -> Checked<Self> {
        let mut this = Self {
            pages: BTreeMap::new(),
            groups: BTreeMap::new(),
            forwards: BTreeMap::new(),
            members: Vec::new(),
            inbound_redirects: Vec::new(),
            sources: Vec::new(),
            spellings: Vec::new(),
            signatures: BTreeMap::new(),
            feed: Vec::new(),
            outbox: 0,
            forwarding_entries: Vec::new(),
            components: world.model.components(),
            cover: BTreeMap::new(),
        };
        for row in world.rows()? {
            match row {
                DecodedRow::Page(page) => drop(this.pages.insert(page.page, *page)),
                DecodedRow::Group(group) => drop(this.groups.insert(group.group, group)),
                DecodedRow::Forward { group, into, .. } => drop(this.forwards.insert(group, into)),
                DecodedRow::Member(member) => this.members.push(member),
                DecodedRow::InboundRedirect { target, source } => {
                    this.inbound_redirects.push((target, source));
                }
                DecodedRow::Source { target, source } => this.sources.push((target, source)),
                DecodedRow::Spelling { normal, page } => this.spellings.push((normal, page)),
                DecodedRow::Signature { page, content } => drop(this.signatures.insert(page, content)),
                DecodedRow::Feed { shard, number, page } => this.feed.push((shard, number, page)),
                DecodedRow::Outbox { .. } => this.outbox += 1,
                DecodedRow::ForwardingEntry { group, page } => this.forwarding_entries.push((group, page)),
            }
        }
        for component in &this.components {
            let group = this.group_of(component).and_then(|group| this.groups.get(&group));
            // An operator decides about a group above the size limit, so all its pages are kept.
            if group.is_none_or(|group| !group.quarantined) {
                this.cover.extend(world.model.cover(component));
            }
        }
        Ok(this)
    }

    /// The kept page that a page with content is a duplicate of.
    pub(crate) fn cover_of(&self, page: Page) -> Option<Page> {
        self.cover.get(&page).copied()
    }

    pub(crate) fn page(&self, page: Page) -> Option<&PageRow> {
        self.pages.get(&url(page).id())
    }

    /// The component to which a page must belong.
    pub(crate) fn component(&self, page: Page) -> Option<&Component> {
        self.components.iter().find(|c| c.contents.contains(&page) || c.redirects.contains(&page))
    }

    /// The group of a component, according to the record of its first page.
    pub(crate) fn group_of(&self, component: &Component) -> Option<GroupId> {
        component.contents.first().and_then(|page| self.page(*page)).and_then(|row| row.group)
    }
}

/// Checks all invariants at rest.
pub(crate) fn at_rest(world: &mut World) -> Checked {
    replicas::check(world)?;
    let snapshot = Snapshot::of(world)?;
    outboxes::check(world, &snapshot)?;
    acknowledged::check(world, &snapshot)?;
    one_group::check(world, &snapshot)?;
    one_winner::check(world, &snapshot)?;
    cover::check(world, &snapshot)?;
    no_missed_pair::check(world, &snapshot)?;
    at_once::check(world, &snapshot)?;
    forwards::check(world, &snapshot)?;
    feed::check(world, &snapshot)?;
    (0..world.pages).try_for_each(|page| advice::check_at_rest(world, &snapshot, page))?;
    idempotent::check(world, &snapshot)?;
    forwards::collect(world)
}

//! Every live page that resolves belongs to exactly one group (G1, G8): the group that the model gives it.
//! The group lists the page, and no other rows remain.

use std::collections::{BTreeMap, BTreeSet};

use doppel_contract::Status;
use doppel_model::{GroupId, PageId};

use super::Snapshot;
use crate::sim::model::{Body, Component, Page, url, written};
use crate::sim::violation::{Checked, holds};
use crate::sim::world::World;

const NAME: &str = "one group";

pub(crate) fn check(world: &World, snapshot: &Snapshot) -> Checked {
    let mut taken: BTreeMap<GroupId, &Component> = BTreeMap::new();
    for component in &snapshot.components {
        let group = snapshot.group_of(component);
        let Some(group) = group else {
            holds!(NAME, false, "{:?} are in no group", component.contents);
            continue;
        };
        if let Some(other) = taken.insert(group, component) {
            holds!(NAME, false, "{group} has {:?} and {:?}", component.contents, other.contents);
        }
        group_lists_its_pages(snapshot, group, component)?;
    }
    let in_use: BTreeSet<GroupId> = snapshot.groups.keys().copied().collect();
    let wanted: BTreeSet<GroupId> = taken.keys().copied().collect();
    holds!(NAME, in_use == wanted, "groups in use {in_use:?}, wanted {wanted:?}");
    for page in 0..world.pages {
        has_its_status(world, snapshot, page)?;
    }
    no_stray_rows(world, snapshot)
}

fn group_lists_its_pages(snapshot: &Snapshot, group: GroupId, component: &Component) -> Checked {
    let ids =
        |pages: &BTreeSet<Page>| -> BTreeSet<PageId> { pages.iter().map(|page| url(*page).id()).collect() };
    let listed: BTreeSet<PageId> =
        snapshot.members.iter().filter(|member| member.group == group).map(|member| member.page).collect();
    holds!(
        NAME,
        listed == ids(&component.contents),
        "{group} lists {listed:?}, not {:?}",
        component.contents
    );
    let Some(row) = snapshot.groups.get(&group) else {
        holds!(NAME, false, "{group} of {:?} is not in use", component.contents);
        return Ok(());
    };
    let with_redirects = snapshot
        .members
        .iter()
        .filter(|member| member.group == group && member.has_inbound_redirects)
        .count();
    holds!(
        NAME,
        row.members == listed.len() as u64,
        "{group} counts {} members of {}",
        row.members,
        listed.len()
    );
    holds!(
        NAME,
        row.with_inbound_redirects == with_redirects as u64,
        "{group} counts {} members with redirects of {with_redirects}",
        row.with_inbound_redirects
    );
    for member in snapshot.members.iter().filter(|member| member.group == group) {
        let page = &snapshot.pages[&member.page];
        holds!(
            NAME,
            page.membership_number == member.membership_number,
            "{group} has {} at membership {}, not {}",
            page.url,
            member.membership_number,
            page.membership_number
        );
        holds!(NAME, page.content == Some(member.content), "{group} has {} with another content", page.url);
        holds!(
            NAME,
            member.has_inbound_redirects == (page.inbound_redirects > 0),
            "{group} has {} as a member with redirects: {}",
            page.url,
            member.has_inbound_redirects
        );
    }
    Ok(())
}

/// Checks that a page's public state is that of the model: status, group, reason.
fn has_its_status(world: &World, snapshot: &Snapshot, page: Page) -> Checked {
    let row = snapshot.page(page);
    let Some(known) = world.model.pages.get(&page) else {
        let unknown = row.is_none_or(|row| row.purged && row.status == Status::Unknown);
        holds!(NAME, unknown, "{} is not known, its row says {row:?}", url(page));
        return Ok(());
    };
    let Some(row) = row else {
        holds!(NAME, false, "{} is lost", url(page));
        return Ok(());
    };
    let component = snapshot.component(page);
    let (status, reason) = match (known.body, world.model.end(page), component) {
        (Body::Dead, ..) => (Status::Dead, None),
        (_, Err(reason), _) => (Status::Unresolved, Some(reason)),
        (_, Ok(_), None) => (Status::Unique, None),
        (_, Ok(end), Some(_)) if end != page => (Status::Duplicate, None),
        (_, Ok(_), Some(component)) if component.winner == page => (Status::Winner, None),
        (_, Ok(_), Some(_)) => {
            // An operator decides about a group above the size limit: all its pages with content are kept.
            let is_duplicate = snapshot.cover_of(page).is_some();
            (if is_duplicate { Status::Duplicate } else { Status::Secondary }, None)
        }
    };
    holds!(NAME, row.status == status, "{} is {:?} and not {status:?}", row.url, row.status);
    holds!(NAME, row.reason == reason, "{} is unresolved for {:?} and not {reason:?}", row.url, row.reason);
    let group = component.filter(|_| reason.is_none()).and_then(|component| snapshot.group_of(component));
    holds!(NAME, row.group == group, "{} is in {:?} and not {group:?}", row.url, row.group);
    Ok(())
}

/// Checks that every row belongs to a live page or group.
fn no_stray_rows(world: &World, snapshot: &Snapshot) -> Checked {
    let edges = |wanted: &dyn Fn(Page) -> Option<Page>| -> BTreeSet<(PageId, PageId)> {
        let pages = world.model.pages.keys();
        pages.filter_map(|page| Some((url(wanted(*page)?).id(), url(*page).id()))).collect()
    };
    let spellings = edges(&|page| Some(written(page).0).filter(|form| *form != page));
    let found: BTreeSet<_> = snapshot.spellings.iter().copied().collect();
    holds!(NAME, found == spellings, "spellings by normalised form {found:?}, wanted {spellings:?}");
    let redirect = |page: Page| match world.model.pages[&page].body {
        Body::Redirect(to) => Some(to),
        Body::Content(_) | Body::Dead => None,
    };
    // The rows lie in the shard of the normalised URL.
    let sources = edges(&|page| redirect(page).map(|to| written(to).0));
    let found: BTreeSet<_> = snapshot.sources.iter().copied().collect();
    holds!(NAME, found == sources, "redirects by target {found:?}, wanted {sources:?}");
    let inbound_redirects = edges(&|page| redirect(page).and_then(|_| world.model.end(page).ok()));
    let found: BTreeSet<_> = snapshot.inbound_redirects.iter().copied().collect();
    holds!(NAME, found == inbound_redirects, "redirects by end {found:?}, wanted {inbound_redirects:?}");
    for row in snapshot.pages.values() {
        let inbound_redirects =
            snapshot.inbound_redirects.iter().filter(|(target, _)| *target == row.page).count();
        holds!(
            NAME,
            row.inbound_redirects as usize == inbound_redirects,
            "{} counts {} redirects of {inbound_redirects}",
            row.url,
            row.inbound_redirects
        );
        let signature = snapshot.signatures.get(&row.page);
        holds!(
            NAME,
            signature == row.content.as_ref(),
            "{} has {:?}, its signature is of {signature:?}",
            row.url,
            row.content
        );
    }
    let strays = snapshot.members.iter().find(|member| !snapshot.groups.contains_key(&member.group));
    holds!(NAME, strays.is_none(), "a member of a group that is not in use: {strays:?}");
    let orphan = snapshot.signatures.keys().find(|page| !snapshot.pages.contains_key(page));
    holds!(NAME, orphan.is_none(), "a signature without a page: {orphan:?}");
    Ok(())
}

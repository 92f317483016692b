//! Recomputation of a group, for the background and for the operator.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crossbeam::channel::bounded;
use doppel_common::api::{Refused, RepairReport};
use doppel_common::model::{ContentHash, GroupId, PageUrl};
use doppel_common::signature::Signature;

use super::worker::Recomputed;
use super::writer::Task;
use super::{Tier1, now};
use crate::key;
use crate::machine::{Command, Regrouped, STEP_ROWS};
use crate::record::{AuditEntry, GroupRecord, Member, decode};
use crate::regroup::components;
use crate::txn::read;

/// URLs of a repair that are written down, so that a giant group does not make a giant row.
const AUDITED_MAX: usize = 10_000;

/// When a group is recomputed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    Always,
    /// Unless it has come to rest meanwhile.
    IfOwed,
}

impl Recomputed {
    /// Everybody outside the winner's component is put out, in steps of bounded size. Each step says what
    /// the group's counts are after those before it. `repair`: an operator wanted it.
    pub(crate) fn regrouped(&self, repair: bool) -> impl Iterator<Item = Regrouped> {
        let members = self.components.iter().skip(1).flatten().filter_map(|&index| self.members.get(index));
        let out: Vec<_> = members.map(|(page, member)| (*page, member.seat, member.content)).collect();
        let steps = out.len().div_ceil(STEP_ROWS).max(1);
        (0..steps).map(move |step| {
            let from = step * STEP_ROWS;
            Regrouped {
                group: self.group,
                changes: self.changes + from as u64,
                losses: self.losses + from as u64,
                out: out.iter().skip(from).take(STEP_ROWS).copied().collect(),
                last: step + 1 == steps,
                repair,
            }
        })
    }
}

impl Tier1 {
    /// Collects a group's members and signatures and compares them exactly; none when it is not in use, or
    /// owes nothing.
    ///
    /// The rows are read while the writer goes on. The counts of changes are read first, so the machine
    /// sees whether the picture is old; contents that no page has any more are left out.
    pub(crate) fn recompute(&self, group: GroupId, wanted: Wanted) -> Result<Option<Recomputed>, Refused> {
        let Some(GroupRecord::Active(record)) = read(&*self.store, &key::group(group))? else {
            return Ok(None);
        };
        if wanted == Wanted::IfOwed && !record.owes_recomputation() {
            return Ok(None);
        }
        let winner = record.winner.as_ref().map(|(page, _)| *page);
        let mut members: Vec<(_, Member)> = Vec::new();
        let prefix = key::members(group);
        let mut damaged = None;
        self.store.range(&prefix, &key::after_prefix(&prefix), &mut |key, bytes| {
            match (key::last_page(key), decode(key, bytes)) {
                (Some(page), Ok(member)) => members.push((page, member)),
                (_, Err(error)) => damaged = Some(error),
                (None, Ok(_)) => {}
            }
            damaged.is_none()
        })?;
        if let Some(error) = damaged {
            return Err(error.into());
        }
        // Copies have one signature, and any of their pages gives it.
        let mut numbers: HashMap<ContentHash, usize> = HashMap::new();
        let mut copies: Vec<Vec<usize>> = Vec::new();
        for (index, (_, member)) in members.iter().enumerate() {
            let number = *numbers.entry(member.content).or_insert(copies.len());
            if number == copies.len() {
                copies.push(Vec::new());
            }
            copies[number].push(index);
        }
        let winner = members.iter().find(|(page, _)| Some(*page) == winner);
        let first = winner.and_then(|(_, member)| numbers.get(&member.content)).copied().unwrap_or(0);
        let mut read = |number: usize| -> Result<Option<Arc<Signature>>, Refused> {
            if self.stopping.load(Ordering::Relaxed) {
                return Err(Refused::Stopping);
            }
            for &index in &copies[number] {
                let (page, member) = &members[index];
                let signature = self.read_signature(*page)?.filter(|s| s.content() == member.content);
                if signature.is_some() {
                    return Ok(signature);
                }
            }
            Ok(None)
        };
        let components = components(self.settings.policy, copies.len(), first, &mut read)?;
        let pages = |component: Vec<usize>| {
            let mut pages: Vec<usize> =
                component.iter().flat_map(|number| &copies[*number]).copied().collect();
            pages.sort_unstable();
            pages
        };
        let components = components.into_iter().map(pages).collect();
        let (changes, losses) = (record.changes, record.losses);
        Ok(Some(Recomputed { group, changes, losses, members, components }))
    }

    /// The operator's repair; see [`Tier1Api::repair`](doppel_common::api::Tier1Api::repair).
    pub(super) fn repair_group(
        &self,
        group: GroupId,
        dry_run: bool,
        by: &str,
    ) -> Result<Option<RepairReport>, Refused> {
        let Some(group) = self.surviving_group(group)? else { return Ok(None) };
        let Some(found) = self.recompute(group, Wanted::Always)? else { return Ok(None) };
        let url = |index: &usize| found.members.get(*index).map(|(_, member)| member.rank.url.clone());
        let before: Vec<PageUrl> = found.members.iter().map(|(_, member)| member.rank.url.clone()).collect();
        let components: Vec<Vec<PageUrl>> =
            found.components.iter().map(|component| component.iter().filter_map(url).collect()).collect();
        if !dry_run {
            self.check()?;
            let entry = AuditEntry {
                at: now(),
                by: by.to_owned(),
                group,
                members: before.len() as u64,
                before: before.iter().take(AUDITED_MAX).cloned().collect(),
                components: audited(&components),
            };
            let mut commands = vec![Command::Audit(Box::new(entry))];
            commands.extend(found.regrouped(true).map(Command::Regrouped));
            let (reply, answer) = bounded(1);
            self.tasks.send(Task::Apply { commands, reply }).map_err(|_| Refused::Stopping)?;
            answer.recv().map_err(|_| Refused::Stopping)??;
        }
        Ok(Some(RepairReport { group, before, components, applied: !dry_run }))
    }

    /// Follows merges from a group to the one that has its members now.
    pub(super) fn surviving_group(&self, mut group: GroupId) -> Result<Option<GroupId>, Refused> {
        loop {
            match read(&*self.store, &key::group(group))? {
                Some(GroupRecord::Active(_)) => return Ok(Some(group)),
                // Forwards lead to smaller ids, so this ends.
                Some(GroupRecord::Forward(forward)) => group = forward.into,
                None => return Ok(None),
            }
        }
    }
}

/// The first of the components, up to [`AUDITED_MAX`] URLs.
fn audited(components: &[Vec<PageUrl>]) -> Vec<Vec<PageUrl>> {
    let mut left = AUDITED_MAX;
    let mut audited = Vec::new();
    for component in components {
        if left == 0 {
            break;
        }
        let part: Vec<PageUrl> = component.iter().take(left).cloned().collect();
        left -= part.len();
        audited.push(part);
    }
    audited
}

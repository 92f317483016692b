//! Recomputation of a group by exact comparison, in the background and for an operator.

use doppel_contract::TrailEvent;
use doppel_model::{GroupId, PageId, PageUrl, Timestamp};
use doppel_protocol::{REPAIR_URLS_KEPT, RepairReport, Tier1Error, limit_urls};

use crate::machine::{Command, EvictedMember, RecomputationStep, STEP_ROWS};
use crate::regroup::components;
use crate::rows::key;
use crate::rows::record::{AuditEntry, GroupRecord, Member};
use crate::service::ownership::owner::Owner;
use crate::service::upkeep::Upkeep;
use crate::service::upkeep::members::{ReadAhead, by_content};

/// When to recompute a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RecomputeWhen {
    Always,
    /// Only if the group still owes a recomputation.
    IfOwed,
}

/// The members of a group with a current content, and the components into which they fall.
pub(crate) struct Recomputation {
    group: GroupId,
    pub(crate) changes: u64,
    pub(crate) losses: u64,
    members: Vec<(PageId, Member)>,
    /// Components as indices into `members`. The component of the winner comes first.
    components: Vec<Vec<usize>>,
    /// Number of distinct contents of the members that stay.
    contents: u64,
}

impl Recomputation {
    /// Commands that put out every member outside the component of the winner, at most `rows` in each.
    ///
    /// Each command names the counts of changes that the commands before it leave. `repair` is the entry of
    /// an operator's repair, which is written with the first command. After a crash the group still owes a
    /// recomputation, which does the rest; only the last command ends that.
    pub(crate) fn commands(
        &self,
        rows: usize,
        repair: Option<AuditEntry>,
    ) -> impl Iterator<Item = RecomputationStep> {
        let members = self.components.iter().skip(1).flatten().filter_map(|&index| self.members.get(index));
        let evicted: Vec<_> = members
            .map(|(page, member)| EvictedMember {
                page: *page,
                membership_number: member.membership_number,
                content: member.content,
            })
            .collect();
        let steps = evicted.len().div_ceil(rows).max(1);
        let (is_repair, mut audit) = (repair.is_some(), repair.map(Box::new));
        (0..steps).map(move |step| {
            let from = step * rows;
            RecomputationStep {
                group: self.group,
                changes: self.changes + from as u64,
                losses: self.losses + from as u64,
                evicted: evicted.iter().skip(from).take(rows).copied().collect(),
                contents: self.contents,
                last: step + 1 == steps,
                repair: is_repair,
                audit: audit.take(),
            }
        })
    }

    /// URLs of all members.
    fn member_urls(&self) -> impl Iterator<Item = &PageUrl> {
        self.members.iter().map(|(_, member)| &member.rank.url)
    }

    /// URLs of each component, that of the winner first.
    fn component_urls(&self) -> Vec<Vec<PageUrl>> {
        let url = |index: &usize| self.members.get(*index).map(|(_, member)| member.rank.url.clone());
        self.components.iter().map(|component| component.iter().filter_map(url).collect()).collect()
    }

    /// The entry for the trail of repairs.
    pub(crate) fn trail_entry(&self, at: Timestamp, by: &str) -> AuditEntry {
        AuditEntry {
            at,
            event: TrailEvent::Repair,
            by: by.to_owned(),
            group: self.group,
            into: None,
            members: self.members.len() as u64,
            before: self.member_urls().take(REPAIR_URLS_KEPT).cloned().collect(),
            components: limit_urls(&self.component_urls(), REPAIR_URLS_KEPT),
        }
    }
}

impl Upkeep {
    /// Reads the members and signatures of a group and compares them exactly. `None` if the group is not
    /// active or owes no recomputation.
    ///
    /// The rows are read while the writer goes on. The counts of changes are read first, so the machine
    /// notices when the result is out of date. Contents that no page has any more are left out.
    pub(crate) fn recompute(
        &self,
        group: GroupId,
        when: RecomputeWhen,
    ) -> Result<Option<Recomputation>, Tier1Error> {
        let Some(GroupRecord::Active(record)) = self.rows.record(key::group(group))? else {
            return Ok(None);
        };
        if when == RecomputeWhen::IfOwed && !record.owes_recomputation() {
            return Ok(None);
        }
        let winner = record.winner.as_ref().map(|(page, _)| *page);
        let members = self.members(group, &|_| true)?;
        let (copies, numbers) = by_content(&members);
        let winner = members.iter().find(|(page, _)| Some(*page) == winner);
        let first = winner.and_then(|(_, member)| numbers.get(&member.content)).copied().unwrap_or(0);
        let mut ahead = ReadAhead::default();
        let mut read = |number: usize| self.content_of(group, &members, &copies, &mut ahead, number);
        let components = components(self.collection.settings.policy, copies.len(), first, &mut read)?;
        let put_out: usize = components.iter().skip(1).map(Vec::len).sum();
        let contents = copies.len().saturating_sub(put_out) as u64;
        let pages = |component: Vec<usize>| {
            let mut pages: Vec<usize> =
                component.iter().flat_map(|number| &copies[*number]).copied().collect();
            pages.sort_unstable();
            pages
        };
        let components = components.into_iter().map(pages).collect();
        let (changes, losses) = (record.changes, record.losses);
        Ok(Some(Recomputation { group, changes, losses, members, components, contents }))
    }

    /// Repairs a group of this process for an operator; see
    /// [`Tier1Api::repair`](doppel_protocol::Tier1Api::repair).
    pub(in crate::service) fn repair(
        &self,
        owner: &Owner,
        group: GroupId,
        dry_run: bool,
        by: &str,
    ) -> Result<Option<RepairReport>, Tier1Error> {
        let Some(found) = self.recompute(group, RecomputeWhen::Always)? else { return Ok(None) };
        let mut applied = false;
        if !dry_run {
            let audit = found.trail_entry(Timestamp::now(), by);
            let commands = found.commands(STEP_ROWS, Some(audit)).map(Command::Recomputed).collect();
            self.refusals.check()?;
            owner.apply(commands, true)?.wait()??;
            // If the group was merged in the meantime, the repair found no group to change.
            let now = self.question_rows.record(key::group(group))?;
            applied = !matches!(now, Some(GroupRecord::Forward(_)));
        }
        let (before, components) = (found.member_urls().cloned().collect(), found.component_urls());
        Ok(Some(RepairReport { group, before, components, applied }))
    }
}

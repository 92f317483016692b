//! Helpers for tests of single rules: commits, messages and answers built by hand.

use doppel_contract::SubmissionOutcome;
use doppel_model::ClientId;

use super::*;
use crate::machine::{EvictedMember, Message};
use crate::rows::record::{Group, LinkedPage};

impl World {
    /// Applies `work` as one commit, and returns its effects without carrying them out. The rows may disagree
    /// with each other afterwards.
    pub(super) fn commit_only(&mut self, work: impl FnOnce(&mut Machine<'_, '_>)) -> Vec<Effect> {
        let CommitOutput { writes, effects, .. } = {
            let mut machine =
                Machine::new(&self.store, &mut self.shards, COMMIT_ROWS, Timestamp::from_millis(self.wall));
            work(&mut machine);
            machine.finish().unwrap()
        };
        self.store.commit(writes).unwrap();
        effects
    }

    /// Delivers a message as if it had just arrived.
    pub(super) fn receive(&mut self, to: ShardId, message: Message) {
        self.commit_only(|machine| {
            machine.current_shard = to;
            machine.receive(message).unwrap();
        });
    }

    /// Creates the submission of a new version of a page.
    pub(super) fn version(&mut self, name: &str, body: Body) -> Command {
        self.clock += 1;
        let submission = Submission {
            url: PageUrl::parse(name).unwrap(),
            fetched_at: Timestamp::from_millis(self.clock),
            popularity: None,
            language: None,
            canonical: None,
            body,
        };
        Command::Submit { submission: Box::new(submission), hint: None, client: ClientId::NONE }
    }

    pub(super) fn push(&mut self, name: &str, body: Body) {
        let version = self.version(name, body);
        self.commit(vec![version], usize::MAX);
    }

    /// Submits a new version, and returns its outcome.
    pub(super) fn outcome(&mut self, name: &str, body: Body) -> SubmissionOutcome {
        let version = self.version(name, body);
        let effects = self.commit_only(|machine| machine.command(version).unwrap());
        let outcome = effects.into_iter().find_map(|effect| match effect {
            Effect::Outcome(outcome) => Some(outcome),
            _ => None,
        });
        outcome.unwrap()
    }

    /// Creates a group of exact copies, at rest.
    pub(super) fn copies(&mut self, count: usize, k: u64) -> Vec<PageId> {
        let names: Vec<String> = (1..=count).map(|n| format!("http://h{k}/{}", "x".repeat(n))).collect();
        for name in &names {
            self.submit_content(name, k);
            self.compare_all();
        }
        self.settle();
        names.iter().map(|name| PageId::of(name)).collect()
    }

    /// Creates a group of pages whose contents form a chain, at rest.
    pub(super) fn chain(&mut self, count: usize, first: u64) -> Vec<PageId> {
        self.repairs = false;
        let names: Vec<String> = (1..=count).map(|n| format!("http://h{first}/{}", "y".repeat(n))).collect();
        for (name, k) in names.iter().zip(first..) {
            self.submit_content(name, k);
            self.compare_all();
        }
        self.settle();
        names.iter().map(|name| PageId::of(name)).collect()
    }

    pub(super) fn group(&self, page: PageId) -> GroupId {
        self.record(page).unwrap().content().unwrap().membership.as_ref().unwrap().group
    }

    pub(super) fn group_record(&self, group: GroupId) -> Option<GroupRecord> {
        read(&self.store, &key::group(group)).unwrap()
    }

    pub(super) fn trail_entry(&self, shard: ShardId, number: u64) -> AuditEntry {
        read(&self.store, &key::audit(RepairId { shard, number })).unwrap().unwrap()
    }

    /// Returns the audit trail of a group, oldest entry first: event and number of members.
    pub(super) fn trail(&self, group: GroupId) -> Vec<(TrailEvent, u64)> {
        let shard = group.shard();
        let last = self.shards.metas[usize::from(shard.0)].audits;
        let entries = (1..=last).map(|number| self.trail_entry(shard, number));
        entries.filter(|entry| entry.group == group).map(|entry| (entry.event, entry.members)).collect()
    }

    pub(super) fn in_use(&self, group: GroupId) -> Group {
        match self.group_record(group) {
            Some(GroupRecord::Active(record)) => record,
            other => panic!("{group} is not in use: {other:?}"),
        }
    }

    /// Applies a recomputation. It read the members before the last `missed` changes of the group.
    pub(super) fn recompute(&mut self, group: GroupId, missed: u64, evicted: Vec<EvictedMember>) {
        let Group { changes, losses, .. } = self.in_use(group);
        let changes = changes - missed;
        let contents = self.contents_of(group, &evicted);
        let step = RecomputationStep {
            group,
            changes,
            losses,
            evicted,
            contents,
            last: true,
            repair: false,
            audit: None,
        };
        for effect in self.commit_only(|machine| machine.apply(Command::Recomputed(step)).unwrap()) {
            if let Effect::Quarantine { group, members, begins, .. } = effect {
                self.quarantines.push((group, members, begins));
            }
        }
    }

    /// Counts the distinct contents of a group without the members in `evicted`.
    fn contents_of(&self, group: GroupId, evicted: &[EvictedMember]) -> u64 {
        let mut contents = HashSet::new();
        for_each_row(&self.store, group.shard(), RowKind::Member, |key, bytes| {
            let member: Member = decode(key, bytes)?;
            let page = key::last_page(key).unwrap();
            if key.starts_with(&key::members(group)) && evicted.iter().all(|member| member.page != page) {
                contents.insert(member.content);
            }
            Ok(())
        })
        .unwrap();
        contents.len() as u64
    }

    /// Returns a member as a recomputation names it.
    pub(super) fn evicted(&self, page: PageId) -> EvictedMember {
        let LinkedPage { page, membership_number, content } = self.linked(page);
        EvictedMember { page, membership_number, content }
    }

    /// Returns a member as one page of a pair that was found.
    pub(super) fn linked(&self, page: PageId) -> LinkedPage {
        let record = self.record(page).unwrap();
        let content = record.content().unwrap().content;
        LinkedPage { page, membership_number: record.membership_number, content }
    }

    /// Creates a page that has been searched for, and whose only partner has not answered yet.
    pub(super) fn make_waiting_for_partner(&mut self, name: &str, k: u64) -> PageId {
        self.submit_content(name, k);
        while !self.orders.is_empty() {
            self.index_step();
        }
        let commands: Vec<Command> = self.commands.drain(..).collect();
        self.commit(commands, 0);
        let page = PageId::of(name);
        assert!(self.record(page).unwrap().content().unwrap().partner_query.is_some());
        page
    }

    /// Changes a page's record directly.
    pub(super) fn change(&mut self, page: PageId, change: impl FnOnce(&mut PageRecord)) {
        let mut record = self.record(page).unwrap();
        change(&mut record);
        let shard = self.shards.owner(page);
        self.commit_only(|machine| machine.txn.put_page(shard, page, record).unwrap());
    }
}

//! A shard's totals follow its records: each commit moves them by what changed.

use doppel_protocol::{Backlog, Counters, Status};

use crate::record::Meta;
use crate::txn::{GroupShare, PageShare};

impl Meta {
    pub(crate) fn count_page(&mut self, before: PageShare, after: PageShare) {
        for (share, delta) in [(before, -1_i64), (after, 1)] {
            let Some(status) = share.status else { continue };
            let add = |total: &mut u64| *total = total.wrapping_add_signed(delta);
            let counters = &mut self.counters;
            match status {
                Status::Unknown => {}
                Status::Dead => add(&mut counters.dead),
                Status::Pending
                | Status::Unique
                | Status::Winner
                | Status::Duplicate
                | Status::Member
                | Status::Unresolved => add(&mut counters.live),
            }
            match status {
                Status::Winner => add(&mut counters.winners),
                Status::Duplicate => add(&mut counters.duplicates),
                Status::Member => add(&mut counters.members),
                Status::Unresolved => add(&mut counters.unresolved),
                Status::Unknown | Status::Pending | Status::Unique | Status::Dead => {}
            }
            if share.redirect {
                add(&mut counters.redirects);
            }
            if share.pending {
                add(&mut self.pending);
            }
            if share.deferred {
                add(&mut self.deferred);
            }
            if share.unverified {
                add(&mut self.unverified);
            }
        }
    }

    pub(crate) fn count_group(&mut self, before: GroupShare, after: GroupShare) {
        for (share, delta) in [(before, -1_i64), (after, 1)] {
            if share.active {
                self.counters.groups = self.counters.groups.wrapping_add_signed(delta);
            }
            if share.dirty {
                self.dirty = self.dirty.wrapping_add_signed(delta);
            }
        }
    }
}

/// The totals of all shards together.
pub(crate) fn sum(metas: &[Meta], messages: usize) -> (Counters, Backlog) {
    let mut counters = Counters::default();
    let mut backlog = Backlog { messages: messages as u64, ..Backlog::default() };
    for meta in metas {
        let c = &meta.counters;
        counters.live += c.live;
        counters.redirects += c.redirects;
        counters.unresolved += c.unresolved;
        counters.dead += c.dead;
        counters.groups += c.groups;
        counters.winners += c.winners;
        counters.duplicates += c.duplicates;
        counters.members += c.members;
        counters.submissions += c.submissions;
        counters.unchanged += c.unchanged;
        counters.stale += c.stale;
        counters.confirmed += c.confirmed;
        counters.compared_updates += c.compared_updates;
        counters.verified += c.verified;
        counters.rejected += c.rejected;
        counters.merges += c.merges;
        counters.rechecks += c.rechecks;
        counters.splits += c.splits;
        counters.searches += c.searches;
        counters.stale_results += c.stale_results;
        backlog.pending += meta.pending;
        backlog.deferred_searches += meta.deferred;
        backlog.dirty_groups += meta.dirty;
        backlog.unverified += meta.unverified;
    }
    (counters, backlog)
}

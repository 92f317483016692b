//! Totals of a shard, and their sums. Each commit adds the difference that it makes, so the totals always
//! match the shard's records.

use doppel_contract::{Backlog, Counters, Status};

use crate::rows::record::Meta;
use crate::rows::txn::{GroupShare, PageShare};

impl Meta {
    /// Replaces a page's share of the totals by its new share.
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
                | Status::Secondary
                | Status::Unresolved => add(&mut counters.live),
            }
            match status {
                Status::Winner => add(&mut counters.winners),
                Status::Duplicate => add(&mut counters.duplicates),
                Status::Secondary => add(&mut counters.secondaries),
                Status::Unresolved => add(&mut counters.unresolved),
                Status::Unknown | Status::Pending | Status::Unique | Status::Dead => {}
            }
            if share.redirect {
                add(&mut counters.redirects);
            }
            if share.crowded {
                add(&mut counters.crowded);
            }
            if share.pending.is_some() {
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

    /// Replaces a group's share of the totals by its new share.
    pub(crate) fn count_group(&mut self, before: GroupShare, after: GroupShare) {
        for (share, delta) in [(before, -1_i64), (after, 1)] {
            if share.active {
                self.counters.groups = self.counters.groups.wrapping_add_signed(delta);
            }
            if share.dirty {
                self.dirty = self.dirty.wrapping_add_signed(delta);
            }
            if share.uncovered {
                self.uncovered = self.uncovered.wrapping_add_signed(delta);
            }
        }
    }
}

/// Adds up the totals of shards. `messages` is the number of messages in the backlog.
pub(crate) fn sum(metas: &[Meta], messages: u64) -> (Counters, Backlog) {
    let backlog = Backlog { messages, ..Backlog::default() };
    let of = |meta: &Meta| {
        let backlog = Backlog {
            pending: meta.pending,
            deferred_searches: meta.deferred,
            dirty_groups: meta.dirty,
            uncovered_groups: meta.uncovered,
            unverified: meta.unverified,
            messages: 0,
        };
        (meta.counters, backlog)
    };
    add(metas.iter().map(of).chain([(Counters::default(), backlog)]))
}

/// Adds up several pairs of counters and backlogs.
pub(crate) fn add(all: impl Iterator<Item = (Counters, Backlog)>) -> (Counters, Backlog) {
    let (mut counters, mut backlog) = (Counters::default(), Backlog::default());
    for (c, b) in all {
        counters.live += c.live;
        counters.redirects += c.redirects;
        counters.unresolved += c.unresolved;
        counters.dead += c.dead;
        counters.crowded += c.crowded;
        counters.groups += c.groups;
        counters.winners += c.winners;
        counters.duplicates += c.duplicates;
        counters.secondaries += c.secondaries;
        counters.submissions += c.submissions;
        counters.unchanged += c.unchanged;
        counters.stale += c.stale;
        counters.confirmed += c.confirmed;
        counters.compared_updates += c.compared_updates;
        counters.verified += c.verified;
        counters.rejected += c.rejected;
        counters.merges += c.merges;
        counters.rechecks += c.rechecks;
        counters.evictions += c.evictions;
        counters.searches += c.searches;
        counters.stale_results += c.stale_results;
        backlog.pending += b.pending;
        backlog.deferred_searches += b.deferred_searches;
        backlog.dirty_groups += b.dirty_groups;
        backlog.uncovered_groups += b.uncovered_groups;
        backlog.unverified += b.unverified;
        backlog.messages += b.messages;
    }
    (counters, backlog)
}

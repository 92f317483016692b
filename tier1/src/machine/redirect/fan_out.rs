//! Telling the redirects of a page about changes, in rounds.
//!
//! A page may have very many redirects, and may change faster than they can be told. So each [`Audience`] of
//! a page has at most one round under way, and a row ([`FanOut`]) stores its progress. A change during a
//! round requests one more round. That round begins when the present one ends, and tells the state at that
//! time. Any number of changes during a round costs only one more round.
//!
//! If the redirects fit into less than one step, they are told at once, without a row.
//!
//! Invariants:
//! - As long as the row exists, exactly one [`Message::ContinueTelling`] about it is under way. A commit
//!   contains both or neither, so a crash loses neither.
//! - Every redirect that has an edge to the page when the page changes is told after the change.

use doppel_model::PageId;

use crate::machine::{Audience, Machine, Message, target_note, target_state};
use crate::rows::key::{self, RowKind};
use crate::rows::record::{FanOut, Reach, encode};
use crate::storage::store::StoreError;
use doppel_protocol::range_owner::EncodedRow;

impl Audience {
    /// Returns the audience whose edges have the kind with this byte.
    pub(crate) fn from_edge_kind(edges: u8) -> Option<Self> {
        [Self::Sources, Self::InboundRedirects].into_iter().find(|audience| audience.edges() as u8 == edges)
    }

    /// Returns the kind of the edges that list the redirects of the audience.
    pub(crate) const fn edges(self) -> RowKind {
        match self {
            Self::Sources => RowKind::Source,
            Self::InboundRedirects => RowKind::InboundRedirect,
        }
    }
}

impl FanOut {
    /// Creates a round that has not begun.
    const fn new(reach: Reach) -> Self {
        Self { after: None, reach, again: None }
    }

    /// Adds another change. A round that has not begun tells this change, too. A round under way is followed
    /// by another round.
    fn with_change(self, reach: Reach) -> Self {
        match self.after {
            None => Self { reach: self.reach.union(reach), ..self },
            Some(_) => Self { again: Some(self.again.map_or(reach, |again| again.union(reach))), ..self },
        }
    }
}

impl Reach {
    /// Returns a reach that selects the redirects of both.
    fn union(self, other: Self) -> Self {
        let through = self.through.filter(|_| self.through == other.through);
        Self { through, hops_left: self.hops_left.max(other.hops_left) }
    }
}

impl Machine<'_, '_> {
    /// Tells the redirects of a page of this shard about a change: at once if they are few, and otherwise in
    /// a round.
    pub(in crate::machine) fn tell_redirects(
        &mut self,
        target: PageId,
        audience: Audience,
        reach: Reach,
    ) -> Result<(), StoreError> {
        let rows = self.audience_edges(target, audience, None)?;
        if rows.len() < self.shards.settings.step_rows {
            return self.send_to_redirects(target, audience, reach, &rows);
        }
        let key = key::fan_out(self.current_shard, audience.edges(), target);
        let fan_out = match self.txn.get::<FanOut>(&key)? {
            Some(fan_out) => fan_out.with_change(reach),
            None => {
                self.send(self.current_shard, Message::ContinueTelling { target, audience });
                FanOut::new(reach)
            }
        };
        self.txn.put(key, encode(&fan_out)?);
        Ok(())
    }

    /// Makes the next step of a round. After the last step it begins the next round, if one is requested.
    pub(in crate::machine) fn continue_round(
        &mut self,
        target: PageId,
        audience: Audience,
    ) -> Result<(), StoreError> {
        let key = key::fan_out(self.current_shard, audience.edges(), target);
        let Some(round) = self.txn.get::<FanOut>(&key)? else { return Ok(()) };
        let rows = self.audience_edges(target, audience, round.after)?;
        self.send_to_redirects(target, audience, round.reach, &rows)?;
        let is_full = rows.len() == self.shards.settings.step_rows;
        let last = rows.last().and_then(|(key, _)| key::last_page(key)).filter(|_| is_full);
        let next = match (last, round.again) {
            (Some(last), _) => FanOut { after: Some(last), ..round },
            (None, Some(reach)) => FanOut::new(reach),
            (None, None) => {
                self.txn.delete(key);
                return Ok(());
            }
        };
        self.send(self.current_shard, Message::ContinueTelling { target, audience });
        self.txn.put(key, encode(&next)?);
        Ok(())
    }

    /// Returns the edges of one step, beginning after the redirect `after`. Returns no edges if there is
    /// nothing to tell.
    fn audience_edges(
        &mut self,
        target: PageId,
        audience: Audience,
        after: Option<PageId>,
    ) -> Result<Vec<EncodedRow>, StoreError> {
        if audience == Audience::InboundRedirects && !self.has_content(target)? {
            return Ok(Vec::new());
        }
        let kind = audience.edges();
        let after = after.map(|source| key::edge(self.current_shard, kind, target, source));
        let prefix = key::edges(self.current_shard, kind, target);
        self.txn.scan(&prefix, after.as_deref(), self.shards.settings.step_rows)
    }

    fn has_content(&mut self, page: PageId) -> Result<bool, StoreError> {
        Ok(self.txn.page(self.current_shard, page)?.is_some_and(|record| record.content().is_some()))
    }

    /// Sends the present state to the redirects of the given edges.
    fn send_to_redirects(
        &mut self,
        target: PageId,
        audience: Audience,
        reach: Reach,
        rows: &[EncodedRow],
    ) -> Result<(), StoreError> {
        if rows.is_empty() {
            return Ok(());
        }
        let sources = rows.iter().filter_map(|(key, note)| Some((key::last_page(key)?, note)));
        match audience {
            Audience::Sources => {
                let Reach { through, hops_left } = reach;
                let through = through.map(|page| target_note(target, Some(page)));
                for (source, note) in sources {
                    if through.as_ref().is_none_or(|through| through == note) {
                        self.send_to_page(source, Message::RouteChanged { source, target, hops_left });
                    }
                }
            }
            Audience::InboundRedirects => {
                let Some(record) = self.txn.page(self.current_shard, target)? else { return Ok(()) };
                let state = target_state(record.url(), &record.published);
                for (source, _) in sources {
                    self.send_to_page(source, Message::TargetState { source, target, state: state.clone() });
                }
            }
        }
        Ok(())
    }
}

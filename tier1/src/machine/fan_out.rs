//! Telling the redirects of a page that something has changed, in rounds.
//!
//! A page may have very many redirects, and may change much faster than they can be told. So one round at a time is under way for each
//! [`Audience`] of a page, and a row says how far it is ([`FanOut`]). A change in the middle of a round asks for one more round, which
//! begins when this one has ended and tells what holds by then. However many changes come meanwhile, they cost that one round.
//!
//! Redirects that are fewer than the rows of a step are told at once, without a row.
//!
//! Invariants: as long as there is a row, one message [`Message::ContinueTelling`] about it is on its way, and both are in the same commit, so a
//! crash loses neither. Whoever has an edge when a page changes is told after that change.

use doppel_model::PageId;

use super::{Audience, Machine, Message, stands_for, target_line};
use crate::key::{self, Kind};
use crate::record::{FanOut, Reach, encode};
use crate::store::StoreError;
use crate::txn::Row;

impl Audience {
    /// The audience whose edges are of the kind with this byte.
    pub(crate) fn of(edges: u8) -> Option<Self> {
        [Self::Sources, Self::InboundRedirects].into_iter().find(|audience| audience.edges() as u8 == edges)
    }

    /// The rows that name its redirects.
    pub(crate) const fn edges(self) -> Kind {
        match self {
            Self::Sources => Kind::Source,
            Self::InboundRedirects => Kind::InboundRedirect,
        }
    }
}

impl FanOut {
    /// A round that has not begun.
    const fn new(reach: Reach) -> Self {
        Self { after: None, reach, again: None }
    }

    /// With another change: a round that has not begun tells of it, too, and one that is under way is followed by another.
    fn with(self, reach: Reach) -> Self {
        match self.after {
            None => Self { reach: self.reach.and(reach), ..self },
            Some(_) => Self { again: Some(self.again.map_or(reach, |again| again.and(reach))), ..self },
        }
    }
}

impl Reach {
    /// What both reach.
    fn and(self, other: Self) -> Self {
        let through = self.through.filter(|_| self.through == other.through);
        Self { through, hops_left: self.hops_left.max(other.hops_left) }
    }
}

impl Machine<'_, '_> {
    /// Tells the redirects of a page of this shard: at once if they are few, and otherwise in a round.
    pub(super) fn tell_redirects(
        &mut self,
        target: PageId,
        audience: Audience,
        reach: Reach,
    ) -> Result<(), StoreError> {
        let rows = self.audience(target, audience, None)?;
        if rows.len() < self.shards.settings.step_rows {
            return self.tell(target, audience, reach, &rows);
        }
        let key = key::fan_out(self.here, audience.edges(), target);
        let fan_out = match self.txn.get::<FanOut>(&key)? {
            Some(fan_out) => fan_out.with(reach),
            None => {
                self.send(self.here, Message::ContinueTelling { target, audience });
                FanOut::new(reach)
            }
        };
        self.txn.put(key, encode(&fan_out)?);
        Ok(())
    }

    /// The next step of a round, or the begin of the next round.
    pub(super) fn continue_telling(&mut self, target: PageId, audience: Audience) -> Result<(), StoreError> {
        let key = key::fan_out(self.here, audience.edges(), target);
        let Some(round) = self.txn.get::<FanOut>(&key)? else { return Ok(()) };
        let rows = self.audience(target, audience, round.after)?;
        self.tell(target, audience, round.reach, &rows)?;
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
        self.send(self.here, Message::ContinueTelling { target, audience });
        self.txn.put(key, encode(&next)?);
        Ok(())
    }

    /// The edges of a step, from the one after `after`. None where there is nothing to tell.
    fn audience(
        &mut self,
        target: PageId,
        audience: Audience,
        after: Option<PageId>,
    ) -> Result<Vec<Row>, StoreError> {
        if audience == Audience::InboundRedirects && !self.has_content(target)? {
            return Ok(Vec::new());
        }
        let kind = audience.edges();
        let after = after.map(|source| key::edge(self.here, kind, target, source));
        let prefix = key::edges(self.here, kind, target);
        self.txn.scan(&prefix, after.as_deref(), self.shards.settings.step_rows)
    }

    fn has_content(&mut self, page: PageId) -> Result<bool, StoreError> {
        Ok(self.txn.page(self.here, page)?.is_some_and(|record| record.content().is_some()))
    }

    /// Tells the redirects of some edges what holds now.
    fn tell(
        &mut self,
        target: PageId,
        audience: Audience,
        reach: Reach,
        rows: &[Row],
    ) -> Result<(), StoreError> {
        if rows.is_empty() {
            return Ok(());
        }
        let sources = rows.iter().filter_map(|(key, noted)| Some((key::last_page(key)?, noted)));
        match audience {
            Audience::Sources => {
                let Reach { through, hops_left } = reach;
                let through = through.map(|page| stands_for(target, Some(page)));
                for (source, noted) in sources {
                    if through.as_ref().is_none_or(|through| through == noted) {
                        self.send_to_page(source, Message::Rerouted { source, target, hops_left });
                    }
                }
            }
            Audience::InboundRedirects => {
                let Some(record) = self.txn.page(self.here, target)? else { return Ok(()) };
                let line = target_line(record.url(), &record.published);
                for (source, _) in sources {
                    self.send_to_page(source, Message::TargetLine { source, target, line: line.clone() });
                }
            }
        }
        Ok(())
    }
}

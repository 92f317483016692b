//! Redirects: where each leads, and which pages are attached to a final target.
//!
//! A redirect finds its end by a trace that travels from hop to hop, at most 20 of them, and comes back.
//! Each page knows the redirects straight to it. When it becomes something else it tells them, they
//! trace again and tell theirs, at most 20 hops far, so the message of a change dies out in a loop as well.
//!
//! No change is missed: a redirect subscribes to its target before its trace goes the same way, so
//! whatever changes behind the trace finds the way back to it.

use doppel_model::{PageId, PageUrl};
use doppel_protocol::Unresolved;

use super::publish::target_line;
use super::{Machine, Message};
use crate::key::{self, Kind};
use crate::record::{PageRecord, RedirectState, Resolution, State, TargetLine};
use crate::store::StoreError;

/// The most redirects that are followed; a longer chain is unresolved.
pub(crate) const HOPS_MAX: u8 = 20;

impl RedirectState {
    /// The page at the end of the chain, when that has a content.
    pub(crate) fn attached_to(&self) -> Option<PageId> {
        match self.resolution {
            Some(Resolution::Content(page)) => Some(page),
            Some(Resolution::Unresolved(_)) | None => None,
        }
    }
}

impl Machine<'_, '_> {
    /// Makes a page a redirect and has its end found.
    pub(super) fn begin_redirect(&mut self, page: PageId, record: &mut PageRecord, to: PageUrl) {
        let target = to.id();
        record.state = State::Redirect(RedirectState { to, resolution: None, target: None });
        self.send_to_page(target, Message::Subscribe { target, source: page });
        self.trace(page, record);
    }

    fn trace(&mut self, source: PageId, record: &mut PageRecord) {
        let State::Redirect(state) = &record.state else { return };
        record.ticket += 1;
        let (at, ticket) = (state.to.id(), record.ticket);
        self.send_to_page(at, Message::Trace { source, ticket, at, path: vec![source] });
    }

    /// A trace has come to this page.
    pub(super) fn traced_through(
        &mut self,
        source: PageId,
        ticket: u32,
        at: PageId,
        mut path: Vec<PageId>,
    ) -> Result<(), StoreError> {
        let record = self.txn.page(self.here, at)?;
        let resolution = match record.map(|record| &record.state) {
            _ if path.contains(&at) => Resolution::Unresolved(Unresolved::Loop),
            Some(State::Content(_)) => Resolution::Content(at),
            Some(State::Dead) => Resolution::Unresolved(Unresolved::DeadTarget),
            Some(State::Purged) | None => Resolution::Unresolved(Unresolved::UnknownTarget),
            Some(State::Redirect(_)) if path.len() >= usize::from(HOPS_MAX) => {
                Resolution::Unresolved(Unresolved::TooManyHops)
            }
            Some(State::Redirect(state)) => {
                let next = state.to.id();
                path.push(at);
                self.send_to_page(next, Message::Trace { source, ticket, at: next, path });
                return Ok(());
            }
        };
        self.send_to_page(source, Message::Traced { source, ticket, resolution });
        Ok(())
    }

    /// A trace has come back.
    pub(super) fn traced(
        &mut self,
        source: PageId,
        ticket: u32,
        resolution: Resolution,
    ) -> Result<(), StoreError> {
        let Some(mut record) = self.take(source)? else { return Ok(()) };
        let current = record.ticket == ticket;
        let State::Redirect(state) = &mut record.state else { return self.give_back(source, record) };
        if !current || state.resolution == Some(resolution) {
            return self.give_back(source, record);
        }
        let before = state.attached_to();
        state.resolution = Some(resolution);
        let now = state.attached_to();
        if before != now {
            state.target = None;
            if let Some(target) = before {
                self.send_to_page(target, Message::DetachRedirect { target, source });
            }
            if let Some(target) = now {
                self.send_to_page(target, Message::AttachRedirect { target, source });
            }
        }
        self.put(source, record)
    }

    pub(super) fn subscribed(&mut self, target: PageId, source: PageId) {
        self.txn.put(key::edge(self.here, Kind::Source, target, source), Vec::new());
    }

    pub(super) fn unsubscribed(&mut self, target: PageId, source: PageId) {
        self.txn.delete(key::edge(self.here, Kind::Source, target, source));
    }

    /// This page has become something else: tells the redirects to it.
    pub(super) fn reroute_sources(&mut self, target: PageId) -> Result<(), StoreError> {
        self.tell_sources(target, None, HOPS_MAX)
    }

    /// Tells the redirects straight to `target`, from the one after `after`, in steps.
    pub(super) fn tell_sources(
        &mut self,
        target: PageId,
        after: Option<PageId>,
        hops_left: u8,
    ) -> Result<(), StoreError> {
        let sources = self.edges(Kind::Source, target, after)?;
        let last = sources.last().copied().filter(|_| sources.len() == self.shards.settings.step_rows);
        for source in sources {
            self.send_to_page(source, Message::Rerouted { source, target, hops_left });
        }
        if let Some(after) = last {
            self.send(self.here, Message::ContinueSources { target, after, hops_left });
        }
        Ok(())
    }

    /// Something changed on the way behind `target`.
    pub(super) fn rerouted(
        &mut self,
        source: PageId,
        target: PageId,
        hops_left: u8,
    ) -> Result<(), StoreError> {
        let Some(mut record) = self.take(source)? else { return Ok(()) };
        let State::Redirect(state) = &record.state else { return self.give_back(source, record) };
        if state.to.id() != target {
            return self.give_back(source, record);
        }
        self.trace(source, &mut record);
        self.put(source, record)?;
        match hops_left.checked_sub(1) {
            Some(left) => self.tell_sources(source, None, left),
            None => Ok(()),
        }
    }

    /// The redirects of `source` end at this page.
    pub(super) fn redirect_attached(&mut self, target: PageId, source: PageId) -> Result<(), StoreError> {
        let key = key::edge(self.here, Kind::InboundRedirect, target, source);
        let known = self.txn.has(&key)?;
        let Some(mut record) = self.take(target)? else { return Ok(()) };
        if !known {
            self.txn.put(key, Vec::new());
            record.inbound_redirects += 1;
            if record.inbound_redirects == 1 {
                self.pin(target, &mut record)?;
            }
        }
        let told = record.content().is_some();
        self.put(target, record)?;
        if let Some(record) = self.txn.page(self.here, target)?.filter(|_| told) {
            let line = target_line(record.url(), &record.published);
            self.send_to_page(source, Message::TargetLine { source, target, line });
        }
        Ok(())
    }

    pub(super) fn redirect_detached(&mut self, target: PageId, source: PageId) -> Result<(), StoreError> {
        let key = key::edge(self.here, Kind::InboundRedirect, target, source);
        if !self.txn.has(&key)? {
            return Ok(());
        }
        self.txn.delete(key);
        let Some(mut record) = self.take(target)? else { return Ok(()) };
        record.inbound_redirects = record.inbound_redirects.saturating_sub(1);
        if record.inbound_redirects == 0 {
            self.refresh_member(target, &mut record, false);
        }
        self.put(target, record)
    }

    /// The first redirect is attached to a page: it needs a group, even alone.
    fn pin(&mut self, page: PageId, record: &mut PageRecord) -> Result<(), StoreError> {
        let Some(state) = record.content() else { return Ok(()) };
        if state.membership.is_some() {
            self.refresh_member(page, record, false);
        } else if state.search != crate::record::SearchState::Pending {
            self.mint(page, record)?;
        }
        Ok(())
    }

    pub(super) fn target_told(
        &mut self,
        source: PageId,
        target: PageId,
        line: TargetLine,
    ) -> Result<(), StoreError> {
        let Some(mut record) = self.take(source)? else { return Ok(()) };
        let State::Redirect(state) = &mut record.state else { return self.give_back(source, record) };
        if state.attached_to() != Some(target) {
            return self.give_back(source, record);
        }
        state.target = Some(line);
        self.put(source, record)
    }
}

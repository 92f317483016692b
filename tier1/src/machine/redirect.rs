//! Redirects: where each one leads, and which redirects are attached to a final target.
//!
//! A redirect finds the end of its chain by a trace. The trace travels from hop to hop, at most 20 of them,
//! and returns. Each page knows its direct redirects. When the page changes, it tells them (`fan_out`). They
//! trace again and tell their own redirects, at most 20 hops far, so the message of a change also dies out in
//! a loop.
//!
//! The page that a target URL *stands for* is chosen in this order:
//! - the page on record with the spelling of the target URL;
//! - the page with the normalised form of that URL;
//! - another page of that form, the first in byte order.
//!
//! Redirects therefore subscribe in the shard of the normalised form, which knows every page of the form. The
//! page with the normalised URL is in that shard, and the other pages report their changes to it
//! ([`Message::SpellingChanged`]). Beside each redirect the shard notes the page that its target stands for.
//! A change *behind* a page concerns only redirects whose targets stand for that page. So a change that
//! travels around a loop tells each redirect only once per turn.
//!
//! Invariant: no change is missed. A redirect subscribes to its target before its trace takes the same path,
//! so a change behind the trace finds the redirect.

mod fan_out;

use doppel_contract::{CROWDED_REDIRECTS, REDIRECT_HOPS_MAX, UnresolvedReason};
use doppel_model::{PageId, PageUrl};

use super::publish::target_state;
use super::{Audience, Effect, Machine, Message, TracePosition};
use crate::rows::key::{self, RowKind};
use crate::rows::record::{PageRecord, Reach, RedirectState, Resolution, State, TargetState, decode, encode};
use crate::storage::store::StoreError;

/// Maximum number of pages of a normalised form that a trace reads. They are the pages with the least ids. If
/// no page has the target's spelling or its normalised form, the target stands for the first of them in byte
/// order.
pub(crate) const SPELLINGS_MAX: usize = 16;

/// Encodes the page that a target of this normalised form stands for. Empty for the normalised page itself,
/// or for no page.
pub(crate) fn target_note(normal: PageId, page: Option<PageId>) -> Vec<u8> {
    page.filter(|page| *page != normal).map_or_else(Vec::new, |page| page.bytes().to_vec())
}

impl Reach {
    /// Selects all direct redirects to a page, because the page itself has changed.
    const ALL: Self = Self { through: None, hops_left: REDIRECT_HOPS_MAX };
}

impl RedirectState {
    /// Returns the page at the end of the chain, if that page has a content.
    pub(crate) fn attached_to(&self) -> Option<PageId> {
        match self.resolution {
            Some(Resolution::Content(page)) => Some(page),
            Some(Resolution::Unresolved(_)) | None => None,
        }
    }
}

impl Machine<'_, '_> {
    /// Makes a page a redirect to `to`, subscribes it to its target, and starts a trace.
    pub(super) fn begin_redirect(&mut self, page: PageId, record: &mut PageRecord, to: PageUrl) {
        let target = to.normal_id();
        record.state =
            State::Redirect(RedirectState { to, stands_for: None, resolution: None, target: None });
        self.send_to_page(target, Message::Subscribe { target, source: page });
        self.trace(page, record);
    }

    /// Sends a trace from a redirect, under a new ticket.
    fn trace(&mut self, source: PageId, record: &mut PageRecord) {
        let State::Redirect(state) = &record.state else { return };
        record.ticket += 1;
        let (normal, as_sent, ticket) = (state.to.normal_id(), state.to.id(), record.ticket);
        let at = TracePosition::Form { normal, as_sent };
        self.send_to_page(normal, Message::Trace { source, ticket, at, path: vec![source] });
    }

    /// Returns whether a page of this shard is on record, that is, known and not purged.
    fn is_on_record(&mut self, page: PageId) -> Result<bool, StoreError> {
        Ok(self.txn.page(self.current_shard, page)?.is_some_and(|record| record.state != State::Purged))
    }

    /// Finds the page that a target URL stands for, in the shard of its normalised form. `asker` is the page
    /// that redirects to the target. The search by byte order skips it, because a redirect to another
    /// spelling of its own URL does not lead to itself.
    fn find_target(
        &mut self,
        normal: PageId,
        as_sent: PageId,
        asker: Option<&PageId>,
    ) -> Result<Option<PageId>, StoreError> {
        if as_sent != normal
            && self.txn.has(&key::edge(self.current_shard, RowKind::Spelling, normal, as_sent))?
        {
            return Ok(Some(as_sent));
        }
        if self.is_on_record(normal)? {
            return Ok(Some(normal));
        }
        let prefix = key::edges(self.current_shard, RowKind::Spelling, normal);
        let mut first: Option<(PageUrl, PageId)> = None;
        for (key, bytes) in self.txn.scan(&prefix, None, SPELLINGS_MAX)? {
            let Some(page) = key::last_page(&key).filter(|page| Some(page) != asker) else { continue };
            let url: PageUrl = decode(&key, &bytes)?;
            if first.as_ref().is_none_or(|(first, _)| url < *first) {
                first = Some((url, page));
            }
        }
        Ok(first.map(|(_, page)| page))
    }

    /// Notes the page that the target of a redirect stands for. The note is empty for the page in normalised
    /// form, or if no page exists.
    fn note_target(
        &mut self,
        normal: PageId,
        source: PageId,
        found: Option<PageId>,
    ) -> Result<(), StoreError> {
        let key = key::edge(self.current_shard, RowKind::Source, normal, source);
        let note = target_note(normal, found);
        // A redirect that has a new target by now has no row.
        if self.txn.raw(&key)?.is_some_and(|noted| noted != note) {
            self.txn.put(key, note);
        }
        Ok(())
    }

    /// Handles [`Message::Trace`]: sends the trace on to the next hop, or back to its source with the result.
    pub(super) fn on_trace(
        &mut self,
        source: PageId,
        ticket: u32,
        at: TracePosition,
        mut path: Vec<PageId>,
    ) -> Result<(), StoreError> {
        let at = match at {
            TracePosition::Page(page) => page,
            TracePosition::Form { normal, as_sent } => {
                let found = self.find_target(normal, as_sent, path.last())?;
                if path.len() == 1 {
                    self.note_target(normal, source, found)?;
                }
                match found {
                    // The normalised page is in this shard.
                    Some(page) if page == normal => page,
                    Some(page) => {
                        let at = TracePosition::Page(page);
                        self.send_to_page(page, Message::Trace { source, ticket, at, path });
                        return Ok(());
                    }
                    None => {
                        let resolution = Resolution::Unresolved(UnresolvedReason::UnknownTarget);
                        let stands_for = path.get(1).copied();
                        self.send_to_page(
                            source,
                            Message::TraceResult { source, ticket, stands_for, resolution },
                        );
                        return Ok(());
                    }
                }
            }
        };
        let record = self.txn.page(self.current_shard, at)?;
        let resolution = match record.map(|record| &record.state) {
            _ if path.contains(&at) => Resolution::Unresolved(UnresolvedReason::Loop),
            Some(State::Content(_)) => Resolution::Content(at),
            Some(State::Dead) => Resolution::Unresolved(UnresolvedReason::DeadTarget),
            Some(State::Purged) | None => Resolution::Unresolved(UnresolvedReason::UnknownTarget),
            Some(State::Redirect(_)) if path.len() >= usize::from(REDIRECT_HOPS_MAX) => {
                Resolution::Unresolved(UnresolvedReason::TooManyHops)
            }
            Some(State::Redirect(state)) => {
                let (normal, as_sent) = (state.to.normal_id(), state.to.id());
                path.push(at);
                let at = TracePosition::Form { normal, as_sent };
                self.send_to_page(normal, Message::Trace { source, ticket, at, path });
                return Ok(());
            }
        };
        let stands_for = path.get(1).copied().or(Some(at));
        self.send_to_page(source, Message::TraceResult { source, ticket, stands_for, resolution });
        Ok(())
    }

    /// Handles [`Message::TraceResult`]: stores the end of the chain, and attaches the redirect to it.
    pub(super) fn on_trace_result(
        &mut self,
        source: PageId,
        ticket: u32,
        stands_for: Option<PageId>,
        resolution: Resolution,
    ) -> Result<(), StoreError> {
        let Some(mut record) = self.take(source)? else { return Ok(()) };
        let current = record.ticket == ticket;
        let State::Redirect(state) = &mut record.state else { return self.give_back(source, record) };
        let is_known = (state.stands_for, state.resolution) == (stands_for, Some(resolution));
        if !current || is_known {
            return self.give_back(source, record);
        }
        let before = state.attached_to();
        state.stands_for = stands_for;
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

    /// Handles [`Message::Subscribe`]: notes a direct redirect.
    pub(super) fn on_subscribe(&mut self, target: PageId, source: PageId) {
        self.txn.put(key::edge(self.current_shard, RowKind::Source, target, source), Vec::new());
    }

    /// Handles [`Message::Unsubscribe`]: removes a direct redirect.
    pub(super) fn on_unsubscribe(&mut self, target: PageId, source: PageId) {
        self.txn.delete(key::edge(self.current_shard, RowKind::Source, target, source));
    }

    /// Tells the direct redirects of a page, and of other pages of its normalised form, that the page has a
    /// new state.
    pub(super) fn reroute_sources(&mut self, url: &PageUrl, is_on_record: bool) -> Result<(), StoreError> {
        let page = url.id();
        if let Some(normalised) = url.normalised() {
            let (normal, url) = (normalised.id(), is_on_record.then(|| url.clone()));
            self.send_to_page(normal, Message::SpellingChanged { normal, page, url });
        }
        self.tell_redirects(page, Audience::Sources, Reach::ALL)
    }

    /// Handles [`Message::SpellingChanged`]: another page of this normalised form has a new state.
    pub(super) fn on_spelling_changed(
        &mut self,
        normal: PageId,
        page: PageId,
        url: Option<&PageUrl>,
    ) -> Result<(), StoreError> {
        let key = key::edge(self.current_shard, RowKind::Spelling, normal, page);
        match url {
            Some(url) => self.txn.put(key, encode(url)?),
            None => self.txn.delete(key),
        }
        self.tell_redirects(normal, Audience::Sources, Reach::ALL)
    }

    /// Handles [`Message::RouteChanged`]: traces the redirect again, and tells its own redirects while hops
    /// are left.
    pub(super) fn on_route_changed(
        &mut self,
        source: PageId,
        target: PageId,
        hops_left: u8,
    ) -> Result<(), StoreError> {
        let Some(mut record) = self.take(source)? else { return Ok(()) };
        let State::Redirect(state) = &record.state else { return self.give_back(source, record) };
        if state.to.normal_id() != target {
            return self.give_back(source, record);
        }
        let normal = record.url().normal_id();
        self.trace(source, &mut record);
        self.put(source, record)?;
        let Some(hops_left) = hops_left.checked_sub(1) else { return Ok(()) };
        let reach = Reach { through: Some(source), hops_left };
        if normal == source {
            return self.tell_redirects(normal, Audience::Sources, reach);
        }
        self.send_to_page(normal, Message::TellSources { target: normal, reach });
        Ok(())
    }

    /// Handles [`Message::AttachRedirect`]: the chain of `source` ends at this page.
    pub(super) fn on_attach_redirect(&mut self, target: PageId, source: PageId) -> Result<(), StoreError> {
        let key = key::edge(self.current_shard, RowKind::InboundRedirect, target, source);
        let was_attached = self.txn.has(&key)?;
        let Some(mut record) = self.take(target)? else { return Ok(()) };
        if !was_attached {
            self.txn.put(key, Vec::new());
            record.inbound_redirects += 1;
            if record.inbound_redirects == CROWDED_REDIRECTS + 1 {
                self.report_crowding(&record, true);
            }
            if record.inbound_redirects == 1 {
                self.ensure_group(target, &mut record)?;
            }
        }
        let has_content = record.content().is_some();
        self.put(target, record)?;
        if let Some(record) = self.txn.page(self.current_shard, target)?.filter(|_| has_content) {
            let state = target_state(record.url(), &record.published);
            self.send_to_page(source, Message::TargetState { source, target, state });
        }
        Ok(())
    }

    /// Handles [`Message::DetachRedirect`]: the chain of `source` no longer ends at this page.
    pub(super) fn on_detach_redirect(&mut self, target: PageId, source: PageId) -> Result<(), StoreError> {
        let key = key::edge(self.current_shard, RowKind::InboundRedirect, target, source);
        if !self.txn.has(&key)? {
            return Ok(());
        }
        self.txn.delete(key);
        let Some(mut record) = self.take(target)? else { return Ok(()) };
        record.inbound_redirects = record.inbound_redirects.saturating_sub(1);
        if record.inbound_redirects == CROWDED_REDIRECTS {
            self.report_crowding(&record, false);
        }
        if record.inbound_redirects == 0 {
            self.refresh_member(target, &mut record, false);
        }
        self.put(target, record)
    }

    /// Reports that a page has more redirects than the limit for a report, or no longer has.
    fn report_crowding(&mut self, record: &PageRecord, begins: bool) {
        // The log must not name a purged page.
        let url = (record.state != State::Purged).then(|| record.url().clone());
        let redirects = record.inbound_redirects;
        self.effects.push(Effect::Crowded { url, redirects, begins });
    }

    /// Makes sure that a page with its first redirect is in a group, even if alone.
    fn ensure_group(&mut self, page: PageId, record: &mut PageRecord) -> Result<(), StoreError> {
        let Some(state) = record.content() else { return Ok(()) };
        if state.membership.is_some() {
            self.refresh_member(page, record, false);
        } else if state.search != crate::rows::record::SearchState::Pending {
            self.mint(page, record)?;
        }
        Ok(())
    }

    /// Handles [`Message::TargetState`]: stores the state of the final target.
    pub(super) fn on_target_state(
        &mut self,
        source: PageId,
        target: PageId,
        target_state: TargetState,
    ) -> Result<(), StoreError> {
        let Some(mut record) = self.take(source)? else { return Ok(()) };
        let State::Redirect(state) = &mut record.state else { return self.give_back(source, record) };
        if state.attached_to() != Some(target) {
            return self.give_back(source, record);
        }
        state.target = Some(target_state);
        self.put(source, record)
    }
}

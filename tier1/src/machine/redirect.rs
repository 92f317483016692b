//! Redirects: where each leads, hop by hop, and which pages hang on a final target.
//!
//! A redirect knows the path from itself to the end of its chain. Word of a change travels from a page
//! to the redirects straight to it. A page that finds itself on the path is in a loop; a path of more
//! than 20 hops is too long and is cut to nothing, so that word of a long loop comes to rest.

use doppel_common::api::Unresolved;
use doppel_common::model::PageId;

use super::publish::target_line;
use super::{Machine, Message, STEP_ROWS};
use crate::key::{self, Kind};
use crate::record::{PageRecord, RedirectState, Resolution, ResolutionOutcome, State, TargetLine};
use crate::store::StoreError;

/// Redirects followed at most (DESIGN: redirect q → t).
const HOPS_MAX: usize = 20;

impl RedirectState {
    /// The page at the end of the chain, when that has a content.
    pub(crate) fn hung_on(&self) -> Option<PageId> {
        self.resolution.as_ref().and_then(Resolution::content_page)
    }
}

impl Resolution {
    fn content_page(&self) -> Option<PageId> {
        match self.outcome {
            ResolutionOutcome::Content => self.path.last().copied(),
            ResolutionOutcome::Unresolved(_) => None,
        }
    }

    /// The resolution of `page`, which redirects to a page with this one.
    fn behind(&self, page: PageId) -> Self {
        let unresolved = |reason, path| Self { outcome: ResolutionOutcome::Unresolved(reason), path };
        if self.path.contains(&page) {
            return unresolved(Unresolved::Loop, vec![page]);
        }
        if self.path.len() > HOPS_MAX || self.outcome == ResolutionOutcome::Unresolved(Unresolved::TooManyHops) {
            return unresolved(Unresolved::TooManyHops, Vec::new());
        }
        let mut path = Vec::with_capacity(self.path.len() + 1);
        path.push(page);
        path.extend_from_slice(&self.path);
        Self { outcome: self.outcome, path }
    }
}

impl Machine<'_, '_> {
    /// Where `page` leads as its own shard knows. A redirect that has no answer yet counts as unknown,
    /// so that pages waiting for each other in a loop find out.
    fn resolution(page: PageId, record: Option<&PageRecord>) -> Resolution {
        let end = |outcome| Resolution { outcome, path: vec![page] };
        match record.map(|record| &record.state) {
            Some(State::Content(_)) => end(ResolutionOutcome::Content),
            Some(State::Redirect(RedirectState { resolution: Some(resolution), .. })) => resolution.clone(),
            Some(State::Dead) => end(ResolutionOutcome::Unresolved(Unresolved::DeadTarget)),
            Some(State::Redirect(_) | State::Purged) | None => {
                end(ResolutionOutcome::Unresolved(Unresolved::UnknownTarget))
            }
        }
    }

    pub(super) fn subscribed(&mut self, target: PageId, source: PageId) -> Result<(), StoreError> {
        self.txn.put(key::edge(self.here, Kind::Source, target, source), Vec::new());
        let record = self.txn.page(self.here, target)?;
        let resolution = Self::resolution(target, record);
        self.send_to_page(source, Message::Resolved { source, target, resolution });
        Ok(())
    }

    pub(super) fn unsubscribed(&mut self, target: PageId, source: PageId) -> Result<(), StoreError> {
        self.txn.delete(key::edge(self.here, Kind::Source, target, source));
        Ok(())
    }

    /// Tells the redirects straight to `target` where it leads, in steps.
    pub(super) fn tell_sources(&mut self, target: PageId, after: Option<PageId>) -> Result<(), StoreError> {
        let sources = self.edges(Kind::Source, target, after)?;
        if sources.is_empty() {
            return Ok(());
        }
        let record = self.txn.page(self.here, target)?;
        let resolution = Self::resolution(target, record);
        let last = sources.last().copied().filter(|_| sources.len() == STEP_ROWS);
        for source in sources {
            self.send_to_page(source, Message::Resolved { source, target, resolution: resolution.clone() });
        }
        if let Some(after) = last {
            self.send(self.here, Message::ContinueSources { target, after });
        }
        Ok(())
    }

    /// The target of a redirect tells where it leads.
    pub(super) fn resolved(
        &mut self,
        source: PageId,
        target: PageId,
        resolution: Resolution,
    ) -> Result<(), StoreError> {
        let Some(mut record) = self.take(source)? else { return Ok(()) };
        let State::Redirect(state) = &mut record.state else { return self.give_back(source, record) };
        let resolution = resolution.behind(source);
        if state.to.id() != target || state.resolution.as_ref() == Some(&resolution) {
            return self.give_back(source, record);
        }
        let before = state.hung_on();
        let now = resolution.content_page();
        state.resolution = Some(resolution);
        if before != now {
            state.target = None;
            if let Some(target) = before {
                self.send_to_page(target, Message::Unhang { target, source });
            }
            if let Some(target) = now {
                self.send_to_page(target, Message::Hang { target, source });
            }
        }
        self.put(source, record)?;
        self.tell_sources(source, None)
    }

    /// The redirects of `source` end at this page.
    pub(super) fn hung(&mut self, target: PageId, source: PageId) -> Result<(), StoreError> {
        let key = key::edge(self.here, Kind::Hanger, target, source);
        let known = self.txn.has(&key)?;
        let Some(mut record) = self.take(target)? else { return Ok(()) };
        if !known {
            self.txn.put(key, Vec::new());
            record.hangers += 1;
            if record.hangers == 1 {
                self.pin(target, &mut record)?;
            }
        }
        let told = record.content().is_some();
        self.put(target, record)?;
        if let Some(record) = self.txn.page(self.here, target)?.filter(|_| told) {
            let line = target_line(&record.published);
            self.send_to_page(source, Message::TargetLine { source, target, line });
        }
        Ok(())
    }

    pub(super) fn unhung(&mut self, target: PageId, source: PageId) -> Result<(), StoreError> {
        let key = key::edge(self.here, Kind::Hanger, target, source);
        if !self.txn.has(&key)? {
            return Ok(());
        }
        self.txn.delete(key);
        let Some(mut record) = self.take(target)? else { return Ok(()) };
        record.hangers = record.hangers.saturating_sub(1);
        if record.hangers == 0 {
            self.refresh_member(target, &record, false);
        }
        self.put(target, record)
    }

    /// The first redirect hangs on a page: it needs a group, even alone.
    fn pin(&mut self, page: PageId, record: &mut PageRecord) -> Result<(), StoreError> {
        let Some(state) = record.content() else { return Ok(()) };
        if state.membership.is_some() {
            self.refresh_member(page, record, false);
        } else if state.look != crate::record::LookState::Pending {
            self.mint(page, record)?;
        }
        Ok(())
    }

    pub(super) fn target_told(&mut self, source: PageId, target: PageId, line: TargetLine) -> Result<(), StoreError> {
        let Some(mut record) = self.take(source)? else { return Ok(()) };
        let State::Redirect(state) = &mut record.state else { return self.give_back(source, record) };
        if state.hung_on() != Some(target) {
            return self.give_back(source, record);
        }
        state.target = Some(line);
        self.put(source, record)
    }
}

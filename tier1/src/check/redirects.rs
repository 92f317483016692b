//! Redirects: their edges at both ends, where their chains end, and what they were told of the target.

use doppel_model::PageId;
use doppel_protocol::{Status, Unresolved};

use super::{Checker, Found, Invariant};
use crate::key::{self, Kind};
use crate::machine::{HOPS_MAX, target_line};
use crate::record::{PageRecord, RedirectState, Resolution, State};

impl Checker<'_> {
    /// A redirect, from its own side.
    pub(super) fn check_redirect(&mut self, page: PageId, record: &PageRecord, state: &RedirectState) {
        let target = state.to.id();
        let edge = key::edge(self.owner(target), Kind::Source, target, page);
        if !self.underway.has_source(target, page) && !self.has(&edge) {
            let detail = format!("redirects to {}, which does not know", state.to);
            self.find(Invariant::Edge, record.url().to_string(), detail);
        }
        if let Some(end) = state.attached_to()
            && !self.underway.has_inbound_redirect(end, page)
        {
            self.check_attached(page, record, state, end);
        }
        match self.resolve(page, state) {
            // Its own trace is under way until there is an answer.
            None => {}
            Some(_) if state.resolution.is_none() => {
                let detail = "has found no end, and nothing looks for it";
                self.find(Invariant::Work, record.url().to_string(), detail);
            }
            Some(end) if state.resolution != Some(end) => {
                let detail = format!("ends at {:?}, and its chain leads to {end:?}", state.resolution);
                self.find(Invariant::Resolution, record.url().to_string(), detail);
            }
            Some(_) => {}
        }
    }

    /// The page that a redirect is attached to knows it, and the redirect its state.
    fn check_attached(&mut self, page: PageId, record: &PageRecord, state: &RedirectState, end: PageId) {
        let url = record.url().to_string();
        if !self.has(&key::edge(self.owner(end), Kind::InboundRedirect, end, page)) {
            let end = self.name(end);
            return self.find(Invariant::Edge, url, format!("ends at {end}, which does not know"));
        }
        let target = match self.record(end) {
            Found::Row(target) => target,
            Found::Missing | Found::Unreadable => return,
        };
        // A target that is no content any more makes its redirects look for another end, and one that is
        // again pending tells them when it is decided.
        if target.content().is_some()
            && target.published.status != Status::Pending
            && !self.underway.is_telling(end)
            && state.target.as_ref() != Some(&target_line(target.url(), &target.published))
        {
            let detail = format!("was told another state of {} than it has", target.url());
            self.find(Invariant::Edge, url, detail);
        }
    }

    /// Where a chain ends; none when something on the way is changing or cannot be read.
    fn resolve(&mut self, page: PageId, state: &RedirectState) -> Option<Resolution> {
        let mut path = vec![page];
        let mut at = state.to.id();
        if self.underway.is_rerouting(page) {
            return None;
        }
        loop {
            if path.contains(&at) {
                return Some(Resolution::Unresolved(Unresolved::Loop));
            }
            if self.underway.is_rerouting(at) {
                return None;
            }
            let unresolved = match self.record(at) {
                Found::Unreadable => return None,
                Found::Missing => Unresolved::UnknownTarget,
                Found::Row(record) => match record.state {
                    State::Content(_) => return Some(Resolution::Content(at)),
                    State::Dead => Unresolved::DeadTarget,
                    State::Purged => Unresolved::UnknownTarget,
                    State::Redirect(_) if path.len() >= usize::from(HOPS_MAX) => Unresolved::TooManyHops,
                    State::Redirect(state) => {
                        path.push(at);
                        at = state.to.id();
                        continue;
                    }
                },
            };
            return Some(Resolution::Unresolved(unresolved));
        }
    }

    /// A redirect that ends at a page, from that page's side.
    pub(super) fn inbound_redirect(&mut self, target: PageId, source: PageId, value: &[u8]) {
        let row = self.edge(target, source);
        self.check_empty(&row, value);
        match self.record(target) {
            Found::Row(record) if record.inbound_redirects == 0 => {
                self.find(Invariant::Edge, &row, "is known to its end, which counts none");
            }
            Found::Missing => self.find(Invariant::Edge, &row, "ends at a page that is not on record"),
            Found::Row(_) | Found::Unreadable => {}
        }
        let ends_there = |state: &RedirectState| state.attached_to() == Some(target);
        if !self.underway.has_inbound_redirect(target, source) && !self.redirects(source, ends_there) {
            self.find(Invariant::Edge, row, "is known to its end and does not end there");
        }
    }

    /// A redirect straight to a page, from that page's side.
    pub(super) fn source(&mut self, target: PageId, source: PageId, value: &[u8]) {
        let row = self.edge(target, source);
        self.check_empty(&row, value);
        let leads_there = |state: &RedirectState| state.to.id() == target;
        if !self.underway.has_source(target, source) && !self.redirects(source, leads_there) {
            self.find(Invariant::Edge, row, "is known to its target and does not lead there");
        }
    }

    fn check_empty(&mut self, row: &str, value: &[u8]) {
        if !value.is_empty() {
            self.find(Invariant::Damage, row, "has a value, and the row of a redirect has none");
        }
    }

    fn redirects(&mut self, page: PageId, there: impl FnOnce(&RedirectState) -> bool) -> bool {
        match self.record(page) {
            Found::Row(PageRecord { state: State::Redirect(state), .. }) => there(&state),
            Found::Row(_) | Found::Missing => false,
            Found::Unreadable => true,
        }
    }
}

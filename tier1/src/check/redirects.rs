//! Redirects: their edges at both ends, where their chains end, and what they were told of the target.

use doppel_contract::{Status, Unresolved};
use doppel_model::{PageId, PageUrl};

use super::rows::RowKey;
use super::{Checker, Found, Invariant};
use crate::key::{self, Kind};
use crate::machine::{Audience, HOPS_MAX, SPELLINGS_MAX, target_note, target_state};
use crate::record::{FanOut, PageRecord, RedirectState, Resolution, State, decode};

impl Checker<'_> {
    /// A redirect, from its own side.
    pub(super) fn check_redirect(&mut self, page: PageId, record: &PageRecord, state: &RedirectState) {
        let target = state.to.normal_id();
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
        self.check_noted_target(page, record, state);
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

    /// The shard of the target's normalised form has noted which page the target stands for.
    fn check_noted_target(&mut self, page: PageId, record: &PageRecord, state: &RedirectState) {
        let normal = state.to.normal_id();
        let edge = key::edge(self.owner(normal), Kind::Source, normal, page);
        if self.underway.is_rerouting(page)
            || self.underway.is_rerouting(normal)
            || self.underway.has_source(normal, page)
        {
            return;
        }
        let Some(found) = self.find_target(&state.to, Some(&page)) else { return };
        if state.resolution.is_some() && state.stands_for != found {
            let detail = format!("leads to {found:?}, and says {:?}", state.stands_for);
            self.find(Invariant::Resolution, record.url().to_string(), detail);
        }
        match self.store.get(&edge) {
            Ok(Some(noted)) if noted != target_note(normal, found) => {
                let detail = "leads to another page than is noted at its target";
                self.find(Invariant::Edge, record.url().to_string(), detail);
            }
            Ok(_) => {}
            Err(error) => self.engine(&error),
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
            && state.target.as_ref() != Some(&target_state(target.url(), &target.published))
        {
            let detail = format!("was told another state of {} than it has", target.url());
            self.find(Invariant::Edge, url, detail);
        }
    }

    /// Where a chain ends; none when something on the way is changing or cannot be read.
    fn resolve(&mut self, page: PageId, state: &RedirectState) -> Option<Resolution> {
        let mut path = vec![page];
        let mut to = state.to.clone();
        if self.underway.is_rerouting(page) {
            return None;
        }
        loop {
            if self.underway.is_rerouting(to.normal_id()) {
                return None;
            }
            let Some(at) = self.find_target(&to, path.last())? else {
                return Some(Resolution::Unresolved(Unresolved::UnknownTarget));
            };
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
                        to = state.to;
                        continue;
                    }
                },
            };
            return Some(Resolution::Unresolved(unresolved));
        }
    }

    /// The page that the target of the redirect `asker` stands for, if there is one; none at all if a row cannot be read.
    fn find_target(&mut self, to: &PageUrl, asker: Option<&PageId>) -> Option<Option<PageId>> {
        let (normal, as_sent) = (to.normal_id(), to.id());
        let shard = self.owner(normal);
        if as_sent != normal && self.has(&key::edge(shard, Kind::Spelling, normal, as_sent)) {
            return Some(Some(as_sent));
        }
        match self.record(normal) {
            Found::Row(record) if record.state != State::Purged => return Some(Some(normal)),
            Found::Row(_) | Found::Missing => {}
            Found::Unreadable => return None,
        }
        let prefix = key::edges(shard, Kind::Spelling, normal);
        let (mut rows, mut first) = (0, None);
        let mut is_readable = true;
        let read = self.store.range(&prefix, &key::after_prefix(&prefix), &mut |key, value| {
            rows += 1;
            match (key::last_page(key), decode::<PageUrl>(key, value)) {
                (Some(page), _) if Some(&page) == asker => {}
                (Some(page), Ok(url)) => {
                    if first.as_ref().is_none_or(|(first, _)| url < *first) {
                        first = Some((url, page));
                    }
                }
                _ => is_readable = false,
            }
            rows < SPELLINGS_MAX
        });
        if let Err(error) = read {
            self.engine(&error);
            return None;
        }
        is_readable.then(|| first.map(|(_, page)| page))
    }

    /// A page that is spelled otherwise than in its normalised form is known to the shard of that.
    pub(super) fn check_spelling(&mut self, page: PageId, record: &PageRecord) {
        let Some(normal) = record.url().normalised().map(|normalised| normalised.id()) else { return };
        let is_known = self.has(&key::edge(self.owner(normal), Kind::Spelling, normal, page));
        if is_known != (record.state != State::Purged) && !self.underway.has_spelling(normal, page) {
            let detail = if is_known {
                "is forgotten, and known by its normalised form"
            } else {
                "is not known by its normalised form"
            };
            self.find(Invariant::Edge, record.url().to_string(), detail);
        }
    }

    /// The same from the side of the normalised form.
    pub(super) fn spelling(&mut self, normal: PageId, page: PageId, key: &[u8], value: &[u8]) {
        let row = format!("the spelling {} of {}", self.name(page), self.name(normal));
        let Some(url) = self.decode::<PageUrl>(key, value, row.clone()) else { return };
        if url.id() != page || url.normal_id() != normal || page == normal {
            return self.find(Invariant::Identity, row, format!("is about {url}"));
        }
        // A page that was forgotten and has a row is found with the page.
        if let Found::Missing = self.record(page)
            && !self.underway.has_spelling(normal, page)
        {
            self.find(Invariant::Edge, row, "is known by its normalised form and not on record");
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
        if !matches!(value.len(), 0 | 16) {
            self.find(Invariant::Damage, &row, "has a value that is no page");
        }
        let leads_there = |state: &RedirectState| state.to.normal_id() == target;
        if !self.underway.has_source(target, source) && !self.redirects(source, leads_there) {
            self.find(Invariant::Edge, row, "is known to its target and does not lead there");
        }
    }

    /// How far the redirects of a page are told: nobody else goes on with that than the message that is on its way.
    pub(super) fn fan_out(&mut self, audience: Audience, target: PageId, key: &[u8], value: &[u8]) {
        let row = self.named(&RowKey::FanOut(audience, target));
        if self.decode::<FanOut>(key, value, row.clone()).is_none() {
            return;
        }
        let goes_on = match audience {
            Audience::Sources => self.underway.is_rerouting(target),
            Audience::InboundRedirects => self.underway.is_telling(target),
        };
        if !goes_on {
            self.find(Invariant::Work, row, "is begun, and nobody goes on with it");
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

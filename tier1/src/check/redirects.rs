//! Checks redirects: the rows at both ends, the ends of their chains, and the recorded states of their
//! targets.

use doppel_contract::{REDIRECT_HOPS_MAX, Status, UnresolvedReason};
use doppel_model::{PageId, PageUrl};

use super::rows::RowKey;
use super::{Checker, Invariant, ReferencedRow};
use crate::machine::{Audience, SPELLINGS_MAX, target_note, target_state};
use crate::rows::key::{self, RowKind};
use crate::rows::record::{FanOut, PageRecord, RedirectState, Resolution, State, decode};

impl Checker<'_> {
    /// Checks the record of a redirect.
    pub(super) fn check_redirect(&mut self, page: PageId, record: &PageRecord, state: &RedirectState) {
        let target = state.to.normal_id();
        let edge = key::edge(self.owner(target), RowKind::Source, target, page);
        if !self.underway.has_source(target, page) && !self.has(&edge) {
            let detail = format!("redirects to {}, which has no row for the redirect", state.to);
            self.add_finding(Invariant::Edge, record.url().to_string(), detail);
        }
        if let Some(end) = state.attached_to()
            && !self.underway.has_inbound_redirect(end, page)
        {
            self.check_attached(page, record, state, end);
        }
        self.check_noted_target(page, record, state);
        match self.resolve(page, state) {
            // A change on the chain is under way, or a row of the chain cannot be read.
            None => {}
            Some(_) if state.resolution.is_none() => {
                let detail = "has not found its end, but no trace is under way";
                self.add_finding(Invariant::Work, record.url().to_string(), detail);
            }
            Some(end) if state.resolution != Some(end) => {
                let detail =
                    format!("records the end {:?}, but its chain leads to {end:?}", state.resolution);
                self.add_finding(Invariant::Resolution, record.url().to_string(), detail);
            }
            Some(_) => {}
        }
    }

    /// Checks that the row in the shard of the target's normalised form notes the page for which the target
    /// stands.
    fn check_noted_target(&mut self, page: PageId, record: &PageRecord, state: &RedirectState) {
        let normal = state.to.normal_id();
        let edge = key::edge(self.owner(normal), RowKind::Source, normal, page);
        if self.underway.is_rerouting(page)
            || self.underway.is_rerouting(normal)
            || self.underway.has_source(normal, page)
        {
            return;
        }
        let Some(found) = self.find_target(&state.to, Some(&page)) else { return };
        if state.resolution.is_some() && state.stands_for != found {
            let detail = format!("leads to the page {found:?}, but records {:?}", state.stands_for);
            self.add_finding(Invariant::Resolution, record.url().to_string(), detail);
        }
        match self.store.get(&edge) {
            Ok(Some(noted)) if noted != target_note(normal, found) => {
                let detail = "leads to another page than its row at the target notes";
                self.add_finding(Invariant::Edge, record.url().to_string(), detail);
            }
            Ok(_) => {}
            Err(error) => self.add_engine_failure(&error),
        }
    }

    /// Checks that the page at the end of a redirect has a row for it, and that the redirect records the
    /// page's state.
    fn check_attached(&mut self, page: PageId, record: &PageRecord, state: &RedirectState, end: PageId) {
        let url = record.url().to_string();
        if !self.has(&key::edge(self.owner(end), RowKind::InboundRedirect, end, page)) {
            let end = self.describe_page(end);
            let detail = format!("ends at {end}, which has no row for the redirect");
            return self.add_finding(Invariant::Edge, url, detail);
        }
        let target = match self.record(end) {
            ReferencedRow::Row(target) => target,
            ReferencedRow::Missing | ReferencedRow::Unreadable => return,
        };
        // If the target is no longer a content page, its redirects trace their ends again. If it is pending
        // again, it tells its redirects when it is decided.
        if target.content().is_some()
            && target.published.status != Status::Pending
            && !self.underway.is_telling(end)
            && state.target.as_ref() != Some(&target_state(target.url(), &target.published))
        {
            let detail = format!("records another state of {} than this page has", target.url());
            self.add_finding(Invariant::Edge, url, detail);
        }
    }

    /// Follows a chain to its end. `None` if a change on the chain is under way, or a row cannot be read.
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
                return Some(Resolution::Unresolved(UnresolvedReason::UnknownTarget));
            };
            if path.contains(&at) {
                return Some(Resolution::Unresolved(UnresolvedReason::Loop));
            }
            if self.underway.is_rerouting(at) {
                return None;
            }
            let unresolved = match self.record(at) {
                ReferencedRow::Unreadable => return None,
                ReferencedRow::Missing => UnresolvedReason::UnknownTarget,
                ReferencedRow::Row(record) => match record.state {
                    State::Content(_) => return Some(Resolution::Content(at)),
                    State::Dead => UnresolvedReason::DeadTarget,
                    State::Purged => UnresolvedReason::UnknownTarget,
                    State::Redirect(_) if path.len() >= usize::from(REDIRECT_HOPS_MAX) => {
                        UnresolvedReason::TooManyHops
                    }
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

    /// Finds the page for which the target URL of the redirect `asker` stands. `Some(None)` if there is no
    /// such page, and `None` if a row cannot be read.
    fn find_target(&mut self, to: &PageUrl, asker: Option<&PageId>) -> Option<Option<PageId>> {
        let (normal, as_sent) = (to.normal_id(), to.id());
        let shard = self.owner(normal);
        if as_sent != normal && self.has(&key::edge(shard, RowKind::Spelling, normal, as_sent)) {
            return Some(Some(as_sent));
        }
        match self.record(normal) {
            ReferencedRow::Row(record) if record.state != State::Purged => return Some(Some(normal)),
            ReferencedRow::Row(_) | ReferencedRow::Missing => {}
            ReferencedRow::Unreadable => return None,
        }
        let prefix = key::edges(shard, RowKind::Spelling, normal);
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
            self.add_engine_failure(&error);
            return None;
        }
        is_readable.then(|| first.map(|(_, page)| page))
    }

    /// Checks that a page whose URL is not in normalised form has a row in the shard of that form.
    pub(super) fn check_spelling(&mut self, page: PageId, record: &PageRecord) {
        let Some(normal) = record.url().normalised().map(|normalised| normalised.id()) else { return };
        let is_known = self.has(&key::edge(self.owner(normal), RowKind::Spelling, normal, page));
        if is_known != (record.state != State::Purged) && !self.underway.has_spelling(normal, page) {
            let detail = if is_known {
                "was purged, but still has a row at its normalised form"
            } else {
                "has no row at its normalised form"
            };
            self.add_finding(Invariant::Edge, record.url().to_string(), detail);
        }
    }

    /// Checks the row of a spelling, which the shard of the normalised form stores.
    pub(super) fn spelling(&mut self, normal: PageId, page: PageId, key: &[u8], value: &[u8]) {
        let row = format!("the spelling {} of {}", self.describe_page(page), self.describe_page(normal));
        let Some(url) = self.decode::<PageUrl>(key, value, row.clone()) else { return };
        if url.id() != page || url.normal_id() != normal || page == normal {
            return self.add_finding(
                Invariant::Identity,
                row,
                format!("names the URL {url}, which is another page"),
            );
        }
        // `check_spelling` reports a purged page that still has such a row.
        if let ReferencedRow::Missing = self.record(page)
            && !self.underway.has_spelling(normal, page)
        {
            self.add_finding(Invariant::Edge, row, "belongs to a page that is not on record");
        }
    }

    /// Checks the row of a redirect at the page where its chain ends.
    pub(super) fn inbound_redirect(&mut self, target: PageId, source: PageId, value: &[u8]) {
        let row = self.describe_redirect(target, source);
        self.check_empty(&row, value);
        match self.record(target) {
            ReferencedRow::Row(record) if record.inbound_redirects == 0 => {
                self.add_finding(Invariant::Edge, &row, "has a row at its end, which counts no redirects");
            }
            ReferencedRow::Missing => {
                self.add_finding(Invariant::Edge, &row, "ends at a page that is not on record");
            }
            ReferencedRow::Row(_) | ReferencedRow::Unreadable => {}
        }
        let ends_there = |state: &RedirectState| state.attached_to() == Some(target);
        if !self.underway.has_inbound_redirect(target, source) && !self.is_redirect(source, ends_there) {
            self.add_finding(Invariant::Edge, row, "has a row at a page where it does not end");
        }
    }

    /// Checks the row of a direct redirect at its target.
    pub(super) fn source(&mut self, target: PageId, source: PageId, value: &[u8]) {
        let row = self.describe_redirect(target, source);
        if !matches!(value.len(), 0 | 16) {
            self.add_finding(Invariant::Damage, &row, "has a value that is not a page id");
        }
        let leads_there = |state: &RedirectState| state.to.normal_id() == target;
        if !self.underway.has_source(target, source) && !self.is_redirect(source, leads_there) {
            self.add_finding(Invariant::Edge, row, "has a row at a page that is not its target");
        }
    }

    /// Checks the progress row of a round that tells the redirects of a page. A message under way must
    /// continue the round.
    pub(super) fn fan_out(&mut self, audience: Audience, target: PageId, key: &[u8], value: &[u8]) {
        let row = self.describe_row(&RowKey::FanOut(audience, target));
        if self.decode::<FanOut>(key, value, row.clone()).is_none() {
            return;
        }
        let is_continued = match audience {
            Audience::Sources => self.underway.is_rerouting(target),
            Audience::InboundRedirects => self.underway.is_telling(target),
        };
        if !is_continued {
            self.add_finding(Invariant::Work, row, "is unfinished, but no message continues it");
        }
    }

    fn check_empty(&mut self, row: &str, value: &[u8]) {
        if !value.is_empty() {
            self.add_finding(Invariant::Damage, row, "has a value, but the row of a redirect must be empty");
        }
    }

    /// Whether a page is a redirect with a state that satisfies `leads_there`. True if its record cannot be
    /// read.
    fn is_redirect(&mut self, page: PageId, leads_there: impl FnOnce(&RedirectState) -> bool) -> bool {
        match self.record(page) {
            ReferencedRow::Row(PageRecord { state: State::Redirect(state), .. }) => leads_there(&state),
            ReferencedRow::Row(_) | ReferencedRow::Missing => false,
            ReferencedRow::Unreadable => true,
        }
    }
}

//! What the messages in the outboxes are about: where rows may still differ.

use std::collections::{HashMap, HashSet};

use doppel_model::{GroupId, PageId};

use crate::machine::{Audience, Message};

/// Targets and sources of redirects.
type Edges = HashSet<(PageId, PageId)>;

/// What is under way.
#[derive(Debug, Default)]
pub(super) struct Underway {
    messages: usize,
    /// Pages whose membership of a group, or a message of it, is under way.
    memberships: HashSet<PageId>,
    /// Groups that a first or later member is on the way to.
    arriving: HashSet<GroupId>,
    /// Groups whose members are told or transferred.
    continuing: HashSet<GroupId>,
    /// Questions and answers of a page under a ticket.
    asked: HashMap<(PageId, u32), u32>,
    /// Redirects that find their end anew, and pages that tell theirs to do so.
    rerouting: HashSet<PageId>,
    /// Redirects about to be known, or forgotten, at the page they lead straight to.
    sources: Edges,
    /// Pages about to be known, or forgotten, to the shard of their normalised form.
    spellings: Edges,
    /// Redirects at the page they end at, or about to be told its state.
    attached: Edges,
    /// Pages that tell the redirects that end there.
    telling: HashSet<PageId>,
}

impl Underway {
    pub(super) fn add(&mut self, message: &Message) {
        self.messages += 1;
        match message {
            Message::AskGroup { page, ticket, .. } | Message::AnswerGroup { page, ticket, .. } => {
                *self.asked.entry((*page, *ticket)).or_default() += 1;
            }
            Message::Enroll { group, page, .. } => {
                self.memberships.insert(*page);
                self.arriving.insert(*group);
            }
            Message::ResolveForward { page, .. }
            | Message::ForwardResolved { page, .. }
            | Message::ReleaseForward { page, .. }
            | Message::EnrollRefused { page, .. }
            | Message::Leave { page, .. }
            | Message::Assign { page, .. }
            | Message::Dissimilar { page, .. }
            | Message::Cover { page, .. }
            | Message::Evict { page, .. } => drop(self.memberships.insert(*page)),
            Message::TransferMembers { into, transfer } => {
                self.memberships.extend(transfer.members.iter().map(|(page, _)| *page));
                self.arriving.insert(*into);
            }
            Message::Continue { group } => drop(self.continuing.insert(*group)),
            // Nothing has changed yet.
            Message::Merge { .. } | Message::SearchAgain { .. } => {}
            Message::Subscribe { target, source } | Message::Unsubscribe { target, source } => {
                self.sources.insert((*target, *source));
            }
            Message::SpellingChanged { normal, page, .. } => {
                self.rerouting.insert(*normal);
                self.spellings.insert((*normal, *page));
            }
            Message::Trace { source, .. }
            | Message::TraceResult { source, .. }
            | Message::RouteChanged { source, .. } => drop(self.rerouting.insert(*source)),
            Message::TellSources { target, .. }
            | Message::ContinueTelling { target, audience: Audience::Sources } => {
                self.rerouting.insert(*target);
            }
            Message::AttachRedirect { target, source }
            | Message::DetachRedirect { target, source }
            | Message::TargetState { target, source, .. } => drop(self.attached.insert((*target, *source))),
            Message::ContinueTelling { target, audience: Audience::InboundRedirects } => {
                self.telling.insert(*target);
            }
        }
    }

    pub(super) fn messages(&self) -> usize {
        self.messages
    }

    pub(super) fn is_moving(&self, page: PageId) -> bool {
        self.memberships.contains(&page)
    }

    pub(super) fn has_arrivals(&self, group: GroupId) -> bool {
        self.arriving.contains(&group)
    }

    pub(super) fn is_continuing(&self, group: GroupId) -> bool {
        self.continuing.contains(&group)
    }

    pub(super) fn asked(&self, page: PageId, ticket: u32) -> u32 {
        self.asked.get(&(page, ticket)).copied().unwrap_or_default()
    }

    pub(super) fn is_rerouting(&self, page: PageId) -> bool {
        self.rerouting.contains(&page)
    }

    pub(super) fn has_source(&self, target: PageId, source: PageId) -> bool {
        self.sources.contains(&(target, source))
    }

    pub(super) fn has_spelling(&self, normal: PageId, page: PageId) -> bool {
        self.spellings.contains(&(normal, page))
    }

    pub(super) fn has_inbound_redirect(&self, target: PageId, source: PageId) -> bool {
        self.attached.contains(&(target, source))
    }

    pub(super) fn is_telling(&self, page: PageId) -> bool {
        self.telling.contains(&page)
    }
}

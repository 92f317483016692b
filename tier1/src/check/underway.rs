//! The work that messages in the outboxes make pending. Rows that this work concerns may still disagree.

use std::collections::{HashMap, HashSet};

use doppel_model::{GroupId, PageId};

use crate::machine::{Audience, Message};

/// Pairs of a target and a source.
type Edges = HashSet<(PageId, PageId)>;

/// Pages, groups, and redirects that messages under way concern.
#[derive(Debug, Default)]
pub(super) struct UnderwayWork {
    /// Number of messages.
    messages: usize,
    /// Pages with a message about their membership.
    memberships: HashSet<PageId>,
    /// Groups to which members are under way.
    arriving: HashSet<GroupId>,
    /// Groups with a message that continues an election, an announcement, or a transfer.
    continuing: HashSet<GroupId>,
    /// Number of questions and answers of a page's search, by page and ticket.
    partner_messages: HashMap<(PageId, u32), u32>,
    /// Redirects that trace their end, and pages that make their redirects do so.
    rerouting: HashSet<PageId>,
    /// Redirects whose row at their direct target is about to be added or removed.
    sources: Edges,
    /// Pages whose row at their normalised form is about to be added or removed.
    spellings: Edges,
    /// Redirects whose row at their end, or whose copy of the end's state, is about to change.
    attached: Edges,
    /// Pages that tell their state to the redirects that end at them.
    telling: HashSet<PageId>,
}

impl UnderwayWork {
    /// Records the pages and groups that a message concerns.
    pub(super) fn add(&mut self, message: &Message) {
        self.messages += 1;
        match message {
            Message::AskGroup { page, ticket, .. } | Message::AnswerGroup { page, ticket, .. } => {
                *self.partner_messages.entry((*page, *ticket)).or_default() += 1;
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
            // No row has changed yet.
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

    pub(super) fn partner_messages(&self, page: PageId, ticket: u32) -> u32 {
        self.partner_messages.get(&(page, ticket)).copied().unwrap_or_default()
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

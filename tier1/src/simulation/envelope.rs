//! A message between shards as the network sees it, and what a bad network can do to it.

use std::fmt;

use doppel_model::{ContentHash, GroupId, PageId, ShardId};

use crate::machine::{Envelope as StoredEnvelope, Message, Transfer, TransferEnd};
use crate::record::{LinkedPage, Member};

/// An envelope, and whether its sender's store has it.
#[derive(Clone, PartialEq)]
pub struct Envelope {
    envelope: StoredEnvelope,
    stored: bool,
}

/// What an envelope is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    Ask,
    Answer,
    Enroll,
    Leave,
    Assign,
    Dissimilar,
    Cover,
    Evict,
    Merge,
    TransferMembers,
    SearchAgain,
    Rerouted,
    Spelled,
    Traced,
    AttachRedirect,
    DetachRedirect,
    TargetLine,
    Other,
}

impl Envelope {
    pub(super) fn new((envelope, stored): (StoredEnvelope, bool)) -> Self {
        Self { envelope, stored }
    }

    pub(super) fn into_inner(self) -> (StoredEnvelope, bool) {
        (self.envelope, self.stored)
    }

    #[must_use]
    pub fn from(&self) -> ShardId {
        self.envelope.from
    }

    #[must_use]
    pub fn to(&self) -> ShardId {
        self.envelope.to
    }

    #[must_use]
    pub fn number(&self) -> u64 {
        self.envelope.number
    }

    #[must_use]
    pub fn kind(&self) -> Kind {
        match &self.envelope.message {
            Message::AskGroup { .. } => Kind::Ask,
            Message::AnswerGroup { .. } => Kind::Answer,
            Message::Enroll { .. } => Kind::Enroll,
            Message::Leave { .. } => Kind::Leave,
            Message::Assign { .. } => Kind::Assign,
            Message::Dissimilar { .. } => Kind::Dissimilar,
            Message::Cover { .. } => Kind::Cover,
            Message::Evict { .. } => Kind::Evict,
            Message::Merge { .. } => Kind::Merge,
            Message::TransferMembers { .. } => Kind::TransferMembers,
            Message::SearchAgain { .. } => Kind::SearchAgain,
            Message::RouteChanged { .. } => Kind::Rerouted,
            Message::SpellingChanged { .. } => Kind::Spelled,
            Message::TraceResult { .. } => Kind::Traced,
            Message::AttachRedirect { .. } => Kind::AttachRedirect,
            Message::DetachRedirect { .. } => Kind::DetachRedirect,
            Message::TargetState { .. } => Kind::TargetLine,
            _ => Kind::Other,
        }
    }

    /// Makes it say nothing, so that it is delivered and its number used up without effect.
    pub fn silence(&mut self) {
        let nobody = GroupId::new((1 << 48) - 1, self.envelope.to);
        self.envelope.message = Message::Continue { group: nobody };
    }

    /// The page, membership number and content of an enrolment.
    #[must_use]
    pub fn enrolled(&self) -> Option<(PageId, u32, ContentHash)> {
        match &self.envelope.message {
            Message::Enroll { page, member, .. } => Some((*page, member.membership_number, member.content)),
            _ => None,
        }
    }

    /// Gives an enrolment another content.
    pub fn set_enrolled_content(&mut self, to: ContentHash) {
        if let Message::Enroll { member, .. } = &mut self.envelope.message {
            member.content = to;
        }
    }

    /// The page that a `Leave` or `Evict` is about.
    #[must_use]
    pub fn leaver(&self) -> Option<PageId> {
        match &self.envelope.message {
            Message::Leave { page, .. } | Message::Evict { page, .. } => Some(*page),
            _ => None,
        }
    }

    /// The member and the winner that an `Assign` names.
    #[must_use]
    pub fn assigned(&self) -> Option<(PageId, PageId)> {
        match &self.envelope.message {
            Message::Assign { page, winner, .. } => Some((*page, winner.page)),
            _ => None,
        }
    }

    /// The pair on which it joins two groups.
    #[must_use]
    pub fn pair(&self) -> Option<(PageId, PageId)> {
        match &self.envelope.message {
            Message::Merge { evidence, .. }
            | Message::TransferMembers {
                transfer: Transfer { done: Some(TransferEnd { evidence, .. }), .. },
                ..
            } => Some((evidence.page.page, evidence.partner.page)),
            _ => None,
        }
    }

    /// Names a pair for two groups that holds in any case: of a member that comes along, and itself.
    pub fn vouch(&mut self) {
        if let Message::TransferMembers { transfer, .. } = &mut self.envelope.message
            && let Transfer { members, done: Some(TransferEnd { evidence, .. }), .. } = transfer
            && let Some((page, Member { membership_number, content, .. })) = members.first()
        {
            evidence.page =
                LinkedPage { page: *page, membership_number: *membership_number, content: *content };
            evidence.partner = evidence.page;
        }
    }

    /// Takes a member out of a transfer; false when it has none.
    pub fn drop_transferred(&mut self) -> bool {
        match &mut self.envelope.message {
            Message::TransferMembers { transfer, .. } => transfer.members.pop().is_some(),
            _ => false,
        }
    }
}

impl fmt::Debug for Envelope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let StoredEnvelope { from, to, number, message } = &self.envelope;
        write!(f, "{}→{} #{number} {message:?}", from.0, to.0)
    }
}

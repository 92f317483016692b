//! A message between shards, as the simulated network sees it, and the ways in which a bad network changes
//! it.

use std::fmt;

use doppel_model::{ContentHash, GroupId, PageId, ShardId};

use crate::machine::{Envelope as StoredEnvelope, Message, Transfer, TransferEnd};
use crate::rows::record::{LinkedPage, Member};

/// A numbered message under way from one shard to another.
#[derive(Clone, PartialEq)]
pub struct Envelope {
    envelope: StoredEnvelope,
    /// Whether the store of the sender has a row for the message.
    stored: bool,
}

/// Fields of an enrolment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SimEnrolment {
    pub page: PageId,
    pub membership_number: u32,
    pub content: ContentHash,
}

/// Kind of the message in an envelope. The names are those of the machine's messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MessageKind {
    AskGroup,
    AnswerGroup,
    Enroll,
    Leave,
    Assign,
    Dissimilar,
    Cover,
    Evict,
    Merge,
    TransferMembers,
    SearchAgain,
    RouteChanged,
    SpellingChanged,
    TraceResult,
    AttachRedirect,
    DetachRedirect,
    TargetState,
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
    pub fn kind(&self) -> MessageKind {
        match &self.envelope.message {
            Message::AskGroup { .. } => MessageKind::AskGroup,
            Message::AnswerGroup { .. } => MessageKind::AnswerGroup,
            Message::Enroll { .. } => MessageKind::Enroll,
            Message::Leave { .. } => MessageKind::Leave,
            Message::Assign { .. } => MessageKind::Assign,
            Message::Dissimilar { .. } => MessageKind::Dissimilar,
            Message::Cover { .. } => MessageKind::Cover,
            Message::Evict { .. } => MessageKind::Evict,
            Message::Merge { .. } => MessageKind::Merge,
            Message::TransferMembers { .. } => MessageKind::TransferMembers,
            Message::SearchAgain { .. } => MessageKind::SearchAgain,
            Message::RouteChanged { .. } => MessageKind::RouteChanged,
            Message::SpellingChanged { .. } => MessageKind::SpellingChanged,
            Message::TraceResult { .. } => MessageKind::TraceResult,
            Message::AttachRedirect { .. } => MessageKind::AttachRedirect,
            Message::DetachRedirect { .. } => MessageKind::DetachRedirect,
            Message::TargetState { .. } => MessageKind::TargetState,
            _ => MessageKind::Other,
        }
    }

    /// Replaces the message by one without effect. The envelope still uses up its number.
    pub fn silence(&mut self) {
        let no_group = GroupId::new((1 << 48) - 1, self.envelope.to);
        self.envelope.message = Message::Continue { group: no_group };
    }

    /// The fields of an `Enroll` message.
    #[must_use]
    pub fn enrolment(&self) -> Option<SimEnrolment> {
        match &self.envelope.message {
            Message::Enroll { page, member, .. } => Some(SimEnrolment {
                page: *page,
                membership_number: member.membership_number,
                content: member.content,
            }),
            _ => None,
        }
    }

    /// Replaces the content of an `Enroll` message.
    pub fn set_enrolled_content(&mut self, to: ContentHash) {
        if let Message::Enroll { member, .. } = &mut self.envelope.message {
            member.content = to;
        }
    }

    /// The page of a `Leave` or `Evict` message.
    #[must_use]
    pub fn leaving_page(&self) -> Option<PageId> {
        match &self.envelope.message {
            Message::Leave { page, .. } | Message::Evict { page, .. } => Some(*page),
            _ => None,
        }
    }

    /// The member and the winner of an `Assign` message.
    #[must_use]
    pub fn assignment(&self) -> Option<(PageId, PageId)> {
        match &self.envelope.message {
            Message::Assign { page, winner, .. } => Some((*page, winner.page)),
            _ => None,
        }
    }

    /// The pair that justifies a merge.
    #[must_use]
    pub fn evidence_pair(&self) -> Option<(PageId, PageId)> {
        match &self.envelope.message {
            Message::Merge { evidence, .. }
            | Message::TransferMembers {
                transfer: Transfer { done: Some(TransferEnd { evidence, .. }), .. },
                ..
            } => Some((evidence.page.page, evidence.partner.page)),
            _ => None,
        }
    }

    /// Replaces the pair of a completed transfer by a member and itself, a pair that always holds.
    pub fn forge_evidence(&mut self) {
        if let Message::TransferMembers { transfer, .. } = &mut self.envelope.message
            && let Transfer { members, done: Some(TransferEnd { evidence, .. }), .. } = transfer
            && let Some((page, Member { membership_number, content, .. })) = members.first()
        {
            evidence.page =
                LinkedPage { page: *page, membership_number: *membership_number, content: *content };
            evidence.partner = evidence.page;
        }
    }

    /// Removes a member from a transfer. Returns whether the transfer had one.
    pub fn drop_transferred_member(&mut self) -> bool {
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

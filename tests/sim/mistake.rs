//! Mistakes that are planted around the product: in the network, the stores, the commands and the clock. They
//! prove that the checks detect each of them.

use std::collections::{BTreeMap, HashMap, HashSet};

use doppel_contract::WinnerRule;
use doppel_model::{ContentHash, GroupId, PageId};
use doppel_protocol::{IndexCommand, WinnerOrder};
use doppel_tier1::simulation::{
    Command, Effect, Envelope, Forgotten, MessageKind, SimEnrolment, forget_contents, is_feed_row,
    is_outbox_row, is_signature_row, redirect_forward,
};

use doppel_tier1::{Rules, Write};

use super::random::Random;

/// A kind of planted mistake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mistake {
    /// A batch is compared with the index before any of it is stored.
    CompareBeforeStore,
    /// The store reports a commit as durable before it is.
    AcknowledgeBeforeFlush,
    /// The verdict of a comparison with the winner counts although the page has another content by now.
    VerdictOnOldContent,
    /// An answer of tier 2 counts although the page has another content by now.
    AnswerOnOldContent,
    /// An answer of tier 2 counts although the page was asked about again.
    AnswerForOldTicket,
    /// An answer of tier 2 omits a partner.
    PairNotReported,
    /// A group merges into a group with a larger id.
    MergeIntoLarger,
    /// The message that merges two groups is lost.
    LostMerge,
    /// Groups stay merged although the pair that linked them no longer exists.
    PairNotChecked,
    /// A merged group loses a member during the transfer.
    LostMember,
    /// A redirect is not told that its target changed.
    ForgottenRedirect,
    /// The shard of a normalised URL is not told of a page with another spelling of that URL.
    LostSpelling,
    /// The owner of a group does not count new contents.
    ContentsNotCounted,
    /// A page is not told that a redirect ends at it.
    LostInboundRedirect,
    /// Members are not told of a new winner.
    WinnerKept,
    /// Winners are elected by the collection's rules in reverse order.
    OtherOrder,
    /// A dead page stays in its group.
    DeadMemberKept,
    /// A page that changed groups also stays in the old group.
    LostLeave,
    /// A page is not told that it was evicted.
    LostEviction,
    /// A row of the outbox is not written.
    LostOutboxEntry,
    /// A message is applied twice.
    AppliedTwice,
    /// A message leaves before its commit is settled.
    SentBeforeSettled,
    /// The outbox row of a message is deleted before the receiver has confirmed the message.
    DeletedBeforeConfirmed,
    /// A message is applied although an earlier message is missing.
    GapAccepted,
    /// A page that its representative confirmed never gets its deferred search.
    ConfirmedNeverSearched,
    /// A comparison or recomputation counts as done although a range did not answer.
    UnreadTakenForDone,
    /// A group that lost or changed a member is never recomputed.
    DirtyNeverRecomputed,
    /// A start does not find the work that the rows owe.
    OwedForgotten,
    /// The index removes the old content before it stores the new one.
    RemovalBeforeStore,
    /// An order to the index is lost.
    LostOrder,
    /// A new content counts as confirmed although it is not near its representative.
    HintNotChecked,
    /// The owner of a group is not told of a member's new content.
    RefreshWithoutContent,
    /// The owner of a group is not told whether a member is near the winner.
    LostDissimilar,
    /// An event stays in the feed after a newer event of the same page.
    EventNotSuperseded,
    /// The signature of a page without content stays.
    SignatureKept,
    /// Changes to a partition during its copy are not copied again.
    LostCatchUp,
    /// An index entry names a center that no search has reported as its partner.
    FalseCenter,
    /// An index node acknowledges a removal and does not carry it out.
    LostRemoval,
    /// An index node answers after its start before it was told which contents it must have.
    AnsweredUnfed,
    /// A snapshot of the index names a moment whose orders are not all carried out.
    HastySnapshot,
    /// A range that died alone numbers its orders to the index from 1 again.
    OrdersCountedAnew,
    /// After a start, a search runs under the ticket of an earlier search, and answers to the earlier one
    /// arrive, too.
    TicketUsedTwice,
    /// The clock of a coordinator dates an old version as new.
    OldVersionAsNew,
    /// The status table is not told of a commit.
    UnheardByStatusTable,
    /// Rows that were read before a commit enter the status table after the commit.
    OldRowsInStatusTable,
    /// A start loads a snapshot of the status table without the later writes.
    StatusesOfBefore,
    /// The cover of a group stays although a member that differs from the winner has a new content.
    CoverKeptOnChange,
    /// The cover stays although a member that differs from the winner has left.
    CoverKeptOnDeath,
    /// The cover stays although the order of such members has changed.
    CoverKeptOnOrder,
    /// The cover stays although the group has split.
    CoverKeptOnParting,
    /// A member is not told which page covers it.
    LostCover,
    /// A standby applies a record of a deposed owner that does not count.
    VoidRecordCounts,
    /// An owner makes its next append before it knows the result of the last one.
    TwoAppendsUnderWay,
    /// An owner stores rows before their record is in the log.
    StoredBeforeLog,
    /// A replica writes its position to disk before its rows.
    PositionBeforeRows,
    /// An owner treats a commit as settled before a standby has it, over a log that may lose it.
    SettledBeforeStandby,
    /// A range forgets that a sync of its files failed.
    ForgottenFailedSync,
    /// A short write counts as complete.
    ShortWriteTakenForWhole,
    /// A range forgets that a write to its files failed.
    ForgottenFailedWrite,
}

impl Mistake {
    pub(crate) const ALL: [Self; 59] = [
        Self::CompareBeforeStore,
        Self::AcknowledgeBeforeFlush,
        Self::VerdictOnOldContent,
        Self::AnswerOnOldContent,
        Self::AnswerForOldTicket,
        Self::PairNotReported,
        Self::MergeIntoLarger,
        Self::LostMerge,
        Self::PairNotChecked,
        Self::LostMember,
        Self::ForgottenRedirect,
        Self::LostSpelling,
        Self::ContentsNotCounted,
        Self::LostInboundRedirect,
        Self::WinnerKept,
        Self::OtherOrder,
        Self::DeadMemberKept,
        Self::LostLeave,
        Self::LostEviction,
        Self::LostOutboxEntry,
        Self::AppliedTwice,
        Self::SentBeforeSettled,
        Self::DeletedBeforeConfirmed,
        Self::GapAccepted,
        Self::ConfirmedNeverSearched,
        Self::UnreadTakenForDone,
        Self::DirtyNeverRecomputed,
        Self::OwedForgotten,
        Self::RemovalBeforeStore,
        Self::LostOrder,
        Self::HintNotChecked,
        Self::RefreshWithoutContent,
        Self::LostDissimilar,
        Self::EventNotSuperseded,
        Self::SignatureKept,
        Self::LostCatchUp,
        Self::FalseCenter,
        Self::LostRemoval,
        Self::AnsweredUnfed,
        Self::HastySnapshot,
        Self::OrdersCountedAnew,
        Self::TicketUsedTwice,
        Self::OldVersionAsNew,
        Self::UnheardByStatusTable,
        Self::OldRowsInStatusTable,
        Self::StatusesOfBefore,
        Self::CoverKeptOnChange,
        Self::CoverKeptOnDeath,
        Self::CoverKeptOnOrder,
        Self::CoverKeptOnParting,
        Self::LostCover,
        Self::VoidRecordCounts,
        Self::TwoAppendsUnderWay,
        Self::StoredBeforeLog,
        Self::PositionBeforeRows,
        Self::SettledBeforeStandby,
        Self::ForgottenFailedSync,
        Self::ShortWriteTakenForWhole,
        Self::ForgottenFailedWrite,
    ];
}

/// Makes one kind of mistake repeatedly, and no other.
#[derive(Debug)]
pub(crate) struct PlantedMistake {
    mistake: Option<Mistake>,
    random: Random,
    /// Content with which each page enrolled first, by membership number.
    enrolled: HashMap<(PageId, u32), ContentHash>,
    /// Winner that each member was told first.
    told: HashMap<PageId, PageId>,
    /// First comparison of each member with a winner.
    compared: HashMap<PageId, Command>,
    /// For each group, the members that differed from the winner when its cover was last found.
    covers: HashMap<GroupId, BTreeMap<PageId, ContentHash>>,
    /// Pages that were evicted from a group.
    evicted: HashSet<PageId>,
}

impl PlantedMistake {
    pub(crate) fn new(mistake: Option<Mistake>, seed: u64) -> Self {
        let random = Random::new(!seed);
        Self {
            mistake,
            random,
            enrolled: HashMap::new(),
            told: HashMap::new(),
            compared: HashMap::new(),
            covers: HashMap::new(),
            evicted: HashSet::new(),
        }
    }

    pub(crate) fn is(&self, mistake: Mistake) -> bool {
        self.mistake == Some(mistake)
    }

    /// Whether this is the planted mistake, and chance says to make it this time.
    pub(crate) fn now(&mut self, mistake: Mistake) -> bool {
        self.is(mistake) && self.random.once_in(3)
    }

    pub(crate) fn rules(&self) -> Rules {
        Rules {
            deferred_searches: !self.is(Mistake::ConfirmedNeverSearched),
            recomputation: !self.is(Mistake::DirtyNeverRecomputed),
        }
    }

    /// The winner order of a collection with these rules.
    pub(crate) fn winners(&self, rules: &[WinnerRule]) -> WinnerOrder {
        let mut rules = rules.to_vec();
        if self.is(Mistake::OtherOrder) {
            rules.reverse();
        }
        WinnerOrder::new(&rules).expect("different rules")
    }

    /// Number of commits per flush. `None` if every commit is flushed.
    pub(crate) fn lazy(&self) -> Option<usize> {
        self.is(Mistake::AcknowledgeBeforeFlush).then_some(8)
    }

    /// Kind of file failure that a range forgets.
    pub(crate) fn forgotten(&self) -> Option<Forgotten> {
        match self.mistake? {
            Mistake::ForgottenFailedSync => Some(Forgotten::Sync),
            Mistake::ShortWriteTakenForWhole => Some(Forgotten::ShortWrite),
            Mistake::ForgottenFailedWrite => Some(Forgotten::Write),
            _ => None,
        }
    }

    /// Whether ranges may have files that fail. Other mistakes are found without failing files.
    pub(crate) fn has_files(&self) -> bool {
        self.mistake.is_none() || self.forgotten().is_some()
    }

    /// Tampers with an envelope that was just written. `dead` tells whether a page is dead.
    pub(crate) fn envelope(&mut self, envelope: &mut Envelope, dead: impl Fn(PageId) -> bool) {
        let Some(mistake) = self.mistake else { return };
        let lost = match mistake {
            Mistake::LostMerge => envelope.kind() == MessageKind::Merge,
            Mistake::ForgottenRedirect => envelope.kind() == MessageKind::RouteChanged,
            Mistake::LostSpelling => envelope.kind() == MessageKind::SpellingChanged,
            Mistake::LostInboundRedirect => envelope.kind() == MessageKind::AttachRedirect,
            Mistake::LostEviction => envelope.kind() == MessageKind::Evict,
            Mistake::LostDissimilar => envelope.kind() == MessageKind::Dissimilar,
            Mistake::LostCover => envelope.kind() == MessageKind::Cover,
            Mistake::LostLeave => {
                envelope.kind() == MessageKind::Leave
                    && envelope.leaving_page().is_some_and(|page| !dead(page))
            }
            Mistake::DeadMemberKept => {
                envelope.kind() == MessageKind::Leave && envelope.leaving_page().is_some_and(dead)
            }
            Mistake::WinnerKept => envelope
                .assignment()
                .is_some_and(|(page, winner)| *self.told.entry(page).or_insert(winner) != winner),
            _ => false,
        };
        if envelope.kind() == MessageKind::Evict {
            self.evicted.extend(envelope.leaving_page());
        }
        if lost && self.now(mistake) {
            envelope.silence();
        }
        match mistake {
            Mistake::PairNotChecked => envelope.forge_evidence(),
            Mistake::LostMember if self.random.once_in(3) => drop(envelope.drop_transferred_member()),
            Mistake::RefreshWithoutContent => {
                if let Some(SimEnrolment { page, membership_number, content }) = envelope.enrolment() {
                    envelope.set_enrolled_content(
                        *self.enrolled.entry((page, membership_number)).or_insert(content),
                    );
                }
            }
            _ => {}
        }
    }

    /// Whether [`PlantedMistake::cover`] has an effect.
    pub(crate) fn keeps_covers(&self) -> bool {
        use Mistake::{CoverKeptOnChange, CoverKeptOnDeath, CoverKeptOnOrder, CoverKeptOnParting};
        [CoverKeptOnChange, CoverKeptOnDeath, CoverKeptOnOrder, CoverKeptOnParting]
            .into_iter()
            .any(|m| self.is(m))
    }

    /// Replaces the cover that was found for a group. The map holds the members that differ from the winner.
    pub(crate) fn cover(
        &mut self,
        group: GroupId,
        members: BTreeMap<PageId, ContentHash>,
        found: Vec<Command>,
    ) -> Vec<Command> {
        let why = self.covers.get(&group).and_then(|before| self.change(before, &members));
        self.covers.insert(group, members);
        if why.is_some_and(|why| self.is(why)) {
            found.into_iter().map(Command::without_cover_changes).collect()
        } else {
            found
        }
    }

    /// Which mistake keeps the old cover after this change of a group's members. `None` if members only
    /// joined.
    fn change(
        &self,
        before: &BTreeMap<PageId, ContentHash>,
        members: &BTreeMap<PageId, ContentHash>,
    ) -> Option<Mistake> {
        let changed =
            before.iter().any(|(page, content)| members.get(page).is_some_and(|now| now != content));
        let mut gone = before.keys().filter(|page| !members.contains_key(page)).peekable();
        if changed {
            Some(Mistake::CoverKeptOnChange)
        } else if gone.peek().is_some() {
            let parted = gone.any(|page| self.evicted.contains(page));
            Some(if parted { Mistake::CoverKeptOnParting } else { Mistake::CoverKeptOnDeath })
        } else {
            (before == members).then_some(Mistake::CoverKeptOnOrder)
        }
    }

    /// Replaces the comparison of a member with its winner by the first one, whatever the contents are by
    /// now.
    pub(crate) fn verdict(&mut self, page: PageId, command: Command) -> Command {
        self.compared.entry(page).or_insert(command).clone()
    }

    /// Tampers with the rows of a commit. `groups` returns the ids of groups in use.
    pub(crate) fn writes(&mut self, writes: &mut Vec<Write>, groups: impl Fn() -> Vec<GroupId>) {
        match self.mistake {
            Some(Mistake::LostOutboxEntry) => {
                writes.retain(|(key, value)| {
                    !(is_outbox_row(key) && value.is_some() && self.random.once_in(3))
                });
            }
            Some(Mistake::EventNotSuperseded) => {
                writes
                    .retain(|(key, value)| !(is_feed_row(key) && value.is_none() && self.random.once_in(3)));
            }
            Some(Mistake::SignatureKept) => {
                writes.retain(|(key, value)| {
                    !(is_signature_row(key) && value.is_none() && self.random.once_in(3))
                });
            }
            Some(Mistake::ContentsNotCounted) => {
                for (key, value) in writes.iter_mut() {
                    let forgotten = value.as_ref().and_then(|value| forget_contents(key, value).unwrap());
                    *value = forgotten.or(value.take());
                }
            }
            Some(Mistake::MergeIntoLarger) => {
                for (key, value) in writes.iter_mut() {
                    let larger = |group| groups().into_iter().find(|other| *other > group);
                    let other =
                        value.as_ref().and_then(|value| redirect_forward(key, value, larger).unwrap());
                    *value = other.or(value.take());
                }
            }
            _ => {}
        }
    }

    /// Tampers with the effects of a commit.
    pub(crate) fn effects(&mut self, effects: &mut Vec<Effect>) {
        let is_order = |effect: &Effect| {
            matches!(
                effect,
                Effect::Index(IndexCommand::Put { search: None, .. } | IndexCommand::Remove { .. })
            )
        };
        if self.is(Mistake::LostOrder) {
            effects.retain(|effect| !(is_order(effect) && self.random.once_in(3)));
        }
        if self.is(Mistake::RemovalBeforeStore) {
            for at in 1..effects.len() {
                let (before, after) = (&effects[at - 1], &effects[at]);
                if let (
                    Effect::Index(IndexCommand::Put { page, .. }),
                    Effect::Index(IndexCommand::Remove { page: p, .. }),
                ) = (before, after)
                    && page == p
                {
                    effects.swap(at - 1, at);
                }
            }
        }
    }
}

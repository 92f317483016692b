//! The answer: every page or record with its status, and the groups.

use doppel_contract::{Counters, Status, UnresolvedReason};
use doppel_model::{ContentHash, GroupId, PageId, PageUrl};
use doppel_protocol::Line;

/// A grouped collection at rest.
#[derive(Debug)]
pub struct GroupedCollection {
    /// All live pages in byte order of their URLs, or all records in the order of the inputs, and then the
    /// protected records. Other fields refer to pages and groups by their index.
    pub(super) pages: Vec<GroupedPage>,
    /// Number of pages that are not protected records.
    pub(super) judged: usize,
    /// All groups, ordered by shard and then by id.
    pub groups: Vec<BulkGroup>,
    /// Totals of the collection. Of a range's work only updates are counted, all of them as compared.
    pub counters: Counters,
    /// If pages are judged, the records that are the newest versions of dead pages.
    pub dead: Vec<u64>,
}

/// A page or record of a grouped collection.
#[derive(Debug)]
pub(super) struct GroupedPage {
    pub(super) url: PageUrl,
    pub(super) status: Status,
    pub(super) group: Option<usize>,
    /// Index of the kept page of which this page is a duplicate.
    pub(super) duplicate_of: Option<u32>,
    pub(super) similarity: Option<f64>,
    pub(super) reason: Option<UnresolvedReason>,
    /// Hash of the content; `None` for redirects and deaths.
    pub(super) content: Option<ContentHash>,
    pub(super) record: Option<NamedRecord>,
}

/// The decision about a page or record, without the URLs of its line.
#[derive(Debug, Clone, Copy)]
pub struct PageDecision {
    /// Status of the page or record.
    pub status: Status,
    /// Hash of the content; `None` for redirects and deaths.
    pub content: Option<ContentHash>,
    /// Records of the inputs that the line refers to.
    pub records: NamedRecords,
}

/// The decision about a page, with its content.
#[derive(Debug, Clone)]
pub struct PageWithContent {
    /// The line of the answer about the page.
    pub line: Line,
    /// Hash of the content; `None` for redirects and deaths.
    pub content: Option<ContentHash>,
    /// Hash of the content of the page that it is a duplicate of.
    pub kept_content: Option<ContentHash>,
    /// Records of the inputs that the line refers to.
    pub records: NamedRecords,
}

impl PageWithContent {
    /// Returns whether the page that it is a duplicate of has the same content.
    #[must_use]
    pub fn is_copy(&self) -> bool {
        self.content.is_some() && self.content == self.kept_content
    }

    /// Returns whether the page is a duplicate of the winner of its group.
    #[must_use]
    pub fn is_of_winner(&self) -> bool {
        let NamedRecords { winner, duplicate_of, .. } = self.records;
        self.line.duplicate_of == self.line.winner && duplicate_of == winner
    }
}

/// The records that a line refers to, as far as they are records of the inputs or of references.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NamedRecords {
    /// Record that the line is about. For a page, the record of its newest version.
    pub own: Option<u64>,
    /// Record that is the winner of the group.
    pub winner: Option<NamedRecord>,
    /// Kept record of which the line's record is a duplicate.
    pub duplicate_of: Option<NamedRecord>,
}

/// A record that another one is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NamedRecord {
    /// A record of the inputs, by its number.
    Input(u64),
    /// A protected record, by its number.
    Protected(u64),
}

impl NamedRecord {
    /// The number of a record of the inputs.
    #[must_use]
    pub fn input(self) -> Option<u64> {
        match self {
            Self::Input(number) => Some(number),
            Self::Protected(_) => None,
        }
    }
}

impl GroupedPage {
    pub(super) fn is_protected(&self) -> bool {
        matches!(self.record, Some(NamedRecord::Protected(_)))
    }
}

impl GroupedCollection {
    /// Iterates over the page ids and statuses, in the order of [`lines`](Self::lines).
    pub fn statuses(&self) -> impl Iterator<Item = (PageId, Status)> + '_ {
        self.answered().map(|page| (page.url.id(), page.status))
    }

    /// Iterates over the lines of the answer: all live pages in byte order of their URLs, or all records in
    /// the order of the inputs.
    pub fn lines(&self) -> impl ExactSizeIterator<Item = Line> + '_ {
        self.answered().map(|page| self.line(page))
    }

    /// The pages that have a line: all but protected records.
    fn answered(&self) -> impl ExactSizeIterator<Item = &GroupedPage> {
        self.pages[..self.judged].iter()
    }

    /// Like [`lines`](Self::lines), but also gives contents and records.
    pub fn pages_with_contents(&self) -> impl ExactSizeIterator<Item = PageWithContent> + '_ {
        self.answered().map(|page| {
            let PageDecision { content, records, .. } = self.judge(page);
            let kept_content = page.duplicate_of.and_then(|of| self.pages[of as usize].content);
            PageWithContent { line: self.line(page), content, kept_content, records }
        })
    }

    /// Iterates over the decisions in the order of [`lines`](Self::lines), without copying URLs.
    pub fn judged(&self) -> impl ExactSizeIterator<Item = PageDecision> + '_ {
        self.answered().map(|page| self.judge(page))
    }

    fn judge(&self, page: &GroupedPage) -> PageDecision {
        let record_at = |place: u32| self.pages[place as usize].record;
        let winner = page.group.and_then(|group| self.groups.get(group)).map(|group| group.winner_place);
        let records = NamedRecords {
            own: page.record.and_then(NamedRecord::input),
            winner: winner.and_then(record_at),
            duplicate_of: page.duplicate_of.and_then(record_at),
        };
        PageDecision { status: page.status, content: page.content, records }
    }

    fn line(&self, page: &GroupedPage) -> Line {
        let GroupedPage { ref url, status, group, duplicate_of, similarity, reason, .. } = *page;
        let group = group.and_then(|group| self.groups.get(group));
        Line {
            url: url.clone(),
            status,
            group: group.map(|group| group.group),
            winner: group.map(|group| group.winner.clone()),
            duplicate_of: duplicate_of.map(|of| self.pages[of as usize].url.clone()),
            similarity,
            reason,
        }
    }
}

/// A group of the answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BulkGroup {
    /// Id of the group.
    pub group: GroupId,
    /// Winner of the group, or the page that takes the winner's place in the market.
    pub winner: PageUrl,
    /// Index of that page among the lines.
    pub winner_place: u32,
    /// Number of pages, including redirects and protected records.
    pub pages: u64,
    /// Number of pages with content.
    pub contents: u64,
    /// Number of protected records among them.
    pub protected: u64,
    /// Whether all pages with content have the same content.
    pub same: bool,
    /// Whether the group has too many distinct contents, so that all its pages are kept.
    pub quarantined: bool,
}

impl BulkGroup {
    /// Whether the group has a page that is not a protected record.
    #[must_use]
    pub fn has_judged(&self) -> bool {
        self.protected < self.contents
    }
}

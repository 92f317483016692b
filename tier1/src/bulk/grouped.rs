//! The answer: every page or record with what it is told, and the groups.

use doppel_contract::{Counters, Status, Unresolved};
use doppel_model::{ContentHash, GroupId, PageId, PageUrl};
use doppel_protocol::Line;

/// The collection at rest.
#[derive(Debug)]
pub struct Grouped {
    /// Every live page in byte order of the URLs, or every record in the order of the inputs. Pages and groups are named by their places.
    pub(super) pages: Vec<GroupedPage>,
    /// Shard by shard, in the order of their ids.
    pub groups: Vec<BulkGroup>,
    /// Totals. Of the work of a range only updates are counted, all of them as compared.
    pub counters: Counters,
    /// Where pages are judged: the records that are the present versions of pages that are gone.
    pub dead: Vec<u64>,
}

/// A page or record of a collection at rest.
#[derive(Debug)]
pub(super) struct GroupedPage {
    pub(super) url: PageUrl,
    pub(super) status: Status,
    pub(super) group: Option<usize>,
    /// The place of the kept page that it is a duplicate of.
    pub(super) duplicate_of: Option<u32>,
    pub(super) similarity: Option<f64>,
    pub(super) reason: Option<Unresolved>,
    /// The content; redirects and deaths have none.
    pub(super) content: Option<ContentHash>,
    pub(super) record: Option<u64>,
}

/// What is decided of a page or record, without the URLs that its line has.
#[derive(Debug, Clone, Copy)]
pub struct Judged {
    /// The status.
    pub status: Status,
    /// The content; redirects and deaths have none.
    pub content: Option<ContentHash>,
    /// The records of the inputs that the line names.
    pub records: NamedRecords,
}

/// A page with its content.
#[derive(Debug, Clone)]
pub struct PageWithContent {
    /// What is decided of the page.
    pub line: Line,
    /// The content; redirects and deaths have none.
    pub content: Option<ContentHash>,
    /// The content of the page that it is a duplicate of.
    pub kept_content: Option<ContentHash>,
    /// The records of the inputs that the line names.
    pub records: NamedRecords,
}

impl PageWithContent {
    /// Whether the page that it is a duplicate of has the same content.
    #[must_use]
    pub fn is_copy(&self) -> bool {
        self.content.is_some() && self.content == self.kept_content
    }

    /// Whether it is a duplicate of the winner of its group.
    #[must_use]
    pub fn is_of_winner(&self) -> bool {
        let NamedRecords { winner, duplicate_of, .. } = self.records;
        self.line.duplicate_of == self.line.winner && duplicate_of == winner
    }
}

/// The numbers of the records that a line names, where they are records of the inputs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NamedRecords {
    /// The record that the line is about: of a page its present version.
    pub own: Option<u64>,
    /// The record that is the winner of its group.
    pub winner: Option<u64>,
    /// The kept record that it is a duplicate of.
    pub duplicate_of: Option<u64>,
}

impl Grouped {
    /// Every live page, or every record, and what it is, in the order of [`lines`](Self::lines).
    pub fn statuses(&self) -> impl Iterator<Item = (PageId, Status)> + '_ {
        self.pages.iter().map(|page| (page.url.id(), page.status))
    }

    /// Every live page in byte order of the URLs, or every record in the order of the inputs.
    pub fn lines(&self) -> impl ExactSizeIterator<Item = Line> + '_ {
        self.pages.iter().map(|page| self.line(page))
    }

    /// The same lines with their contents and records.
    pub fn pages_with_contents(&self) -> impl ExactSizeIterator<Item = PageWithContent> + '_ {
        self.pages.iter().map(|page| {
            let Judged { content, records, .. } = self.judge(page);
            let kept_content = page.duplicate_of.and_then(|of| self.pages[of as usize].content);
            PageWithContent { line: self.line(page), content, kept_content, records }
        })
    }

    /// What is decided of every live page, or of every record, in the order of [`lines`](Self::lines). No URL is copied.
    pub fn judged(&self) -> impl ExactSizeIterator<Item = Judged> + '_ {
        self.pages.iter().map(|page| self.judge(page))
    }

    fn judge(&self, page: &GroupedPage) -> Judged {
        let record_at = |place: u32| self.pages[place as usize].record;
        let winner = page.group.and_then(|group| self.groups.get(group)).map(|group| group.winner_place);
        let records = NamedRecords {
            own: page.record,
            winner: winner.and_then(record_at),
            duplicate_of: page.duplicate_of.and_then(record_at),
        };
        Judged { status: page.status, content: page.content, records }
    }

    /// The record that represents a group, by the place of the group in [`groups`](Self::groups).
    #[must_use]
    pub fn winner_record(&self, group: &BulkGroup) -> Option<u64> {
        self.pages.get(group.winner_place as usize).and_then(|page| page.record)
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

/// A group and what links it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BulkGroup {
    /// Its id.
    pub group: GroupId,
    /// Its winner, or the page that takes its place in the market.
    pub winner: PageUrl,
    /// The place of that among the lines.
    pub winner_place: u32,
    /// Pages, including redirects.
    pub pages: u64,
    /// Those that have a content.
    pub contents: u64,
    /// Whether these all have the same.
    pub same: bool,
    /// Whether they have too many distinct contents, so that all pages are kept.
    pub quarantined: bool,
}

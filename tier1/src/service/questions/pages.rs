//! Pages as the coordinator sees them.

use doppel_contract::Status;
use doppel_model::pairwise::Similarity;
use doppel_model::{PageId, PageUrl, ShardId};
use doppel_protocol::{ComparedPage, Line, LinesPage, PageView, ScanPosition, Tier1Error};

use crate::machine::SPELLINGS_MAX;
use crate::rows::key::{self, RowKind};
use crate::rows::record::{Membership, PageRecord, Resolution, State, damaged, decode};
use crate::service::questions::rows::RowReader;

/// Most pages of a host that are collected at a time.
const HOST_STEP: usize = 1_000;

/// The public state of a page.
pub(in crate::service) fn line(record: &PageRecord) -> Line {
    let published = &record.published;
    Line {
        url: record.url().clone(),
        status: published.status,
        group: published.group,
        winner: published.winner.clone(),
        duplicate_of: published.duplicate_of.clone(),
        similarity: published.similarity.map(Similarity::as_f64),
        reason: published.reason,
    }
}

fn view(record: PageRecord) -> PageView {
    let line = line(&record);
    let status = line.status;
    let (mut content, mut duplicate_of, mut redirect_to, mut stands_for, mut target, mut unresolved) =
        (None, None, None, None, None, None);
    match &record.state {
        State::Content(state) => {
            content = Some(state.content);
            duplicate_of = state
                .membership
                .as_ref()
                .filter(|_| status == Status::Duplicate)
                .and_then(duplicated_content);
        }
        State::Redirect(state) => {
            redirect_to = Some(state.to.clone());
            stands_for = state.stands_for;
            target = state.attached_to();
            unresolved = match state.resolution {
                Some(Resolution::Unresolved(reason)) => Some(reason),
                Some(Resolution::Content(_)) | None => None,
            };
        }
        State::Dead | State::Purged => {}
    }
    PageView {
        line,
        fetched_at: record.fetched_at,
        content,
        language: record.language,
        canonical: record.canonical,
        redirect_to,
        stands_for,
        target,
        unresolved,
        duplicate_of,
        rank: record.rank,
    }
}

/// The page and content of which a member is a duplicate.
fn duplicated_content(membership: &Membership) -> Option<ComparedPage> {
    let of_winner = membership.verdict.filter(|verdict| verdict.similar).and(membership.winner.as_ref());
    let of_winner = of_winner.map(|winner| ComparedPage { page: winner.page, content: winner.content });
    let of_other = membership.covered_by.as_ref();
    of_winner.or_else(|| of_other.map(|kept| ComparedPage { page: kept.page, content: kept.with.content }))
}

impl RowReader {
    pub(in crate::service) fn read_pages(
        &self,
        pages: &[PageId],
    ) -> Result<Vec<Option<PageView>>, Tier1Error> {
        let records = self.pages(pages)?.into_iter();
        Ok(records.map(|record| record.filter(|record| record.state != State::Purged).map(view)).collect())
    }

    /// Like [`Tier1Reads::first_spelling`](doppel_protocol::Tier1Reads::first_spelling). Reads as many rows
    /// as the machine does.
    pub(in crate::service) fn first_spelling(
        &self,
        form: PageId,
        except: Option<PageId>,
    ) -> Result<Option<PageId>, Tier1Error> {
        let mut from = key::edges(self.shard_of(form), RowKind::Spelling, form);
        let to = key::after_prefix(&from);
        let mut first: Option<(PageUrl, PageId)> = None;
        let mut left = SPELLINGS_MAX;
        while left > 0 {
            // If rows are long, a piece has fewer than were asked for.
            let rows = self.piece(&from, &to, left)?;
            let Some((last, _)) = rows.last() else { break };
            from = key::after(last);
            left = left.saturating_sub(rows.len());
            for (key, bytes) in &rows {
                let Some(page) = key::last_page(key).filter(|page| Some(*page) != except) else { continue };
                let url: PageUrl = decode(key, bytes)?;
                if first.as_ref().is_none_or(|(first, _)| url < *first) {
                    first = Some((url, page));
                }
            }
        }
        Ok(first.map(|(_, page)| page))
    }
}

impl RowReader {
    /// The lines of live pages among the next `limit` records after `after`, in the order of shard and page.
    pub(in crate::service) fn read_lines(
        &self,
        after: Option<ScanPosition>,
        limit: usize,
    ) -> Result<LinesPage, Tier1Error> {
        let first = after.map_or(0, |after| after.shard.0);
        for shard in (first..self.shards()).map(ShardId) {
            let (mut from, to) = key::all(shard, RowKind::Page);
            if let Some(after) = after.filter(|after| after.shard == shard) {
                from = key::after(&key::page(shard, after.page));
            }
            let rows = self.piece(&from, &to, limit)?;
            let Some((last, _)) = rows.last() else { continue };
            let page = key::last_page(last).ok_or_else(|| damaged(last, "the key names no page"))?;
            let mut lines = Vec::new();
            for (key, bytes) in &rows {
                let record: PageRecord = decode(key, bytes)?;
                let is_live = !matches!(record.published.status, Status::Dead | Status::Unknown);
                lines.extend(is_live.then(|| line(&record)));
            }
            return Ok(LinesPage { lines, next: Some(ScanPosition { shard, page }) });
        }
        Ok(LinesPage::default())
    }

    /// Up to [`HOST_STEP`] pages of a host in a shard, without purged ones. Also returns the page after which
    /// to continue, unless these pages were the last.
    pub(in crate::service) fn pages_of_host(
        &self,
        host: &str,
        shard: ShardId,
        after: Option<PageId>,
    ) -> Result<(Vec<PageId>, Option<PageId>), Tier1Error> {
        let (mut from, to) = key::all(shard, RowKind::Page);
        if let Some(after) = after {
            from = key::after(&key::page(shard, after));
        }
        let mut pages = Vec::new();
        self.for_each_row(&from, &to, &mut |key, bytes| {
            let record: PageRecord = decode(key, bytes)?;
            if record.state != State::Purged && record.url().host().eq_ignore_ascii_case(host) {
                pages.extend(key::last_page(key));
            }
            Ok(pages.len() < HOST_STEP)
        })?;
        let next = pages.last().copied().filter(|_| pages.len() == HOST_STEP);
        Ok((pages, next))
    }
}

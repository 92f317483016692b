//! Verifies the invariants of a store row by row, without writing a row.
//!
//! Invariants within one shard hold in every committed state, so the check verifies them always. These are
//! keys, checksums, the public states of pages, signatures, feed rows, counts, totals, and message numbers.
//! Invariants between rows of different shards, or between a page and its group, may be pending as a message.
//! The outbox names every such message. The check therefore knows for which pages, redirects, and groups a
//! change is under way ([`underway`]), and verifies all other rows exactly. In a collection at rest nothing
//! is under way.
//!
//! The check does not verify that the groups are the right ones, because this needs every comparison again.
//! `repair` does this for one group.
//!
//! The check keeps in memory the messages under way, and [`EXAMPLES_MAX`] findings of each kind.

mod cover;
mod finding;
mod groups;
mod pages;
#[cfg(any(test, feature = "simulation"))]
#[doc(hidden)]
pub mod planted;
mod redirects;
pub(crate) mod rows;
mod shards;
#[cfg(test)]
pub(crate) mod tests;
mod underway;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use doppel_contract::Backlog;
use doppel_model::pairwise::Policy;
use doppel_model::signature::Signature;
use doppel_model::{ContentHash, GroupId, PageId, RangeId, ShardId};
use doppel_protocol::{IndexStateItem, RangeMap, WinnerOrder};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::rows::key;
use crate::rows::record::{GroupRecord, Meta, PageRecord, decode};
use crate::rows::totals;
use crate::storage::database::Database;
use crate::storage::progress;
use crate::storage::range_files::directories;
use crate::storage::store::{JoinedStore, Store, StoreError};
pub use finding::{EXAMPLES_MAX, Finding, Findings, Invariant};
use rows::{RowKey, pieces};
use underway::UnderwayWork;

/// Result of a check.
#[derive(Debug, Clone, Default, Serialize)]
pub struct CheckReport {
    /// Number of rows that were read.
    pub rows: u64,
    /// Size of their keys and values, in bytes.
    pub bytes: u64,
    /// Number of pages on record, including dead and purged pages.
    pub pages: u64,
    /// Number of groups in use, without merged groups.
    pub groups: u64,
    /// Work that is accepted and not yet done, according to the shards' own counts.
    pub backlog: Backlog,
    /// Violated invariants, with examples.
    pub findings: Findings,
    /// Damage to files that are derived from the rows, with the consequences for the next start.
    pub damage: Vec<String>,
}

impl CheckReport {
    /// Whether every invariant holds and no file is damaged.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.findings.is_empty() && self.damage.is_empty()
    }
}

/// Checks the databases in `dir`, which no server may use. The check writes no row. The storage engine may
/// complete its files after a crash, as at every start.
///
/// # Errors
/// If a database is missing or in use, or the storage engine cannot open it.
pub fn of_directory(
    dir: &Path,
    map: RangeMap,
    policy: Policy,
    winners: WinnerOrder,
) -> Result<CheckReport, StoreError> {
    let stores = Database::open_ranges(dir, map)?;
    let store = JoinedStore::new(map, &stores);
    let mut checker = Checker::new(&store, Some(policy), winners);
    checker.run();
    for (range, dir) in directories(dir, map) {
        let run = map.run(range);
        let metas = checker.metas.get(usize::from(run.start.0)..usize::from(run.end.0)).unwrap_or_default();
        if metas.iter().all(|meta| !matches!(meta, ReferencedRow::Unreadable))
            && let Err(error) =
                progress::verify(&dir, progress::of(metas.iter().filter_map(ReferencedRow::row)))
        {
            checker.add_engine_failure(&error);
        }
        let damage = crate::statuses::damage(&dir);
        let damage = damage.map_err(|error| StoreError::of_file("read a snapshot", &dir, &error))?;
        let of_range =
            |damage| format!("the status table of range {range}: {damage}; the next start does without it");
        checker.report.damage.extend(damage.map(of_range));
    }
    Ok(checker.report)
}

/// Checks every row of the stores. Without a policy, the check does not verify verdicts and covers by
/// comparing signatures again.
///
/// No commit may be made to the stores during the check.
#[must_use]
pub fn check(store: &JoinedStore<'_>, policy: Option<Policy>, winners: WinnerOrder) -> CheckReport {
    let mut checker = Checker::new(store, policy, winners);
    checker.run();
    checker.report
}

/// A row to which another row refers.
enum ReferencedRow<T> {
    Row(T),
    Missing,
    /// The row cannot be read. The scan reports this when it reaches the row.
    Unreadable,
}

impl<T> ReferencedRow<T> {
    fn row(&self) -> Option<&T> {
        match self {
            Self::Row(row) => Some(row),
            Self::Missing | Self::Unreadable => None,
        }
    }
}

struct Checker<'s> {
    store: &'s dyn Store,
    databases: &'s JoinedStore<'s>,
    map: RangeMap,
    shards: u16,
    policy: Option<Policy>,
    winners: WinnerOrder,
    /// Meta row of each shard.
    metas: Vec<ReferencedRow<Meta>>,
    /// Totals of each shard, counted from its rows.
    recounts: Vec<Meta>,
    underway: UnderwayWork,
    report: CheckReport,
    /// Winner whose signature was last compared with a member's.
    winner: Option<(PageId, ContentHash, Signature)>,
    /// Databases for which an engine failure was reported. `None` stands for a failure that names no
    /// database.
    failed: BTreeSet<Option<PathBuf>>,
}

impl<'s> Checker<'s> {
    fn new(store: &'s JoinedStore<'s>, policy: Option<Policy>, winners: WinnerOrder) -> Self {
        let map = store.map();
        let shards = map.shards();
        Self {
            store,
            databases: store,
            map,
            shards,
            policy,
            winners,
            metas: Vec::new(),
            recounts: vec![Meta::default(); usize::from(shards)],
            underway: UnderwayWork::default(),
            report: CheckReport::default(),
            winner: None,
            failed: BTreeSet::new(),
        }
    }

    fn run(&mut self) {
        self.read_metas();
        self.read_outboxes();
        for (range, store) in self.databases.databases() {
            if let Err(error) = pieces(store, &mut |key, value| self.row(range, key, value)) {
                self.add_engine_failure(&error);
            }
        }
        self.check_metas();
        let metas: Vec<Meta> = self.metas.iter().filter_map(ReferencedRow::row).cloned().collect();
        self.report.backlog = totals::sum(&metas, self.underway.messages() as u64).1;
    }

    /// Checks a row that the scan has reached.
    fn row(&mut self, range: RangeId, key: &[u8], value: &[u8]) {
        self.report.rows += 1;
        self.report.bytes += (key.len() + value.len()) as u64;
        let Some((shard, row_key)) = RowKey::of(key) else {
            return self.add_finding(Invariant::Key, hex(key), "has a key of no known kind");
        };
        if shard.0 >= self.shards {
            let detail = format!("is of shard {}, but there are only {} shards", shard.0, self.shards);
            return self.add_finding(Invariant::Key, hex(key), detail);
        }
        if self.map.of_shard(shard) != range {
            let row = self.describe_row(&row_key);
            let detail = format!(
                "is in the database of range {range}, but shard {} belongs to another range",
                shard.0
            );
            return self.add_finding(Invariant::Ownership, row, detail);
        }
        let owner = row_key.owner(shard, self.shards);
        if owner != shard {
            let row = self.describe_row(&row_key);
            let detail = format!("is in shard {}, but belongs to shard {}", shard.0, owner.0);
            return self.add_finding(Invariant::Ownership, row, detail);
        }
        match row_key {
            // The check reads these rows before all others.
            RowKey::Meta | RowKey::Outbox(..) => {}
            RowKey::Audit(number) => self.audit(shard, number, key, value),
            RowKey::AuditsDropped => self.audits_dropped(shard, key, value),
            RowKey::Feed(number) => self.feed(shard, number, value),
            RowKey::Group(group) => self.group(group, key, value),
            RowKey::IndexState(_) => self.index_state(&row_key, key, value),
            RowKey::Member(group, page) => self.member(group, page, key, value),
            RowKey::ForwardingEntry(group, page) => self.forwarding_entry(group, page, key, value),
            RowKey::Page(page) => self.page(page, key, value),
            RowKey::Signature(page) => self.signature(page, value),
            RowKey::InboundRedirect(target, source) => self.inbound_redirect(target, source, value),
            RowKey::Source(target, source) => self.source(target, source, value),
            RowKey::FanOut(audience, target) => self.fan_out(audience, target, key, value),
            RowKey::Spelling(normal, page) => self.spelling(normal, page, key, value),
        }
    }

    fn add_finding(&mut self, invariant: Invariant, row: impl Into<String>, detail: impl Into<String>) {
        self.report.findings.add(Finding { invariant, row: row.into(), detail: detail.into() });
    }

    /// Reports a failure of the storage engine once for each database, because it may recur for every row.
    fn add_engine_failure(&mut self, error: &StoreError) {
        let database = match error {
            StoreError::Corrupt { database, .. } | StoreError::Behind { database, .. } => {
                Some(database.clone())
            }
            _ => None,
        };
        if self.failed.insert(database) {
            let subject = "the database";
            let text = error.to_string();
            self.add_finding(
                Invariant::Engine,
                subject,
                text.strip_prefix(subject).unwrap_or(&text).trim_start(),
            );
        }
    }

    /// Decodes a row that the scan has reached. Reports the row if it cannot be decoded.
    fn decode<T: DeserializeOwned>(&mut self, key: &[u8], value: &[u8], row: String) -> Option<T> {
        match decode(key, value) {
            Ok(record) => Some(record),
            Err(error) => {
                self.add_unreadable(&error, row);
                None
            }
        }
    }

    fn add_unreadable(&mut self, error: &StoreError, row: String) {
        match error {
            StoreError::Version { .. } => self.add_finding(Invariant::Version, row, error.to_string()),
            StoreError::Damaged { reason, .. } => self.add_finding(Invariant::Damage, row, *reason),
            other => self.add_engine_failure(other),
        }
    }

    /// Reads a row to which another row refers.
    fn read<T: DeserializeOwned>(&mut self, key: &[u8]) -> ReferencedRow<T> {
        match self.store.get(key) {
            Ok(Some(bytes)) => decode(key, &bytes).map_or(ReferencedRow::Unreadable, ReferencedRow::Row),
            Ok(None) => ReferencedRow::Missing,
            Err(error) => {
                self.add_engine_failure(&error);
                ReferencedRow::Unreadable
            }
        }
    }

    /// Whether a row exists. True if the store fails, so that the failure causes no further finding.
    fn has(&mut self, key: &[u8]) -> bool {
        match self.store.get(key) {
            Ok(row) => row.is_some(),
            Err(error) => {
                self.add_engine_failure(&error);
                true
            }
        }
    }

    fn owner(&self, page: PageId) -> ShardId {
        page.shard(self.shards)
    }

    fn record(&mut self, page: PageId) -> ReferencedRow<PageRecord> {
        self.read(&key::page(self.owner(page), page))
    }

    fn group_record(&mut self, group: GroupId) -> ReferencedRow<GroupRecord> {
        if group.shard().0 >= self.shards { ReferencedRow::Missing } else { self.read(&key::group(group)) }
    }

    /// Describes a page for a reader, by its URL if its row can be read.
    fn describe_page(&mut self, page: PageId) -> String {
        match self.record(page) {
            ReferencedRow::Row(record) => record.url().to_string(),
            ReferencedRow::Missing | ReferencedRow::Unreadable => format!("the page {}", hex(page.bytes())),
        }
    }

    /// Describes a row for a reader.
    fn describe_row(&mut self, row_key: &RowKey) -> String {
        match *row_key {
            RowKey::Meta => "the totals of a shard".to_owned(),
            RowKey::Audit(number) => format!("audit entry {number}"),
            RowKey::AuditsDropped => "the number of dropped audit entries".to_owned(),
            RowKey::Feed(number) => format!("event {number}"),
            RowKey::Group(group) => format!("group {group}"),
            RowKey::IndexState(IndexStateItem::Plan) => "the plan of the index".to_owned(),
            RowKey::IndexState(IndexStateItem::Requests) => "the requests for the index".to_owned(),
            RowKey::Member(group, page) => format!("member {} of group {group}", self.describe_page(page)),
            RowKey::ForwardingEntry(group, page) => {
                format!("forwarding entry of {} at group {group}", self.describe_page(page))
            }
            RowKey::Page(page) => self.describe_page(page),
            RowKey::Signature(page) => format!("the signature of {}", self.describe_page(page)),
            RowKey::InboundRedirect(target, source) | RowKey::Source(target, source) => {
                self.describe_redirect(target, source)
            }
            RowKey::FanOut(_, target) => {
                format!("the round that tells the redirects to {}", self.describe_page(target))
            }
            RowKey::Spelling(normal, page) => {
                format!("the spelling {} of {}", self.describe_page(page), self.describe_page(normal))
            }
            RowKey::Outbox(to, number) => format!("message {number} to shard {}", to.0),
        }
    }

    fn describe_redirect(&mut self, target: PageId, source: PageId) -> String {
        format!("the redirect from {} to {}", self.describe_page(source), self.describe_page(target))
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

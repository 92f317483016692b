//! The invariants of a store, verified row by row without a write.
//!
//! What a commit keeps inside one shard holds in every committed state, and is checked in every one: keys,
//! checksums, the public state of a page, signatures, feed rows, counts, totals, numbers of messages. What
//! links rows of different shards, or of a page and its group, may be on its way as a message. The outbox
//! names every message, so the check knows for each page, edge and group whether something is under way
//! ([`underway`]), and all other rows must agree exactly. At rest nothing is under way, so all rows must.
//!
//! Not checked: whether the groups are the right ones. That takes every comparison anew; `repair` does it
//! for a group.
//!
//! Memory: the messages under way, and [`EXAMPLES_MAX`] findings of each kind.

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

pub use finding::{EXAMPLES_MAX, Finding, Findings, Invariant};

use crate::database::Database;
use crate::key;
use crate::progress;
use crate::range_files::directories;
use crate::record::{GroupRecord, Meta, PageRecord, decode};
use crate::store::{Joined, Store, StoreError};
use crate::totals;
use rows::{RowKey, pieces};
use underway::Underway;

/// What a check found.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Report {
    /// Rows read.
    pub rows: u64,
    /// Their keys and values, in bytes.
    pub bytes: u64,
    /// Pages on record, dead and purged ones among them.
    pub pages: u64,
    /// Groups in use.
    pub groups: u64,
    /// Work that is accepted and not yet done, by the shards' own counts.
    pub backlog: Backlog,
    /// What does not hold.
    pub findings: Findings,
    /// What is wrong with files that are made of the rows, and what will become of it.
    pub damage: Vec<String>,
}

impl Report {
    /// Whether every invariant holds, and every file is as it was written.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.findings.is_empty() && self.damage.is_empty()
    }
}

/// Checks the database in `dir`, which no server may use. No row is written; the engine may finish what a
/// process that was killed left undone in its files, as at every start.
///
/// # Errors
/// When there is none, it is in use, or the engine cannot open it at all.
pub fn of_directory(
    dir: &Path,
    map: RangeMap,
    policy: Policy,
    winners: WinnerOrder,
) -> Result<Report, StoreError> {
    let stores = Database::open_ranges(dir, map)?;
    let store = Joined::new(map, &stores);
    let mut checker = Checker::new(&store, Some(policy), winners);
    checker.run();
    for (range, dir) in directories(dir, map) {
        let run = map.run(range);
        let metas = checker.metas.get(usize::from(run.start.0)..usize::from(run.end.0)).unwrap_or_default();
        if metas.iter().all(|meta| !matches!(meta, Found::Unreadable))
            && let Err(error) = progress::verify(&dir, progress::of(metas.iter().filter_map(Found::row)))
        {
            checker.engine(&error);
        }
        let damage = crate::statuses::damage(&dir);
        let damage = damage.map_err(|error| StoreError::of_file("read a snapshot", &dir, &error))?;
        let of_range =
            |damage| format!("the status table of range {range}: {damage}; the next start does without it");
        checker.report.damage.extend(damage.map(of_range));
    }
    Ok(checker.report)
}

/// Checks every row. Without a policy the verdicts on winners are not compared anew with the signatures.
///
/// The stores must be at rest: no commit may be made meanwhile.
#[must_use]
pub fn check(store: &Joined<'_>, policy: Option<Policy>, winners: WinnerOrder) -> Report {
    let mut checker = Checker::new(store, policy, winners);
    checker.run();
    checker.report
}

/// A row that another one speaks of.
enum Found<T> {
    Row(T),
    Missing,
    /// It is reported where it is met itself.
    Unreadable,
}

impl<T> Found<T> {
    fn row(&self) -> Option<&T> {
        match self {
            Self::Row(row) => Some(row),
            Self::Missing | Self::Unreadable => None,
        }
    }
}

struct Checker<'s> {
    store: &'s dyn Store,
    databases: &'s Joined<'s>,
    map: RangeMap,
    shards: u16,
    policy: Option<Policy>,
    winners: WinnerOrder,
    /// By shard.
    metas: Vec<Found<Meta>>,
    /// Totals as the rows give them.
    recounts: Vec<Meta>,
    underway: Underway,
    report: Report,
    /// The last winner's content that was compared with.
    winner: Option<(PageId, ContentHash, Signature)>,
    /// The databases of which a failure of the engine was reported; none for one that names no database.
    failed: BTreeSet<Option<PathBuf>>,
}

impl<'s> Checker<'s> {
    fn new(store: &'s Joined<'s>, policy: Option<Policy>, winners: WinnerOrder) -> Self {
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
            underway: Underway::default(),
            report: Report::default(),
            winner: None,
            failed: BTreeSet::new(),
        }
    }

    fn run(&mut self) {
        self.read_metas();
        self.read_outboxes();
        for (range, store) in self.databases.databases() {
            if let Err(error) = pieces(store, &mut |key, value| self.row(range, key, value)) {
                self.engine(&error);
            }
        }
        self.check_metas();
        let metas: Vec<Meta> = self.metas.iter().filter_map(Found::row).cloned().collect();
        self.report.backlog = totals::sum(&metas, self.underway.messages() as u64).1;
    }

    fn row(&mut self, range: RangeId, key: &[u8], value: &[u8]) {
        self.report.rows += 1;
        self.report.bytes += (key.len() + value.len()) as u64;
        let Some((shard, row_key)) = RowKey::of(key) else {
            return self.find(Invariant::Key, hex(key), "is no key of this program");
        };
        if shard.0 >= self.shards {
            let detail = format!("is of shard {}, and there are {}", shard.0, self.shards);
            return self.find(Invariant::Key, hex(key), detail);
        }
        if self.map.of_shard(shard) != range {
            let row = self.named(&row_key);
            let detail =
                format!("is in the database of range {range} and of shard {}, which is not there", shard.0);
            return self.find(Invariant::Ownership, row, detail);
        }
        let owner = row_key.owner(shard, self.shards);
        if owner != shard {
            let row = self.named(&row_key);
            let detail = format!("is in shard {} and belongs to shard {}", shard.0, owner.0);
            return self.find(Invariant::Ownership, row, detail);
        }
        match row_key {
            // Read before all others.
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

    fn find(&mut self, invariant: Invariant, row: impl Into<String>, detail: impl Into<String>) {
        self.report.findings.add(Finding { invariant, row: row.into(), detail: detail.into() });
    }

    /// What the engine fails with is said once for each database: it would be said for every row.
    fn engine(&mut self, error: &StoreError) {
        let database = match error {
            StoreError::Corrupt { database, .. } | StoreError::Behind { database, .. } => {
                Some(database.clone())
            }
            _ => None,
        };
        if self.failed.insert(database) {
            let subject = "the database";
            let said = error.to_string();
            self.find(Invariant::Engine, subject, said.strip_prefix(subject).unwrap_or(&said).trim_start());
        }
    }

    /// Decodes a row that the scan has come to.
    fn decode<T: DeserializeOwned>(&mut self, key: &[u8], value: &[u8], row: String) -> Option<T> {
        match decode(key, value) {
            Ok(record) => Some(record),
            Err(error) => {
                self.unreadable(&error, row);
                None
            }
        }
    }

    fn unreadable(&mut self, error: &StoreError, row: String) {
        match error {
            StoreError::Version { .. } => self.find(Invariant::Version, row, error.to_string()),
            StoreError::Damaged { reason, .. } => self.find(Invariant::Damage, row, *reason),
            other => self.engine(other),
        }
    }

    /// Reads a row that another one speaks of.
    fn read<T: DeserializeOwned>(&mut self, key: &[u8]) -> Found<T> {
        match self.store.get(key) {
            Ok(Some(bytes)) => decode(key, &bytes).map_or(Found::Unreadable, Found::Row),
            Ok(None) => Found::Missing,
            Err(error) => {
                self.engine(&error);
                Found::Unreadable
            }
        }
    }

    fn has(&mut self, key: &[u8]) -> bool {
        match self.store.get(key) {
            Ok(row) => row.is_some(),
            Err(error) => {
                self.engine(&error);
                true
            }
        }
    }

    fn owner(&self, page: PageId) -> ShardId {
        page.shard(self.shards)
    }

    fn record(&mut self, page: PageId) -> Found<PageRecord> {
        self.read(&key::page(self.owner(page), page))
    }

    fn group_record(&mut self, group: GroupId) -> Found<GroupRecord> {
        if group.shard().0 >= self.shards { Found::Missing } else { self.read(&key::group(group)) }
    }

    /// A page for people: its URL where its row can be read.
    fn name(&mut self, page: PageId) -> String {
        match self.record(page) {
            Found::Row(record) => record.url().to_string(),
            Found::Missing | Found::Unreadable => format!("the page {}", hex(page.bytes())),
        }
    }

    /// A row for people.
    fn named(&mut self, row_key: &RowKey) -> String {
        match *row_key {
            RowKey::Meta => "the totals of a shard".to_owned(),
            RowKey::Audit(number) => format!("audit entry {number}"),
            RowKey::AuditsDropped => "the number of audit entries dropped".to_owned(),
            RowKey::Feed(number) => format!("event {number}"),
            RowKey::Group(group) => format!("group {group}"),
            RowKey::IndexState(IndexStateItem::Plan) => "the plan of the index".to_owned(),
            RowKey::IndexState(IndexStateItem::Requests) => "what is requested of the index".to_owned(),
            RowKey::Member(group, page) => format!("member {} of group {group}", self.name(page)),
            RowKey::ForwardingEntry(group, page) => {
                format!("forwarding entry of {} by group {group}", self.name(page))
            }
            RowKey::Page(page) => self.name(page),
            RowKey::Signature(page) => format!("the signature of {}", self.name(page)),
            RowKey::InboundRedirect(target, source) | RowKey::Source(target, source) => {
                self.edge(target, source)
            }
            RowKey::FanOut(_, target) => format!("what the redirects to {} are told", self.name(target)),
            RowKey::Spelling(normal, page) => {
                format!("the spelling {} of {}", self.name(page), self.name(normal))
            }
            RowKey::Outbox(to, number) => format!("message {number} to shard {}", to.0),
        }
    }

    fn edge(&mut self, target: PageId, source: PageId) -> String {
        format!("the redirect from {} to {}", self.name(source), self.name(target))
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

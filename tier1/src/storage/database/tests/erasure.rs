//! Tests that unused signatures leave the files after a purge, whatever happens.

use std::borrow::Cow;
use std::time::Duration;

use doppel_contract::Status;
use doppel_model::{PageUrl, Timestamp};
use doppel_protocol::Rank;

use super::*;
use crate::rows::record::{PageRecord, PublicState, State, encode};
use crate::storage::log::{Payload, Position, SharedRecord};

/// Creates a database of pages with different contents. Some pages get another content.
fn filled() -> (Disk, Inner) {
    let disk = Disk::new();
    let inner = disk.open().unwrap();
    (0..30).for_each(|n| put(&inner, n, Some(n)));
    (0..5).for_each(|n| put(&inner, n, Some(100 + n)));
    (disk, inner)
}

fn put(inner: &Inner, number: u64, content: Option<u64>) {
    let write = (key::signature(ShardId(0), page(number)), content.map(signature));
    inner.commit(vec![write]).unwrap();
}

/// Returns the contents whose bytes are in the files of signatures.
fn on_disk(disk: &Disk) -> Vec<u64> {
    let files = disk.signatures.files();
    let has = |content: &u64| {
        let signature = signature(*content);
        files.iter().any(|(_, bytes)| bytes.windows(signature.len()).any(|part| part == signature))
    };
    (0..200).filter(has).collect()
}

/// Returns the contents of pages 0 to 29 after pages 2 and 20 to 29 were purged.
fn expected() -> Vec<u64> {
    [5..20, 100..102, 103..105].into_iter().flatten().collect()
}

fn purge(inner: &Inner) {
    let purge = inner.begin_purge().unwrap();
    [2].into_iter().chain(20..30).for_each(|n| put(inner, n, None));
    drop(purge);
}

#[test]
fn a_purge_also_erases_the_signatures_of_earlier_contents() {
    let (disk, inner) = filled();
    inner.erase_if_owed().unwrap();
    inner.move_rows().unwrap();
    assert_eq!(on_disk(&disk).len(), 35, "an erasure ran before any purge");
    purge(&inner);
    inner.erase_if_owed().unwrap();
    assert_eq!(on_disk(&disk), expected());
    assert!(!lock(&inner.moving).checkpoint.erasing);
    // The last erasure was a moment ago.
    put(&inner, 40, Some(150));
    let purge = inner.begin_purge().unwrap();
    put(&inner, 40, None);
    drop(purge);
    inner.erase_if_owed().unwrap();
    assert!(on_disk(&disk).contains(&150) && lock(&inner.moving).checkpoint.erasing);
    drop(inner);
    let next = disk.open().unwrap();
    next.erase_if_owed().unwrap();
    assert_eq!(on_disk(&disk), expected());
    assert_eq!(next.get(&key::signature(ShardId(0), page(7)), false).unwrap(), Some(signature(7)));
}

#[test]
fn an_erasure_stays_owed_while_a_purge_is_under_way() {
    let (disk, inner) = filled();
    purge(&inner);
    let later = inner.begin_purge().unwrap();
    inner.erase_if_owed().unwrap();
    put(&inner, 7, None);
    drop(later);
    assert!(on_disk(&disk).contains(&7) && lock(&inner.moving).checkpoint.erasing);
}

#[test]
fn an_acknowledged_purge_is_carried_out_after_a_crash() {
    for (seed, calls) in (0..).zip(0..60) {
        let (disk, inner) = filled();
        purge(&inner);
        // The process dies during the erasure or after it.
        disk.allow(Some((u64::MAX, calls)));
        drop(inner.erase_if_owed());
        drop(inner);
        disk.allow(None);
        let disk = disk.crash(&mut Random::new(seed));
        let inner = disk.open().unwrap();
        inner.erase_if_owed().unwrap();
        assert_eq!(on_disk(&disk), expected(), "{calls} calls");
        let rows = all(&inner).unwrap();
        assert_eq!(rows.len(), expected().len());
    }
}

#[test]
fn many_erasures_leave_few_segments() {
    let disk = Disk { segment_bytes: 16_000, ..Disk::new() };
    let inner = disk.open().unwrap();
    for n in 0..120 {
        put(&inner, 2 * n, Some(2 * n));
        let purge = inner.begin_purge().unwrap();
        put(&inner, 2 * n + 1, Some(2 * n + 1));
        put(&inner, 2 * n + 1, None);
        drop(purge);
        lock(&inner.erasure).end_pause();
        inner.erase_if_owed().unwrap();
        assert!(!on_disk(&disk).contains(&(2 * n + 1)));
    }
    let files = disk.signatures.files().len();
    assert!(files < 24, "{files} files");
    drop(inner);
    let inner = disk.crash(&mut Random::new(1)).open().unwrap();
    for n in 0..120 {
        let key = key::signature(ShardId(0), page(2 * n));
        assert_eq!(inner.get(&key, false).unwrap(), Some(signature(2 * n)), "{n}");
    }
}

#[test]
fn an_erasure_starts_a_segment_only_if_the_last_one_has_unused_signatures() {
    let disk = Disk { segment_bytes: 16_000, ..Disk::new() };
    let inner = disk.open().unwrap();
    for n in 0..20 {
        put(&inner, n, Some(n));
        drop(inner.begin_purge().unwrap());
        lock(&inner.erasure).end_pause();
        inner.erase_if_owed().unwrap();
    }
    assert_eq!(disk.signatures.files().len(), 1);
}

#[test]
fn a_failed_start_of_a_segment_loses_nothing() {
    for (seed, calls) in (0..50).flat_map(|seed| (0..8).map(move |calls| (seed, calls))) {
        let (disk, inner) = filled();
        purge(&inner);
        disk.allow(Some((u64::MAX, calls)));
        let erased = inner.erase_if_owed();
        disk.allow(None);
        if erased.is_ok() {
            continue;
        }
        put(&inner, 50, Some(160));
        // The process dies in a commit, after a write without a sync.
        disk.allow(Some((u64::MAX, 1)));
        let write = (key::signature(ShardId(0), page(51)), Some(signature(161)));
        drop(inner.commit(vec![write]));
        drop(inner);
        disk.allow(None);
        let inner = disk.crash(&mut Random::new(seed)).open().unwrap();
        inner.signatures.for_each(&mut |_, _| true).unwrap();
        inner.erase_if_owed().unwrap();
    }
}

#[test]
fn a_damaged_segment_does_not_prevent_the_erasure_of_others() {
    let (disk, inner) = filled();
    inner.move_all().unwrap();
    drop(inner);
    // Damage the length before a signature, in a file that the erasure will rewrite.
    let of_19 = |(name, bytes): (String, Vec<u8>)| {
        let at = bytes.windows(8).position(|part| part == &signature(19)[..8])?;
        Some((name, bytes, at))
    };
    let (name, mut bytes, at) = disk.signatures.files().into_iter().find_map(of_19).unwrap();
    bytes[at - 8] ^= 1;
    disk.signatures.set(&name, Some(bytes));
    let inner = disk.open().unwrap();
    purge(&inner);
    put(&inner, 18, None);
    assert!(inner.erase_if_owed().is_err());
    assert!(lock(&inner.moving).checkpoint.erasing);
    let left = on_disk(&disk);
    assert!(left.contains(&18) && (23..30).all(|content| !left.contains(&content)), "{left:?}");
}

#[test]
fn a_tool_that_only_reads_does_not_wait_for_an_erasure() {
    let dir = tempfile::tempdir().unwrap();
    let database = Database::open(dir.path(), true).unwrap();
    database.purge(|| ()).unwrap();
    drop(database);
    let database = Database::open_existing(dir.path()).unwrap();
    let live = database.current().unwrap();
    live.inner.erase_if_owed().unwrap();
    assert!(lock(&live.inner.moving).checkpoint.erasing);
}

/// Returns the row of a page that was purged or has died.
fn row(number: u64, state: State, event: u64) -> Write {
    let url = PageUrl::parse(&format!("http://a.example/{number}")).unwrap();
    let record = PageRecord {
        rank: Rank { url, popularity: None, first_seen: Timestamp::from_millis(1) },
        fetched_at: Timestamp::from_millis(1),
        popularity_at: None,
        language: None,
        canonical: None,
        state,
        membership_number: 0,
        ticket: 0,
        inbound_redirects: 0,
        ended: None,
        event,
        published: PublicState::of(Status::Unknown),
    };
    (key::page(ShardId(0), page(number)), Some(encode(&record).unwrap()))
}

/// Copies the next record of another node.
fn copy(inner: &Inner, rows: Vec<Write>) -> Result<(), StoreError> {
    let before = inner.last_copied();
    let index = before.position.index + 1;
    let position = Position { epoch: 1, index, hash: u128::from(index) };
    let (previous, payload) = (before.position.hash, Payload::Rows(Cow::Owned(rows)));
    inner.copy(SharedRecord { position, previous, sequence: before.sequence + 1, payload }).map(drop)
}

pub(super) fn copy_content(inner: &Inner, number: u64, content: Option<u64>) {
    copy(inner, vec![(key::signature(ShardId(0), page(number)), content.map(signature))]).unwrap();
}

/// Creates a replica of another node's pages with different contents. One page had another content before.
fn followed() -> (Disk, Inner) {
    let disk = Disk::new();
    let inner = disk.open_as(Some(LogId(7))).unwrap();
    (0..20).for_each(|n| copy_content(&inner, n, Some(n)));
    copy_content(&inner, 2, Some(102));
    (disk, inner)
}

/// Returns the rows that another node writes when it purges a page.
fn purged(number: u64) -> Vec<Write> {
    vec![row(number, State::Purged, 1), (key::signature(ShardId(0), page(number)), None)]
}

#[test]
fn a_copied_purge_erases_signatures_some_minutes_later() {
    let (disk, inner) = followed();
    copy(&inner, vec![row(5, State::Dead, 1), (key::signature(ShardId(0), page(5)), None)]).unwrap();
    lock(&inner.erasure).end_pause();
    inner.erase_if_owed().unwrap();
    assert_eq!(on_disk(&disk).len(), 21, "an erasure ran before any purge");
    copy(&inner, purged(2)).unwrap();
    assert!(lock(&inner.moving).checkpoint.erasing);
    // The node that made the purge must erase first, and not at the same time.
    inner.erase_if_owed().unwrap();
    assert_eq!(on_disk(&disk).len(), 21);
    lock(&inner.erasure).end_pause();
    inner.erase_if_owed().unwrap();
    let left: Vec<u64> = (0..20).filter(|n| ![2, 5].contains(n)).collect();
    assert_eq!(on_disk(&disk), left);
    assert!(!lock(&inner.moving).checkpoint.erasing);
    // The row is written again, and no further erasure is owed.
    copy(&inner, vec![row(2, State::Purged, 2)]).unwrap();
    assert!(!lock(&inner.moving).checkpoint.erasing);
    // The page has come back meanwhile.
    copy(&inner, vec![row(2, State::Dead, 3)]).unwrap();
    copy(&inner, purged(2)).unwrap();
    assert!(lock(&inner.moving).checkpoint.erasing);
}

#[test]
fn a_purge_of_this_node_is_not_delayed_by_copied_purges() {
    let (disk, inner) = followed();
    let purge = inner.begin_purge().unwrap();
    copy(&inner, purged(2)).unwrap();
    drop(purge);
    inner.erase_if_owed().unwrap();
    assert!(![2, 102].iter().any(|content| on_disk(&disk).contains(content)));
}

#[test]
fn a_copied_purge_is_carried_out_after_a_crash() {
    let (mut whole, mut without) = (0, 0);
    for (seed, calls) in (0..4).flat_map(|seed| (0..12).map(move |calls| (seed, calls))) {
        let (disk, inner) = followed();
        // The process dies during the copy, during the erasure, or after it.
        disk.allow(Some((calls, u64::MAX)));
        if copy(&inner, purged(2)).is_ok() {
            lock(&inner.erasure).end_pause();
            disk.allow(Some((u64::MAX, calls)));
            drop(inner.erase_if_owed());
        }
        drop(inner);
        disk.allow(None);
        let disk = disk.crash(&mut Random::new(seed));
        let inner = disk.open_as(Some(LogId(7))).unwrap();
        let is_copied = inner.last_copied().position.index == 22;
        let before = on_disk(&disk);
        inner.erase_if_owed().unwrap();
        assert_eq!(
            on_disk(&disk),
            before,
            "the erasure ran at once, though the shared log may need the signatures"
        );
        lock(&inner.erasure).end_pause();
        inner.erase_if_owed().unwrap();
        let left = on_disk(&disk);
        assert!(!is_copied || !left.contains(&2) && !left.contains(&102), "{seed}, {calls} calls: {left:?}");
        assert!(left.contains(&19) && (is_copied || left.contains(&102)), "{seed}, {calls} calls: {left:?}");
        (whole, without) = (whole + u32::from(is_copied), without + u32::from(!is_copied));
    }
    assert!(whole > 10 && without > 0, "{whole} {without}");
}

/// Recording an erasure changes the store of rows, which a move locks for long.
#[test]
fn a_copied_purge_does_not_wait_for_a_move_if_an_erasure_is_already_recorded() {
    let (_disk, inner) = followed();
    copy(&inner, purged(2)).unwrap();
    let moving = lock(&inner.moving);
    std::thread::scope(|scope| {
        let (done, answer) = std::sync::mpsc::channel();
        let inner = &inner;
        scope.spawn(move || done.send(copy(inner, purged(3)).is_ok()));
        let copied = answer.recv_timeout(Duration::from_secs(60));
        drop(moving);
        assert_eq!(copied, Ok(true));
    });
}

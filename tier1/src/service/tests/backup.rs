//! A backup as a stream: it advances only when the caller takes a piece, delays no writes, and says when it
//! is complete.

use doppel_protocol::{BACKUP_PIECE_BYTES, BackupError, BackupPiece, BackupSummary};

use super::*;
use crate::backup::BackupReader;

over_ranges! {
    commits_between_two_pieces_are_in_the_backup,
    an_abandoned_backup_delays_no_write,
    a_backup_fails_when_the_service_stops,
}

fn start_with_pages(ranges: u16) -> (tempfile::TempDir, Arc<Tier1>) {
    let dir = tempfile::tempdir().unwrap();
    let config = Config { dir: dir.path().to_owned(), ..config(Retention::DEFAULT, ranges) };
    // Each range has a store of its own, so that no row is copied twice.
    let stores = (0..ranges).map(|_| Arc::new(Memory::default()) as Arc<dyn Store>).collect();
    let tier1 = Tier1::open_over_stores(stores, &config).unwrap();
    let tier2 = Arc::new(LinkingIndex::naming(usize::MAX));
    assert!(tier2.answer.set(Arc::clone(&tier1) as Arc<dyn ContentSource>).is_ok());
    tier1.start(tier2 as Arc<dyn IndexOrders>).unwrap();
    for page in 0..20 {
        submit(&tier1, page, 1, content(page));
    }
    assert!(tier1.flush(PATIENCE).unwrap());
    (dir, tier1)
}

fn commits_between_two_pieces_are_in_the_backup(ranges: u16) {
    let (_dir, tier1) = start_with_pages(ranges);
    let mut backup = tier1.backup().unwrap();
    let (mut file, mut summary) = (Vec::new(), BackupSummary::default());
    let first = backup.next().unwrap().unwrap();
    for page in 20..40 {
        submit(&tier1, page, 1, content(page));
    }
    assert!(tier1.flush(PATIENCE).unwrap(), "writes do not wait for the backup");
    for piece in std::iter::once(Ok(first)).chain(&mut backup) {
        match piece.unwrap() {
            BackupPiece::Bytes(bytes) => {
                assert!(!bytes.is_empty() && bytes.len() <= BACKUP_PIECE_BYTES);
                file.extend(bytes);
            }
            BackupPiece::End(end) => summary = end,
        }
    }
    assert!(backup.next().is_none());
    assert!(summary.changes > 0 && summary.bytes == file.len() as u64, "{summary:?}");
    let restored = Memory::default();
    let mut input = file.as_slice();
    let mut reader = BackupReader::open(&mut input).unwrap();
    while let Some(writes) = reader.writes().unwrap() {
        restored.commit(writes).unwrap();
    }
    for page in 0..40 {
        let id = url(page).id();
        assert!(restored.get(&key::page(tier1.collection.shard_of(id), id)).unwrap().is_some(), "{page}");
    }
    tier1.stop();
}

fn an_abandoned_backup_delays_no_write(ranges: u16) {
    let (_dir, tier1) = start_with_pages(ranges);
    for pieces in 0..3 {
        let mut backup = tier1.backup().unwrap();
        assert_eq!(backup.by_ref().take(pieces).filter(Result::is_ok).count(), pieces);
        drop(backup);
        submit(&tier1, 50 + pieces as u64, 1, content(50));
        assert!(tier1.flush(PATIENCE).unwrap());
    }
    tier1.stop();
}

fn a_backup_fails_when_the_service_stops(ranges: u16) {
    let (_dir, tier1) = start_with_pages(ranges);
    let mut backup = tier1.backup().unwrap();
    assert!(backup.next().unwrap().is_ok());
    tier1.stop();
    let rest: Vec<_> = backup.by_ref().collect();
    assert!(
        matches!(rest.last(), Some(Err(BackupError::Tier1Error(Tier1Error::Stopping)))),
        "the last piece is {:?}",
        rest.last().map(Result::is_ok)
    );
    assert!(backup.next().is_none());
}

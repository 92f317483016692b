//! What a purge makes unused leaves the files, whatever happens.

use super::*;

/// Pages with contents of their own, of which some get another one.
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

/// The contents whose bytes are in the files of signatures.
fn on_disk(disk: &Disk) -> Vec<u64> {
    let files = disk.signatures.files();
    let has = |content: &u64| {
        let signature = signature(*content);
        files.iter().any(|(_, bytes)| bytes.windows(signature.len()).any(|part| part == signature))
    };
    (0..200).filter(has).collect()
}

/// The contents of pages 0 to 29 after pages 2 and 20 to 29 were purged.
fn expected() -> Vec<u64> {
    [5..20, 100..102, 103..105].into_iter().flatten().collect()
}

fn purge(inner: &Inner) {
    let purge = inner.begin_purge().unwrap();
    [2].into_iter().chain(20..30).for_each(|n| put(inner, n, None));
    drop(purge);
}

#[test]
fn a_purge_takes_the_bytes_of_earlier_contents_along() {
    let (disk, inner) = filled();
    inner.erase_if_owed().unwrap();
    inner.move_rows().unwrap();
    assert_eq!(on_disk(&disk).len(), 35, "nothing is owed before");
    purge(&inner);
    inner.erase_if_owed().unwrap();
    assert_eq!(on_disk(&disk), expected());
    assert!(!lock(&inner.moving).applied.erasing);
    // The last one was a moment ago.
    put(&inner, 40, Some(150));
    let purge = inner.begin_purge().unwrap();
    put(&inner, 40, None);
    drop(purge);
    inner.erase_if_owed().unwrap();
    assert!(on_disk(&disk).contains(&150) && lock(&inner.moving).applied.erasing);
    drop(inner);
    let next = disk.open().unwrap();
    next.erase_if_owed().unwrap();
    assert_eq!(on_disk(&disk), expected());
    assert_eq!(next.get(&key::signature(ShardId(0), page(7)), false).unwrap(), Some(signature(7)));
}

#[test]
fn a_purge_that_is_under_way_keeps_it_owed() {
    let (disk, inner) = filled();
    purge(&inner);
    let later = inner.begin_purge().unwrap();
    inner.erase_if_owed().unwrap();
    put(&inner, 7, None);
    drop(later);
    assert!(on_disk(&disk).contains(&7) && lock(&inner.moving).applied.erasing);
}

#[test]
fn an_acknowledged_purge_is_carried_out_after_a_crash() {
    for (seed, calls) in (0..).zip(0..60) {
        let (disk, inner) = filled();
        purge(&inner);
        // It dies somewhere in the erasure, or after it.
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
fn segments_stay_few_however_often_it_is_erased() {
    let disk = Disk { segment_bytes: 16_000, ..Disk::new() };
    let inner = disk.open().unwrap();
    for n in 0..120 {
        put(&inner, 2 * n, Some(2 * n));
        let purge = inner.begin_purge().unwrap();
        put(&inner, 2 * n + 1, Some(2 * n + 1));
        put(&inner, 2 * n + 1, None);
        drop(purge);
        lock(&inner.erasure).forget_pause();
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
fn an_erasure_begins_a_segment_only_where_the_last_has_something_unused() {
    let disk = Disk { segment_bytes: 16_000, ..Disk::new() };
    let inner = disk.open().unwrap();
    for n in 0..20 {
        put(&inner, n, Some(n));
        drop(inner.begin_purge().unwrap());
        lock(&inner.erasure).forget_pause();
        inner.erase_if_owed().unwrap();
    }
    assert_eq!(disk.signatures.files().len(), 1);
}

#[test]
fn a_segment_that_could_not_be_begun_does_no_harm() {
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
        // It dies in a commit: written, and not synced.
        disk.allow(Some((u64::MAX, 1)));
        let write = (key::signature(ShardId(0), page(51)), Some(signature(161)));
        drop(inner.commit(vec![write]));
        drop(inner);
        disk.allow(None);
        let inner = disk.crash(&mut Random::new(seed)).open().unwrap();
        inner.signatures.each(&mut |_, _| true).unwrap();
        inner.erase_if_owed().unwrap();
    }
}

#[test]
fn a_damaged_segment_does_not_keep_the_others() {
    let (disk, inner) = filled();
    inner.move_all().unwrap();
    drop(inner);
    // The length before a signature, in a file that is to be written anew.
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
    assert!(lock(&inner.moving).applied.erasing);
    let left = on_disk(&disk);
    assert!(left.contains(&18) && (23..30).all(|content| !left.contains(&content)), "{left:?}");
}

#[test]
fn nobody_who_only_reads_waits_for_it() {
    let dir = tempfile::tempdir().unwrap();
    let database = Database::open(dir.path(), true).unwrap();
    database.purge(|| ()).unwrap();
    drop(database);
    let database = Database::open_existing(dir.path()).unwrap();
    database.inner.erase_if_owed().unwrap();
    assert!(lock(&database.inner.moving).applied.erasing);
}

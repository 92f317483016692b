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

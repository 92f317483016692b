//! Tests that a backup returns what was written, and that every damage is detected.

mod series;

use doppel_model::ShardId;
use doppel_protocol::IndexStateItem;

use super::file_format::{HEAD_BYTES, MAGIC};
use super::*;
use crate::rows::record::{Meta, encode};
use crate::storage::store::{Memory, Write};

/// A full backup of 40 rows, with these changes.
fn backup(changes: &[Write]) -> Vec<u8> {
    let store = Memory::default();
    let meta = |n| encode(&Meta { events: n, ..Meta::default() }).unwrap();
    let rows = (0..40).map(|n| (key::meta(ShardId(n)), Some(meta(u64::from(n))))).collect();
    store.commit(rows).unwrap();
    // The state of tier 2's router does not belong into the backup.
    store.commit(vec![(key::index_state(IndexStateItem::Plan), Some(encode(&vec![1_u8]).unwrap()))]).unwrap();
    let mut file = Vec::new();
    let mut writer = BackupWriter::begin(&mut file, "the manifest").unwrap();
    let mut from = Vec::new();
    while copy_piece(&store, &mut from, &mut writer).unwrap() {}
    for (key, value) in changes {
        writer.entry(BlockKind::Changes, key, value.as_deref()).unwrap();
    }
    let summary = writer.end().unwrap();
    assert_eq!((summary.rows, summary.changes), (40, changes.len() as u64));
    assert_eq!(summary.bytes, file.len() as u64);
    file
}

fn read(mut file: &[u8]) -> Result<Vec<Write>, BackupFileError> {
    let mut reader = BackupReader::open(&mut file)?;
    assert_eq!(reader.head().directory_manifest, "the manifest");
    let mut all = Vec::new();
    while let Some(writes) = reader.writes()? {
        all.extend(writes);
    }
    Ok(all)
}

#[test]
fn a_backup_returns_its_rows_and_changes_in_order() {
    let changes = vec![(vec![1, 2], Some(vec![3; 100])), (vec![1, 2], None), (vec![], Some(vec![]))];
    let writes = read(&backup(&changes)).unwrap();
    assert_eq!(writes.len(), 43);
    assert!(writes[..40].is_sorted());
    assert_eq!(writes[40..], changes);
    assert_eq!(backup(&changes), backup(&changes));
}

#[test]
fn every_flipped_bit_and_every_cut_is_detected() {
    let file = backup(&[(vec![1], None)]);
    for at in 0..file.len() {
        let mut bad = file.clone();
        bad[at] ^= 1 << (at % 8);
        assert!(read(&bad).is_err(), "byte {at} of {}", file.len());
        assert!(read(&file[..at]).is_err(), "cut at {at} of {}", file.len());
    }
    assert!(matches!(read(&[file.clone(), vec![0]].concat()), Err(BackupFileError::Damaged { .. })));
    assert!(matches!(read(b"something else altogether"), Err(BackupFileError::Foreign)));
}

#[test]
fn blocks_that_are_left_out_or_repeated_are_detected() {
    let file = backup(&[(vec![1], None)]);
    let (mut starts, mut at) = (Vec::new(), MAGIC.len());
    while at < file.len() {
        starts.push(at);
        at += HEAD_BYTES + u32::from_le_bytes(file[at + 1..at + 5].try_into().unwrap()) as usize;
    }
    assert_eq!((starts.len(), at), (4, file.len()));
    let without = [&file[..starts[1]], &file[starts[2]..]].concat();
    assert!(matches!(read(&without), Err(BackupFileError::Damaged { .. })));
    let twice = [&file[..starts[2]], &file[starts[1]..]].concat();
    assert!(matches!(read(&twice), Err(BackupFileError::Damaged { .. })));
    assert!(matches!(read(&file[..starts[3]]), Err(BackupFileError::Cut(3))));
}

#[test]
fn damaged_rows_are_not_backed_up() {
    let store = Memory::default();
    store.commit(vec![(key::meta(ShardId(0)), Some(vec![1, 2, 3, 4, 5, 6]))]).unwrap();
    let mut file = Vec::new();
    let mut writer = BackupWriter::begin(&mut file, "").unwrap();
    let copied = copy_piece(&store, &mut Vec::new(), &mut writer);
    assert!(matches!(copied, Err(BackupError::Tier1Error(Tier1Error::Damaged(_)))), "{copied:?}");
}

/// An output that accepts `left` bytes and then fails, as a full disk does.
struct FailingOutput {
    file: Vec<u8>,
    left: usize,
    /// Whether writes succeed again after one failure.
    recovers: bool,
}

impl io::Write for FailingOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.left == 0 {
            if self.recovers {
                self.left = usize::MAX;
            }
            return Err(io::ErrorKind::StorageFull.into());
        }
        // The last write before the failure is short.
        let taken = bytes.len().min(self.left);
        self.file.extend(&bytes[..taken]);
        self.left -= taken;
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_write_that_fails_at_any_byte_gives_no_valid_backup() {
    let rows: Vec<Write> = (0..30_u8).map(|n| (vec![0, n], Some(vec![n; 9]))).collect();
    let write = |out: &mut FailingOutput| {
        let mut writer = BackupWriter::begin(out, "the manifest")?;
        // A caller that continues after an error gets an error again.
        let (mut failed, kinds) = (None, [BlockKind::Rows, BlockKind::Changes]);
        for (kind, (key, value)) in kinds.into_iter().flat_map(|kind| rows.iter().map(move |row| (kind, row)))
        {
            failed = writer.entry(kind, key, value.as_deref()).err().or(failed);
        }
        let ended = writer.end();
        assert!(failed.is_none() || ended.is_err(), "the backup ended without an error after a failed write");
        ended.map(drop)
    };
    let output = |left, recovers| FailingOutput { file: Vec::new(), left, recovers };
    let mut out = output(usize::MAX, true);
    write(&mut out).unwrap();
    read(&out.file).unwrap();
    for (left, recovers) in (0..out.file.len()).flat_map(|left| [(left, false), (left, true)]) {
        let mut failing = output(left, recovers);
        assert!(write(&mut failing).is_err(), "{left} bytes");
        assert!(read(&failing.file).is_err(), "{left} bytes");
    }
}

//! Any bytes as a table, with the separator that the first byte says: the reader ends, its items are at most as many
//! as lines, and the same bytes through a pipe give as many items.
#![no_main]

use std::io::Cursor;
use std::path::Path;
use std::sync::LazyLock;

use doppel_crawls::record::RecordFile;
use doppel_crawls::{InputFormat, InputOptions, Item, Limits, is_separator};
use doppel_model::Timestamp;
use libfuzzer_sys::fuzz_target;
use tempfile::TempDir;

static DIRECTORY: LazyLock<TempDir> = LazyLock::new(|| tempfile::tempdir().expect("a directory"));

fuzz_target!(|bytes: &[u8]| {
    let Some((first, bytes)) = bytes.split_first() else { return };
    let limits = Limits {
        line_bytes_max: 1 << 10,
        page_bytes_max: 1 << 9,
        expansion_free_bytes: 1 << 20,
        ..Limits::at(Timestamp::from_millis(0))
    };
    let separator = is_separator(*first).then_some(*first);
    let options = || InputOptions { separator, format: Some(InputFormat::Csv), ..limits.into() };
    let path = DIRECTORY.path().join("table.csv");
    std::fs::write(&path, bytes).expect("a file");
    let Ok(input) = doppel_crawls::open(&path, options()) else { return };
    let shown = |item: Item| match item {
        Item::Bad(error) => format!("{:?} {}", error.position, error.reason),
        Item::Fields(_) => "fields".to_owned(),
        other => format!("{other:?}"),
    };
    let items: Vec<_> = input.map(shown).collect();
    let magics = [&[0x1f, 0x8b][..], b"\x28\xb5\x2f\xfd", b"BZh", b"\xfd7zXZ"];
    let is_skippable = bytes.get(1..4) == Some(b"\x2a\x4d\x18");
    let is_compressed = is_skippable || magics.iter().any(|magic| bytes.starts_with(magic));
    let lines = bytes.iter().filter(|byte| matches!(byte, b'\n' | b'\r')).count() + 1;
    assert!(is_compressed || items.len() <= lines + 1, "{} items of {lines} lines", items.len());
    let name = RecordFile::single(Path::new("table.csv"));
    let pipe = doppel_crawls::open_pipe(Cursor::new(bytes.to_vec()), Path::new("table.csv"), name, options());
    let through: Vec<_> = pipe.expect("what a file can hold").map(shown).collect();
    // Of a pipe with URLs ids are not looked at.
    assert_eq!(items.len(), through.len());
});

//! Any bytes as JSON lines: each line that is not blank is an item, and what parses reads back from
//! its own line.
#![no_main]

use std::sync::LazyLock;

use doppel_contract::page::PageItem;
use doppel_crawls::{Item, Limits};
use doppel_model::Timestamp;
use libfuzzer_sys::fuzz_target;
use tempfile::TempDir;

const NOW: Timestamp = Timestamp::from_millis(0);

static DIRECTORY: LazyLock<TempDir> = LazyLock::new(|| tempfile::tempdir().expect("a directory"));

fuzz_target!(|bytes: &[u8]| {
    let lines = bytes.split(|b| *b == b'\n');
    let mut written = Vec::new();
    for line in lines.clone() {
        let Ok(mut item) = PageItem::parse(line, NOW) else { continue };
        // Its last digit is not exact in either direction.
        item.popularity = item.popularity.map(f64::round).filter(|popularity| *popularity < 1e15);
        written.clear();
        item.to_json_line(&mut written);
        assert_eq!(PageItem::parse(&written, NOW), Ok(item));
    }
    let compressed = bytes.starts_with(&[0x1f, 0x8b]) || bytes.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]);
    let path = DIRECTORY.path().join("crawl.jsonl");
    std::fs::write(&path, bytes).expect("a file");
    let Ok(input) = doppel_crawls::open(&path, Limits::at(NOW)) else { return };
    let items = input.filter(|item| matches!(item, Item::Page(_) | Item::Bad(_))).count();
    let filled = lines.filter(|line| !line.trim_ascii().is_empty()).count();
    assert!(compressed || items == filled, "{items} items of {filled} lines");
});

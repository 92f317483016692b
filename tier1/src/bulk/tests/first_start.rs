//! The first start of a new collection: it uses the snapshots of the status tables, and the index can use what was
//! made from the contents.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use doppel_contract::answer::Advice;
use doppel_protocol::{ContentSource, SignaturePlace, StoredSignatures};

use super::*;
use crate::machine::{Retention, Rules};
use crate::service::{Config, Tier1};
use crate::statuses::{Fill, Snapshot, Statuses, damage};
use crate::storage::range_files::directories;
use crate::storage::store::Memory;

/// Writes the databases of a mixed collection.
fn written(dir: &Path, map: RangeMap) -> (GroupedCollection, NewContents) {
    let config = BulkConfig {
        policy: Policy::default(),
        winners: WinnerOrder::DEFAULT,
        market: None,
        group_members_max: 5,
        unit: Unit::Page,
        keep: BulkOutput::Databases { dir, map },
    };
    let mut bulk = Bulk::new(&config).unwrap();
    for version in mixed() {
        bulk.submit(version).unwrap();
    }
    let (grouped, contents) = bulk.finish_with_contents().unwrap();
    (grouped, contents.unwrap())
}

#[test]
fn the_snapshots_of_the_status_tables_agree_with_the_rows() {
    for (shards, ranges) in [(1, 1), (6, 3)] {
        let home = tempfile::tempdir().unwrap();
        let dir = home.path().join("tier1");
        let map = RangeMap::new(shards, ranges).unwrap();
        written(&dir, map);
        let databases = Database::open_ranges(&dir, map).unwrap();
        let dirs = directories(&dir, map);
        let key = Snapshot::open(&dirs[0].1).unwrap().unwrap().key;
        let no_rows = Memory::default();
        let [from_snapshots, from_rows] = [true, false].map(|is_saved| {
            let statuses = Statuses::new(map, WinnerOrder::DEFAULT, key);
            for ((range, dir), database) in dirs.iter().zip(&databases) {
                let run = map.run(*range);
                let mut fill = Fill::new(statuses.begin(*range, None), run.clone());
                if is_saved {
                    assert_eq!(damage(dir).unwrap(), None);
                    let snapshot = Snapshot::open(dir).unwrap().unwrap();
                    let basis = snapshot.basis;
                    assert_eq!((basis.first, basis.end), (run.start, run.end));
                    assert!(snapshot.key == key, "the snapshots of two ranges have different keys");
                    let begun = fill.begin_from(snapshot, |each| database.written_since(basis.moment, each));
                    assert!(begun.unwrap(), "the log does not reach back to the snapshot");
                }
                loop {
                    let rows: &dyn Store = if is_saved { &no_rows } else { database };
                    fill.read(rows, 10).unwrap();
                    if !fill.put() {
                        break;
                    }
                }
            }
            statuses
        });
        for version in mixed() {
            assert_eq!(from_snapshots.advise(&version.url), from_rows.advise(&version.url));
        }
        let never = PageUrl::parse("http://h/never").unwrap();
        assert_eq!(from_snapshots.advise(&never), Some(Advice::unknown(never.to_string())));
    }
}

#[test]
fn the_contents_for_the_index_are_those_that_the_first_start_names() {
    for (shards, ranges) in [(1, 1), (6, 3)] {
        let home = tempfile::tempdir().unwrap();
        let dir = home.path().join("tier1");
        let map = RangeMap::new(shards, ranges).unwrap();
        let (_, contents) = written(&dir, map);
        let config = Config {
            dir,
            shards,
            ranges,
            policy: Policy::default(),
            winners: WinnerOrder::DEFAULT,
            pending_max: 100,
            group_members_max: 5,
            low_cohesion_percent: 25,
            rules: Rules::EXACT,
            retention: Retention::DEFAULT,
            status_table: false,
            snapshot_pause: Duration::ZERO,
            durable: true,
            collection: 1,
            manifest: String::new(),
        };
        let tier1 = Tier1::open(&config).unwrap();
        let firsts = |source: &dyn ContentSource| -> Vec<_> {
            source.ranges().unwrap().into_iter().map(|one| (one.range, one.first)).collect()
        };
        assert_eq!(firsts(&contents), firsts(&*tier1));
        let mut of_pages = BTreeSet::new();
        for range in map.ranges() {
            let all = |source: &dyn ContentSource| {
                let (mut all, mut after) = (Vec::new(), None);
                loop {
                    let page = source.contents(range, after, 7).unwrap();
                    all.extend(page.contents);
                    after = page.next;
                    if after.is_none() {
                        return all;
                    }
                }
            };
            assert!(!all(&contents).is_empty());
            of_pages.extend(all(&contents).into_iter().map(|(_, content)| content));
            assert_eq!(all(&contents), all(&*tier1));
            let moment = contents.moment(range).unwrap().unwrap();
            assert_eq!(tier1.changed_since(range, moment.log).unwrap(), Some(Vec::new()));
        }
        let stored = tier1.stored_signatures().unwrap();
        let each = |stored: &dyn StoredSignatures| {
            let mut all: Vec<(SignaturePlace, Vec<u8>)> = Vec::new();
            let mut note = |place, bytes: &[u8]| {
                all.push((place, bytes.to_vec()));
                true
            };
            stored.each(&mut note).unwrap();
            all
        };
        // The files also have signatures that later versions replaced.
        let is_of_page = |bytes: &[u8]| {
            let signature = Signature::from_bytes(bytes).unwrap();
            signature.tokens() == 0 || of_pages.contains(&signature.content())
        };
        let mut of_service = each(&*stored);
        let all = of_service.len();
        of_service.retain(|(_, bytes)| is_of_page(bytes));
        assert!(all > of_service.len(), "no signature was replaced");
        assert!(each(&contents) == of_service, "the signatures differ");
        for (place, bytes) in of_service {
            let mut read = Vec::new();
            contents.read(place, &mut read).unwrap();
            assert_eq!(read, bytes);
        }
        tier1.stop();
    }
}

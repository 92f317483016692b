//! Tests with damaged WARC files. All undamaged records must be read.

use std::sync::LazyLock;

use proptest::prelude::*;

use super::framing::{PACKS, outcome};
use super::warc::{page, record};
use super::*;

/// Eight records. The record with the index 3 is not a page.
fn records() -> Vec<Vec<u8>> {
    let mut records: Vec<_> =
        (0..8).map(|n| page(&format!("https://a.org/{n}"), &format!("{n} words ").repeat(n * 3))).collect();
    records[3] = record("WARC-Type: warcinfo\r\n", b"software: x\r\n");
    records
}

/// The items of each record, read from a file of its own.
static INTACT: LazyLock<Vec<Vec<String>>> =
    LazyLock::new(|| records().iter().map(|record| rendered(&items("a.warc", record))).collect());

#[test]
fn a_truncated_file_loses_only_what_follows_the_cut() {
    let records = records();
    for pack in
        [|record: &Vec<u8>| gzip(record), |record: &Vec<u8>| zstd(record), |record: &Vec<u8>| record.clone()]
    {
        let packed: Vec<_> = records.iter().map(pack).collect();
        let file = packed.concat();
        for cut in 0..file.len() {
            let whole = packed.iter().scan(0, |end, record| {
                *end += record.len();
                Some(*end)
            });
            let whole = whole.take_while(|end| *end <= cut).count();
            let rendered = rendered(&items("a.warc", &file[..cut]));
            let whole = INTACT[..whole].concat();
            assert_eq!(rendered[..whole.len()], whole, "cut at {cut}");
            // After the whole records comes the cut one: an error, or a page if only its final line ends are
            // missing.
            let rest = &rendered[whole.len()..];
            assert!(rest.len() <= 1, "cut at {cut}: {rest:?}");
            assert!(rest.iter().all(|line| line.starts_with("bad: ") || INTACT.concat().contains(line)));
        }
    }
}

#[test]
fn a_truncated_member_costs_one_record() {
    // This happens if a crawler is killed and later appends to the file.
    for (name, pack) in [("a.warc.gz", gzip as fn(&[u8]) -> Vec<u8>), ("a.warc.zst", zstd)] {
        let packed: Vec<_> = records().iter().map(|record| pack(record)).collect();
        for cut in 1..packed[2].len() {
            let file = [packed[..2].concat(), packed[2][..cut].to_vec(), packed[4..].concat()].concat();
            let rendered = rendered(&items(name, &file));
            let bad: Vec<_> = rendered.iter().filter(|line| line.starts_with("bad: ")).collect();
            let good: Vec<_> = rendered.iter().filter(|line| !line.starts_with("bad: ")).cloned().collect();
            assert_eq!(good, [&INTACT[..2], &INTACT[4..]].concat().concat(), "{name} cut at {cut}: {bad:?}");
            assert_eq!(bad.len(), 1, "{name} cut at {cut}: {bad:?}");
        }
    }
}

#[test]
fn a_file_broke_off_if_nothing_readable_follows_the_damage() {
    let broke_off = |name: &str, content: &[u8]| {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(name);
        fs::write(&path, content).unwrap();
        let mut input =
            doppel_crawls::open(&path, Limits { expansion_free_bytes: 1 << 20, ..LIMITS }).unwrap();
        let bad = input.by_ref().filter(|item| matches!(item, Item::Bad(_))).count();
        (bad, input.broke_off())
    };
    let records = records();
    let packed: Vec<_> = records.iter().map(|record| gzip(record)).collect();
    let cut = |at: usize| packed[at][..packed[at].len() / 2].to_vec();
    let corrupt = |at: usize| {
        let mut member = packed[at].clone();
        *member.last_mut().unwrap() ^= 1;
        member
    };
    assert_eq!(broke_off("a.warc.gz", &packed.concat()), (0, false));
    assert_eq!(broke_off("a.warc.gz", &[cut(0), cut(1), corrupt(2), packed[4].clone()].concat()), (3, false));
    // The file did not break off if any record after the damage can be read, even one that only describes the
    // crawl.
    assert_eq!(broke_off("a.warc.gz", &[corrupt(0), packed[3].clone()].concat()), (1, false));
    assert_eq!(broke_off("a.warc.gz", &[packed[0].clone(), corrupt(1), cut(2)].concat()), (2, true));
    assert_eq!(broke_off("a.warc.gz", &[packed[0].clone(), b"junk".to_vec()].concat()), (1, true));
    let member = gzip(&records.concat());
    assert_eq!(broke_off("a.warc.gz", &member[..member.len() / 2]), (1, true));
    assert_eq!(broke_off("a.warc.gz", &[&member[..member.len() / 2], &packed[1]].concat()), (1, false));
    assert_eq!(broke_off("a.warc.gz", &gzip(&vec![0; 100 << 20])), (2, true));
    assert_eq!(
        broke_off("a.warc.gz", &[&packed[0][..], &gzip(b"WARC/1.0\r\nbad\r\n\r\n")].concat()),
        (1, false)
    );
    let plain = records.concat();
    assert_eq!(broke_off("a.warc", &plain[..plain.len() - 10]), (1, true));

    let lines = gzip(b"{\"url\":\"https://a.org/\",\"dead\":true}\n{}");
    assert_eq!(broke_off("a.jsonl.gz", &lines), (1, false));
    assert_eq!(broke_off("a.jsonl.gz", &lines[..lines.len() - 10]), (1, true));
    // The last line `{}` is bad, and so are the bytes after it.
    assert_eq!(broke_off("a.jsonl.gz", &[&lines[..], b"junk"].concat()), (2, true));
    assert_eq!(broke_off("a.jsonl", &vec![b' '; 50 << 20]), (1, false));
    assert_eq!(broke_off("a.html", &vec![b' '; 50 << 20]), (1, false));
}

#[test]
fn damage_behind_a_broken_record_ends_the_file() {
    let mut records = records();
    records.iter_mut().skip(5).for_each(|record| record[..4].copy_from_slice(b"XXRC"));
    for (how, pack) in PACKS.into_iter().filter(|(how, _)| how.contains("whole")) {
        let whole = pack(&records);
        let found = outcome("a.warc", &whole);
        assert_eq!((found.pages.len(), found.bad, found.broke_off), (4, 1, false), "{how}");
        // The data before the cut can be unpacked up to the last block.
        assert!(outcome("a.warc", &whole[..whole.len() - 6]).broke_off, "{how}, cut off");
    }
    let mut wrong = gzip(&records.concat());
    let checksum = wrong.len() - 6;
    wrong[checksum] ^= 1;
    let found = outcome("a.warc", &wrong);
    assert_eq!((found.pages.len(), found.broke_off), (4, true));
}

#[test]
fn a_file_without_any_readable_record_broke_off() {
    for (at, is_known) in [(0, false), (1, false), (2, true)] {
        let mut file: Vec<u8> = records().iter().flat_map(|record| gzip(record)).collect();
        file[at] = 0;
        let found = outcome("a.warc.gz", &file);
        // Only the first two bytes show that the file is compressed.
        assert_eq!(
            (found.pages.len(), found.bad, found.broke_off),
            (if is_known { 6 } else { 0 }, 1, !is_known),
            "{at}"
        );
    }
}

#[test]
fn records_and_lines_before_the_damaged_end_of_a_member_are_read() {
    let records = records();
    let whole = gzip(&records.concat());
    for lost in 1..=8 {
        let found = outcome("a.warc.gz", &whole[..whole.len() - lost]);
        // The reader cannot know whether the last record is whole, so it is bad.
        assert_eq!((found.pages.len(), found.bad, found.broke_off), (6, 1, true), "{lost}");
    }
    let lines: Vec<u8> = (0..60)
        .flat_map(|n| format!("{{\"url\":\"https://a.org/{n}\",\"text\":\"a\"}}\n").into_bytes())
        .collect();
    let packed = gzip(&lines);
    for lost in 1..=8 {
        let found = outcome("a.jsonl.gz", &packed[..packed.len() - lost]);
        assert_eq!((found.pages.len(), found.bad, found.broke_off), (60, 1, true), "{lost}");
    }
}

#[test]
fn records_inside_the_content_of_other_records_are_not_read() {
    // One page contains a record, and another one contains a gzip member, which a stored deflate block copies
    // byte by byte.
    let hidden = page("https://victim.org/", "");
    let text = String::from_utf8(hidden.clone()).unwrap();
    let mut stored = GzEncoder::new(Vec::new(), Compression::none());
    let outer = page("https://a.org/", &format!("\r\n\r\n{text}\r\n\r\n"));
    let nested = record(
        "WARC-Type: resource\r\nWARC-Target-URI: https://a.org/\r\nContent-Type: text/html\r\n",
        &gzip(&hidden),
    );
    stored.write_all(&[outer, nested].concat()).unwrap();
    let rendered = rendered(&items("a.warc.gz", &stored.finish().unwrap()));
    assert_eq!(rendered.len(), 2, "{rendered:?}");
    assert!(rendered.iter().all(|line| line.starts_with("https://a.org/ html ")));
}

#[test]
fn a_length_that_ends_by_chance_at_a_blank_line_of_another_record_costs_one_record() {
    // By its wrong length, the third record ends with the head of the HTTP response in the sixth record.
    let records = records();
    let third = String::from_utf8(records[2].clone()).unwrap();
    let damaged = third.replacen("Content-Length: 92\r", "Content-Length:692\r", 1).into_bytes();
    assert_ne!(damaged, records[2]);
    let file = [&records[..2].concat(), &damaged, &records[3..].concat()].map(Vec::as_slice).concat();
    let rendered = rendered(&items("a.warc", &file));
    let (bad, good): (Vec<_>, Vec<_>) = rendered.into_iter().partition(|line| line.starts_with("bad: "));
    assert_eq!(good, [&INTACT[..2], &INTACT[3..]].concat().concat());
    assert_eq!(bad.len(), 1, "{bad:?}");
}

#[test]
fn a_damaged_member_whose_text_has_the_right_length_is_bad() {
    // The damaged byte is in the last copy of earlier bytes. The text gets other words, and some of its bytes look like the end of a record.
    for member in 4..8 {
        let whole: Vec<_> = records().iter().map(|record| gzip(record)).collect();
        let at = whole[member].len() - 12;
        for byte in 1..=255_u8 {
            let mut packed = whole.clone();
            packed[member][at] ^= byte;
            let mut good = rendered(&items("a.warc.gz", &packed.concat()));
            good.retain(|line| !line.starts_with("bad: ") && !INTACT[member].contains(line));
            let expected = [&INTACT[..member], &INTACT[member + 1..]].concat().concat();
            assert_eq!(good, expected, "member {member}, byte {at} changed by {byte}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn a_damaged_member_costs_one_record(member in 0..8_usize, at: prop::sample::Index, byte in 1..=255_u8) {
        let mut packed: Vec<_> = records().iter().map(|record| gzip(record)).collect();
        let at = at.index(packed[member].len());
        packed[member][at] ^= byte;
        // The first two bytes identify the compression, so they stay intact.
        prop_assume!(member > 0 || at > 1);
        let rendered = rendered(&items("a.warc.gz", &packed.concat()));
        let mut good: Vec<_> = rendered.iter().filter(|line| !line.starts_with("bad: ")).cloned().collect();
        good.retain(|line| !INTACT[member].contains(line));
        prop_assert_eq!(good, [&INTACT[..member], &INTACT[member + 1..]].concat().concat());
    }

    #[test]
    fn a_damaged_byte_costs_at_most_two_uncompressed_records(at: prop::sample::Index, byte in 1..=255_u8) {
        let records = records();
        let mut file = records.concat();
        let at = at.index(file.len());
        file[at] ^= byte;
        // A file whose first record names another version of the format is refused as a whole.
        prop_assume!(!("WARC/".len().."WARC/1.0".len()).contains(&at));
        let hit = records.iter().scan(0, |end, record| { *end += record.len(); Some(*end) }).take_while(|end| *end <= at).count();
        let rendered = rendered(&items("a.warc", &file));
        for (number, expected) in INTACT.concat().iter().enumerate() {
            let number = if number < 3 { number } else { number + 1 };
            // The damaged record may be lost. If its line ends are damaged, they may hide the beginning of
            // the next record.
            if number != hit && number != hit + 1 {
                prop_assert!(rendered.contains(expected), "{} of {:?}", number, rendered);
            }
        }
    }

    #[test]
    fn noise_never_panics(
        mut bytes in prop::collection::vec(any::<u8>(), 0..2_000),
        name in prop::sample::select(vec!["a.warc", "a.jsonl", "a.html", "a.txt"]),
        magic in prop::sample::select(vec![&b""[..], b"\x1f\x8b\x08\0", b"\x28\xb5\x2f\xfd", b"WARC/1.0\r\n", b"{\"url\":"]),
        packed: bool,
    ) {
        bytes.splice(..0, magic.iter().copied());
        if packed {
            bytes = gzip(&bytes);
        }
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(name);
        fs::write(&path, &bytes).unwrap();
        if let Ok(input) = doppel_crawls::open(&path, LIMITS) {
            // Every item consumes at least one byte.
            prop_assert!(input.count() <= bytes.len() + 1);
        }
    }
}

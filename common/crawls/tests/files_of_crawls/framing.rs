//! Tests with wrong record lengths and with bytes between records. All other records must be read, and the
//! skipped bytes must be counted.

use proptest::prelude::*;

use super::warc::{page, record, response};
use super::*;

/// Stores records in one file.
pub(crate) type Pack = fn(&[Vec<u8>]) -> Vec<u8>;

/// Every compression, of the whole file and record by record.
pub(crate) const PACKS: [(&str, Pack); 7] = [
    ("plain", |records| records.concat()),
    ("gzip, whole", |records| gzip(&records.concat())),
    ("gzip, by record", |records| records.iter().flat_map(|record| gzip(record)).collect()),
    ("zstd, whole", |records| zstd(&records.concat())),
    ("zstd, by record", |records| records.iter().flat_map(|record| zstd(record)).collect()),
    ("bzip2", |records| bzip2(&records.concat())),
    ("xz", |records| xz(&records.concat())),
];

/// The result of reading an input: the pages, the number of bad records, and the number of skipped bytes.
#[derive(Debug, PartialEq)]
pub(crate) struct Outcome {
    pub(crate) pages: Vec<String>,
    pub(crate) bad: usize,
    pub(crate) skipped: u64,
    pub(crate) broke_off: bool,
}

impl Outcome {
    /// Asserts that only the `damaged` record is lost, that all its bytes count as skipped, and that the
    /// `pages` are read.
    pub(crate) fn assert_lost_one(&self, pages: &[String], damaged: &[u8], what: &str) {
        assert_eq!(self.pages, pages, "{what}");
        assert_eq!((self.bad, self.broke_off), (1, false), "{what}");
        assert_eq!(self.skipped, damaged.len() as u64, "{what}");
    }
}

pub(crate) fn outcome(name: &str, content: &[u8]) -> Outcome {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(name);
    fs::write(&path, content).unwrap();
    let mut input = doppel_crawls::open(&path, LIMITS).unwrap();
    let items: Vec<_> = input.by_ref().collect();
    let by_record: u64 =
        items.iter().map(|item| if let Item::Bad(error) = item { error.skipped } else { 0 }).sum();
    assert_eq!(by_record, input.skipped_bytes(), "each skipped byte belongs to a bad record");
    let (bad, pages) = rendered(&items).into_iter().partition::<Vec<_>, _>(|line| line.starts_with("bad: "));
    Outcome { pages, bad: bad.len(), skipped: input.skipped_bytes(), broke_off: input.broke_off() }
}

/// Replaces the first Content-Length of a record.
pub(crate) fn with_length(record: &[u8], length: &str) -> Vec<u8> {
    let text = String::from_utf8(record.to_vec()).unwrap();
    let (before, rest) = text.split_once("Content-Length: ").unwrap();
    let (_, after) = rest.split_once("\r\n").unwrap();
    format!("{before}Content-Length: {length}\r\n{after}").into_bytes()
}

fn pages(texts: &[&str]) -> Vec<Vec<u8>> {
    texts.iter().enumerate().map(|(n, text)| page(&format!("https://a.org/{n}"), text)).collect()
}

/// The pages of records, each read from a file of its own.
fn each(records: &[Vec<u8>]) -> Vec<String> {
    records.iter().flat_map(|record| outcome("a.warc", record).pages).collect()
}

#[test]
fn a_wrong_length_costs_one_record_in_every_compression() {
    let records =
        pages(&["<p>one", "<p>two\r\n\r\nmore of it", "<p>three", &"four ".repeat(20_000), "<p>five"]);
    let all = each(&records);
    for (how, pack) in PACKS {
        for at in [0, 1, 3] {
            let right = records[at].len();
            for length in ["0", "1", "7", "40", "300", "5000", "150000", "4294967296", "18446744073709551615"]
                .into_iter()
                .chain(["-1", "", "ten", "0x10", "1 2", "99999999999999999999999"])
            {
                let mut damaged = records.clone();
                damaged[at] = with_length(&records[at], length);
                if damaged[at].len() == right && damaged[at] == records[at] {
                    continue;
                }
                let found = outcome("a.warc", &pack(&damaged));
                let expected: Vec<_> = [&all[..at], &all[at + 1..]].concat();
                let what = format!("{how}, record {at} with length {length}");
                found.assert_lost_one(&expected, &damaged[at], &what);
            }
        }
    }
}

#[test]
fn a_missing_length_costs_one_record() {
    let records = pages(&["<p>one", "<p>two", "<p>three"]);
    for (how, pack) in PACKS {
        let text = String::from_utf8(records[1].clone()).unwrap();
        let length = text.lines().find(|line| line.starts_with("Content-Length")).unwrap();
        let mut damaged = records.clone();
        damaged[1] = text.replacen(&format!("{length}\r\n"), "", 1).into_bytes();
        let found = outcome("a.warc", &pack(&damaged));
        assert_eq!(
            (found.pages, found.bad),
            ([&each(&records)[..1], &each(&records)[2..]].concat(), 1),
            "{how}"
        );
    }
}

#[test]
fn two_wrong_lengths_in_a_row_cost_two_records() {
    let records = pages(&["<p>one", "<p>two", "<p>three", "<p>four", "<p>five"]);
    for (how, pack) in PACKS {
        for (second, third) in [("5000", "5000"), ("9999999999", "-1"), ("3", "300"), ("600", "ten")] {
            let mut damaged = records.clone();
            damaged[1] = with_length(&records[1], second);
            damaged[2] = with_length(&records[2], third);
            let found = outcome("a.warc", &pack(&damaged));
            let all = each(&records);
            assert_eq!(found.pages, [&all[..1], &all[3..]].concat(), "{how}, {second} and {third}");
            assert_eq!(found.bad, 2, "{how}, {second} and {third}");
        }
    }
}

/// A whole record, as a page may quote it.
const QUOTED: &str = "WARC/1.0\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:uuid:1>\r\nWARC-Date: 2020-01-01T00:00:00Z\r\n\
                      WARC-Target-URI: https://victim.org/\r\nContent-Length: 3\r\n\r\nabc\r\n\r\n";

#[test]
fn a_block_with_a_right_length_is_never_cut_at_a_quoted_record() {
    let quotes = format!("<pre>\r\n\r\n{QUOTED}{QUOTED}</pre>\r\n\r\n");
    let nested = record(
        "WARC-Type: resource\r\nWARC-Target-URI: https://a.org/w\r\nContent-Type: text/html\r\n",
        &[page("https://victim.org/", "<p>"), page("https://victim.org/2", "<p>")].concat(),
    );
    let records = [
        page("https://a.org/0", &quotes),
        nested,
        page("https://a.org/1", "WARC/1.0\r\n\r\nWARC/1.0 is a format\r\n\r\n"),
        page("https://a.org/2", QUOTED),
        page("https://a.org/3", "<p>last"),
    ];
    for (how, pack) in PACKS {
        let found = outcome("a.warc", &pack(&records));
        assert_eq!((found.bad, found.skipped), (0, 0), "{how}");
        assert_eq!(found.pages.len(), 5, "{how}: {:?}", found.pages);
        assert!(found.pages.iter().all(|page| page.starts_with("https://a.org/")), "{how}");
    }
}

#[test]
fn bytes_between_records_are_skipped_and_counted() {
    let records = pages(&["<p>one", "<p>two", "<p>three"]);
    let all = each(&records);
    for (junk, bad) in [
        ("", 0),
        ("\r\n\r\n\r\n", 0),
        ("\n", 0),
        ("junk", 1),
        ("junk\r\n\r\n", 1),
        ("<html>\r\n\r\n<p>a page\r\n\r\n", 1),
        ("WARC/1.0 is a format\r\n\r\n", 1),
        (&"\r\n".repeat(5_000), 0),
        (&"\0".repeat(700), 1),
    ] {
        for (how, pack) in PACKS {
            let file = [records[0].clone(), junk.as_bytes().to_vec(), records[1].clone(), records[2].clone()];
            let found = outcome("a.warc", &pack(&file));
            assert_eq!((&found.pages, found.bad), (&all, bad), "{how}: {junk:?}");
            let skipped = if bad > 0 { junk.len() as u64 } else { 0 };
            assert_eq!(found.skipped, skipped, "{how}: {junk:?}");
        }
    }
}

#[test]
fn records_may_end_with_missing_or_additional_line_ends() {
    let records = pages(&["<p>one", "<p>two", "<p>three"]);
    let all = each(&records);
    for ends in ["", "\r\n", "\n", "\n\n", "\r\n\r\n\r\n\r\n\r\n"] {
        let records: Vec<Vec<u8>> =
            records.iter().map(|record| [record.trim_ascii_end(), ends.as_bytes()].concat()).collect();
        for (how, pack) in PACKS {
            let found = outcome("a.warc", &pack(&records));
            assert_eq!((&found.pages, found.bad), (&all, 0), "{how}: {ends:?}");
        }
    }
    let unix: Vec<Vec<u8>> = records
        .iter()
        .map(|record| String::from_utf8(record.clone()).unwrap())
        .map(|record| {
            let (head, block) = record.split_once("\r\n\r\n").unwrap();
            format!("{}\n\n{}\n\n", head.replace("\r\n", "\n"), block.trim_end()).into_bytes()
        })
        .collect();
    for (how, pack) in PACKS {
        let found = outcome("a.warc", &pack(&unix));
        assert_eq!((&found.pages, found.bad), (&all, 0), "{how}");
        let mut damaged = unix.clone();
        damaged[1] = String::from_utf8(unix[1].clone())
            .unwrap()
            .replace("Content-Length: ", "Content-Length: 9")
            .into_bytes();
        let found = outcome("a.warc", &pack(&damaged));
        assert_eq!((&*found.pages, found.bad), (&*[&all[..1], &all[2..]].concat(), 1), "{how}");
    }
}

/// This happens if a writer is killed within a record, and another writer appends to the file.
#[test]
fn a_record_that_is_cut_costs_one_record() {
    let fields = |n: u32| format!("WARC-Date: 2020-01-01T00:00:00Z\r\nWARC-Record-ID: <urn:uuid:{n}>\r\n");
    let with_all = |n: u32, text: &str| {
        let block = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n{text}");
        let url = format!("WARC-Type: response\r\nWARC-Target-URI: https://a.org/{n}\r\n");
        record(&format!("{url}{}", fields(n)), block.as_bytes())
    };
    let records = [
        with_all(0, "<p>one"),
        with_all(1, "<p>two\r\n\r\nof it"),
        with_all(2, "<p>three"),
        with_all(3, "<p>four"),
    ];
    let all = each(&records);
    for cut in 17..records[1].len() - 4 {
        let file = [records[0].clone(), records[1][..cut].to_vec(), records[2].clone(), records[3].clone()];
        for (how, pack) in [PACKS[0], PACKS[1], PACKS[3]] {
            let found = outcome("a.warc", &pack(&file));
            assert_eq!(
                (&*found.pages, found.bad),
                (&*[&all[..1], &all[2..]].concat(), 1),
                "{how}, cut at {cut}"
            );
        }
    }
}

#[test]
fn a_wrong_length_that_ends_at_a_blank_line_within_the_page_makes_the_record_bad() {
    let text = "first part\r\n\r\nsecond part";
    let block =
        format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {}\r\n\r\n{text}", text.len());
    let cut = block.len() - "\r\n\r\nsecond part".len();
    let whole = response("https://a.org/0", &block);
    let records = [with_length(&whole, &cut.to_string()), page("https://a.org/1", "<p>next")];
    for (how, pack) in PACKS {
        let found = outcome("a.warc", &pack(&records));
        assert_eq!((found.pages, found.bad), (each(&records[1..]), 1), "{how}");
    }
}

#[test]
fn a_length_beyond_the_limit_of_a_record_costs_one_record() {
    let records = pages(&["<p>one", "<p>two", &"word ".repeat(100_000), "<p>four"]);
    let all = each(&records);
    let limits = Limits { record_bytes_max: 10_000, ..LIMITS };
    for (how, pack) in &PACKS[..5] {
        let mut damaged = records.clone();
        damaged[1] = with_length(&records[1], "400000");
        let items = rendered(&items_within(limits, "a.warc", &pack(&damaged)));
        assert_eq!((items.len(), &items[0], &items[3]), (4, &all[0], &all[3]), "{how}: {items:?}");
        assert!(items[2].contains("a record of 5000"), "{how}: {}", items[2]);
    }
}

/// A zstd frame that asks for a window of 2 to the power of `log` bytes, although its content is small.
fn frame_with_window(content: &[u8], log: u32, pledged: bool) -> Vec<u8> {
    let mut encoder = zstd::Encoder::new(Vec::new(), 3).unwrap();
    encoder.long_distance_matching(true).unwrap();
    encoder.window_log(log).unwrap();
    if pledged {
        encoder.set_pledged_src_size(Some(content.len() as u64)).unwrap();
    }
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn a_zstd_frame_with_too_large_a_window_is_refused_with_the_option_to_allow_it() {
    let line = b"{\"url\": \"https://a.org/\", \"text\": \"a\"}\n";
    let page_of_line = ["https://a.org/ text a"];
    check("a.jsonl.zst", &frame_with_window(line, 27, false), &page_of_line);
    check("a.jsonl.zst", &frame_with_window(line, 31, true), &page_of_line);
    let refused = |size: &str| {
        format!(
            "bad: a.jsonl.zst, line 1: a zstd frame asks for a window of {size}, and at most 128MiB is allowed; \
             pass --zstd-window-max {size}, or recompress the file with a smaller window: `zstd -d --long=31 < FILE | zstd > NEW`"
        )
    };
    check("a.jsonl.zst", &frame_with_window(line, 28, false), &[&refused("256MiB")]);
    check("a.jsonl.zst", &frame_with_window(line, 31, false), &[&refused("2048MiB")]);
    for (log, max) in [(28, 256 << 20), (31, 2 << 30)] {
        let limits = Limits { zstd_window_max: max, ..LIMITS };
        assert_eq!(
            rendered(&items_within(limits, "a.jsonl.zst", &frame_with_window(line, log, false))),
            page_of_line
        );
    }
    // No decoder accepts a window above 2 GiB, so the message does not name the option.
    let header = [&[0x28, 0xb5, 0x2f, 0xfd, 0, 0xff][..], &[0; 50]].concat();
    let found = rendered(&items("a.jsonl.zst", &header));
    assert!(
        found[0].contains("asks for a window of") && !found[0].contains("--zstd-window-max"),
        "{}",
        found[0]
    );
    // In a WARC file, the other frames are read.
    let records = pages(&["<p>one", "<p>two", "<p>three"]);
    let file = [zstd(&records[0]), frame_with_window(&records[1], 29, false), zstd(&records[2])].concat();
    let found = rendered(&items("a.warc.zst", &file));
    assert_eq!((found.len(), &found[0], &found[2]), (3, &each(&records)[0], &each(&records)[2]));
    assert!(found[1].contains("asks for a window of 512MiB"), "{}", found[1]);
}

#[test]
fn line_ends_and_zeros_behind_compressed_members_are_no_damage() {
    let records = pages(&["<p>one", "<p>two"]);
    let lines = b"{\"url\": \"https://a.org/\", \"text\": \"a\"}\n";
    for pack in [gzip as fn(&[u8]) -> Vec<u8>, zstd] {
        for padding in [&b"\r\n"[..], b"\n", b"\r\n\r\n", &[0; 1_000], b"\n\0\0\r\n"] {
            let file = [pack(&records[0]), padding.to_vec(), pack(&records[1]), padding.to_vec()].concat();
            let found = outcome("a.warc.gz", &file);
            assert_eq!(
                (&found.pages, found.bad, found.broke_off),
                (&each(&records), 0, false),
                "{padding:?}"
            );
            check("a.jsonl.gz", &[pack(lines), padding.to_vec()].concat(), &["https://a.org/ text a"]);
        }
        for junk in [&b"junk"[..], b"\r\njunk", b"\0\0x"] {
            let found = outcome("a.warc.gz", &[pack(&records[0]), junk.to_vec()].concat());
            assert_eq!((found.pages, found.bad, found.broke_off), (each(&records[..1]), 1, true), "{junk:?}");
        }
    }
}

/// A reader cannot go back in a solid file. It looks for further records only in the bytes that are in
/// memory, which are as many as a record may have, and counts the other bytes as skipped.
#[test]
fn a_length_beyond_the_limit_in_a_solid_file_loses_the_records_that_are_not_in_memory() {
    let mut records = pages(&["one"; 8]);
    records.push(page("https://a.org/8", &"word ".repeat(20_000)));
    records.extend(pages(&["two"; 2]));
    records[1] = with_length(&records[1], "100500");
    let limits = Limits { record_bytes_max: 3_000, ..LIMITS };
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.warc.xz");
    fs::write(&path, xz(&records.concat())).unwrap();
    let mut input = doppel_crawls::open(&path, limits).unwrap();
    let items = rendered(&input.by_ref().collect::<Vec<_>>());
    let pages = items.iter().filter(|item| item.starts_with("https")).count();
    assert_eq!(pages, 1 + 6 + 2, "{items:?}");
    assert_eq!(items.len() - pages, 2, "{items:?}");
    assert_eq!(input.skipped_bytes(), (records[1].len() + records[8].len()) as u64);
}

fn text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => "[a-z <>]{0,30}",
        1 => Just("\r\n\r\n".to_owned()),
        1 => Just("\n\n".to_owned()),
        1 => Just("WARC/1.0\r\n".to_owned()),
        1 => (1..3_000_usize).prop_map(|n| "word ".repeat(n)),
    ];
    prop::collection::vec(piece, 0..5).prop_map(|pieces| format!("<p>{}</p>", pieces.concat()))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn if_one_of_random_records_has_a_wrong_length_all_others_are_read(
        texts in prop::collection::vec(text(), 2..8),
        at: prop::sample::Index,
        length in prop_oneof![
            (0..20_000_u64).prop_map(|n| n.to_string()),
            any::<u64>().prop_map(|n| n.to_string()),
            "-?[0-9a-z ]{0,5}",
        ],
        pack in 0..PACKS.len(),
    ) {
        let records: Vec<_> = texts
            .iter()
            .enumerate()
            .map(|(n, text)| {
                let block = format!(
                    "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {}\r\n\r\n{text}", text.len()
                );
                response(&format!("https://a.org/{n}"), &block)
            })
            .collect();
        let at = at.index(records.len());
        let mut damaged = records.clone();
        // The first Content-Length is that of the record, the second that of the page.
        damaged[at] = with_length(&records[at], &length);
        let all = each(&records);
        let found = outcome("a.warc", &PACKS[pack].1(&damaged));
        let block = records[at].len() - 4 - records[at].windows(4).position(|bytes| bytes == b"\r\n\r\n").unwrap() - 4;
        // A random length may be right by chance, or include the line ends after the block.
        let is = length.trim().parse::<usize>().ok().filter(|_| !length.trim().starts_with('+'));
        if is.is_some_and(|is| (block..=block + 4).contains(&is)) {
            prop_assert!(found.pages.len() >= all.len() - 1);
        } else {
            prop_assert_eq!(&found.pages, &[&all[..at], &all[at + 1..]].concat(), "{}", PACKS[pack].0);
            prop_assert_eq!(found.bad, 1);
            // If the length of the last record is too large, the file looks truncated.
            prop_assert!(!found.broke_off || at == records.len() - 1);
        }
    }
}

#[test]
fn a_later_record_of_a_member_is_located_by_its_offset_in_the_unpacked_data() {
    let good = page("https://a.org/good", "<p>");
    let records = [good.clone(), page("/relative", ""), good.clone(), page("/relative", "")];
    let at = [good.len(), good.len() * 2 + records[1].len()];
    for (name, pack) in PACKS {
        let found = rendered(&items("a.warc", &pack(&records)));
        let stored = |before: usize| pack(&records[..before]).len();
        let places = match name {
            "plain" => at.map(|at| format!("record at byte {at}: ")),
            "gzip, by record" | "zstd, by record" => {
                [1, 3].map(|before| format!("record at byte {}: ", stored(before)))
            }
            _ => at.map(|at| format!("record at byte {at} of the unpacked data: ")),
        };
        for (line, place) in [&found[1], &found[3]].into_iter().zip(places) {
            assert!(line.starts_with(&format!("bad: a.warc, {place}not an absolute URL")), "{name}: {line}");
        }
    }
}

//! Tests that copy ARC files, WACZ files, and WARC files in which a record has a wrong length.

use super::*;

const PACKINGS: [Packing; 5] = [Packing::Plain, Packing::Gzip, Packing::Zstd, Packing::Bzip2, Packing::Xz];

fn pack(packing: Packing, bytes: &[u8]) -> Vec<u8> {
    let mut out = compressed_writer::CompressedWriter::new(packing, Vec::new()).unwrap();
    out.write_all(bytes).unwrap();
    out.finish().unwrap()
}

/// Stores records in one file. Compresses each record on its own if `by_record`, or else the whole file.
fn file(packing: Packing, by_record: bool, records: &[String]) -> Vec<u8> {
    if by_record {
        records.iter().flat_map(|record| pack(packing, record.as_bytes())).collect()
    } else {
        pack(packing, records.concat().as_bytes())
    }
}

fn unpacked(home: &tempfile::TempDir, bytes: &[u8]) -> String {
    let mut text = Vec::new();
    let mut stream = Stream::open(&write_file(home, "side", bytes), &limits()).unwrap();
    stream.read_up_to(usize::MAX, &mut text).unwrap();
    String::from_utf8(text).unwrap()
}

fn with_length(record: &str, length: &str) -> String {
    let (before, rest) = record.split_once("Content-Length: ").unwrap();
    let (_, after) = rest.split_once("\r\n").unwrap();
    format!("{before}Content-Length: {length}\r\n{after}")
}

fn arc(number: usize) -> String {
    let block = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<p>page {number}</p>");
    format!("http://a/{number} 10.0.0.1 20000121183500 text/html {}\n{block}\n", block.len())
}

const ABOUT: &str = "filedesc://a.arc 0.0.0.0 20000121183500 text/plain 9\n1 0 test\n\n";

#[test]
fn records_of_arc_are_copied_unchanged_and_both_sides_begin_with_the_description() {
    let home = tempfile::tempdir().unwrap();
    let dns = "dns:a 10.0.0.1 20000121183500 text/dns 3\na.\n\n".to_owned();
    let damaged = arc(4).replace("text/html 5", "text/html 9");
    assert_ne!(damaged, arc(4));
    let records = [ABOUT.to_owned(), arc(1), dns.clone(), arc(2), arc(3), damaged, arc(5)];
    for packing in PACKINGS {
        for by_record in [false, true] {
            if by_record && matches!(packing, Packing::Bzip2 | Packing::Xz) {
                continue;
            }
            let path = write_file(&home, "a.arc", &file(packing, by_record, &records));
            let (copied, kept, removed) = copy_sides((&path, &[false, true]), false).unwrap();
            assert_eq!(
                copied,
                Copied {
                    kept: 2,
                    removed: [(Removal::Duplicate, 2)].into(),
                    bad: 1,
                    skipped: 1,
                    ..Copied::default()
                }
            );
            assert_eq!(unpacked(&home, &kept), [ABOUT, &arc(1), &dns, &arc(3)].concat(), "{packing:?}");
            assert_eq!(unpacked(&home, &removed), [ABOUT, &arc(2), &arc(5)].concat(), "{packing:?}");
            // A side without records stays empty.
            let (_, _, removed) = copy_sides((&path, &[false]), false).unwrap();
            assert_eq!(unpacked(&home, &removed), "");
        }
    }
    let about = ABOUT.replace("text/plain 9", "text/plain 77");
    let path = write_file(&home, "a.arc", [about.clone(), arc(1), arc(2)].concat().as_bytes());
    let (_, kept, removed) = copy_sides((&path, &[false, true]), false).unwrap();
    assert_eq!(unpacked(&home, &kept), [&*about, &arc(1)].concat());
    assert_eq!(unpacked(&home, &removed), [&*about, &arc(2)].concat());
    let path = write_file(&home, "a.arc", records.concat().as_bytes());
    let error = copy_sides((&path, &[false]), true).unwrap_err().to_string();
    assert!(error.contains("a record of ARC has no place for annotations"), "{error}");
}

#[test]
fn records_of_a_wacz_file_are_written_as_one_warc_file() {
    let home = tempfile::tempdir().unwrap();
    let mut bytes = Vec::new();
    let mut archive = rawzip::ZipArchiveWriter::new(&mut bytes);
    let first: Vec<u8> = [response(1, &[], "text/html"), response(2, &[], "text/html")]
        .iter()
        .flat_map(|record| pack(Packing::Gzip, record.as_bytes()))
        .collect();
    let second = [response(3, &[], "text/html"), response(4, &[], "text/html")].concat();
    for (name, content) in [
        ("archive/a.warc.gz", first),
        ("archive/b.warc", second.into_bytes()),
        ("archive/c.warc", b"x".to_vec()),
    ] {
        let (mut entry, config) =
            archive.new_file(name).compression_method(rawzip::CompressionMethod::STORE).start().unwrap();
        let mut writer = config.wrap(&mut entry);
        writer.write_all(&content).unwrap();
        let (_, descriptor) = writer.finish().unwrap();
        entry.finish(descriptor).unwrap();
    }
    archive.finish().unwrap();
    let path = write_file(&home, "a.wacz", &bytes);
    let (copied, kept, removed) = copy_sides((&path, &[false, true]), false).unwrap();
    assert_eq!(
        copied,
        Copied { kept: 2, removed: [(Removal::Duplicate, 2)].into(), bad: 1, ..Copied::default() }
    );
    let side = |numbers: [u32; 2]| numbers.map(|number| response(number, &[], "text/html")).concat();
    assert_eq!(unpacked(&home, &kept), side([1, 3]));
    assert_eq!(unpacked(&home, &removed), side([2, 4]));
    assert!(kept.starts_with(&[0x1f, 0x8b]), "the records are gzip members");
    let (_, kept, _) = copy_sides((&path, &[false]), true).unwrap();
    assert_eq!(unpacked(&home, &kept).matches("\r\ndoppel_group: g").count(), 4);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn if_one_record_has_a_wrong_length_all_other_records_are_copied(
        pages in 2..7_u32,
        at: prop::sample::Index,
        length in prop_oneof![
            (0..3_000_u32).prop_map(|length| length.to_string()),
            any::<u64>().prop_map(|length| length.to_string()),
            "[a-z-]{0,3}",
        ],
        removed in prop::collection::vec(any::<bool>(), 1..5),
        packing in prop::sample::select(PACKINGS.to_vec()),
        by_record: bool,
    ) {
        let home = tempfile::tempdir().unwrap();
        let records: Vec<String> = (0..pages).map(|number| response(number, &[], "text/html")).collect();
        let at = at.index(records.len());
        // A length is valid if it ends at the end of a later record. The records up to there are then its
        // block.
        let head = records[at].split_once("\r\n\r\n").unwrap().0.len() + 4;
        let ends = records[at..].iter().scan(0, |end, record| {
            *end += record.len();
            Some(*end - head - 4)
        });
        let mut right = ends.flat_map(|end| end..=end + 4);
        prop_assume!(!right.any(|right| right.to_string() == length));
        let mut damaged = records.clone();
        damaged[at] = with_length(&records[at], &length);
        let by_record = by_record && !matches!(packing, Packing::Bzip2 | Packing::Xz);
        let path = write_file(&home, "a.warc", &file(packing, by_record, &damaged));
        let (copied, kept, gone) = copy_sides((&path, &removed), false).unwrap();
        prop_assert_eq!(copied.bad, 1);
        let others = (0..records.len()).filter(|number| *number != at).map(|number| &records[number]);
        let mut sides = [String::new(), String::new()];
        for (number, record) in others.enumerate() {
            sides[usize::from(removed[number % removed.len()])].push_str(record);
        }
        prop_assert_eq!(unpacked(&home, &kept), &*sides[0]);
        prop_assert_eq!(unpacked(&home, &gone), &*sides[1]);
    }
}

//! Tests that copy files of every format. The judge of most tests removes pages by their numbers.

mod archives;
mod damaged;
mod sweep;

use std::fs::{self, File};
use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{Array, ArrayRef, DictionaryArray, Int64Array, RecordBatch, StringArray, StructArray};
use arrow_ipc::CompressionType;
use arrow_ipc::reader::{FileReader, StreamReader};
use arrow_ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};
use arrow_schema::{DataType, Field, Schema};
use arrow_select::concat::concat_batches;
use doppel_model::Timestamp;
use doppel_streams::Packing;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use proptest::prelude::*;

use super::*;
use crate::Limits;

/// Removes page `n` if `removed[n]`, and repeats the pattern of `removed` for further pages. The annotated
/// group of a page is its number.
struct ByNumber {
    removed: Vec<bool>,
    next: u64,
}

impl Judge for ByNumber {
    fn page(&mut self, _: &FetchedPage) -> io::Result<Option<Fate>> {
        let record = self.next;
        self.next += 1;
        let is_removed = self.removed[record as usize % self.removed.len()];
        let removal = is_removed.then_some(Removal::Duplicate);
        Ok(Some(Fate { removal, record: Some(record) }))
    }

    fn annotation(&mut self, record: u64, removal: Option<Removal>) -> io::Result<Annotation> {
        let group = Some(format!("g{record}"));
        Ok(Annotation { group, reason: removal.map(Removal::name), ..Annotation::default() })
    }

    fn read(&mut self, _: u64) {}
}

fn limits() -> Limits {
    Limits::at(Timestamp::now())
}

/// Copies a file. Returns the counts, the side of the kept records, and the side of the removed records.
fn copy_sides(
    (path, removed): (&Path, &[bool]),
    annotate: bool,
) -> Result<(Copied, Vec<u8>, Vec<u8>), CopyError> {
    let options = InputOptions::from(limits());
    let mut judge = ByNumber { removed: removed.to_vec(), next: 0 };
    let sides = Sides { kept: Some(Vec::new()), removed: Some(Vec::new()), superseded: None };
    let (copied, sides) = copy(path, RecordFile::single(path), &options, sides, (&mut judge, annotate))?;
    Ok((copied, sides.kept.unwrap(), sides.removed.unwrap()))
}

fn write_file(home: &tempfile::TempDir, name: &str, bytes: &[u8]) -> PathBuf {
    let path = home.path().join(name);
    fs::write(&path, bytes).unwrap();
    path
}

#[test]
fn lines_are_copied_unchanged_to_their_sides() {
    let home = tempfile::tempdir().unwrap();
    let text = "\u{feff}{\"url\": \"http://a/1\",  \"text\": \"\\u0041\"}\r\n\n{\"url\": 7}\n{ \"text\": \"b\", \"url\": \"http://a/2\" }\n\
                {\"url\": \"http://a/3\", \"text\": \"c\"}";
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let path = write_file(&home, "a.jsonl", text.as_bytes());
    let (copied, kept, removed) = copy_sides((&path, &[false, true]), false).unwrap();
    assert_eq!(String::from_utf8(kept).unwrap(), [lines[0], lines[4]].concat());
    assert_eq!(String::from_utf8(removed).unwrap(), lines[3]);
    assert_eq!(
        copied,
        Copied { kept: 2, removed: [(Removal::Duplicate, 1)].into(), bad: 1, ..Copied::default() }
    );
    let (_, kept, removed) = copy_sides((&path, &[false, true]), true).unwrap();
    let kept = String::from_utf8(kept).unwrap();
    assert!(kept.ends_with("\"text\": \"c\",\"doppel_group\":\"g2\",\"doppel_winner\":null,\"doppel_winner_file\":null,\"doppel_winner_id\":null,\"doppel_duplicate_of\":null,\"doppel_duplicate_of_file\":null,\"doppel_duplicate_of_id\":null,\"doppel_similarity\":null,\"doppel_reason\":null}"), "{kept}");
    let again = write_file(&home, "again.jsonl", &removed);
    let error = copy_sides((&again, &[false]), true).unwrap_err().to_string();
    assert!(error.contains("run the command without --annotate"), "{error}");
}

#[test]
fn each_side_has_the_compression_of_the_input() {
    let home = tempfile::tempdir().unwrap();
    let text =
        (0..50).map(|n| format!("{{\"url\": \"http://a/{n}\", \"text\": \"{n}\"}}\n")).collect::<String>();
    for packing in [Packing::Plain, Packing::Gzip, Packing::Zstd, Packing::Bzip2, Packing::Xz] {
        let pack = |text: &str| {
            let mut out = compressed_writer::CompressedWriter::new(packing, Vec::new()).unwrap();
            out.write_all(text.as_bytes()).unwrap();
            out.finish().unwrap()
        };
        let path = write_file(&home, "a.jsonl", &pack(&text));
        let (_, kept, removed) = copy_sides((&path, &[false, true]), false).unwrap();
        let every = |from: usize| text.split_inclusive('\n').skip(from).step_by(2).collect::<String>();
        for (bytes, from) in [(kept, 0), (removed, 1)] {
            let mut stream = Stream::open(&write_file(&home, "side", &bytes), &limits()).unwrap();
            let mut unpacked = Vec::new();
            stream.read_up_to(usize::MAX, &mut unpacked).unwrap();
            assert_eq!(stream.packing(), packing);
            assert_eq!(String::from_utf8(unpacked).unwrap(), every(from), "{packing:?}");
        }
    }
}

#[test]
fn rows_of_tables_are_copied_unchanged_to_their_sides() {
    let home = tempfile::tempdir().unwrap();
    let head = "\u{feff}url;text\r\n";
    let rows = [
        "http://a/1;\"x\r\n;\"\"y\"\r\n",
        "too;many;cells\r\n",
        "\"http://a/2\";z\r\n",
        "http://a/3;w\n",
        "http://a/4;v",
    ];
    let text = format!("{head}{}\r\n{}{}{}{}", rows[0], rows[1], rows[2], rows[3], rows[4]);
    let path = write_file(&home, "a.csv", text.as_bytes());
    let (copied, kept, removed) = copy_sides((&path, &[false, true]), false).unwrap();
    assert_eq!(String::from_utf8(kept).unwrap(), [head, rows[0], rows[3]].concat());
    assert_eq!(String::from_utf8(removed).unwrap(), [head, rows[2], rows[4]].concat());
    assert_eq!((copied.kept, copied.bad), (2, 1));
    let (_, _, removed) = copy_sides((&path, &[false, true]), true).unwrap();
    let removed = String::from_utf8(removed).unwrap();
    let names = "\u{feff}url;text;doppel_group;doppel_winner;doppel_winner_file;doppel_winner_id;doppel_duplicate_of;\
         doppel_duplicate_of_file;doppel_duplicate_of_id;doppel_similarity;doppel_reason\r\n";
    assert_eq!(
        removed,
        format!("{names}\"http://a/2\";z;g1;;;;;;;;duplicate\r\nhttp://a/4;v;g3;;;;;;;;duplicate")
    );
}

/// Rows with a structure, a dictionary, nulls and a column that has no field.
fn batch(from: i64, to: i64) -> RecordBatch {
    let numbers = from..to;
    let strings = |of: &dyn Fn(i64) -> String| -> ArrayRef {
        Arc::new(numbers.clone().map(|n| Some(of(n)).filter(|_| n % 7 != 3)).collect::<StringArray>())
    };
    let url: ArrayRef =
        Arc::new(StringArray::from_iter_values(numbers.clone().map(|n| format!("http://a/{n}"))));
    let meta = StructArray::from(vec![
        (Arc::new(Field::new("url", DataType::Utf8, false)), url),
        (Arc::new(Field::new("more", DataType::Utf8, true)), strings(&|n| format!("more {n}"))),
    ]);
    let names: DictionaryArray<Int32Type> = numbers.clone().map(|n| ["x", "y"][n as usize % 2]).collect();
    let fields = vec![
        Field::new("text", DataType::Utf8, false).with_metadata([("of".to_owned(), "field".to_owned())]),
        Field::new("meta", meta.data_type().clone(), false),
        Field::new("number", DataType::Int64, true),
        Field::new("name", names.data_type().clone(), false),
    ];
    let schema = Schema::new_with_metadata(fields, [("of".to_owned(), "schema".to_owned())]);
    let text: ArrayRef =
        Arc::new(StringArray::from_iter_values(numbers.clone().map(|n| format!("text {n}"))));
    let number: ArrayRef = Arc::new(numbers.map(|n| (n % 3 > 0).then_some(n)).collect::<Int64Array>());
    RecordBatch::try_new(Arc::new(schema), vec![text, Arc::new(meta), number, Arc::new(names)]).unwrap()
}

/// The kept rows and the removed rows of `all`.
fn expected(all: &RecordBatch, removed: &[bool]) -> [RecordBatch; 2] {
    [false, true].map(|side| {
        let mask = (0..all.num_rows()).map(|row| Some(removed[row % removed.len()] == side)).collect();
        arrow_select::filter::filter_record_batch(all, &mask).unwrap()
    })
}

#[test]
fn parquet_rows_keep_their_schema_and_their_row_groups() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("a.parquet");
    let described = vec![KeyValue::new("who".to_owned(), "me".to_owned())];
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_key_value_metadata(Some(described))
        .build();
    let all = batch(0, 3_000);
    let mut writer =
        ArrowWriter::try_new(File::create(&path).unwrap(), all.schema(), Some(properties)).unwrap();
    for group in [0..1_700, 1_700..1_701, 1_701..3_000] {
        writer.write(&all.slice(group.start, group.len())).unwrap();
        writer.flush().unwrap();
    }
    writer.close().unwrap();
    let removed = [true, false, false, true, false];
    let (copied, kept, gone) = copy_sides((&path, &removed), false).unwrap();
    assert_eq!((copied.kept, copied.removed[&Removal::Duplicate]), (1_800, 1_200));
    for (bytes, expected, groups) in [
        (kept, &expected(&all, &removed)[0], [1_020, 780].as_slice()),
        (gone, &expected(&all, &removed)[1], &[680, 1, 519]),
    ] {
        let reader = ParquetRecordBatchReaderBuilder::try_new(bytes::Bytes::from(bytes)).unwrap();
        let original = ParquetRecordBatchReaderBuilder::try_new(File::open(&path).unwrap()).unwrap();
        assert_eq!(reader.schema(), original.schema());
        assert_eq!(reader.parquet_schema().root_schema(), original.parquet_schema().root_schema());
        let metadata = Arc::clone(reader.metadata());
        let rows: Vec<_> =
            metadata.row_groups().iter().map(parquet::file::metadata::RowGroupMetaData::num_rows).collect();
        assert_eq!(rows, groups);
        assert!(
            metadata
                .row_groups()
                .iter()
                .flat_map(parquet::file::metadata::RowGroupMetaData::columns)
                .all(|column| column.compression() == Compression::SNAPPY)
        );
        let described = metadata.file_metadata().key_value_metadata().unwrap();
        assert!(described.iter().any(|pair| pair.key == "who" && pair.value.as_deref() == Some("me")));
        let batches: Vec<_> = reader.build().unwrap().map(Result::unwrap).collect();
        assert_eq!(&concat_batches(&all.schema(), &batches).unwrap(), expected);
    }
    let (_, kept, _) = copy_sides((&path, &removed), true).unwrap();
    let reader = ParquetRecordBatchReaderBuilder::try_new(bytes::Bytes::from(kept)).unwrap();
    let names: Vec<_> = reader.schema().fields().iter().map(|field| field.name().clone()).collect();
    assert_eq!(names[..4], ["text", "meta", "number", "name"]);
    assert_eq!(names[4..], ANNOTATION_FIELDS);
    let first = reader.build().unwrap().next().unwrap().unwrap();
    let groups = first.column(4).as_any().downcast_ref::<StringArray>().unwrap();
    assert_eq!((groups.value(0), groups.value(2)), ("g1", "g4"));
    assert_eq!(first.column(7).null_count(), first.num_rows());
}

#[test]
fn arrow_rows_keep_their_schema() {
    let home = tempfile::tempdir().unwrap();
    let all = batch(0, 500);
    let removed = [true, false, false];
    let options = IpcWriteOptions::default().try_with_compression(Some(CompressionType::ZSTD)).unwrap();
    let mut file = FileWriter::try_new_with_options(Vec::new(), &all.schema(), options.clone()).unwrap();
    let mut stream = StreamWriter::try_new_with_options(Vec::new(), &all.schema(), options).unwrap();
    for part in [0..200, 200..201, 201..500] {
        file.write(&all.slice(part.start, part.len())).unwrap();
        stream.write(&all.slice(part.start, part.len())).unwrap();
    }
    let file = write_file(&home, "a.arrow", &file.into_inner().unwrap());
    let (_, kept, gone) = copy_sides((&file, &removed), false).unwrap();
    for (bytes, expected) in [kept, gone].into_iter().zip(&expected(&all, &removed)) {
        let reader = FileReader::try_new(io::Cursor::new(bytes), None).unwrap();
        assert_eq!(reader.schema(), all.schema());
        let batches: Vec<_> = reader.map(Result::unwrap).collect();
        assert_eq!(&concat_batches(&all.schema(), &batches).unwrap(), expected);
    }
    let stream = write_file(&home, "a.arrows", &zstd::encode_all(&*stream.into_inner().unwrap(), 1).unwrap());
    let (_, kept, gone) = copy_sides((&stream, &removed), false).unwrap();
    for (bytes, expected) in [kept, gone].into_iter().zip(&expected(&all, &removed)) {
        let bytes = zstd::decode_all(&*bytes).unwrap();
        let batches: Vec<_> = StreamReader::try_new(&*bytes, None).unwrap().map(Result::unwrap).collect();
        assert_eq!(&concat_batches(&all.schema(), &batches).unwrap(), expected);
    }
}

/// A line of a file of JSON lines: a page, a bad record, text that is not JSON, or a blank line.
fn line() -> impl Strategy<Value = String> {
    let page = (0..20_u32, "[a-z\u{e9}\"\\\\, ]{0,12}", any::<bool>()).prop_map(|(n, text, spaced)| {
        let text = serde_json::to_string(&text).unwrap();
        let space = if spaced { "  " } else { "" };
        format!("{{{space}\"url\":\"http://a/{n}\",{space}\"text\":{text}}}{space}")
    });
    prop_oneof![4 => page, 1 => Just("{\"url\": 1}".to_owned()), 1 => Just("no json".to_owned()), 1 => Just("  ".to_owned())]
}

proptest! {
    #[test]
    fn every_line_that_can_be_read_goes_to_exactly_one_side(
        lines in prop::collection::vec((line(), "\r?\n"), 1..40),
        removed in prop::collection::vec(any::<bool>(), 1..8),
        has_end in any::<bool>(),
    ) {
        let home = tempfile::tempdir().unwrap();
        let mut lines: Vec<String> = lines.into_iter().map(|(line, end)| line + &end).collect();
        if !has_end {
            let last = lines.last_mut().unwrap();
            *last = last.trim_end().to_owned();
        }
        let path = write_file(&home, "a.jsonl", lines.concat().as_bytes());
        let (copied, kept, gone) = copy_sides((&path, &removed), false).unwrap();
        let is_page = |line: &&String| line.contains("\"text\"");
        let side = |is_removed: bool| {
            let pages = lines.iter().filter(is_page).enumerate();
            pages.filter(|(n, _)| removed[n % removed.len()] == is_removed).map(|(_, line)| line.as_str()).collect::<String>()
        };
        prop_assert_eq!(String::from_utf8(kept).unwrap(), side(false));
        prop_assert_eq!(String::from_utf8(gone).unwrap(), side(true));
        let bad = lines.iter().filter(|line| !line.trim().is_empty() && !is_page(line)).count() as u64;
        let pages = lines.iter().filter(is_page).count() as u64;
        prop_assert_eq!((copied.bad, copied.kept + copied.removed.values().sum::<u64>()), (bad, pages));
    }
}

/// A WARC record with an id. It may be concurrent to other records.
fn record(kind: &str, id: u32, concurrent_to: &[u32], block: &str) -> String {
    let concurrent_to: String =
        concurrent_to.iter().map(|id| format!("WARC-Concurrent-To: <urn:uuid:{id}>\r\n")).collect();
    let content_type = if kind == "response" { "application/http; msgtype=response" } else { "text/x" };
    format!(
        "WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Record-ID: <urn:uuid:{id}>\r\n{concurrent_to}WARC-Target-URI: http://a/{id}\r\n\
         Content-Type: {content_type}\r\nContent-Length: {}\r\n\r\n{block}\r\n\r\n",
        block.len()
    )
}

fn response(id: u32, concurrent_to: &[u32], media: &str) -> String {
    let block = format!("HTTP/1.1 200 OK\r\nContent-Type: {media}\r\n\r\n<p>page {id}</p>");
    record("response", id, concurrent_to, &block)
}

/// WARC records, each with whether it is kept if every second page is removed. `None` for a bad record.
fn warc() -> Vec<(String, Option<bool>)> {
    vec![
        (record("warcinfo", 1, &[], "about"), Some(true)),
        (record("request", 2, &[3], "before a page that is kept"), Some(true)),
        (response(3, &[], "text/html"), Some(true)),
        (record("request", 4, &[5], "before a page that is removed"), Some(false)),
        (response(5, &[], "text/html"), Some(false)),
        (record("metadata", 6, &[4, 5], "of the page that is removed"), Some(false)),
        (response(7, &[], "image/png"), Some(true)),
        (record("request", 8, &[7], "of the image"), Some(true)),
        (record("response", 9, &[], "no HTTP"), None),
        (response(10, &[], "text/html"), Some(true)),
        (response(11, &[12, 13], "text/html"), Some(false)),
        (record("request", 12, &[], "of the page in front of it"), Some(false)),
        (record("metadata", 99, &[98], "of nothing that is here"), Some(true)),
    ]
}

#[test]
fn records_of_warc_are_copied_unchanged_and_requests_follow_their_responses() {
    let home = tempfile::tempdir().unwrap();
    let records = warc();
    let side = |of: bool| -> Vec<&str> {
        records
            .iter()
            .filter(|(_, is_kept)| *is_kept == Some(of))
            .map(|(record, _)| record.as_str())
            .collect()
    };
    for packing in [Packing::Plain, Packing::Gzip, Packing::Zstd, Packing::Xz] {
        let pack = |text: &str| {
            let mut out = compressed_writer::CompressedWriter::new(packing, Vec::new()).unwrap();
            out.write_all(text.as_bytes()).unwrap();
            out.finish().unwrap()
        };
        let by_record = matches!(packing, Packing::Gzip | Packing::Zstd);
        let all = if by_record {
            records.iter().flat_map(|(record, _)| pack(record)).collect()
        } else {
            pack(&records.iter().map(|(record, _)| record.as_str()).collect::<String>())
        };
        let path = write_file(&home, "a.warc", &all);
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
        for (bytes, expected) in [(kept, side(true)), (removed, side(false))] {
            let mut stream = Stream::open(&write_file(&home, "side", &bytes), &limits()).unwrap();
            assert_eq!(stream.packing(), packing);
            let mut members = Vec::new();
            while by_record && stream.next_member().unwrap() {
                let mut member = Vec::new();
                while !stream.data().unwrap().is_empty() {
                    let data = stream.data().unwrap().to_vec();
                    stream.consume(data.len());
                    member.extend(data);
                }
                members.push(String::from_utf8(member).unwrap());
            }
            if by_record {
                assert_eq!(members, expected, "{packing:?}");
            } else {
                let mut text = Vec::new();
                stream.read_up_to(usize::MAX, &mut text).unwrap();
                assert_eq!(String::from_utf8(text).unwrap(), expected.concat(), "{packing:?}");
            }
        }
    }
}

/// Truncates a file to half of its size when it has judged a number of pages.
struct Truncating<'p> {
    path: &'p Path,
    pages_left: u64,
}

impl Judge for Truncating<'_> {
    fn page(&mut self, _: &FetchedPage) -> io::Result<Option<Fate>> {
        self.pages_left -= 1;
        if self.pages_left == 0 {
            let file = File::options().write(true).open(self.path)?;
            file.set_len(file.metadata()?.len() / 2)?;
        }
        Ok(Some(Fate { removal: None, record: None }))
    }

    fn annotation(&mut self, _: u64, _: Option<Removal>) -> io::Result<Annotation> {
        Ok(Annotation::default())
    }

    fn read(&mut self, _: u64) {}
}

#[test]
fn a_warc_that_is_truncated_between_the_two_passes_is_an_error() {
    let home = tempfile::tempdir().unwrap();
    let all: String = (0..40).map(|id| response(id, &[], "text/html")).collect();
    let path = write_file(&home, "a.warc", all.as_bytes());
    let sides = Sides { kept: Some(Vec::new()), removed: None, superseded: None };
    let options = InputOptions::from(limits());
    let mut judge = Truncating { path: &path, pages_left: 40 };
    let copied = copy(&path, RecordFile::single(&path), &options, sides, (&mut judge, false));
    let error = copied.unwrap_err().to_string();
    assert!(error.contains("end"), "{error}");
}

#[test]
fn annotated_records_of_warc_can_be_read() {
    let home = tempfile::tempdir().unwrap();
    let all: String = warc().into_iter().map(|(record, _)| record).collect();
    let path = write_file(&home, "a.warc", all.as_bytes());
    let (_, _, removed) = copy_sides((&path, &[false, true]), true).unwrap();
    let removed = String::from_utf8(removed).unwrap();
    assert_eq!(
        removed.matches("\r\ndoppel_group: g1\r\ndoppel_reason: duplicate\r\n\r\n").count(),
        3,
        "{removed}"
    );
    let input = crate::open(&write_file(&home, "removed.warc", removed.as_bytes()), limits()).unwrap();
    let pages = input.map(|item| matches!(item, Item::Page(_)));
    assert_eq!(pages.collect::<Vec<_>>(), [true, true]);
}

#[test]
fn a_file_that_is_one_page_is_copied_unchanged() {
    let home = tempfile::tempdir().unwrap();
    let path = write_file(&home, "a.html", b"<p>\xe9");
    let (copied, kept, removed) = copy_sides((&path, &[true]), false).unwrap();
    assert_eq!((kept, removed), (Vec::new(), b"<p>\xe9".to_vec()));
    assert_eq!(copied.removed[&Removal::Duplicate], 1);
    assert!(copy_sides((&path, &[true]), true).is_err());
}

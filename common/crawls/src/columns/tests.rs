mod hostile;

use std::fs;
use std::io::Write;
use std::sync::Arc;

use arrow_array::types::Int8Type;
use arrow_array::{
    ArrayRef, BinaryArray, BooleanArray, Date32Array, DictionaryArray, Float64Array, Int64Array,
    LargeStringArray, ListArray, RecordBatch, StringArray, StringViewArray, StructArray,
    TimestampMicrosecondArray, UInt32Array,
};
use arrow_ipc::CompressionType;
use arrow_ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};
use arrow_schema::{DataType, Field, Fields, Schema, TimeUnit};
use doppel_model::Timestamp;
use parquet::arrow::ArrowWriter;
use parquet::basic::{BrotliLevel, Compression, Encoding, GzipLevel, ZstdLevel};
use parquet::file::properties::{WriterProperties, WriterVersion};

use super::*;
use crate::InputOptions;
use crate::record::FieldNames;
use crate::{FetchedBody, Input, Limits};

const NOW: Timestamp = Timestamp::from_millis(1_800_000_000_000);

fn options() -> InputOptions {
    Limits::at(NOW).into()
}

/// Reads a file with this name and content. Returns each item as a line of text.
fn read(name: &str, content: &[u8], options: &InputOptions) -> Vec<String> {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join(name);
    fs::write(&path, content).unwrap();
    let input = match crate::open(&path, options.clone()) {
        Ok(input) => input,
        Err(error) => return vec![format!("cannot open: {}", error.reason)],
    };
    rendered(input)
}

fn rendered(mut input: Input) -> Vec<String> {
    let lines = input.by_ref().filter_map(|item| match item {
        Item::Fields(_) => None,
        Item::Page(page) => Some(render(&page)),
        Item::Skipped(skip) => Some(format!("skip: {skip}")),
        Item::Bad(error) => Some(format!("bad: {:?} {}", error.position, error.reason)),
    });
    let lines = lines.collect();
    assert!(input.bytes_read() <= input.bytes_total().max(1));
    lines
}

fn render(page: &FetchedPage) -> String {
    let body = match &page.body {
        FetchedBody::Text(text) => format!("text {text}"),
        FetchedBody::Html { bytes, .. } => format!("html {}", String::from_utf8_lossy(bytes)),
        other => format!("{other:?}"),
    };
    let date = page.fetched_at.map_or(String::new(), |date| format!(" {date}"));
    format!("{}{date} {body}", page.url)
}

fn parquet(batches: &[RecordBatch], properties: WriterProperties) -> Vec<u8> {
    let mut file = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut file, batches[0].schema(), Some(properties)).unwrap();
    for batch in batches {
        writer.write(batch).unwrap();
        writer.flush().unwrap();
    }
    writer.close().unwrap();
    file
}

fn arrow_file(batches: &[RecordBatch], compression: Option<CompressionType>) -> Vec<u8> {
    let options = IpcWriteOptions::default().try_with_compression(compression).unwrap();
    let mut writer = FileWriter::try_new_with_options(Vec::new(), &batches[0].schema(), options).unwrap();
    batches.iter().for_each(|batch| writer.write(batch).unwrap());
    writer.into_inner().unwrap()
}

fn arrow_stream(batches: &[RecordBatch], compression: Option<CompressionType>) -> Vec<u8> {
    let options = IpcWriteOptions::default().try_with_compression(compression).unwrap();
    let mut writer = StreamWriter::try_new_with_options(Vec::new(), &batches[0].schema(), options).unwrap();
    batches.iter().for_each(|batch| writer.write(batch).unwrap());
    writer.into_inner().unwrap()
}

/// Writer properties that store all columns of text and bytes in this encoding.
fn encoded(batch: &RecordBatch, encoding: Encoding, version: WriterVersion) -> WriterProperties {
    let mut properties =
        WriterProperties::builder().set_dictionary_enabled(false).set_writer_version(version);
    for field in batch.schema().fields().iter().filter(|field| is_text(field.data_type())) {
        properties = properties.set_column_encoding(field.name().as_str().into(), encoding);
    }
    properties.build()
}

fn is_text(data_type: &DataType) -> bool {
    let is_text = |data_type: &DataType| data_type.is_string() || data_type.is_binary();
    is_text(data_type) || matches!(data_type, DataType::Dictionary(_, values) if is_text(values))
}

/// The batches in all formats, codecs, encodings and compressions, each with the name of a file.
fn all_formats(batches: &[RecordBatch]) -> Vec<(String, Vec<u8>)> {
    let codecs = [
        Compression::UNCOMPRESSED,
        Compression::SNAPPY,
        Compression::LZ4_RAW,
        Compression::GZIP(GzipLevel::default()),
        Compression::BROTLI(BrotliLevel::default()),
        Compression::ZSTD(ZstdLevel::default()),
    ];
    let mut all = Vec::new();
    for codec in codecs {
        for dictionary in [true, false] {
            let properties =
                WriterProperties::builder().set_compression(codec).set_dictionary_enabled(dictionary);
            all.push(("a.parquet".to_owned(), parquet(batches, properties.build())));
        }
    }
    for encoding in [Encoding::PLAIN, Encoding::DELTA_LENGTH_BYTE_ARRAY, Encoding::DELTA_BYTE_ARRAY] {
        for version in [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0] {
            all.push(("b.parquet".to_owned(), parquet(batches, encoded(&batches[0], encoding, version))));
        }
    }
    all.push(("no-name".to_owned(), all[0].1.clone()));
    for compression in [None, Some(CompressionType::LZ4_FRAME), Some(CompressionType::ZSTD)] {
        let (file, stream) = (arrow_file(batches, compression), arrow_stream(batches, compression));
        for name in ["a.arrow", "a.feather", "no-name"] {
            all.push((name.to_owned(), file.clone()));
            all.push((name.to_owned(), stream.clone()));
        }
        all.push(("a.arrow.gz".to_owned(), gzip(&stream)));
    }
    all
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| (name, array, true)))
        .unwrap()
}

/// Three rows in the schema of FineWeb, which has its metadata in a structure. The ids begin with `from`.
fn nested(from: i64) -> RecordBatch {
    let urls =
        StringArray::from_iter([0, 1, 2].map(|n| (n != 1).then(|| format!("https://a.org/{}", from + n))));
    let dates = TimestampMicrosecondArray::from_iter_values([0, 1, 2].map(|n| (from + n) * 86_400_000_000));
    let fields: Fields = vec![
        Field::new("url", DataType::Utf8, true),
        Field::new("date", DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())), true),
    ]
    .into();
    let columns: Vec<ArrayRef> = vec![Arc::new(urls), Arc::new(dates.with_timezone("UTC"))];
    let nulls = vec![true, true, false].into();
    let metadata = StructArray::new(fields, columns, Some(nulls));
    let text = LargeStringArray::from_iter_values([0, 1, 2].map(|n| format!("text {}", from + n)));
    batch(vec![
        ("id", Arc::new(Int64Array::from_iter_values(from..from + 3))),
        ("text", Arc::new(text)),
        ("score", Arc::new(Float64Array::from(vec![0.5; 3]))),
        ("metadata", Arc::new(metadata)),
    ])
}

#[test]
fn nested_fields_are_found_in_every_format() {
    let batches = [nested(10), nested(20)];
    let expected = |name: &str| {
        let record = |id: u32| format!("record:{name}#{id}");
        [
            "https://a.org/10 1970-01-11T00:00:00Z text text 10".to_owned(),
            format!("{} 1970-01-12T00:00:00Z text text 11", record(11)),
            // The whole metadata structure of this row is null.
            format!("{} text text 12", record(12)),
            "https://a.org/20 1970-01-21T00:00:00Z text text 20".to_owned(),
            format!("{} 1970-01-22T00:00:00Z text text 21", record(21)),
            format!("{} text text 22", record(22)),
        ]
    };
    for (number, (name, file)) in all_formats(&batches).into_iter().enumerate() {
        assert_eq!(read(&name, &file, &options()), expected(&name), "{number}: {name}");
    }
    // A field that the user names is used even if it would not be guessed.
    let fields = FieldNames {
        id: Some("metadata.url".to_owned()),
        url: Some("none".to_owned()),
        ..FieldNames::default()
    };
    let named = InputOptions { fields, ..options() };
    let file = parquet(&batches[..1], WriterProperties::default());
    assert_eq!(
        read("a.parquet", &file, &named)[0],
        "record:a.parquet#https://a.org/10 1970-01-11T00:00:00Z text text 10"
    );
}

#[test]
fn texts_ids_and_dates_of_every_type_are_read() {
    let texts: [(&str, ArrayRef); 6] = [
        ("utf8", Arc::new(StringArray::from(vec![Some("é"), None]))),
        ("large", Arc::new(LargeStringArray::from(vec![Some("é"), None]))),
        ("view", Arc::new(StringViewArray::from(vec![Some("é"), None]))),
        ("binary", Arc::new(BinaryArray::from_opt_vec(vec![Some("é".as_bytes()), None]))),
        ("windows-1252", Arc::new(BinaryArray::from_opt_vec(vec![Some(b"\xe9"), None]))),
        ("dictionary", Arc::new([Some("é"), None].into_iter().collect::<DictionaryArray<Int8Type>>())),
    ];
    for (kind, text) in texts {
        let columns = vec![
            ("text", text),
            ("id", Arc::new(UInt32Array::from(vec![7, 8])) as ArrayRef),
            ("date", Arc::new(Date32Array::from(vec![Some(18_000), None]))),
            ("other", Arc::new(BooleanArray::from(vec![true, false]))),
        ];
        for (name, file) in all_formats(&[batch(columns)]) {
            let expected = [
                format!("record:{name}#7 2019-04-14T00:00:00Z text é"),
                "bad: Row(2) \"text\": missing".to_owned(),
            ];
            assert_eq!(read(&name, &file, &options()), expected, "{kind} {name}");
        }
    }
}

#[test]
fn a_list_is_refused_where_a_text_is_needed() {
    let lists = ListArray::from_iter_primitive::<Int8Type, _, _>([Some([Some(1)])]);
    let batch = batch(vec![("text", Arc::new(lists)), ("id", Arc::new(Int64Array::from(vec![1])))]);
    let fields = FieldNames { text: Some("text".to_owned()), ..FieldNames::default() };
    let options = InputOptions { fields, ..options() };
    for (name, file) in all_formats(&[batch]) {
        assert_eq!(
            read(&name, &file, &options),
            [
                "bad: Row(1) \"text\": is a list, and has to be text; --text-field text[] takes the texts in it, and text[].NAME \
                 a field of the objects in it"
            ],
            "{name}"
        );
    }
}

/// A column of lists. The list in row `n` consists of the elements of `values` from `offsets[n]` to
/// `offsets[n + 1]`.
fn list_of(values: ArrayRef, offsets: &[i32]) -> ArrayRef {
    let field = Arc::new(Field::new("item", values.data_type().clone(), true));
    let offsets = arrow_buffer::OffsetBuffer::new(offsets.to_vec().into());
    Arc::new(ListArray::new(field, offsets, values, None))
}

#[test]
fn texts_in_lists_are_joined() {
    let contents: ArrayRef = Arc::new(StringArray::from(vec![Some("a"), None, Some("b"), Some("c")]));
    let roles: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 3, 4]));
    let field = |name: &str, of: &ArrayRef| Arc::new(Field::new(name, of.data_type().clone(), true));
    let fields = vec![field("role", &roles), field("content", &contents)];
    let messages = StructArray::new(fields.into(), vec![roles, Arc::clone(&contents)], None);
    let batch = batch(vec![
        ("first", list_of(Arc::new(Int64Array::from(vec![1, 2])), &[0, 1, 2, 2])),
        ("messages", list_of(Arc::new(messages), &[0, 3, 4, 4])),
        ("title", Arc::new(StringArray::from(vec!["x", "", "z"]))),
        ("tags", list_of(contents, &[0, 3, 4, 4])),
    ]);
    for (path, expected) in [
        ("messages[].content", ["a\nb", "c", "-"]),
        ("tags[]", ["a\nb", "c", "-"]),
        ("title,messages[].content", ["x\na\nb", "c", "z"]),
        ("title[]", ["x", "", "z"]),
    ] {
        let fields = FieldNames { text: Some(path.to_owned()), ..FieldNames::default() };
        let options = InputOptions { fields, ..options() };
        for (name, file) in all_formats(std::slice::from_ref(&batch)) {
            let found = read(&name, &file, &options);
            let expected = expected.iter().zip(1..).map(|(text, row)| match *text {
                "-" => format!("bad: Row({row}) {path:?}: missing"),
                text => format!("record:{name}#row={row} text {text}"),
            });
            assert_eq!(found, expected.collect::<Vec<_>>(), "{name} {path}");
        }
    }
}

#[test]
fn many_rows_keep_their_order_and_numbers() {
    let batches: Vec<_> = (0..5)
        .map(|from| {
            let text = StringArray::from_iter_values((0..1_500).map(|n| format!("{}", from * 1_500 + n)));
            batch(vec![("text", Arc::new(text) as ArrayRef)])
        })
        .collect();
    let properties = WriterProperties::builder().set_max_row_group_row_count(Some(2_000)).build();
    for (name, file) in [
        ("a.parquet", parquet(&batches, properties)),
        ("b.arrow", arrow_stream(&batches, None)),
        ("c.arrow", arrow_file(&batches, None)),
    ] {
        let found = read(name, &file, &options());
        assert_eq!(found.len(), 7_500);
        for (n, line) in found.iter().enumerate() {
            assert_eq!(*line, format!("record:{name}#row={} text {n}", n + 1));
        }
    }
}

#[test]
fn a_file_without_rows_gives_no_items() {
    let empty = nested(0).slice(0, 0);
    for (name, file) in all_formats(&[empty]) {
        assert_eq!(read(&name, &file, &options()), Vec::<String>::new(), "{name}");
    }
}

#[test]
fn damage_is_reported_and_never_panics_or_aborts() {
    let mut random = 1_u64;
    let mut next = |below: usize| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (random >> 33) as usize % below
    };
    let batches = [nested(10), nested(20)];
    for (name, file) in all_formats(&batches) {
        for _ in 0..60 {
            let mut damaged = file.clone();
            if next(3) == 0 {
                damaged.truncate(next(file.len()));
            }
            for _ in 0..=next(4) {
                let length = damaged.len().max(1);
                if let Some(byte) = damaged.get_mut(next(length)) {
                    *byte = [0, 0x7f, 0xff, *byte ^ 1][next(4)];
                }
            }
            let found = read(&name, &damaged, &options());
            assert!(found.len() <= 200_000, "{name}");
            let is_one_line =
                |line: &String| !line.contains("bad: ") && !line.contains("open: ") || !line.contains('\n');
            assert!(found.iter().all(is_one_line), "{name}: {found:?}");
        }
    }
    for (name, file) in [
        ("a.parquet", parquet(&batches, WriterProperties::default())),
        ("a.arrow", arrow_file(&batches, None)),
    ] {
        let found = read(name, &file[..file.len() - 1], &options());
        assert!(found.len() == 1 && found[0].contains(": the file does not end like a"), "{name}: {found:?}");
    }
    let stream = arrow_stream(&batches, None);
    let found = read("a.arrow", &stream[..stream.len() - 100], &options());
    assert_eq!(found.last().unwrap(), "bad: Row(4) the data end in the middle of it");
    assert_eq!(found.len(), 4, "the three rows of the first batch are read");
}

#[test]
fn the_expansion_of_repeated_values_is_bounded() {
    // The dictionary stores the megabyte once, and each row stores only its number in the dictionary.
    let text = "word ".repeat(200_000);
    let repeated = StringArray::from_iter_values(std::iter::repeat_n(&text, 300));
    let batch = batch(vec![("text", Arc::new(repeated) as ArrayRef)]);
    let file = parquet(&[batch], WriterProperties::default());
    assert!(file.len() < 2 << 20, "{}", file.len());
    let limits = Limits { expansion_free_bytes: 16 << 20, expansion_ratio_max: 10, ..Limits::at(NOW) };
    let found = read("a.parquet", &file, &limits.into());
    let (last, pages) = found.split_last().unwrap();
    assert!(last.contains("unpacks to over 16 MiB and 10 times its size"), "{last}");
    assert!((16..60).contains(&pages.len()), "{}", pages.len());
}

#[test]
fn sizes_that_a_file_declares_are_checked_before_memory_is_taken() {
    let limits = Limits { columns_bytes_max: 1_000, ..Limits::at(NOW) };
    let text = StringArray::from_iter_values(["x".repeat(100_000)]);
    let large = [batch(vec![("text", Arc::new(text) as ArrayRef)])];
    for compression in [None, Some(CompressionType::ZSTD), Some(CompressionType::LZ4_FRAME)] {
        for file in [arrow_file(&large, compression), arrow_stream(&large, compression)] {
            let found = read("a.arrow", &file, &limits.into());
            assert!(found.len() == 1 && found[0].contains("at most 1000 are taken"), "{found:?}");
        }
    }
    // A compressed batch whose buffer declares an absurd size.
    let mut file = arrow_stream(&large, Some(CompressionType::ZSTD));
    let at = memchr::memmem::rfind(&file, &100_000_i64.to_le_bytes()).unwrap();
    file[at..at + 8].copy_from_slice(&(1_i64 << 60).to_le_bytes());
    let found = read("a.arrow", &file, &options());
    assert!(found.len() == 1 && found[0].contains("a batch of columns of"), "{found:?}");
}

/// Encodes a number like the headers of Parquet.
fn varint(number: u64) -> Vec<u8> {
    let mut rest = number << 1;
    let mut bytes = Vec::new();
    while rest >= 0x80 {
        bytes.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    bytes.push(rest as u8);
    bytes
}

/// Replaces a number by another one of the same encoded length, wherever the file contains it.
fn replace_number(file: &mut [u8], (from, to): (u64, u64)) {
    let (from, to) = (varint(from), varint(to));
    assert_eq!(from.len(), to.len());
    let offsets: Vec<_> = memchr::memmem::find_iter(file, &from).collect();
    assert!(!offsets.is_empty());
    for at in offsets {
        file[at..at + to.len()].copy_from_slice(&to);
    }
}

#[test]
fn a_page_of_a_column_is_bounded_before_it_is_unpacked() {
    let text = StringArray::from_iter_values(["word ".repeat(400_000)]);
    let text = [RecordBatch::try_from_iter([("text", Arc::new(text) as ArrayRef)]).unwrap()];
    let (page, max) = (2_000_004, (1 << 27) - 1);
    let codecs = [
        Compression::SNAPPY,
        Compression::LZ4_RAW,
        Compression::GZIP(GzipLevel::default()),
        Compression::BROTLI(BrotliLevel::default()),
        Compression::ZSTD(ZstdLevel::default()),
    ];
    for codec in codecs {
        let properties = WriterProperties::builder().set_dictionary_enabled(false).set_compression(codec);
        let file = parquet(&text, properties.build());
        assert_eq!(read("a.parquet", &file, &options()).len(), 1, "{codec}");
        let bounded = |max| InputOptions::from(Limits { column_page_bytes_max: max, ..Limits::at(NOW) });
        let is_refused = |file: &[u8], options: &InputOptions, why: &str| {
            let found = read("a.parquet", file, options);
            assert!(found.len() == 1 && found[0].contains(why), "{codec}: {found:?}");
        };
        is_refused(&file, &bounded(2_000_003), "of 2000004 bytes; at most 2000003 are taken");
        // The header of the page declares too large a size.
        let mut damaged = file.clone();
        replace_number(&mut damaged, (page, max));
        is_refused(&damaged, &options(), "a page of 134217727 bytes is in a column of");
        is_refused(&damaged, &bounded(64 << 20), "of 134217727 bytes; at most 67108864 are taken");
        // The header of the page declares too small a size.
        replace_number(&mut damaged, (max, 1 << 20));
        is_refused(&damaged, &options(), "bad: Row(1)");
        let unbounded = matches!(codec, Compression::GZIP(_) | Compression::BROTLI(_));
        is_refused(&damaged, &bounded(1 << 20), if unbounded { "at most 1048576 are taken" } else { "bad" });
    }
}

#[test]
fn a_page_that_cannot_have_as_many_values_as_it_declares_is_refused() {
    let text = StringArray::from_iter_values((0..300).map(|n| format!("a text with the number {n}")));
    let text = [RecordBatch::try_from_iter([("text", Arc::new(text) as ArrayRef)]).unwrap()];
    for encoding in [Encoding::DELTA_LENGTH_BYTE_ARRAY, Encoding::DELTA_BYTE_ARRAY] {
        for version in [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0] {
            let mut file = parquet(&text, encoded(&text[0], encoding, version));
            assert_eq!(read("a.parquet", &file, &options()).len(), 300);
            // The declared number of lengths. The last lengths in the file are those of the texts or of their
            // suffixes.
            let at = memchr::memmem::rfind(&file, &[0x80, 1, 4, 0xac, 2]).unwrap();
            file[at + 4] = 0x7f;
            let found = read("a.parquet", &file, &options());
            assert!(
                found.len() == 300 && found[0].contains("cannot have as many values as it declares"),
                "{found:?}"
            );
        }
    }
}

#[test]
fn values_that_share_prefixes_are_read_in_small_batches() {
    // Each value is about as long as the whole page.
    let text = "word ".repeat(200_000);
    let repeated = StringArray::from_iter_values((0..300).map(|n| format!("{text}{n}")));
    let batch = batch(vec![("text", Arc::new(repeated) as ArrayRef)]);
    let properties = encoded(&batch, Encoding::DELTA_BYTE_ARRAY, WriterVersion::PARQUET_2_0);
    let file = parquet(std::slice::from_ref(&batch), properties);
    assert!(file.len() < 2 << 20, "{}", file.len());
    let limits = Limits { expansion_free_bytes: 1 << 30, ..Limits::at(NOW) };
    let found = read("a.parquet", &file, &limits.into());
    assert_eq!(found.len(), 300);
    assert!(found.iter().enumerate().all(|(n, line)| line.ends_with(&format!("word {n}"))));
}

//! Tests with small hostile files, which would take much memory or time, or end the process, without the
//! checks.

use arrow_array::types::Int32Type;
use arrow_ipc::writer::DictionaryHandling;

use super::*;

/// A Parquet file without rows. `elements` are the names and the numbers of children of its schema.
fn parquet_of_schema(elements: &[(&str, u64)]) -> Vec<u8> {
    let unsigned = |number: u64| {
        let (mut rest, mut bytes) = (number, Vec::new());
        while rest >= 0x80 {
            bytes.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        bytes.push(rest as u8);
        bytes
    };
    let mut footer = [&[0x15, 4, 0x19, 0xfc][..], &unsigned(elements.len() as u64)].concat();
    for (name, children) in elements {
        // An element without children is a nullable column of integers, any other one is a group.
        if *children == 0 {
            footer.extend([0x15, 2, 0x25, 2]);
        } else {
            footer.extend([0x35, 2]);
        }
        footer.push(0x18);
        footer.extend([unsigned(name.len() as u64), name.as_bytes().to_vec()].concat());
        if *children > 0 {
            footer.extend([vec![0x15], varint(*children)].concat());
        }
        footer.push(0);
    }
    // No rows, and no row groups.
    footer.extend([0x16, 0, 0x19, 0x0c, 0]);
    let length = (footer.len() as u32).to_le_bytes();
    [b"PAR1", &footer[..], &length, b"PAR1"].concat()
}

#[test]
fn a_hostile_schema_of_parquet_is_refused_and_does_not_end_the_process() {
    assert_eq!(read("a.parquet", &parquet_of_schema(&[("r", 1), ("text", 0)]), &options()), [""; 0]);
    let mut deep = vec![("g", 1); 200_000];
    deep.push(("text", 0));
    let found = read("a.parquet", &parquet_of_schema(&deep), &options());
    assert!(found.len() == 1 && found[0].contains("more than 64 deep"), "{found:?}");
    let found = read("a.parquet", &parquet_of_schema(&[("r", (1 << 31) - 1), ("text", 0)]), &options());
    assert_eq!(found.len(), 1);
    assert!(found[0].starts_with("cannot open: no valid Parquet or Arrow data"), "{found:?}");
}

#[test]
fn a_deeply_nested_schema_of_arrow_is_refused_and_does_not_end_the_process() {
    let mut deep = DataType::Int64;
    for _ in 0..500 {
        deep = DataType::Struct(vec![Field::new("a", deep, true)].into());
    }
    let batch = RecordBatch::new_empty(Arc::new(Schema::new(vec![Field::new("a", deep, true)])));
    for file in [arrow_file(std::slice::from_ref(&batch), None), arrow_stream(&[batch], None)] {
        let found = read("a.arrow", &file, &options());
        assert!(found.len() == 1 && found[0].starts_with("cannot open: "), "{found:?}");
    }
}

#[test]
fn a_schema_with_unusual_types_is_accepted() {
    let entries = vec![Field::new("keys", DataType::Utf8, false), Field::new("values", DataType::Int8, true)];
    let entries = Field::new("entries", DataType::Struct(entries.into()), false);
    let types = [
        DataType::Decimal128(20, 3),
        DataType::Decimal256(60, 3),
        DataType::Time32(TimeUnit::Millisecond),
        DataType::Time64(TimeUnit::Nanosecond),
        DataType::Timestamp(TimeUnit::Second, Some("+01:00".into())),
        DataType::Timestamp(TimeUnit::Nanosecond, None),
        DataType::Date64,
        DataType::UInt8,
        DataType::Int16,
        DataType::UInt64,
        DataType::Float16,
        DataType::FixedSizeBinary(16),
        DataType::Map(Arc::new(entries), false),
        DataType::LargeList(Arc::new(Field::new_list_field(DataType::Boolean, true))),
        DataType::Null,
    ];
    let mut fields: Vec<_> =
        types.into_iter().enumerate().map(|(n, of)| Field::new(format!("c{n}"), of, true)).collect();
    fields.push(Field::new("text", DataType::Utf8, true));
    let empty = RecordBatch::new_empty(Arc::new(Schema::new(fields)));
    assert_eq!(read("a.parquet", &parquet(&[empty], WriterProperties::default()), &options()), [""; 0]);
}

#[test]
fn a_batch_is_counted_for_the_limit_on_expansion_before_it_is_decoded() {
    // Each batch has a megabyte of text.
    let text = StringArray::from_iter_values((0..10).map(|n| format!("{n}{}", "word ".repeat(20_000))));
    let batches = vec![batch(vec![("text", Arc::new(text) as ArrayRef)]); 40];
    let zstd = Compression::ZSTD(ZstdLevel::default());
    let properties = WriterProperties::builder().set_dictionary_enabled(false).set_compression(zstd);
    let limits = Limits { expansion_free_bytes: 5 << 20, expansion_ratio_max: 1, ..Limits::at(NOW) };
    for (name, file) in [
        ("a.parquet", parquet(&batches, properties.build())),
        ("a.arrow", arrow_file(&batches, Some(CompressionType::ZSTD))),
        ("b.arrow", arrow_stream(&batches, Some(CompressionType::ZSTD))),
    ] {
        assert!(file.len() < 1 << 20, "{name}: {}", file.len());
        let found = read(name, &file, &limits.into());
        let first_bad = found.iter().position(|line| line.starts_with("bad")).unwrap();
        let (pages, bad) = found.split_at(first_bad);
        let last = &bad[0];
        assert!(
            bad[1..].iter().all(|line| line.ends_with("it is behind the damage, so it was not read")),
            "{name}"
        );
        assert!(last.contains("unpacks to over 5 MiB and 1 times its size"), "{name}: {last}");
        // Only whole batches are read, and no batch that would exceed the limit.
        assert!(pages.len() % 10 == 0 && pages.len() <= 50, "{name}: {}", pages.len());
    }
}

/// A stream of batches, each with a dictionary of its own.
fn stream_of_dictionaries(handling: DictionaryHandling, batches: &[RecordBatch]) -> Vec<u8> {
    let options = IpcWriteOptions::default().with_dictionary_handling(handling);
    let mut writer = StreamWriter::try_new_with_options(Vec::new(), &batches[0].schema(), options).unwrap();
    batches.iter().for_each(|batch| writer.write(batch).unwrap());
    writer.into_inner().unwrap()
}

#[test]
fn replaced_dictionaries_do_not_count_towards_the_limit() {
    let of = |keys: i32, values: StringArray| {
        let keys = arrow_array::Int32Array::from(vec![keys]);
        let text = DictionaryArray::<Int32Type>::try_new(keys, Arc::new(values)).unwrap();
        batch(vec![("text", Arc::new(text) as ArrayRef)])
    };
    let value = |n: i32| format!("{n} {}", "x".repeat(100_000));
    let limits: InputOptions = Limits { columns_bytes_max: 300_000, ..Limits::at(NOW) }.into();
    let replaced: Vec<_> = (0..10).map(|n| of(0, StringArray::from(vec![value(n)]))).collect();
    let file = stream_of_dictionaries(DictionaryHandling::Resend, &replaced);
    let found = read("a.arrow", &file, &limits);
    assert!(found.len() == 10 && found.iter().all(|line| line.starts_with("record:")), "{}", found.len());
    // Dictionaries that are extended do grow.
    let values = |n: i32| StringArray::from_iter_values((0..=n).map(value));
    let added: Vec<_> = (0..10).map(|n| of(n, values(n))).collect();
    let file = stream_of_dictionaries(DictionaryHandling::Delta, &added);
    let found = read("a.arrow", &file, &limits);
    assert_eq!(found.len(), 3);
    assert!(found[2].contains("dictionaries of"), "{}", found[2]);
    assert_eq!(read("a.arrow", &file, &options()).len(), 10);
}

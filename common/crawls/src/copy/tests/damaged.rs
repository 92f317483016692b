//! Tests that copy Parquet and Arrow files which are damaged after their first rows.

use super::*;

/// Four batches of ten rows. Each column of the third batch contains the text `odd` and its name, which tests
/// damage.
pub(super) fn batches() -> Vec<RecordBatch> {
    let column = |name: &str, from: usize| -> ArrayRef {
        let texts =
            (from..from + 10).map(|n| if n == 25 { format!("odd {name}") } else { format!("{name} {n}") });
        Arc::new(StringArray::from_iter_values(texts))
    };
    let batch =
        |from| RecordBatch::try_from_iter(["id", "text", "other"].map(|name| (name, column(name, from))));
    [0, 10, 20, 30].map(|from| batch(from).unwrap()).into()
}

/// The batches as a Parquet file, an Arrow file and an Arrow stream, all without compression.
pub(super) fn files() -> [(&'static str, Vec<u8>); 3] {
    let batches = batches();
    let schema = batches[0].schema();
    let plain = WriterProperties::builder().set_dictionary_enabled(false).build();
    let mut parquet = ArrowWriter::try_new(Vec::new(), Arc::clone(&schema), Some(plain)).unwrap();
    let mut file = FileWriter::try_new(Vec::new(), &schema).unwrap();
    let mut stream = StreamWriter::try_new(Vec::new(), &schema).unwrap();
    for batch in &batches {
        parquet.write(batch).unwrap();
        parquet.flush().unwrap();
        file.write(batch).unwrap();
        stream.write(batch).unwrap();
    }
    [
        ("a.parquet", parquet.into_inner().unwrap()),
        ("b.arrow", file.into_inner().unwrap()),
        ("c.arrow", stream.into_inner().unwrap()),
    ]
}

#[test]
fn rows_before_the_damage_are_copied_whichever_column_is_damaged() {
    let home = tempfile::tempdir().unwrap();
    for column in ["text", "other"] {
        for (name, mut bytes) in files() {
            let odd = format!("odd {column}");
            let at = memchr::memmem::find(&bytes, odd.as_bytes()).unwrap();
            bytes[at..at + odd.len()].fill(0xff);
            let path = write_file(&home, name, &bytes);
            let (copied, kept, removed) = copy_sides((&path, &[false, true]), false).unwrap();
            // A Parquet file declares its number of rows, so each row after the damage counts as bad.
            let bad = if name == "a.parquet" { 20 } else { 1 };
            let expected =
                Copied { kept: 10, removed: [(Removal::Duplicate, 10)].into(), bad, ..Copied::default() };
            assert_eq!(copied, expected, "{name}, {column}");
            for side in [kept, removed] {
                let (copied, ..) = copy_sides((&write_file(&home, name, &side), &[false]), false).unwrap();
                assert_eq!(copied, Copied { kept: 10, ..Copied::default() }, "{name}, {column}");
            }
        }
    }
}

#[test]
fn a_column_without_a_field_is_decoded_only_where_rows_are_copied() {
    let home = tempfile::tempdir().unwrap();
    for (name, mut bytes) in files() {
        let at = memchr::memmem::find(&bytes, b"odd other").unwrap();
        bytes[at..at + 9].fill(0xff);
        let path = write_file(&home, name, &bytes);
        let pages = |all_columns| {
            let options = InputOptions { all_columns, ..limits().into() };
            let items: Vec<_> = crate::open(&path, options).unwrap().collect();
            let bad = items.iter().filter(|item| matches!(item, Item::Bad(_))).count();
            (items.iter().filter(|item| matches!(item, Item::Page(_))).count(), bad > 0)
        };
        assert_eq!(pages(true), (20, true), "{name}");
        assert_eq!(pages(false), (40, false), "{name}");
    }
}

/// The offsets of the messages of an Arrow file or stream: the schema, then each batch.
fn message_offsets(bytes: &[u8]) -> Vec<usize> {
    let marks = memchr::memmem::find_iter(bytes, &[0xff; 4]);
    marks.filter(|at| bytes[at + 4..at + 8] != [0; 4]).collect()
}

#[test]
fn zeros_over_the_header_of_a_batch_are_damage() {
    let home = tempfile::tempdir().unwrap();
    for (name, bytes) in files().into_iter().skip(1) {
        let offsets = message_offsets(&bytes);
        assert_eq!(offsets.len(), 5, "{name}");
        for (batch, at) in offsets.into_iter().skip(1).enumerate() {
            for zeros in [at..at + 4, at + 4..at + 8, at..at + 8, at..at + 200] {
                let mut damaged = bytes.clone();
                damaged[zeros.clone()].fill(0);
                let path = write_file(&home, name, &damaged);
                let items: Vec<_> = crate::open(&path, limits()).unwrap().collect();
                let pages = items.iter().filter(|item| matches!(item, Item::Page(_))).count();
                let bad = items.iter().filter_map(|item| match item {
                    Item::Bad(error) => Some(error.position),
                    _ => None,
                });
                let next = InputPosition::Row(pages as u64 + 1);
                assert_eq!((pages, bad.collect()), (10 * batch, vec![next]), "{name}, {zeros:?}");
                let (copied, ..) = copy_sides((&path, &[false]), false).unwrap();
                assert_eq!((copied.kept, copied.bad), (pages as u64, 1), "{name}, {zeros:?}");
            }
        }
    }
}

#[test]
fn only_padding_may_follow_the_end_marker_of_a_stream() {
    let home = tempfile::tempdir().unwrap();
    let [_, _, (name, stream)] = files();
    let without_mark = stream.strip_suffix(&[0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0]).unwrap();
    let old_mark = [without_mark, &[0; 4]].concat();
    for (behind, bad) in
        [(vec![], 0), (vec![0; 64], 0), (vec![0; 65], 1), (vec![b'x'], 1), (stream.clone(), 1)]
    {
        for sound in [&stream, &old_mark] {
            let path = write_file(&home, name, &[&sound[..], &behind].concat());
            let (copied, ..) = copy_sides((&path, &[false]), false).unwrap();
            assert_eq!((copied.kept, copied.bad), (40, bad), "{} bytes behind", behind.len());
        }
    }
    let (copied, ..) = copy_sides((&write_file(&home, name, without_mark), &[false]), false).unwrap();
    assert_eq!((copied.kept, copied.bad), (40, 0));
    let path = write_file(&home, name, &[without_mark, &[0xff; 4]].concat());
    let (copied, ..) = copy_sides((&path, &[false]), false).unwrap();
    assert_eq!((copied.kept, copied.bad), (40, 1));
}

#[test]
fn a_file_that_does_not_begin_or_end_like_its_format_is_refused() {
    let home = tempfile::tempdir().unwrap();
    for ((name, bytes), kind) in files().into_iter().zip(["a Parquet file", "an Arrow file"]) {
        for damaged in
            [[&bytes[..], b"garbage"].concat(), bytes[..bytes.len() - 1].to_vec(), bytes[..9].to_vec()]
        {
            let error = crate::open(&write_file(&home, name, &damaged), limits()).err().unwrap().to_string();
            assert!(error.contains(&format!("the file does not end like {kind}")), "{error}");
        }
    }
    for (format, expected) in [
        (crate::InputFormat::Parquet, "the file does not end like a Parquet file"),
        (crate::InputFormat::Arrow, "the file does not begin like an Arrow file or stream"),
    ] {
        let path = write_file(&home, "page.jsonl", b"{\"url\": \"http://a.org/\", \"text\": \"x\"}\n");
        let options = InputOptions { format: Some(format), ..limits().into() };
        let error = crate::open(&path, options).err().unwrap().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn no_row_is_read_after_an_end_marker_in_the_middle_of_a_stream() {
    let home = tempfile::tempdir().unwrap();
    let [_, _, (name, stream)] = files();
    let third = message_offsets(&stream)[3];
    for zeros in [4, 8, 200] {
        let (before, behind) = stream.split_at(third);
        let path = write_file(&home, name, &[before, &vec![0; zeros], behind].concat());
        let options = InputOptions { all_columns: true, ..limits().into() };
        let items: Vec<_> = crate::open(&path, options).unwrap().collect();
        assert_eq!(items.iter().filter(|item| matches!(item, Item::Page(_))).count(), 20);
        let (copied, ..) = copy_sides((&path, &[false]), false).unwrap();
        assert_eq!((copied.kept, copied.bad), (20, 1), "{zeros} zeros");
    }
}

//! Files of columns that are damaged behind their first rows.

use super::*;

/// Batches of ten rows, of which the third has an odd text in the column `other`.
fn batches() -> Vec<RecordBatch> {
    let column = |name: &str, from: usize| -> ArrayRef {
        let texts =
            (from..from + 10).map(|n| if n == 25 { format!("odd {name}") } else { format!("{name} {n}") });
        Arc::new(StringArray::from_iter_values(texts))
    };
    let batch =
        |from| RecordBatch::try_from_iter(["id", "text", "other"].map(|name| (name, column(name, from))));
    [0, 10, 20, 30].map(|from| batch(from).unwrap()).into()
}

/// The batches in each kind of file, none of which is compressed.
fn files() -> [(&'static str, Vec<u8>); 3] {
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
fn rows_in_front_of_damage_are_copied_whichever_column_is_damaged() {
    let home = tempfile::tempdir().unwrap();
    for column in ["text", "other"] {
        for (name, mut bytes) in files() {
            let odd = format!("odd {column}");
            let at = memchr::memmem::find(&bytes, odd.as_bytes()).unwrap();
            bytes[at..at + odd.len()].fill(0xff);
            let path = written(&home, name, &bytes);
            let (copied, kept, removed) = cut((&path, &[false, true]), false).unwrap();
            // Parquet says how many rows there are.
            let bad = if name == "a.parquet" { 20 } else { 1 };
            let expected =
                Copied { kept: 10, removed: [(Removal::Duplicate, 10)].into(), bad, ..Copied::default() };
            assert_eq!(copied, expected, "{name}, {column}");
            for side in [kept, removed] {
                let (copied, ..) = cut((&written(&home, name, &side), &[false]), false).unwrap();
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
        let path = written(&home, name, &bytes);
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

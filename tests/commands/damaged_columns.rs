//! Parquet and Arrow files that are damaged after their first rows. The command names the file, and processes
//! all other files.

use std::fs;
use std::path::Path;
use std::process::Output;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, StringArray};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReader;
use serde_json::{Value, json};

use crate::harness::doppel;
use crate::harness::pages::text;
use crate::{code, errors};

/// A batch of ten rows. Rows whose numbers differ by 20 have the same text.
fn batch(from: u32) -> RecordBatch {
    let column = |of: &dyn Fn(u32) -> String| -> ArrayRef {
        Arc::new(StringArray::from_iter_values((from..from + 10).map(of)))
    };
    let columns = [
        ("id", column(&|n| n.to_string())),
        ("text", column(&|n| text(u64::from(n % 20), 80).join(" "))),
        ("meta", column(&|n| format!("meta of {n}"))),
    ];
    RecordBatch::try_from_iter(columns).unwrap()
}

/// A Parquet file with a row group for each batch.
fn in_parquet(batches: &[RecordBatch]) -> Vec<u8> {
    let mut writer = ArrowWriter::try_new(Vec::new(), batches[0].schema(), None).unwrap();
    for batch in batches {
        writer.write(batch).unwrap();
        writer.flush().unwrap();
    }
    writer.into_inner().unwrap()
}

fn in_arrow(batches: &[RecordBatch]) -> Vec<u8> {
    let mut writer = arrow_ipc::writer::FileWriter::try_new(Vec::new(), &batches[0].schema()).unwrap();
    batches.iter().for_each(|batch| writer.write(batch).unwrap());
    writer.into_inner().unwrap()
}

fn dedup(home: &Path, inputs: &[&str]) -> Output {
    let mut command = doppel();
    command.current_dir(home).args(["dedup", "--json", "--kept", "kept", "--removed", "removed"]);
    command.args(inputs).output().unwrap()
}

#[test]
fn a_damaged_file_is_named_and_the_files_behind_it_are_written() {
    let batches = [batch(0), batch(10), batch(20)];
    for (name, sound) in [("a.parquet", in_parquet(&batches)), ("a.arrow", in_arrow(&batches))] {
        let home = tempfile::tempdir().unwrap();
        let mut damaged = sound;
        let at = damaged.windows(10).position(|bytes| bytes == b"meta of 25").unwrap();
        damaged[at..at + 10].fill(0xff);
        fs::write(home.path().join(name), damaged).unwrap();
        fs::write(home.path().join("behind.parquet"), in_parquet(&[batch(20), batch(40)])).unwrap();
        let output = dedup(home.path(), &[name, "behind.parquet"]);
        let said = errors(&output);
        assert_eq!(code(&output), 5, "{said}");
        assert!(said.contains(&format!("{name}, row 21: ")), "{said}");
        assert!(said.contains(&format!("{name} could not be read to the end")), "{said}");
        let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
        // Only Parquet states the number of rows, so its missing rows can be counted.
        let bad = if name == "a.parquet" { 10 } else { 1 };
        let expected =
            json!({"read": 40 + bad, "kept": 20, "removed": {"duplicate": 20}, "bad": bad, "skipped": 0});
        assert_eq!(summary["records"], expected);
        let copied = &summary["results"];
        assert_eq!(copied["kept"], expected["kept"]);
        assert_eq!(copied["removed"], expected["removed"]);
        for (side, file, rows) in [
            ("kept", name, 20),
            ("removed", name, 0),
            ("kept", "behind.parquet", 0),
            ("removed", "behind.parquet", 20),
        ] {
            let path = home.path().join(side).join(file);
            assert!(path.is_file(), "{}", path.display());
            if rows > 0 {
                let read = doppel().args(["dedup", "--json"]).arg(&path).output().unwrap();
                let read: Value = serde_json::from_slice(&read.stdout).unwrap();
                assert_eq!(read["records"]["read"], json!(rows), "{}", path.display());
            }
        }
    }
}

/// The texts of the rows of a Parquet file.
fn texts(path: &Path) -> Vec<String> {
    let reader = ParquetRecordBatchReader::try_new(fs::File::open(path).unwrap(), 1_024).unwrap();
    let of = |batch: RecordBatch| -> Vec<String> {
        let column = batch.column_by_name("text").unwrap().clone();
        let column = column.as_any().downcast_ref::<StringArray>().unwrap().clone();
        column.iter().map(|text| text.unwrap().to_owned()).collect()
    };
    reader.flat_map(|batch| of(batch.unwrap())).collect()
}

#[test]
fn a_collection_contains_no_row_that_cannot_be_copied() {
    let home = tempfile::tempdir().unwrap();
    let mut damaged = in_parquet(&[batch(0), batch(10)]);
    let at = damaged.windows(10).position(|bytes| bytes == b"meta of 15").unwrap();
    damaged[at..at + 10].fill(0xff);
    fs::write(home.path().join("a.parquet"), damaged).unwrap();
    fs::write(home.path().join("b.parquet"), in_parquet(&[batch(10)])).unwrap();
    let run = |options: &[&str]| {
        let mut command = doppel();
        command.current_dir(home.path()).args(["dedup", "--json", "--data", "collection"]).args(options);
        let output = command.output().unwrap();
        assert_eq!(code(&output), 5, "{}", errors(&output));
    };
    // Only columns are damaged that this run does not read.
    run(&["a.parquet"]);
    run(&["--kept", "kept", "--removed", "removed", "a.parquet", "b.parquet"]);
    assert_eq!(texts(&home.path().join("kept/a.parquet")).len(), 10);
    assert_eq!(texts(&home.path().join("kept/b.parquet")).len(), 10);
    assert_eq!(texts(&home.path().join("removed/b.parquet")).len(), 0);
}

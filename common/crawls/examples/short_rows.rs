//! Writes a Parquet file of short rows for measurements: `short_rows ROWS FILE`.
//!
//! The columns are `id`, a number, and `text`, which has 25 to 60 words. The words come from a list of
//! 65,536, and few of them are common. Of every ten rows, one repeats an earlier row, and one repeats an
//! earlier row with another last word. The file is compressed with Snappy and has row groups of 1,048,576
//! rows, like the files of common writers. The same number of rows always gives the same file.

use std::error::Error;
use std::fs::File;
use std::sync::Arc;

use arrow_array::{Int64Array, RecordBatch, StringArray};
use doppel_model::Random;
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;

/// The number of rows in a batch.
const BATCH_ROWS: u64 = 8_192;
/// The number of bits of a word. A word is a number, written as one syllable for each 4 bits.
const BITS: u32 = 16;
const SYLLABLES: [&str; 16] =
    ["ba", "de", "fi", "go", "hu", "ka", "le", "mi", "no", "pu", "ra", "se", "ti", "vo", "wu", "za"];

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [rows, file] = &arguments[..] else { return Err("short_rows ROWS FILE".into()) };
    let rows: u64 = rows.parse()?;
    let batch = |from: u64| {
        let numbers = from..(from + BATCH_ROWS).min(rows);
        let ids = Int64Array::from_iter_values(numbers.clone().map(u64::cast_signed));
        let texts = StringArray::from_iter_values(numbers.map(text));
        RecordBatch::try_from_iter([("id", Arc::new(ids) as _), ("text", Arc::new(texts) as _)])
    };
    let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
    let mut writer = ArrowWriter::try_new(File::create(file)?, batch(0)?.schema(), Some(properties))?;
    for from in (0..rows).step_by(usize::try_from(BATCH_ROWS)?) {
        writer.write(&batch(from)?)?;
    }
    writer.close()?;
    Ok(())
}

/// The text of a row, which may repeat the text of an earlier row.
fn text(row: u64) -> String {
    // The earlier row is the first of ten rows, which never repeats another row.
    let earlier = || Random::new(!row).number() % (row / 10 + 1) * 10;
    match row % 10 {
        3 => own_text(earlier()),
        7 => {
            let mut text = own_text(earlier());
            text.truncate(text.rfind(' ').unwrap_or(0));
            text + " other"
        }
        _ => own_text(row),
    }
}

/// A text of random words that depends only on the number of the row.
fn own_text(row: u64) -> String {
    let mut random = Random::new(row);
    let words = 25 + random.number() % 36;
    let mut text = String::new();
    for _ in 0..words {
        // The product of two random numbers is more often small than large, so some words are common.
        let mut low = || random.number() >> (64 - BITS);
        let word = (low() * low()) >> BITS;
        if !text.is_empty() {
            text.push(' ');
        }
        for syllable in 0..BITS / 4 {
            text.push_str(SYLLABLES[(word >> (4 * syllable)) as usize % SYLLABLES.len()]);
        }
    }
    text
}

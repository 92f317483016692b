//! A test that damages small Parquet and Arrow files at many positions in turn, then reads and copies them.

use super::damaged::{batches, files};
use super::*;

/// The number of rows of an undamaged file.
const ROWS: u64 = 40;

/// The distance between two positions of damage, in bytes. With a distance of 1 the test takes some minutes.
const STEP: usize = 97;

/// A kind of damage at a position of a file.
#[derive(Debug, Clone, Copy)]
enum Damage {
    /// Overwrites this many bytes with zeros.
    Zeros(usize),
    /// Overwrites this many bytes with ones.
    Ones(usize),
    /// Flips these bits of one byte.
    Flip(u8),
}

const DAMAGE: [Damage; 8] = [
    Damage::Zeros(1),
    Damage::Zeros(8),
    Damage::Zeros(64),
    Damage::Zeros(200),
    Damage::Zeros(1_000),
    Damage::Ones(1),
    Damage::Flip(1),
    Damage::Flip(0x40),
];

impl Damage {
    fn apply(self, bytes: &[u8], at: usize) -> Vec<u8> {
        let mut damaged = bytes.to_vec();
        let window = |length: usize| at..(at + length).min(bytes.len());
        match self {
            Self::Zeros(length) => damaged[window(length)].fill(0),
            Self::Ones(length) => damaged[window(length)].fill(0xff),
            Self::Flip(bits) => damaged[at] ^= bits,
        }
        damaged
    }
}

/// The batches with a column of dictionary values, in compressed and uncompressed files.
fn packed_files() -> Vec<(&'static str, Vec<u8>)> {
    let batches: Vec<_> = batches().iter().map(with_dictionary).collect();
    let schema = batches[0].schema();
    let mut files = Vec::new();
    for compression in [None, Some(CompressionType::ZSTD)] {
        let options = IpcWriteOptions::default().try_with_compression(compression).unwrap();
        let mut file = FileWriter::try_new_with_options(Vec::new(), &schema, options.clone()).unwrap();
        let mut stream = StreamWriter::try_new_with_options(Vec::new(), &schema, options).unwrap();
        for batch in &batches {
            file.write(batch).unwrap();
            stream.write(batch).unwrap();
        }
        let stream = stream.into_inner().unwrap();
        let mut gzip = compressed_writer::CompressedWriter::new(Packing::Gzip, Vec::new()).unwrap();
        gzip.write_all(&stream).unwrap();
        files.extend([
            ("a.arrow", file.into_inner().unwrap()),
            ("b.arrow", stream),
            ("b.arrow.gz", gzip.finish().unwrap()),
        ]);
    }
    let zstd = WriterProperties::builder().set_compression(Compression::ZSTD(ZstdLevel::default()));
    let mut parquet = ArrowWriter::try_new(Vec::new(), schema, Some(zstd.build())).unwrap();
    for batch in &batches {
        parquet.write(batch).unwrap();
        parquet.flush().unwrap();
    }
    files.push(("c.parquet", parquet.into_inner().unwrap()));
    files
}

/// Adds a column of dictionary values to a batch.
fn with_dictionary(batch: &RecordBatch) -> RecordBatch {
    let kinds: DictionaryArray<Int32Type> = (0..batch.num_rows()).map(|n| ["one", "other"][n % 2]).collect();
    let fields = batch.schema_ref().fields().iter().cloned();
    let kind = Arc::new(Field::new("kind", kinds.data_type().clone(), true));
    let columns = batch.columns().iter().cloned().chain([Arc::new(kinds) as ArrayRef]);
    let schema = Schema::new(fields.chain([kind]).collect::<Vec<_>>());
    RecordBatch::try_new(Arc::new(schema), columns.collect()).unwrap()
}

/// The numbers of pages and bad records of a file, all columns decoded. `None` if the file cannot be opened.
fn pages(path: &Path) -> Option<(u64, u64)> {
    let options = InputOptions { all_columns: true, ..limits().into() };
    let (mut pages, mut bad) = (0, 0);
    for item in crate::open(path, options).ok()? {
        pages += u64::from(matches!(item, Item::Page(_)));
        bad += u64::from(matches!(item, Item::Bad(_)));
    }
    Some((pages, bad))
}

/// Reads and copies a damaged file, and describes what goes wrong. `None` if reader and copy agree, both
/// sides can be read again, and no row is lost silently.
fn fault(path: &Path) -> Option<String> {
    let read = pages(path);
    let (pages, bad) = match (read, copy_sides((path, &[false, true]), false)) {
        (None, Err(CopyError::Open(_))) => return None,
        (Some(read), Ok((copied, kept, removed))) => {
            let removed_rows = copied.removed.values().sum::<u64>();
            if (copied.kept + removed_rows, copied.bad) != read {
                return Some(format!("read {read:?} pages and bad records, but copied {copied:?}"));
            }
            let (home, name) = (path.parent()?, path.file_name()?.to_str()?);
            for (side, rows) in [(kept, copied.kept), (removed, removed_rows)] {
                let side_path = home.join(format!("side-{name}"));
                fs::write(&side_path, side).unwrap();
                let again = pages(&side_path);
                fs::remove_file(&side_path).unwrap();
                if again != Some((rows, 0)) {
                    return Some(format!(
                        "a side has {rows} rows, but its pages and bad records are {again:?}"
                    ));
                }
            }
            read
        }
        (read, copied) => {
            let copied = copied.map(|(copied, ..)| copied);
            return Some(format!("read {read:?} pages and bad records, but the copy gave {copied:?}"));
        }
    };
    (pages < ROWS && bad == 0).then(|| format!("only {pages} pages and no bad record"))
}

#[test]
fn reader_and_copy_agree_about_damage_at_any_position_and_never_ignore_it() {
    let home = tempfile::tempdir().unwrap();
    let mut faults = Vec::new();
    for (name, bytes) in files().into_iter().chain(packed_files()) {
        let undamaged = write_file(&home, name, &bytes);
        assert_eq!(pages(&undamaged), Some((ROWS, 0)));
        fs::remove_file(undamaged).unwrap();
        for (number, damage) in DAMAGE.into_iter().enumerate() {
            for at in (number * 11 % STEP..bytes.len()).step_by(STEP) {
                let path = write_file(&home, name, &damage.apply(&bytes, at));
                let fault = fault(&path);
                faults.extend(fault.map(|fault| format!("{name}, {damage:?} at {at}: {fault}")));
                // Some file systems wait for the disk when a file is overwritten, so the test removes the
                // file first.
                fs::remove_file(path).unwrap();
            }
        }
    }
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

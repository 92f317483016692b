//! Options for records: which field contains what, and what happens to bad records. Also reports which fields
//! were read.

pub mod bad_records;
pub mod named_fields;
pub mod position_fields;
pub mod record_names;
pub mod shown_messages;
pub mod unusable;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

use clap::Args;
use doppel_crawls::record::{Field, FieldMap, FieldNames, IdChoices, PathSource, RecordFile};
use doppel_crawls::{InputFormat, InputOptions, Item, Limits, ZSTD_WINDOW_BYTES_MAX, is_separator};
use serde::Serialize;

use crate::records::bad_records::BadFile;
use crate::records::shown_messages::ShownMessages;
use crate::sources::{InputSource, SourceKind, Sources};
use doppel_terminal::exit::Failure;
use doppel_terminal::output::say;
use doppel_terminal::size::ByteSize;

/// Options that say how to read files of records of any schema, such as JSON lines.
#[derive(Debug, Clone, Default, Args)]
pub struct FieldArgs {
    /// Format of all files of the inputs, if their names and contents do not show it: warc, arc, wacz, jsonl,
    /// csv, tsv, parquet or arrow.
    #[arg(long, value_name = "FORMAT", help_heading = "Records")]
    pub format: Option<InputFormat>,
    /// Character that separates the cells of CSV and TSV, such as '|', or tab [default: the separator in a
    /// first line such as 'sep=;', else a tab in TSV, else the most frequent of , ; tab and | in the row of
    /// names].
    #[arg(long, value_name = "CHAR", help_heading = "Records")]
    pub separator: Option<Separator>,
    /// Field of a record that contains its text, such as content or document.body. Dots lead into nested
    /// objects, and [] into lists, as in tags[] or messages[].content. Several fields in commas, such as
    /// title,body, are joined by line feeds. If you name a field for text or for HTML, the other is not
    /// guessed. With none, no text is read [default: the first of text, content and raw_content that at least
    /// half of the first 1,000 records of a file have].
    #[arg(long, value_name = "FIELD", help_heading = "Records", value_parser = path)]
    pub text_field: Option<String>,
    /// Field that contains HTML, which is read if a record has no text. With none, no HTML is read [default:
    /// html].
    #[arg(long, value_name = "FIELD", help_heading = "Records", value_parser = path)]
    pub html_field: Option<String>,
    /// Field that names a record without a URL: record:FILE#ID, or record:FILE#row=N if the record has no id.
    /// In a field that you name, a repeated value makes a bad record. A guessed field with repeated values is
    /// not used as an id. With none, rows name the records [default: id].
    #[arg(long, value_name = "FIELD", help_heading = "Records", value_parser = path)]
    pub id_field: Option<String>,
    /// Field that contains the URL. With none, no URL is read, and ids or rows name the records [default: the
    /// first of url, source, metadata.url and meta.url whose values in the first 1,000 records are http or
    /// https URLs: all values of source, at least half of the values of the others].
    #[arg(long, value_name = "FIELD", help_heading = "Records", value_parser = path)]
    pub url_field: Option<String>,
    /// Field that contains the date of the fetch: RFC 3339, a date or date-time without zone (UTC), or
    /// seconds or milliseconds since 1970 as a number. An invalid date makes a bad record in a field that you
    /// name, and is ignored in a guessed field. With none, no date is read [default: the first of fetched_at,
    /// timestamp, date, crawl_date and date_download, then of timestamp and date in metadata or meta].
    #[arg(long, value_name = "FIELD", help_heading = "Records", value_parser = path)]
    pub date_field: Option<String>,
    /// Whether each record is judged on its own, as commands without a collection do.
    #[arg(skip)]
    pub judges_records: bool,
    /// Whether this run, or another run of the same collection, copies records. If so, a row with a column
    /// that cannot be decoded is bad.
    #[arg(skip)]
    pub copies_records: bool,
    /// Largest window that a zstd file may ask for, up to 2GiB; the reader of an open file takes as much
    /// memory. Files that zstd wrote with `--long=31` ask for 2GiB unless their content is known to be
    /// smaller [default: 128MiB].
    #[arg(long, value_name = "SIZE", help_heading = "Records", value_parser = zstd_window)]
    pub zstd_window_max: Option<u64>,
    /// Choices of what names the records of files with a guessed id. All passes of a run share the choices.
    #[arg(skip)]
    pub ids: IdChoices,
}

/// Character that separates the cells of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Separator(u8);

impl FromStr for Separator {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.as_bytes() {
            b"tab" | b"\\t" => Ok(Self(b'\t')),
            [byte] if is_separator(*byte) => Ok(Self(*byte)),
            _ => Err("one character of ASCII is expected, such as '|', or tab"),
        }
    }
}

/// Most fields whose texts are joined.
const PARTS_MAX: usize = 16;
/// Most steps of the path of a field.
const STEPS_MAX: usize = 32;

/// Checks the path of a field, or several paths in commas. Bounds the number of paths and of their steps.
fn path(text: &str) -> Result<String, String> {
    let steps = text.matches('.').count() + text.matches("[]").count();
    match () {
        () if text.is_empty() => Err("a field needs a name; pass none to read no field".to_owned()),
        () if text.matches(',').count() >= PARTS_MAX => Err(format!("at most {PARTS_MAX} fields are joined")),
        () if steps > STEPS_MAX * (1 + text.matches(',').count()) => {
            Err(format!("a path has at most {STEPS_MAX} steps"))
        }
        () => Ok(text.to_owned()),
    }
}

/// Options that say how to read files of records, and what happens to bad records.
#[derive(Debug, Clone, Default, Args)]
pub struct RecordArgs {
    /// Which field of a record contains what.
    #[command(flatten)]
    pub fields: FieldArgs,
    /// Write a line of JSON for every bad record to this file: its place, the reason, and the record itself
    /// if it is a line. An existing file is replaced.
    #[arg(long, value_name = "FILE", help_heading = "Records")]
    pub bad: Option<BadFile>,
    /// End with code 5 if more than this share of the records is bad, 0 to 1 [default: 0.05 if more than 20
    /// are bad].
    #[arg(long, value_name = "SHARE", help_heading = "Records")]
    pub max_bad: Option<Share>,
    /// Messages about the inputs that earlier passes over them have shown.
    #[arg(skip)]
    pub told: Arc<ShownMessages>,
}

/// A share from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Share(pub f64);

impl FromStr for Share {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let share = text.parse().ok().filter(|share| (0.0..=1.0).contains(share));
        share.map(Self).ok_or("a share from 0 to 1 is expected, such as 0.01")
    }
}

/// Parses the size of a window that zstd supports.
fn zstd_window(text: &str) -> Result<u64, String> {
    let ByteSize(bytes) = text.parse()?;
    if (1 << 10..=ZSTD_WINDOW_BYTES_MAX).contains(&bytes) {
        return Ok(bytes);
    }
    Err("a size from 1KiB to 2GiB is expected; zstd itself supports no larger windows".to_owned())
}

impl FieldArgs {
    /// Options for reading inputs with these fields and within these limits.
    pub fn options(&self, mut limits: Limits) -> InputOptions {
        limits.zstd_window_max = self.zstd_window_max.unwrap_or(limits.zstd_window_max);
        let fields = FieldNames {
            text: self.text_field.clone(),
            html: self.html_field.clone(),
            id: self.id_field.clone(),
            url: self.url_field.clone(),
            date: self.date_field.clone(),
        };
        InputOptions {
            limits,
            format: self.format,
            fields,
            judges_records: self.judges_records,
            separator: self.separator.map(|Separator(byte)| byte),
            ids: self.ids.clone(),
            all_columns: self.copies_records,
        }
    }

    /// Whether the user gave no option about the format or the fields of records.
    pub fn is_empty(&self) -> bool {
        let names = [&self.text_field, &self.html_field, &self.id_field, &self.url_field, &self.date_field];
        self.format.is_none()
            && self.zstd_window_max.is_none()
            && self.separator.is_none()
            && names.into_iter().all(Option::is_none)
    }
}

impl RecordArgs {
    /// Whether to show messages about the inputs: `asked` is set, and no earlier pass has shown the messages.
    /// Counts as showing them.
    pub fn tells(&self, asked: bool) -> bool {
        asked && self.told.begin()
    }

    /// Refuses directories of pages if the user gave a format, because a format applies to files.
    ///
    /// # Errors
    /// [`Failure::Usage`] if a source is a directory of pages.
    pub fn require_files(&self, sources: &Sources) -> Result<(), Failure> {
        let Some(format) = self.fields.format else { return Ok(()) };
        let Some(source) = sources.all.iter().find(|source| source.is_pages()) else { return Ok(()) };
        let dir = source.path().display();
        Err(Failure::Usage(format!(
            "{dir} is a directory of pages, and --format {format} applies to files; if its files have that format, name them by a \
             pattern in quotes: '{dir}/*'"
        )))
    }

    /// Refuses two files with the same name if their records would get the same names, too. If the records
    /// have ids, the files are accepted, and a message says that records with the same id are versions of
    /// each other.
    ///
    /// # Errors
    /// [`Failure::Usage`] if two files with the same name have records with neither URL nor id.
    pub fn check_names(&self, sources: &Sources, options: &InputOptions, tell: bool) -> Result<(), Failure> {
        let mut named: HashMap<&RecordFile, (&Path, &InputSource)> = HashMap::new();
        for source in &sources.all {
            let SourceKind::File(path, name) = &source.kind else { continue };
            let first = named.insert(name, (path, source)).filter(|_| path.is_file());
            let Some((first, first_source)) = first else { continue };
            let is_same = first
                .canonicalize()
                .ok()
                .is_some_and(|first| path.canonicalize().is_ok_and(|path| path == first));
            if is_same {
                continue;
            }
            let (first, second) = (first_source.path().display(), source.path().display());
            match naming(source, options) {
                Some(Naming::Number) => {
                    return Err(Failure::Usage(format!(
                        "{first} and {second} have one name, and their records, which have neither URL nor id, would be taken for each \
                         other: rename one, or name a field with --url-field or --id-field"
                    )));
                }
                Some(Naming::Id) if tell => {
                    say!(
                        "doppel: {first} and {second} have one name, so records with the same id are versions of each other"
                    );
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// What names the records of a file that have no URL.
enum Naming {
    Id,
    Number,
}

/// Finds out what names the records of a file. `None` if their URLs name them, or if the file has no readable
/// record.
fn naming(file: &InputSource, options: &InputOptions) -> Option<Naming> {
    let first = file.open(options.clone()).ok()?.next()?;
    let Item::Fields(fields) = first else { return None };
    match (fields.get(Field::Url), fields.get(Field::Id)) {
        (Some(_), _) => None,
        (_, Some(_)) => Some(Naming::Id),
        (_, None) => Some(Naming::Number),
    }
}

/// Fields that were read from records, for files that are not in Doppel's own form.
#[derive(Debug, Serialize)]
pub struct FieldsRead {
    /// Path of each field in the records.
    fields: BTreeMap<Field, String>,
    /// Fields that were guessed, because the user did not name them.
    guessed: BTreeSet<Field>,
    /// Guessed id field that is not used, because a value repeats.
    #[serde(skip_serializing_if = "Option::is_none")]
    repeated_id: Option<String>,
    /// Number of files with these fields.
    files: u64,
    /// Path of the first file with these fields.
    first: String,
    #[serde(skip)]
    map: FieldMap,
}

/// Adds the fields of a file to `read`. Returns whether no earlier file has the same fields.
pub fn note(read: &mut Vec<FieldsRead>, map: &FieldMap, file: &Path) -> bool {
    if let Some(known) = read.iter_mut().find(|known| known.map.says_the_same(map)) {
        known.files += 1;
        return false;
    }
    let guessed = map.fields().filter(|at| at.source == PathSource::Guessed).map(|at| at.field);
    read.push(FieldsRead {
        fields: map.fields().map(|at| (at.field, at.path.to_owned())).collect(),
        guessed: guessed.collect(),
        repeated_id: map.repeated_id().map(|repeated| repeated.path.clone()),
        files: 1,
        first: file.display().to_string(),
        map: map.clone(),
    });
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_what_zstd_supports() {
        assert_eq!(zstd_window("128MiB"), Ok(128 << 20));
        assert_eq!(zstd_window("2GiB"), Ok(2 << 30));
        for wrong in ["3GiB", "0", "31", "x", "-1MiB"] {
            assert!(zstd_window(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn separators_and_paths_are_bounded() {
        for (text, byte) in [("|", b'|'), ("tab", b'\t'), ("\\t", b'\t'), ("\t", b'\t'), (" ", b' ')] {
            assert_eq!(text.parse(), Ok(Separator(byte)), "{text}");
        }
        for wrong in ["", "||", "\"", "\n", "é", "\0"] {
            assert!(wrong.parse::<Separator>().is_err(), "{wrong:?}");
        }
        for sound in ["a", "none", "a.b[].c", "a,b,c", "a[][]"] {
            assert_eq!(path(sound).as_deref(), Ok(sound));
        }
        assert!(path("").is_err());
        assert!(path(&"a,".repeat(20)).is_err());
        assert!(path(&"a.".repeat(40)).is_err() && path(&"[]".repeat(40)).is_err());
    }

    #[test]
    fn a_share_is_from_0_to_1() {
        assert_eq!("0.05".parse(), Ok(Share(0.05)));
        assert_eq!("1".parse(), Ok(Share(1.0)));
        for wrong in ["-0.1", "1.1", "5%", "NaN", ""] {
            assert!(wrong.parse::<Share>().is_err(), "{wrong}");
        }
    }
}

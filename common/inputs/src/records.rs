//! What a user says of records: which field holds what, and what is to be done with bad ones; and which fields were read.

pub mod bad_records;
pub mod named_fields;
pub mod place_fields;
pub mod record_names;
pub mod shown_messages;
pub mod unusable;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

use clap::Args;
use doppel_crawls::record::{Field, FieldMap, FieldNames, IdChoices, RecordFile, Source as NamedBy};
use doppel_crawls::{InputFormat, InputOptions, Item, Limits, ZSTD_WINDOW_BYTES_MAX, is_separator};
use serde::Serialize;

use crate::records::bad_records::BadFile;
use crate::records::shown_messages::ShownMessages;
use crate::sources::{Place, Source, Sources};
use doppel_terminal::exit::Failure;
use doppel_terminal::output::say;
use doppel_terminal::size::Size;

/// How files of records of any schema are read, such as JSON lines.
#[derive(Debug, Clone, Default, Args)]
pub struct FieldArgs {
    /// What all files of the inputs are, where their names and contents do not show it: warc, arc, wacz, jsonl, csv, tsv, parquet
    /// or arrow.
    #[arg(long, value_name = "FORMAT", help_heading = "Records")]
    pub format: Option<InputFormat>,
    /// What separates the cells of CSV and TSV: a character such as '|', or tab [default: what a first line such as sep=; says; a tab in TSV; or else
    /// that of , ; tab and | which the row of names has most of].
    #[arg(long, value_name = "CHAR", help_heading = "Records")]
    pub separator: Option<Separator>,
    /// The field of a record that holds its text, such as content or document.body; dots lead into nested objects, and [] into lists, as in tags[] or
    /// messages[].content. Several in commas, such as title,body, are joined by line feeds. Where this or --html-field is given, the other is not
    /// guessed; none reads no text [default: of text, content and raw_content the first that at least half of the first 1,000 records of a file have].
    #[arg(long, value_name = "FIELD", help_heading = "Records", value_parser = path)]
    pub text_field: Option<String>,
    /// The field that holds HTML, which is read where a record has no text; none reads no HTML [default: html].
    #[arg(long, value_name = "FIELD", help_heading = "Records", value_parser = path)]
    pub html_field: Option<String>,
    /// The field that names a record that has no URL: record:FILE#ID, or record:FILE#row=N without an id. A value that repeats makes a bad record here; a
    /// field that was guessed is no id then. With none records are named by their rows [default: id].
    #[arg(long, value_name = "FIELD", help_heading = "Records", value_parser = path)]
    pub id_field: Option<String>,
    /// The field that holds the URL; none reads no URL, so that records are named otherwise [default: of url, source, metadata.url and meta.url the
    /// first whose values in the first 1,000 records are http or https URLs: of source all, of the others at least half].
    #[arg(long, value_name = "FIELD", help_heading = "Records", value_parser = path)]
    pub url_field: Option<String>,
    /// The field that holds the date of the fetch: RFC 3339, a date or date-time without zone (UTC), or seconds or milliseconds since
    /// 1970 as a number. What is no date makes a bad record here, and is ignored in a field that was guessed; none reads no date [default: the first of
    /// fetched_at, timestamp, date, crawl_date and date_download, then of timestamp and date in metadata or meta].
    #[arg(long, value_name = "FIELD", help_heading = "Records", value_parser = path)]
    pub date_field: Option<String>,
    /// Whether records are judged each on its own, as commands without a collection do.
    #[arg(skip)]
    pub judges_records: bool,
    /// Whether records are copied, by this run or by another one of the same collection, so that a row of which a column cannot be decoded is
    /// bad.
    #[arg(skip)]
    pub copies_records: bool,
    /// The largest window that a zstd file may ask for, up to 2GiB: the reader of an open file takes as much memory. Files of
    /// `zstd --long=31` ask for 2GiB unless their content is known to be smaller [default: 128MiB].
    #[arg(long, value_name = "SIZE", help_heading = "Records", value_parser = zstd_window)]
    pub zstd_window_max: Option<u64>,
    /// What names the records of files whose id is guessed, which all readings of a run share.
    #[arg(skip)]
    pub ids: IdChoices,
}

/// What separates the cells of a table.
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

/// The most fields that a text may be in, and the most steps of a path.
const PARTS_MAX: usize = 16;
const STEPS_MAX: usize = 32;

/// A path of a field, which is bounded.
fn path(text: &str) -> Result<String, String> {
    let steps = text.matches('.').count() + text.matches("[]").count();
    match () {
        () if text.is_empty() => Err("a field has a name; none reads no field".to_owned()),
        () if text.matches(',').count() >= PARTS_MAX => Err(format!("at most {PARTS_MAX} fields are joined")),
        () if steps > STEPS_MAX * (1 + text.matches(',').count()) => {
            Err(format!("a path has at most {STEPS_MAX} steps"))
        }
        () => Ok(text.to_owned()),
    }
}

/// Files of records, and what is to be done with bad ones.
#[derive(Debug, Clone, Default, Args)]
pub struct RecordArgs {
    /// Which field holds what.
    #[command(flatten)]
    pub fields: FieldArgs,
    /// Write a line of JSON for every bad record to this file: where it is, what is wrong, and the record as it was where it is a
    /// line. A file that is there is replaced.
    #[arg(long, value_name = "FILE", help_heading = "Records")]
    pub bad: Option<BadFile>,
    /// End with code 5 when more than this share of the records is bad, 0 to 1 [default: 0.05 where more than 20 are].
    #[arg(long, value_name = "SHARE", help_heading = "Records")]
    pub max_bad: Option<Share>,
    /// Whether what is in the inputs was told before, when they were read for the first time.
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

/// A size that a window of zstd may have.
fn zstd_window(text: &str) -> Result<u64, String> {
    let Size(bytes) = text.parse()?;
    if (1 << 10..=ZSTD_WINDOW_BYTES_MAX).contains(&bytes) {
        return Ok(bytes);
    }
    Err("a size from 1KiB to 2GiB is expected; zstd itself supports no larger windows".to_owned())
}

impl FieldArgs {
    /// How inputs are read within these limits.
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

    /// Whether nothing is said of records.
    pub fn is_empty(&self) -> bool {
        let names = [&self.text_field, &self.html_field, &self.id_field, &self.url_field, &self.date_field];
        self.format.is_none()
            && self.zstd_window_max.is_none()
            && self.separator.is_none()
            && names.into_iter().all(Option::is_none)
    }
}

impl RecordArgs {
    /// Whether it is to be told what is in the inputs: `asked`, and it was not told before.
    pub fn tells(&self, asked: bool) -> bool {
        asked && self.told.begin()
    }

    /// Refuses directories of pages where a format is given, which is that of files.
    ///
    /// # Errors
    /// When an input is one.
    pub fn require_files(&self, sources: &Sources) -> Result<(), Failure> {
        let Some(format) = self.fields.format else { return Ok(()) };
        let Some(source) = sources.all.iter().find(|source| source.is_pages()) else { return Ok(()) };
        let dir = source.path().display();
        Err(Failure::Usage(format!(
            "{dir} is a directory of pages, which --format {format} is not for; if its files are of that format, name them by a \
             pattern in quotes: '{dir}/*'"
        )))
    }

    /// Refuses files of one name whose records would have one name, too, and says so where records with one id are versions of each other.
    ///
    /// # Errors
    /// When two files of one name number their records.
    pub fn check_names(&self, sources: &Sources, options: &InputOptions, tell: bool) -> Result<(), Failure> {
        let mut named: HashMap<&RecordFile, (&Path, &Source)> = HashMap::new();
        for source in &sources.all {
            let Place::File(path, name) = &source.place else { continue };
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

/// What records without a URL are named by.
enum Naming {
    Id,
    Number,
}

/// What the records of a file are named by, unless by their URLs.
fn naming(file: &Source, options: &InputOptions) -> Option<Naming> {
    let first = file.open(options.clone()).ok()?.next()?;
    let Item::Fields(fields) = first else { return None };
    match (fields.get(Field::Url), fields.get(Field::Id)) {
        (Some(_), _) => None,
        (_, Some(_)) => Some(Naming::Id),
        (_, None) => Some(Naming::Number),
    }
}

/// Which field held what, in files that are not in Doppel's own form.
#[derive(Debug, Serialize)]
pub struct FieldsRead {
    /// The path of each field.
    fields: BTreeMap<Field, String>,
    /// Those that were guessed.
    guessed: BTreeSet<Field>,
    /// The guessed id that is none, because a value repeats.
    #[serde(skip_serializing_if = "Option::is_none")]
    repeated_id: Option<String>,
    /// How many files this is of, and the first of them.
    files: u64,
    first: String,
    #[serde(skip)]
    map: FieldMap,
}

/// Takes note of the fields of a file. Whether they are of no file before it.
pub fn note(read: &mut Vec<FieldsRead>, map: &FieldMap, file: &Path) -> bool {
    if let Some(known) = read.iter_mut().find(|known| known.map.says_the_same(map)) {
        known.files += 1;
        return false;
    }
    let guessed = map.fields().filter(|(.., source)| *source == NamedBy::Guessed).map(|(field, ..)| field);
    read.push(FieldsRead {
        fields: map.fields().map(|(field, path, _)| (field, path.to_owned())).collect(),
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

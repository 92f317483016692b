//! Parses the head of a WARC record: the version line and the named fields (ISO 28500:2017, sections 4 and
//! 5).
//!
//! [`Head`] stores byte ranges instead of copies, so every accessor takes the bytes that were parsed.

use std::borrow::Cow;
use std::ops::Range;
use std::str;

use super::version_line::{check_version, excerpt, is_draft, is_record_start};
use doppel_model::{TimeError, Timestamp};
use doppel_streams::HeadError;

/// The longest head of a record, in bytes.
pub(super) const HEAD_BYTES_MAX: usize = 64 << 10;

/// The fields that the reader uses. Other fields are ignored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Field {
    Type,
    Length,
    Target,
    Date,
    ContentType,
    PayloadDigest,
    Profile,
    RefersTo,
    RefersToTarget,
    RecordId,
    SegmentNumber,
    Language,
}

impl Field {
    const ALL: [Self; 12] = [
        Self::Type,
        Self::Length,
        Self::Target,
        Self::Date,
        Self::ContentType,
        Self::PayloadDigest,
        Self::Profile,
        Self::RefersTo,
        Self::RefersToTarget,
        Self::RecordId,
        Self::SegmentNumber,
        Self::Language,
    ];

    const fn name(self) -> &'static str {
        match self {
            Self::Type => "WARC-Type",
            Self::Length => "Content-Length",
            Self::Target => "WARC-Target-URI",
            Self::Date => "WARC-Date",
            Self::ContentType => "Content-Type",
            Self::PayloadDigest => "WARC-Payload-Digest",
            Self::Profile => "WARC-Profile",
            Self::RefersTo => "WARC-Refers-To",
            Self::RecordId => "WARC-Record-ID",
            Self::RefersToTarget => "WARC-Refers-To-Target-URI",
            Self::SegmentNumber => "WARC-Segment-Number",
            Self::Language => "WARC-Identified-Content-Language",
        }
    }
}

/// The type of a record, by its meaning for the reader.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Kind {
    Response,
    Resource,
    Revisit,
    Conversion,
    /// A response in an ARC file.
    ArcResponse,
    /// A warcinfo, request, metadata or continuation record, which does not describe a page.
    Auxiliary,
    #[default]
    Unknown,
}

/// The head of a record. Its fields are byte ranges of the bytes that [`parse`](Self::parse) received.
#[derive(Debug, Default)]
pub(super) struct Head {
    pub(super) kind: Kind,
    /// Length of the block in bytes, from Content-Length.
    pub(super) length: u64,
    fields: [Option<Range<usize>>; Field::ALL.len()],
    /// Whether the record is a draft before WARC 1.0, in which line ends may break the values of fields.
    is_draft_head: bool,
}

impl Head {
    /// Creates the head of an ARC record from its parsed fields.
    pub(super) fn from_arc(
        kind: Kind,
        length: u64,
        fields: impl IntoIterator<Item = (Field, Range<usize>)>,
    ) -> Self {
        let mut head = Self { kind, length, ..Self::default() };
        for (field, range) in fields {
            head.fields[field as usize] = Some(range);
        }
        head
    }

    /// Parses a whole head, from the version line to the blank line.
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, HeadError> {
        let mut head = Self { is_draft_head: is_draft(bytes), ..Self::default() };
        let mut at = 0;
        let mut last = None;
        for line in bytes.split_inclusive(|b| *b == b'\n') {
            let range = at..at + line.len();
            at = range.end;
            if range.start == 0 {
                check_version(line)?;
                continue;
            }
            match line {
                b"\r\n" | b"\n" if head.is_draft_head => {}
                b"\r\n" | b"\n" => break,
                // A continuation line of a folded value.
                [b' ' | b'\t', ..] => {
                    if let Some(field) = last {
                        head.extend(field, range.end);
                    }
                }
                _ => {
                    let end = range.end;
                    match head.parse_line(bytes, range) {
                        Err(HeadError::Line(_)) if head.is_draft_head => {
                            last.into_iter().for_each(|field| head.extend(field, end));
                        }
                        parsed => last = parsed?,
                    }
                }
            }
        }
        head.kind = match head.required(bytes, Field::Type)? {
            "response" => Kind::Response,
            "resource" => Kind::Resource,
            "revisit" => Kind::Revisit,
            "conversion" => Kind::Conversion,
            "warcinfo" | "request" | "metadata" | "continuation" => Kind::Auxiliary,
            _ => Kind::Unknown,
        };
        let length = head.required(bytes, Field::Length)?;
        let digits = !length.is_empty() && length.bytes().all(|b| b.is_ascii_digit());
        head.length = match length.parse() {
            Ok(length) if digits => length,
            _ => return Err(HeadError::Bad(Field::Length.name(), excerpt(length.as_bytes()))),
        };
        Ok(head)
    }

    /// Parses a line with a field. Returns the field, or `None` if the reader does not use it.
    fn parse_line(&mut self, bytes: &[u8], line: Range<usize>) -> Result<Option<Field>, HeadError> {
        let text = &bytes[line.clone()];
        let Some(colon) = memchr::memchr(b':', text) else { return Err(HeadError::Line(excerpt(text))) };
        let name = text[..colon].trim_ascii();
        let known = Field::ALL.into_iter().find(|field| name.eq_ignore_ascii_case(field.name().as_bytes()));
        let Some(field) = known else { return Ok(None) };
        let value = line.start + colon + 1..line.end;
        // If the languages occur twice, the first field counts. The field is too unimportant for an error.
        if field == Field::Language && self.fields[field as usize].is_some() {
            return Ok(None);
        }
        if let Some(first) = &self.fields[field as usize]
            && bytes[first.clone()].trim_ascii() != bytes[value.clone()].trim_ascii()
        {
            return Err(HeadError::Twice(field.name()));
        }
        self.fields[field as usize] = Some(value);
        Ok(Some(field))
    }

    fn extend(&mut self, field: Field, end: usize) {
        if let Some(value) = &mut self.fields[field as usize] {
            value.end = end;
        }
    }

    /// Value of a field, if it is present and not empty. `bytes` must be the bytes that were parsed.
    pub(super) fn get<'a>(&self, bytes: &'a [u8], field: Field) -> Result<Option<&'a str>, HeadError> {
        let Some(range) = &self.fields[field as usize] else { return Ok(None) };
        let value = bytes[range.clone()].trim_ascii();
        match str::from_utf8(value) {
            Ok(value) => Ok(Some(value).filter(|value| !value.is_empty())),
            Err(_) => Err(HeadError::Bad(field.name(), excerpt(value))),
        }
    }

    fn required<'a>(&self, bytes: &'a [u8], field: Field) -> Result<&'a str, HeadError> {
        self.get(bytes, field)?.ok_or(HeadError::Missing(field.name()))
    }

    /// URI that the record describes. Removes the angle brackets that some writers add.
    pub(super) fn target<'a>(&self, bytes: &'a [u8]) -> Result<Cow<'a, str>, HeadError> {
        let uri = without_brackets(self.required(bytes, Field::Target)?);
        let is_broken = self.is_draft_head && uri.contains(['\r', '\n']);
        Ok(if is_broken { uri.replace(['\r', '\n'], "").into() } else { uri.into() })
    }

    /// Date of the fetch. `None` if the record states no date, and an inner error if it states an invalid
    /// one.
    pub(super) fn date(&self, bytes: &[u8]) -> Result<Option<Result<Timestamp, TimeError>>, HeadError> {
        let parse = if self.kind == Kind::ArcResponse { arc_date } else { parse_date };
        Ok(self.get(bytes, Field::Date)?.map(parse))
    }

    /// Target URI of the record to which a revisit refers, if it names one.
    pub(super) fn refers_to<'a>(&self, bytes: &'a [u8]) -> Result<Option<&'a str>, HeadError> {
        Ok(self.get(bytes, Field::RefersToTarget)?.map(without_brackets))
    }
}

fn without_brackets(uri: &str) -> &str {
    uri.strip_prefix('<').and_then(|uri| uri.strip_suffix('>')).unwrap_or(uri)
}

/// Whether `bytes` begin with a complete WARC head.
///
/// Text may quote a head, and its position in the line tells a quoted head from a real one. A real head
/// begins a line. A head in the middle of a line, as after a crash of a writer, counts only if it has all
/// fields that the standard requires.
pub(super) fn is_head(bytes: &[u8], at_line_start: bool) -> bool {
    let is_draft_head = is_draft(bytes);
    let (mut has_type, mut has_length, mut has_id, mut has_date, mut others) =
        (false, false, false, false, false);
    let mut lines = bytes[..bytes.len().min(HEAD_BYTES_MAX)].split_inclusive(|b| *b == b'\n');
    if !lines.next().is_some_and(|line| line.ends_with(b"\n") && is_record_start(line)) {
        return false;
    }
    for line in lines {
        if matches!(line, b"\r\n" | b"\n") {
            let all = has_type && has_length && has_id && has_date;
            return all || at_line_start && has_type && (has_length || others);
        }
        let name = memchr::memchr(b':', line).map(|colon| line[..colon].trim_ascii());
        let is = |field: Field| name.is_some_and(|name| name.eq_ignore_ascii_case(field.name().as_bytes()));
        match name {
            _ if matches!(line, [b' ' | b'\t', ..]) => {}
            None if !is_draft_head => return false,
            _ if is(Field::Type) => has_type = true,
            _ if is(Field::Length) => has_length = true,
            _ if is(Field::RecordId) => has_id = true,
            _ if is(Field::Date) => has_date = true,
            name => others |= name.is_some_and(|name| name.starts_with(b"WARC-")),
        }
        others |= has_id || has_date;
    }
    false
}

/// Parses a date of an ARC head: 14 digits, or 8 or 12 if the writer knew no better.
fn arc_date(text: &str) -> Result<Timestamp, TimeError> {
    let part = |range: Range<usize>| text.get(range).unwrap_or("00");
    if !matches!(text.len(), 8 | 12 | 14) || !text.bytes().all(|b| b.is_ascii_digit()) {
        return text.parse();
    }
    format!("{}-{}-{}T{}:{}:{}Z", part(0..4), part(4..6), part(6..8), part(8..10), part(10..12), part(12..14))
        .parse()
}

/// Parses a WARC-Date. WARC 1.1, section 5.4, allows any precision from the year on.
pub(super) fn parse_date(text: &str) -> Result<Timestamp, TimeError> {
    let full = match text.len() {
        4 => format!("{text}-01-01T00:00:00Z"),
        7 => format!("{text}-01T00:00:00Z"),
        10 => format!("{text}T00:00:00Z"),
        17 if text.ends_with('Z') => format!("{}:00Z", &text[..16]),
        _ => return text.parse(),
    };
    full.parse().or_else(|_| text.parse())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(fields: &str) -> Result<Head, HeadError> {
        Head::parse(format!("WARC/1.0\r\n{fields}\r\n").as_bytes())
    }

    #[test]
    fn fields_may_be_in_any_order_and_case() {
        let bytes = b"WARC/1.1\ncontent-length:  12 \nWARC-Target-URI: <http://a.org/>\nX-Other: a:b\n\
            warc-type:response\nWARC-Profile: a\n b\n\n";
        let head = Head::parse(bytes).unwrap();
        assert_eq!((head.kind, head.length), (Kind::Response, 12));
        assert_eq!(head.target(bytes), Ok("http://a.org/".into()));
        assert_eq!(head.get(bytes, Field::Profile), Ok(Some("a\n b")));
        assert_eq!(head.get(bytes, Field::Date), Ok(None));
    }

    #[test]
    fn a_bad_head_is_refused_with_the_reason() {
        let length = "Content-Length: 1\r\n";
        for (fields, expected) in [
            (length.to_owned(), HeadError::Missing("WARC-Type")),
            ("WARC-Type: response\r\n".to_owned(), HeadError::Missing("Content-Length")),
            ("WARC-Type response\r\n".to_owned(), HeadError::Line("WARC-Type response".to_owned())),
            (format!("{length}Content-Length: 2\r\n"), HeadError::Twice("Content-Length")),
        ] {
            assert_eq!(parse(&fields).err(), Some(expected), "{fields}");
        }
        for bad in ["-1", "+1", "1 2", "0x10", "99999999999999999999", "ten"] {
            let error = parse(&format!("WARC-Type: response\r\nContent-Length: {bad}\r\n")).err();
            assert_eq!(error, Some(HeadError::Bad("Content-Length", bad.to_owned())));
        }
        assert_eq!(
            Head::parse(b"HTTP/1.1 200\r\n\r\n").err(),
            Some(HeadError::Version("HTTP/1.1 200".to_owned()))
        );
        let no_utf8 =
            b"WARC/1.0\r\nWARC-Type: response\r\nContent-Length: 1\r\nWARC-Target-URI: http://a/\xff\r\n\r\n";
        assert!(matches!(
            Head::parse(no_utf8).unwrap().target(no_utf8),
            Err(HeadError::Bad("WARC-Target-URI", _))
        ));
    }

    #[test]
    fn a_date_may_have_any_precision() {
        for (text, full) in [
            ("2016", "2016-01-01T00:00:00Z"),
            ("2016-02", "2016-02-01T00:00:00Z"),
            ("2016-02-03", "2016-02-03T00:00:00Z"),
            ("2016-02-03T04:05Z", "2016-02-03T04:05:00Z"),
            ("2016-02-03T04:05:06Z", "2016-02-03T04:05:06Z"),
            ("2016-02-03T04:05:06.789Z", "2016-02-03T04:05:06.789Z"),
        ] {
            assert_eq!(parse_date(text), Ok(full.parse().unwrap()), "{text}");
        }
        for bad in ["", "abcd", "2016-13", "20160203040506", "2016-02-30", "éééééééé", "2016-02-03T04:0é"]
        {
            assert!(parse_date(bad).is_err(), "{bad}");
        }
    }
}

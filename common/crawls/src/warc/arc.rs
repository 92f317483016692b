//! The heads of ARC records (<https://archive.org/web/researcher/ArcFileFormat.php>), the format of the Internet Archive before
//! WARC. A head is one line:
//!
//! ```text
//! version 1: URL IP-address Archive-date Content-type Archive-length
//! version 2: URL IP-address Archive-date Content-type Result-code Checksum Location Offset Filename Archive-length
//! ```
//!
//! URLs and media types of real files have spaces in them, so the address and the date are looked for: the URL is what is in
//! front of them.

use std::net::IpAddr;
use std::ops::Range;

use super::head::{Field, HEAD_BYTES_MAX, Head, Kind, shown};
use crate::error::HeadError;

/// The scheme of the record that describes a file, which is its first.
pub(super) const ABOUT: &[u8] = b"filedesc:";

/// The name of the field that holds the length.
const LENGTH: &str = "Archive-length";

/// The parts of a line.
struct Parts {
    url: Range<usize>,
    date: Range<usize>,
    /// What follows the date, without the length.
    media: Range<usize>,
    /// The last part of the line, if two or more follow the date.
    length: Option<Range<usize>>,
    /// Whether the part before the date is an address.
    has_address: bool,
}

impl Parts {
    fn of(line: &[u8]) -> Option<Self> {
        let words: Vec<Range<usize>> = words(line);
        let is_date = |word: &Range<usize>, bytes: &dyn Fn(usize) -> bool| {
            bytes(word.len()) && line[word.clone()].iter().all(u8::is_ascii_digit)
        };
        let is_dated_address = |at: &usize| {
            is_date(&words[*at], &|bytes| (8..=17).contains(&bytes))
                && is_address(&line[words[at - 1].clone()])
        };
        let places = 2..words.len();
        let address = places.clone().find(is_dated_address);
        let at = address.or_else(|| places.clone().find(|at| is_date(&words[*at], &|bytes| bytes == 14)))?;
        let rest = &words[at + 1..];
        let media = rest.first().map_or(line.len()..line.len(), Clone::clone);
        let has_scheme =
            line.first().is_some_and(u8::is_ascii_alphabetic) && line[words[0].clone()].contains(&b':');
        let has_length = rest.len() > 1 && rest.last().is_some_and(|word| is_date(word, &|_| true));
        // A line that is right otherwise is one of a record, whose URL is wrong.
        let is_line = has_scheme || address.is_some() && words[at].len() == 14 && has_length;
        is_line.then(|| Self {
            url: words[0].start..words[at - 2].end,
            date: words[at].clone(),
            media,
            length: rest.last().filter(|_| rest.len() > 1).cloned(),
            has_address: address.is_some(),
        })
    }
}

/// Parses the line of a record.
pub(super) fn parse(line: &[u8]) -> Result<Head, HeadError> {
    let parts = Parts::of(line).ok_or_else(|| HeadError::Arc(shown(line)))?;
    let length = parts.length.ok_or(HeadError::Missing(LENGTH))?;
    let digits = str::from_utf8(&line[length]).unwrap_or_default();
    let is_number = digits.bytes().all(|b| b.is_ascii_digit());
    let length = digits.parse().ok().filter(|_| is_number);
    let length = length.ok_or_else(|| HeadError::Bad(LENGTH, shown(digits.as_bytes())))?;
    let kind = if line.starts_with(ABOUT) { Kind::Aside } else { Kind::Archived };
    let fields = [(Field::Target, parts.url), (Field::Date, parts.date), (Field::ContentType, parts.media)];
    Ok(Head::of_arc(kind, length, fields))
}

/// The head of a description of a file that has so many bytes.
pub(super) fn about(bytes: usize) -> Head {
    Head::of_arc(Kind::Aside, bytes as u64, [])
}

/// Whether a record begins here: `bytes` begin with a whole line that has an address and a date where a head has them.
pub(super) fn begins_here(bytes: &[u8]) -> bool {
    let bytes = &bytes[..bytes.len().min(HEAD_BYTES_MAX)];
    let line = memchr::memchr(b'\n', bytes).map(|end| &bytes[..end]);
    // Most lines of text are told from a head by their end, which is a digit.
    line.is_some_and(|line| Parts::of(line).is_some_and(|parts| parts.has_address))
}

/// Whether a file begins like one of ARC.
pub(crate) fn is_arc(beginning: &[u8]) -> bool {
    beginning.starts_with(ABOUT) || begins_here(beginning)
}

/// Whether these bytes, which nothing follows, may be the first ones of a line that is cut off.
pub(super) fn is_cut(bytes: &[u8]) -> bool {
    let scheme = bytes.iter().take_while(|b| b.is_ascii_alphanumeric()).count();
    !bytes.contains(&b'\n') && (scheme == bytes.len() || bytes[scheme..].starts_with(b"://"))
}

fn words(line: &[u8]) -> Vec<Range<usize>> {
    let line = line.trim_ascii_end();
    let mut words = Vec::new();
    let mut start = 0;
    for at in memchr::memchr2_iter(b' ', b'\t', line).chain([line.len()]) {
        if at > start {
            words.push(start..at);
        }
        start = at + 1;
    }
    words
}

fn is_address(word: &[u8]) -> bool {
    str::from_utf8(word).is_ok_and(|word| word.parse::<IpAddr>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_both_versions() {
        for (line, url, date, media, length) in [
            (
                "http://a/0 10.0.0.1 20000121183500 text/html 393\n",
                "http://a/0",
                "20000121183500",
                "text/html",
                393,
            ),
            (
                "http://a/b c 10.0.0.1 20000121183500 text/html 1",
                "http://a/b c",
                "20000121183500",
                "text/html",
                1,
            ),
            (
                "http://a/ ::1 20000121183500 text/html; charset=x 7\r\n",
                "http://a/",
                "20000121183500",
                "text/html;",
                7,
            ),
            (
                "http://a/ 1.2.3.4 20000121183500 text/html 200 - - 20000101 IA-1.arc 12\n",
                "http://a/",
                "20000121183500",
                "text/html",
                12,
            ),
            ("http://a/ 0.0.0.0 20000121 no-type 0\n", "http://a/", "20000121", "no-type", 0),
            ("http://a/ unknown 20000121183500 text/html 5\n", "http://a/", "20000121183500", "text/html", 5),
            (
                "http://a/?x 20000101000000 y 1.2.3.4 20000121183500 text/html 5\n",
                "http://a/?x 20000101000000 y",
                "20000121183500",
                "text/html",
                5,
            ),
        ] {
            let bytes = line.as_bytes();
            let head = parse(bytes).unwrap();
            let get = |field| head.get(bytes, field).unwrap().unwrap();
            assert_eq!(
                (get(Field::Target), get(Field::Date), get(Field::ContentType)),
                (url, date, media),
                "{line}"
            );
            assert_eq!((head.kind, head.length), (Kind::Archived, length));
        }
        let about = b"filedesc://a.arc 0.0.0.0 20000121183500 text/plain 77\n";
        assert_eq!(parse(about).unwrap().kind, Kind::Aside);
        assert!(is_arc(about));
    }

    #[test]
    fn what_is_no_line_says_why() {
        for (line, expected) in [
            ("<html>\n", HeadError::Arc("<html>".to_owned())),
            ("", HeadError::Arc(String::new())),
            ("a 1.2.3.4 20000121 text/html 5", HeadError::Arc("a 1.2.3.4 20000121 text/html 5".to_owned())),
            ("http://a/ 1.2.3.4 20000121183500 text/html\n", HeadError::Missing(LENGTH)),
            ("http://a/ 1.2.3.4 20000121183500\n", HeadError::Missing(LENGTH)),
            ("http://a/ 1.2.3.4 20000121183500 text/html -5\n", HeadError::Bad(LENGTH, "-5".to_owned())),
            ("http://a/ 1.2.3.4 20000121183500 text/html x\n", HeadError::Bad(LENGTH, "x".to_owned())),
        ] {
            assert_eq!(parse(line.as_bytes()).unwrap_err(), expected, "{line}");
        }
        for text in [
            "a line of text\n",
            "",
            "http://a/ 1.2.3.4 20000121183500 text/html 5",
            "at 1.2.3.4 20000121 x 5\n",
        ] {
            assert!(!begins_here(text.as_bytes()), "{text}");
        }
    }
}

//! Parses the heads of ARC records into the same [`Head`] as heads of WARC records.

use super::arc_line::{ArcLine, FILE_DESCRIPTION_SCHEME};
use super::head::{Field, Head, Kind};
use super::version_line::excerpt;
use doppel_streams::HeadError;

/// Name of the field with the length of the block, for messages.
const LENGTH: &str = "Archive-length";

/// Parses the head line of a record.
pub(super) fn parse(line: &[u8]) -> Result<Head, HeadError> {
    let parts = ArcLine::parse(line).ok_or_else(|| HeadError::Arc(excerpt(line)))?;
    let length = parts.length.ok_or(HeadError::Missing(LENGTH))?;
    let digits = str::from_utf8(&line[length]).unwrap_or_default();
    let is_number = digits.bytes().all(|b| b.is_ascii_digit());
    let length = digits.parse().ok().filter(|_| is_number);
    let length = length.ok_or_else(|| HeadError::Bad(LENGTH, excerpt(digits.as_bytes())))?;
    let kind = if line.starts_with(FILE_DESCRIPTION_SCHEME) { Kind::Auxiliary } else { Kind::ArcResponse };
    let fields = [(Field::Target, parts.url), (Field::Date, parts.date), (Field::ContentType, parts.media)];
    Ok(Head::from_arc(kind, length, fields))
}

/// Creates the head of a file description whose block has this number of bytes.
pub(super) fn file_description_head(bytes: usize) -> Head {
    Head::from_arc(Kind::Auxiliary, bytes as u64, [])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::warc::arc_line::{is_arc, is_record_start};

    #[test]
    fn heads_of_both_versions_are_parsed() {
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
            assert_eq!((head.kind, head.length), (Kind::ArcResponse, length));
        }
        let description = b"filedesc://a.arc 0.0.0.0 20000121183500 text/plain 77\n";
        assert_eq!(parse(description).unwrap().kind, Kind::Auxiliary);
        assert!(is_arc(description));
    }

    #[test]
    fn a_line_that_is_not_a_head_is_refused_with_the_reason() {
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
            assert!(!is_record_start(text.as_bytes()), "{text}");
        }
    }
}

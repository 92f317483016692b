//! Parses the heads of ARC records.

use super::head::{Field, Head, Kind};
use crate::arc_line::{ABOUT, Parts};
use crate::error::HeadError;
use crate::warc_version::shown;

/// The name of the field that holds the length.
const LENGTH: &str = "Archive-length";

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arc_line::{begins_here, is_arc};

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

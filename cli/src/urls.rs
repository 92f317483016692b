//! Reads the URLs given to a command, as arguments or as lines of a file or of standard input, and counts the
//! texts that are no page URLs.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use anyhow::Context;
use doppel_terminal::exit::Failure;
use doppel_terminal::output::{count, say};

/// Name of standard input in messages.
const STDIN: &str = "standard input";

/// Longest line that is read, in bytes. A file with longer lines is no list of URLs.
const LINE_BYTES_MAX: usize = 64 << 10;

/// Returns the URLs in the given order: the lines of `file`, or of standard input if `-` is the only
/// argument, or else the arguments. The file `-` is also standard input. Blank lines are skipped. If a file
/// or standard input has no URL, a message says so.
///
/// # Errors
/// If the file cannot be opened. An item is an error if it cannot be read, and it is then the last item.
pub(crate) fn from_arguments<'u>(
    arguments: &'u [String],
    file: Option<&Path>,
) -> anyhow::Result<Box<dyn Iterator<Item = anyhow::Result<String>> + 'u>> {
    let from_stdin = || warn_if_none(lines(io::stdin().lock(), STDIN.to_owned()), STDIN.to_owned());
    match file {
        Some(path) if path == Path::new("-") => Ok(Box::new(from_stdin())),
        Some(path) => {
            let file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
            let name = path.display().to_string();
            Ok(Box::new(warn_if_none(lines(BufReader::new(file), name.clone()), name)))
        }
        None if arguments == ["-"] => Ok(Box::new(from_stdin())),
        None => Ok(Box::new(arguments.iter().cloned().map(Ok))),
    }
}

/// Passes the items on. If there are none, prints a message at the end.
fn warn_if_none<T>(mut items: impl Iterator<Item = T>, name: String) -> impl Iterator<Item = T> {
    let mut has_started = false;
    std::iter::from_fn(move || {
        let item = items.next();
        if item.is_none() && !has_started {
            say!("doppel: there is no URL in {name}, so nothing was done");
        }
        has_started = true;
        item
    })
}

/// Iterates over the lines that are not blank, without their line ends.
fn lines(mut from: impl BufRead, name: String) -> impl Iterator<Item = anyhow::Result<String>> {
    let (mut number, mut is_over) = (0_u64, false);
    std::iter::from_fn(move || {
        while !is_over {
            number += 1;
            let read = line(&mut from);
            is_over = !matches!(read, Ok(Some(_)));
            match read {
                Ok(Some(line)) if line.trim().is_empty() => {}
                Ok(line) => return line.map(Ok),
                Err(error) => return Some(Err(error.context(format!("{name}, line {number}")))),
            }
        }
        None
    })
}

fn line(from: &mut impl BufRead) -> anyhow::Result<Option<String>> {
    let mut bytes = Vec::new();
    from.take(LINE_BYTES_MAX as u64 + 1).read_until(b'\n', &mut bytes)?;
    if bytes.is_empty() {
        return Ok(None);
    }
    if bytes.len() > LINE_BYTES_MAX {
        let text = format!("longer than {} bytes: one URL a line is expected", count(LINE_BYTES_MAX as u64));
        return Err(Failure::IncompleteList(text).into());
    }
    let end = bytes.len() - bytes.iter().rev().take_while(|byte| b"\r\n".contains(byte)).count();
    bytes.truncate(end);
    String::from_utf8(bytes).map(Some).map_err(|_| Failure::IncompleteList("is not UTF-8".to_owned()).into())
}

/// Arguments or lines that are no page URLs.
#[derive(Debug, Default)]
pub(crate) struct InvalidUrls {
    number: u64,
    /// First text that is no page URL, and the reason.
    first: Option<(String, String)>,
}

impl InvalidUrls {
    pub(crate) fn note(&mut self, url: &str, error: &str) {
        self.number += 1;
        self.first.get_or_insert_with(|| (url.to_owned(), error.to_owned()));
    }

    /// Returns the result with which the command ends.
    ///
    /// # Errors
    /// [`Failure::BadInput`] if a text was no page URL.
    pub(crate) fn verdict(self) -> Result<(), Failure> {
        let Some((url, error)) = self.first else { return Ok(()) };
        Err(Failure::BadInput(match self.number {
            1 => format!("{url} is no page URL: {error}"),
            more => format!("{} are no page URLs, the first of them {url}: {error}", count(more)),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &[u8]) -> Vec<Result<String, String>> {
        let all = lines(text, "list".to_owned());
        all.map(|line| line.map_err(|error| format!("{error:#}"))).collect()
    }

    #[test]
    fn lines_are_read_without_their_ends() {
        let url = |url: &str| Ok(url.to_owned());
        assert_eq!(
            read(b"\nhttp://a/\r\n \n http://b/ \nhttp://c/"),
            [url("http://a/"), url(" http://b/ "), url("http://c/")]
        );
        assert_eq!(read(b""), []);
    }

    #[test]
    fn what_is_no_list_of_urls_is_named_by_its_line_and_ends_it() {
        let wrong = |text: &str| Err(text.to_owned());
        let long = [b"a\n".as_slice(), &vec![b'x'; LINE_BYTES_MAX + 1], b"\nb"].concat();
        let is_long = "list, line 2: longer than 65,536 bytes: one URL a line is expected";
        assert_eq!(read(&long), [Ok("a".to_owned()), wrong(is_long)]);
        assert_eq!(read(b"\xff\nb\n"), [wrong("list, line 1: is not UTF-8")]);
    }

    #[test]
    fn the_verdict_names_the_first() {
        let mut bad = InvalidUrls::default();
        bad.note("x", "not absolute");
        bad.note("y", "empty");
        assert_eq!(
            bad.verdict().unwrap_err().to_string(),
            "2 are no page URLs, the first of them x: not absolute"
        );
        InvalidUrls::default().verdict().unwrap();
    }
}

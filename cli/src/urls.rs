//! URLs that a command is given: as arguments, or one a line in a file or from standard input; and those among them that are no page's.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use anyhow::Context;
use doppel_terminal::exit::Failure;
use doppel_terminal::output::{count, say};

/// What messages call standard input.
const STDIN: &str = "standard input";

/// The longest line that is read, in bytes. A longer one is no URL but another kind of file.
const LINE_BYTES_MAX: usize = 64 << 10;

/// The URLs, in the order given: the lines of `file`, or else of standard input where `-` is the only argument, or else the arguments.
/// The file `-` is standard input, too. Blank lines are skipped. It is said where there is no URL at all.
///
/// # Errors
/// When the file cannot be opened; an item is an error when it cannot be read, and none comes after it.
pub(crate) fn given<'u>(
    arguments: &'u [String],
    file: Option<&Path>,
) -> anyhow::Result<Box<dyn Iterator<Item = anyhow::Result<String>> + 'u>> {
    let from_stdin = || telling_none(lines(io::stdin().lock(), STDIN.to_owned()), STDIN.to_owned());
    match file {
        Some(path) if path == Path::new("-") => Ok(Box::new(from_stdin())),
        Some(path) => {
            let file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
            let name = path.display().to_string();
            Ok(Box::new(telling_none(lines(BufReader::new(file), name.clone()), name)))
        }
        None if arguments == ["-"] => Ok(Box::new(from_stdin())),
        None => Ok(Box::new(arguments.iter().cloned().map(Ok))),
    }
}

/// The same items. Where there are none, that is said in the end.
fn telling_none<T>(mut items: impl Iterator<Item = T>, name: String) -> impl Iterator<Item = T> {
    let mut is_known = false;
    std::iter::from_fn(move || {
        let item = items.next();
        if item.is_none() && !is_known {
            say!("doppel: there is no URL in {name}, so nothing was done");
        }
        is_known = true;
        item
    })
}

/// The lines that are not blank, without their ends.
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

/// What was given and is no page URL.
#[derive(Debug, Default)]
pub(crate) struct Bad {
    number: u64,
    /// The first one, and why it is none.
    first: Option<(String, String)>,
}

impl Bad {
    pub(crate) fn note(&mut self, url: &str, error: &str) {
        self.number += 1;
        self.first.get_or_insert_with(|| (url.to_owned(), error.to_owned()));
    }

    /// How the program ends.
    ///
    /// # Errors
    /// [`Failure::BadInput`] when there was one.
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
        let mut bad = Bad::default();
        bad.note("x", "not absolute");
        bad.note("y", "empty");
        assert_eq!(
            bad.verdict().unwrap_err().to_string(),
            "2 are no page URLs, the first of them x: not absolute"
        );
        Bad::default().verdict().unwrap();
    }
}

//! Standard output: text for people, or JSON for programs with `--json`; and what is said to people on standard error.
//!
//! Invariant: what people are shown has no character that a terminal would obey ([`crate::shown`]); JSON is exact.

use std::io::{self, BufWriter, StdoutLock, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use serde::Serialize;

use crate::shown::{self, Shown};

/// Whether something was written to standard output.
static BEGUN: AtomicBool = AtomicBool::new(false);

/// Whether data goes to standard output, in place of results.
static IS_OF_DATA: AtomicBool = AtomicBool::new(false);

/// Standard output is that of data from now on, such as an export.
pub fn give_to_data() {
    IS_OF_DATA.store(true, Ordering::Relaxed);
}

/// Whether it is.
pub fn is_of_data() -> bool {
    IS_OF_DATA.load(Ordering::Relaxed)
}

/// Whether this process has written something to standard output.
pub fn is_begun() -> bool {
    BEGUN.load(Ordering::Relaxed)
}

/// Standard output. When its reader has gone, the error is marked with [`ReaderGone`], because another pipe can fail in
/// the same way.
pub struct Stdout(StdoutLock<'static>);

/// Whoever read standard output has closed it.
#[derive(Debug, thiserror::Error)]
#[error("standard output was closed")]
pub struct ReaderGone;

impl Stdout {
    /// Locks it for this process.
    #[must_use]
    pub fn lock() -> Self {
        Self(io::stdout().lock())
    }
}

impl Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.0.write(bytes).map_err(|error| mark(&error))?;
        BEGUN.fetch_or(written > 0, Ordering::Relaxed);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush().map_err(|error| mark(&error))
    }
}

fn mark(error: &io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::BrokenPipe => io::Error::new(error.kind(), ReaderGone),
        kind => io::Error::new(kind, format!("cannot write to standard output: {error}")),
    }
}

/// How results are printed.
#[derive(Debug, Clone, Copy)]
pub struct Output {
    /// One JSON value a line.
    pub json: bool,
}

impl Output {
    /// Prints one result: as a line of JSON, or as `human` writes it.
    pub fn print<T: Serialize + ?Sized>(
        self,
        value: &T,
        human: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut out = BufWriter::new(Stdout::lock());
        if self.json {
            serde_json::to_writer(&mut out, value)?;
            out.write_all(b"\n")?;
        } else {
            human(&mut Shown(&mut out))?;
        }
        out.flush()
    }

    /// Prints one result where standard output has data: the same on standard error.
    pub fn print_beside<T: Serialize + ?Sized>(
        self,
        value: &T,
        human: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> io::Result<()> {
        if !self.json {
            return human(&mut stderr());
        }
        let mut line = serde_json::to_vec(value)?;
        line.push(b'\n');
        io::stderr().lock().write_all(&line)
    }

    /// Prints many results: each as a line of JSON, or all as `human` writes them.
    pub fn print_all<T: Serialize>(
        self,
        values: &[T],
        human: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut out = BufWriter::new(Stdout::lock());
        if self.json {
            for value in values {
                serde_json::to_writer(&mut out, value)?;
                out.write_all(b"\n")?;
            }
        } else {
            human(&mut Shown(&mut out))?;
        }
        out.flush()
    }
}

/// A count with thin groups of three digits: `12,345`.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A size in the largest binary unit that keeps it above one: `1.5 MiB`.
pub fn bytes(number: u64) -> String {
    indicatif::BinaryBytes(number).to_string()
}

/// How long ago an answer was true that did not come from owners.
pub fn as_of(age_ms: u64) -> String {
    format!("as of {:.1} s ago", age_ms as f64 / 1_000.0)
}

/// What is shown instead of a figure that says nothing.
pub const NO_FIGURE: &str = "-";

/// A figure as it is written, where it is known.
pub fn known<T>(figure: Option<T>, write: impl FnOnce(T) -> String) -> String {
    figure.map_or_else(|| NO_FIGURE.to_owned(), write)
}

/// A part as a share of the whole; 0 if the whole is 0.
#[must_use]
pub fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// A share in percent: `12.5 %`.
pub fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// An interval of numbers, which may have no end: `1`, `10 to 99`, `1,000 and more`.
pub fn interval(from: u64, to: Option<u64>) -> String {
    match to {
        Some(to) if to == from => count(from),
        Some(to) => format!("{} to {}", count(from), count(to)),
        None => format!("{} and more", count(from)),
    }
}

/// A figure of how several nodes share something. It says nothing about one node, which has everything.
pub fn of_several(nodes: u32, figure: String) -> String {
    if nodes > 1 { figure } else { NO_FIGURE.to_owned() }
}

/// `1 page`, `2 pages`.
pub fn plural(number: u64, noun: &str) -> String {
    let ending = match number {
        1 => "",
        _ if noun.ends_with("ch") => "es",
        _ => "s",
    };
    format!("{} {noun}{ending}", count(number))
}

/// What is said beside a number of pages of which some redirect.
pub fn redirects(number: u64) -> String {
    if number > 0 { format!("{} of them redirect", count(number)) } else { String::new() }
}

/// Standard error, for people.
pub fn stderr() -> impl Write {
    Shown(io::stderr().lock())
}

/// Says something on standard error. Where that cannot be written, there is no other place to say it.
#[macro_export]
macro_rules! say {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!($crate::output::stderr(), $($text)*);
    }};
}
pub use crate::say;

/// Rows of left-aligned columns, two spaces apart, each on one line; the last column is not padded.
pub fn table(out: &mut dyn Write, rows: &[Vec<String>]) -> io::Result<()> {
    let shown = |row: &Vec<String>| -> Vec<String> {
        row.iter().map(|cell| shown::on_one_line(cell).into_owned()).collect()
    };
    let rows: Vec<_> = rows.iter().map(shown).collect();
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|c| c.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    for row in &rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            line.push_str(&format!("{cell:<width$}  "));
        }
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

/// The same under a heading.
pub fn headed(
    out: &mut dyn Write,
    heading: &[&str],
    rows: impl IntoIterator<Item = Vec<String>>,
) -> io::Result<()> {
    let heading = heading.iter().map(|&name| name.to_owned()).collect();
    table(out, &std::iter::once(heading).chain(rows).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_grouped() {
        for (number, text) in [(0, "0"), (999, "999"), (1000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(count(number), text);
        }
        assert_eq!(plural(1, "page"), "1 page");
        assert_eq!(plural(2000, "page"), "2,000 pages");
        assert_eq!(as_of(1_240), "as of 1.2 s ago");
        let intervals = [interval(1, Some(1)), interval(10, Some(1_000)), interval(1_001, None)];
        assert_eq!(intervals, ["1", "10 to 1,000", "1,001 and more"]);
    }

    #[test]
    fn shares_of_nothing_are_nothing() {
        assert_eq!((share(1, 8), share(0, 0)), (0.125, 0.0));
        assert_eq!(
            (known(Some(0.125), percent), known(None, percent)),
            ("12.5 %".to_owned(), "-".to_owned())
        );
    }

    #[test]
    fn tables_align() {
        let rows = [vec!["a".to_owned(), "b".to_owned()], vec!["long".to_owned(), "c".to_owned()]];
        let mut out = Vec::new();
        table(&mut out, &rows).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "a     b\nlong  c\n");
        let mut out = Vec::new();
        headed(&mut out, &["of", "pages"], rows).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "of    pages\na     b\nlong  c\n");
    }

    #[test]
    fn a_cell_stays_in_its_place() {
        let rows = [["a\u{202e}\nb".to_owned(), "c".to_owned()], ["d".to_owned(), "e".to_owned()]];
        let mut out = Vec::new();
        table(&mut out, &rows.map(|row| row.to_vec())).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "a\\u{202e}\\u{a}b  c\nd                e\n");
    }
}

//! Standard output and standard error of a command. Standard output carries results: text for people, or JSON
//! for programs with `--json`. Standard error carries messages for people.
//!
//! Invariant: text for people contains no character that a terminal would interpret ([`crate::escape`]). JSON
//! is exact.

use std::io::{self, BufWriter, StdoutLock, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use serde::Serialize;

use crate::escape::{self, EscapingWriter};

/// Whether the process has written anything to standard output.
static BEGUN: AtomicBool = AtomicBool::new(false);

/// Whether standard output carries data instead of results.
static IS_OF_DATA: AtomicBool = AtomicBool::new(false);

/// Reserves standard output for data, such as an export, from now on.
pub fn reserve_for_data() {
    IS_OF_DATA.store(true, Ordering::Relaxed);
}

/// Whether [`reserve_for_data`] has reserved standard output for data.
pub fn is_reserved_for_data() -> bool {
    IS_OF_DATA.load(Ordering::Relaxed)
}

/// Whether this process has written anything to standard output.
pub fn has_written() -> bool {
    BEGUN.load(Ordering::Relaxed)
}

/// Standard output of this process. If its reader has closed the pipe, the error is marked with
/// [`ReaderGone`], because another pipe can fail in the same way.
pub struct Stdout(StdoutLock<'static>);

/// Marks an error that occurs because the reader of standard output has closed it.
#[derive(Debug, thiserror::Error)]
#[error("standard output was closed")]
pub struct ReaderGone;

impl Stdout {
    /// Locks standard output against other threads of this process.
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

/// Format in which a command prints its results.
#[derive(Debug, Clone, Copy)]
pub struct Output {
    /// Whether to print JSON, with one value per line, instead of text.
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
            human(&mut EscapingWriter(&mut out))?;
        }
        out.flush()
    }

    /// Like [`Self::print`], but prints the result on standard error. For commands that send data to standard
    /// output.
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
            human(&mut EscapingWriter(&mut out))?;
        }
        out.flush()
    }
}

/// Formats a count with commas between groups of three digits: `12,345`.
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

/// Formats a size in the largest binary unit that keeps it above one: `1.5 MiB`.
pub fn bytes(number: u64) -> String {
    indicatif::BinaryBytes(number).to_string()
}

/// Formats the age of an answer that does not come from the owners of the data: `as of 1.2 s ago`.
pub fn as_of(age_ms: u64) -> String {
    format!("as of {:.1} s ago", age_ms as f64 / 1_000.0)
}

/// Placeholder for a figure that is unknown or means nothing.
pub const NO_FIGURE: &str = "-";

/// Formats a figure with `write`. Returns [`NO_FIGURE`] if the figure is unknown.
pub fn known<T>(figure: Option<T>, write: impl FnOnce(T) -> String) -> String {
    figure.map_or_else(|| NO_FIGURE.to_owned(), write)
}

/// Ratio of a part to the whole. The ratio is 0 if the whole is 0.
#[must_use]
pub fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// Formats a share in percent: `12.5 %` for 0.125.
pub fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// Formats an interval of integers, which may have no end: `1`, `10 to 99`, `1,000 and more`.
pub fn interval(from: u64, to: Option<u64>) -> String {
    match to {
        Some(to) if to == from => count(from),
        Some(to) => format!("{} to {}", count(from), count(to)),
        None => format!("{} and more", count(from)),
    }
}

/// Returns a figure that describes how several nodes share a load. Returns [`NO_FIGURE`] for one node,
/// because a single node always has the whole load.
pub fn of_several(nodes: u32, figure: String) -> String {
    if nodes > 1 { figure } else { NO_FIGURE.to_owned() }
}

/// Formats a count with its noun: `1 page`, `2 pages`.
pub fn plural(number: u64, noun: &str) -> String {
    let ending = match number {
        1 => "",
        _ if noun.ends_with("ch") => "es",
        _ => "s",
    };
    format!("{} {noun}{ending}", count(number))
}

/// Formats how many pages of a preceding count are redirects: `3 of them redirect`. Empty if none are.
pub fn redirects(number: u64) -> String {
    if number > 0 { format!("{} of them redirect", count(number)) } else { String::new() }
}

/// Locks standard error for text to people. Characters that a terminal would interpret are escaped.
pub fn stderr() -> impl Write {
    EscapingWriter(io::stderr().lock())
}

/// Prints a line for people on standard error. If standard error fails, there is no other place to report
/// that.
#[macro_export]
macro_rules! say {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!($crate::output::stderr(), $($text)*);
    }};
}
pub use crate::say;

/// Writes rows to `out` as left-aligned columns, two spaces apart. Each row takes one line, without spaces at
/// its end. Characters that a terminal would interpret are escaped.
pub fn table(out: &mut dyn Write, rows: &[Vec<String>]) -> io::Result<()> {
    let shown = |row: &Vec<String>| -> Vec<String> {
        row.iter().map(|cell| escape::on_one_line(cell).into_owned()).collect()
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

/// Like [`table`], but with `heading` as the first row.
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

//! `doppel-eval pages`: writes files of pages to measure with, as JSON lines.
//!
//! - The file is a function of the inputs, the options and the seed.
//! - The file has exactly the requested number of pages, each with a URL of its own.
//! - Pages are made just before they are written. Memory therefore holds the real pages, and 16 bytes for
//!   each page of the file.

mod made_up;
mod real;
#[cfg(test)]
mod tests;

use std::io::{self, Write};
use std::path::PathBuf;

use clap::Args;
use doppel_contract::page::{PageBody, PageItem};
use doppel_inputs::arguments::InputArgs;
use doppel_model::{PageUrl, Timestamp};
use doppel_terminal::destination::{self, Destination};
use doppel_terminal::output::{Output, bytes, count};
use doppel_terminal::progress;
use doppel_terminal::svg::Panel;
use rayon::prelude::*;
use serde::Serialize;

use crate::generator::{Generator, Source};
use crate::report::{self, Report, ReportFormat, Table};
use made_up::MadeUp;
use real::RealTexts;

/// Number of pages that the threads make before these pages are written.
const AHEAD: usize = 4_096;
/// Number of pages that a thread makes at a time.
const PIECE: usize = 64;
/// Date of the first made page, 2020-01-01. Each further page is a second later than the page before it.
const FIRST_DATE: Timestamp = Timestamp::from_millis(1_577_836_800_000);

/// Write a file of pages to measure with, as JSON lines that `doppel dedup` and `doppel load` read.
///
/// With --from the file begins with the text of real pages, each with its own URL and date. The newest
/// version of a page counts, if it is HTML or text of at least 300 characters. Pages that are made from these
/// texts follow. With --words all pages are made of words that the program makes up. There are 50,000 words,
/// and the r-th is drawn with a probability in proportion to 1/r.
///
/// Pages are made in families, in random order. Three of four families have one page, the others 2 to 11.
/// Each page is its family's text in which each word is replaced with a probability that is drawn for the
/// page, from 0 to 7 percent. The similarity of two pages of a family goes from 1 down to about 0.32, and is
/// 0.8 or more for one pair in fifteen. The text of a family is recombined from stretches of real pages, or
/// drawn word by word. The same command writes the same file; another seed makes other pages.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  doppel-eval pages --from crawl.warc.gz --out text.jsonl              only the real pages, as text
  doppel-eval pages --from a.warc.gz b.warc.gz --pages 100000 --out text.jsonl
  doppel-eval pages --words 150 --pages 10000000 --out - | gzip -1 > pages.jsonl.gz")]
pub(crate) struct Pages {
    /// Begin with the text of these crawls; the inputs are those of `doppel dedup`.
    #[arg(long, value_name = "INPUT", num_args = 1.., required_unless_present = "words", conflicts_with = "words")]
    from: Vec<PathBuf>,
    /// Make up pages of this many words. Doppel compares no page of fewer than 20 words.
    #[arg(long, value_name = "WORDS", requires = "pages", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    words: Option<u32>,
    /// Number of pages of the file. The default with --from is the number of real pages.
    #[arg(long, value_name = "PAGES", value_parser = clap::value_parser!(u32).range(1..=1_000_000_000))]
    pages: Option<u32>,
    /// Write to this file; `-` is standard output. An existing file is replaced at the end.
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Seed of the pages that are made.
    #[arg(long, value_name = "N", default_value_t = 7)]
    seed: u64,
}

impl Pages {
    pub(crate) fn run(self, form: ReportFormat) -> anyhow::Result<()> {
        destination::refuse_input("--out", &self.out, &self.from)?;
        let out = Destination::open(&self.out)?;
        let asked = self.pages.map(|pages| pages as usize);
        let written = match self.words {
            Some(words) => self.write(MadeUp::new(words as usize), asked.unwrap_or_default(), &out)?,
            None => {
                let inputs = InputArgs::from(self.from.clone());
                let texts = RealTexts::read(&inputs)?;
                let pages = asked.unwrap_or(texts.real());
                self.write(texts, pages, &out)?
            }
        };
        if matches!(out, Destination::Standard) {
            return Ok(report::write(&written, form, &mut io::stderr().lock())?);
        }
        let json = form == ReportFormat::Json;
        Ok(Output { json }.print(&written, |out| report::write(&written, form, out))?)
    }

    fn write(&self, source: impl Words, pages: usize, out: &Destination) -> anyhow::Result<WrittenFile> {
        let generator = Generator::new(source, pages, self.seed);
        let bar = progress::pages(pages as u64, "writing");
        let mut written = WrittenFile::default();
        out.write(|out| {
            write(&generator, out, |sum| {
                bar.set_position(sum.pages);
                written = sum;
            })
        })?;
        bar.finish_and_clear();
        Ok(written)
    }
}

/// Source of words that have a spelling.
pub(crate) trait Words: Source<Word = u32> + Sync {
    /// Spelling of a word.
    fn spelling(&self, word: u32) -> &str;
    /// URL and date of a page. `None` if the page is not real.
    fn origin(&self, number: usize) -> Option<(PageUrl, Timestamp)>;
}

/// Size of the file that was written.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct WrittenFile {
    pages: u64,
    real_pages: u64,
    words: u64,
    text_bytes: u64,
    bytes: u64,
}

/// Writes all pages of a generator, and calls `done` after every batch with the size written so far.
fn write<S: Words>(
    generator: &Generator<S>,
    out: &mut dyn Write,
    mut done: impl FnMut(WrittenFile),
) -> anyhow::Result<()> {
    let mut sum = WrittenFile::default();
    let mut first = 0;
    while first < generator.len() {
        let end = generator.len().min(first + AHEAD);
        let pieces: Vec<usize> = (first..end).step_by(PIECE).collect();
        let made: Vec<_> = pieces
            .into_par_iter()
            .map(|first| {
                let (mut lines, mut words, mut text_bytes) = (Vec::new(), 0, 0);
                for number in first..end.min(first + PIECE) {
                    let text = generator.words(number);
                    words += text.len();
                    text_bytes += line(generator.source(), number, &text, &mut lines)?;
                }
                anyhow::Ok((lines, words, text_bytes))
            })
            .collect::<anyhow::Result<_>>()?;
        for (lines, words, text_bytes) in made {
            out.write_all(&lines)?;
            sum.bytes += lines.len() as u64;
            sum.words += words as u64;
            sum.text_bytes += text_bytes as u64;
        }
        first = end;
        sum.pages = end as u64;
        sum.real_pages = end.min(generator.source().real()) as u64;
        done(sum);
    }
    Ok(())
}

/// Appends the line of a page, and returns the number of bytes of its text.
fn line<S: Words>(source: &S, number: usize, words: &[u32], lines: &mut Vec<u8>) -> anyhow::Result<usize> {
    let (url, date) = match source.origin(number) {
        Some(real) => real,
        None => {
            let url = PageUrl::parse(&format!("https://example.org/{number}"))?;
            (url, FIRST_DATE.plus_millis(number as i64 * 1_000))
        }
    };
    let mut text = String::new();
    for word in words {
        if !text.is_empty() {
            text.push(' ');
        }
        text.push_str(source.spelling(*word));
    }
    let bytes = text.len();
    let body = PageBody::Text(text);
    let item = PageItem { url, body, fetched_at: Some(date), popularity: None, language: None };
    item.to_json_line(lines);
    Ok(bytes)
}

impl Report for WrittenFile {
    fn tables(&self) -> Vec<Table> {
        let mut table =
            Table::new("Pages written", ["pages", "of them real", "words a page", "text", "file"]);
        table.row([
            count(self.pages),
            count(self.real_pages),
            count(self.words.checked_div(self.pages).unwrap_or_default()),
            bytes(self.text_bytes),
            bytes(self.bytes),
        ]);
        vec![table]
    }

    fn notes(&self) -> Vec<String> {
        Vec::new()
    }

    fn panels(&self) -> Vec<Panel> {
        Vec::new()
    }
}

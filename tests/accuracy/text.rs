//! Writes the text of a crawl as JSON lines, as input for measurements on clean text.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::accuracy::corpus::MID;
use crate::oracle::crawl::{Crawl, FetchOutcome};
use crate::oracle::html;

/// Texts with fewer characters are left out.
const CHARACTERS_MIN: usize = 300;

#[test]
#[ignore = "writes a file, the one that DOPPEL_TEXT names"]
fn text_of_mid() -> Result<()> {
    let Some(files) = MID.files()? else { return Ok(()) };
    let out = PathBuf::from(std::env::var_os("DOPPEL_TEXT").context("DOPPEL_TEXT names no file")?);
    let mut out = BufWriter::new(File::create(&out).with_context(|| out.display().to_string())?);
    let crawl = Crawl::read(&files)?;
    for (url, found) in crawl.newest() {
        let FetchOutcome::Html(html) = found else { continue };
        let text = html::parse(html).text;
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        if text.chars().count() >= CHARACTERS_MIN {
            serde_json::to_writer(&mut out, &serde_json::json!({ "url": url, "text": text }))?;
            out.write_all(b"\n")?;
        }
    }
    Ok(out.flush()?)
}

//! Reads the records of a WARC 1.0 file, gzip per record.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use flate2::bufread::MultiGzDecoder;

/// One record: its header fields, its block, and its bytes as stored in the file.
pub(crate) struct Record {
    pub(crate) bytes: Vec<u8>,
    fields: Vec<(String, String)>,
    block: usize,
    block_len: usize,
}

/// An HTTP response in a `response` record.
pub(crate) struct Response<'r> {
    pub(crate) status: u16,
    pub(crate) body: &'r [u8],
    head: &'r str,
}

impl Record {
    /// The value of this header field; the name is case-insensitive.
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        let field = self.fields.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
        field.map(|(_, value)| value.as_str())
    }

    /// Whether the record is a fetch; false for `warcinfo` and others.
    pub(crate) fn is_response(&self) -> bool {
        self.field("WARC-Type") == Some("response")
    }

    /// The HTTP response in the block.
    pub(crate) fn response(&self) -> Result<Response<'_>> {
        let block = &self.bytes[self.block..self.block + self.block_len];
        let end = block.windows(4).position(|four| four == b"\r\n\r\n").context("no end of the HTTP head")?;
        let head = std::str::from_utf8(&block[..end])?;
        let status = head.split_ascii_whitespace().nth(1);
        Ok(Response { status: status.context("no HTTP status")?.parse()?, body: &block[end + 4..], head })
    }
}

impl Response<'_> {
    /// The value of this HTTP header; the name is case-insensitive.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut pairs = self.head.lines().filter_map(|line| line.split_once(':'));
        let header = pairs.find(|(key, _)| key.eq_ignore_ascii_case(name));
        header.map(|(_, value)| value.trim())
    }
}

/// Reads every record of a file in order and passes it to `each`.
pub(crate) fn read(path: &Path, mut each: impl FnMut(Record) -> Result<()>) -> Result<()> {
    let file = File::open(path).with_context(|| path.display().to_string())?;
    let mut reader = BufReader::new(MultiGzDecoder::new(BufReader::new(file)));
    let mut count = 0;
    while !reader.fill_buf()?.is_empty() {
        read_record(&mut reader)
            .and_then(&mut each)
            .with_context(|| format!("{}, record {count}", path.display()))?;
        count += 1;
    }
    Ok(())
}

fn read_record(reader: &mut impl BufRead) -> Result<Record> {
    let mut bytes = Vec::new();
    let mut fields = Vec::new();
    loop {
        let start = bytes.len();
        reader.read_until(b'\n', &mut bytes)?;
        let line = std::str::from_utf8(&bytes[start..])?.trim_end();
        match line.split_once(':') {
            Some((key, value)) => fields.push((key.to_owned(), value.trim().to_owned())),
            None if line.is_empty() => break,
            None => ensure!(line == "WARC/1.0", "not a WARC header line: {line}"),
        }
    }
    let length = fields.iter().find(|(key, _)| key.eq_ignore_ascii_case("Content-Length"));
    let block_len: usize = length.context("no Content-Length")?.1.parse()?;
    let block = bytes.len();
    let read = reader.take(block_len as u64 + 4).read_to_end(&mut bytes)?;
    if read != block_len + 4 || !bytes.ends_with(b"\r\n\r\n") {
        bail!("the block is cut short");
    }
    Ok(Record { bytes, fields, block, block_len })
}

//! Reads the batches of an Arrow file. The footer at its end has the schema and lists the messages of the
//! file as *blocks*: the offset of a message and the lengths of its head and its body.
//!
//! The footer may be damaged or hostile. The reader refuses blocks that are outside the file or have more
//! bytes together than the file. It reports the file as damaged if messages follow that the footer does not
//! list.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};

use arrow_array::RecordBatch;
use arrow_buffer::Buffer;
use arrow_ipc::reader::read_footer_length;
use arrow_ipc::{Block, CompressionType, root_as_footer, root_as_message};
use arrow_schema::SchemaRef;
use doppel_streams::{Limits, Reason, too_large};

use super::{CONTINUATION, Decoder, HEAD_BYTES_MAX, PADDING_BYTES_MAX, wrong_head};
use crate::format::column_magic::ARROW_FILE;

/// An open Arrow file, as an iterator over its batches.
pub(crate) struct FileBatches {
    file: File,
    decoder: Decoder,
    /// The blocks of the batches, in the order of the file.
    blocks: Vec<Block>,
    /// The number of the next block, counted from 0.
    next: usize,
    /// The size of the file.
    bytes: u64,
    /// The number of bytes that were decoded for the dictionaries.
    decoded: u64,
    /// Whether messages follow that the footer does not list.
    has_unlisted: bool,
}

/// The most bytes that may be between the last message and the footer: an end marker and padding.
const AFTER_MESSAGES_MAX: u64 = 8 + PADDING_BYTES_MAX as u64;

impl FileBatches {
    /// Reads the footer and all dictionaries of a file.
    pub(crate) fn open(mut file: File, limits: Limits) -> Result<Self, Reason> {
        let bytes = file.seek(SeekFrom::End(0)).map_err(Reason::Io)?;
        if bytes < 10 + ARROW_FILE.len() as u64 {
            return Err(not_arrow_end());
        }
        let mut end = [0; 10];
        file.seek(SeekFrom::End(-10)).map_err(Reason::Io)?;
        file.read_exact(&mut end).map_err(Reason::Io)?;
        // Without the footer no message can be read.
        let length = read_footer_length(end).map_err(|_| not_arrow_end())?;
        too_large("an Arrow footer", length as u64, HEAD_BYTES_MAX)?;
        let at = bytes.checked_sub(10 + length as u64).ok_or_else(not_arrow_end)?;
        let footer = read_at(&mut file, at, length)?;
        let footer = root_as_footer(&footer).map_err(Reason::columns)?;
        let schema = footer.schema().ok_or_else(wrong_head)?;
        let mut decoder = Decoder::of(schema, limits)?;
        let dictionaries = footer.dictionaries().into_iter().flatten();
        check_blocks(dictionaries.chain(footer.recordBatches().into_iter().flatten()), bytes)?;
        for block in footer.dictionaries().into_iter().flatten() {
            if decode_block(&mut file, &mut decoder, *block, bytes)?.is_some() {
                return Err(wrong_head());
            }
        }
        let blocks: Vec<_> = footer.recordBatches().into_iter().flatten().copied().collect();
        let last_end = footer.dictionaries().into_iter().flatten().chain(&blocks).map(end_of).max();
        let end = last_end.map_or_else(|| end_of_schema(&mut file, bytes), Ok)?;
        let has_unlisted = end.saturating_add(AFTER_MESSAGES_MAX) < at;
        let decoded = decoder.decoded;
        Ok(Self { file, decoder, blocks, next: 0, bytes, decoded, has_unlisted })
    }

    /// Goes to the first batch and sets which columns the batches contain: the columns at `paths`, or all
    /// columns if `paths` is `None`.
    pub(crate) fn begin(&mut self, paths: Option<&[String]>) -> Result<(), Reason> {
        self.decoder.project(paths);
        (self.next, self.decoder.decoded) = (0, self.decoded);
        Ok(())
    }

    /// The schema of the file, with its metadata.
    pub(crate) fn schema(&self) -> &SchemaRef {
        &self.decoder.schema
    }

    /// The compression of the last batch that could be decoded.
    pub(crate) fn compression(&self) -> Option<CompressionType> {
        self.decoder.compression
    }

    /// The paths of all columns.
    pub(crate) fn names(&self) -> &[String] {
        &self.decoder.paths
    }

    /// The offset up to which the file has been read.
    pub(crate) fn bytes_read(&self) -> u64 {
        let end =
            self.blocks.get(self.next).map_or(self.bytes, |block| block.offset().try_into().unwrap_or(0));
        end.min(self.bytes)
    }

    /// The size of the file in bytes.
    pub(crate) fn bytes_stored(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn next(&mut self) -> Option<Result<RecordBatch, Reason>> {
        let Some(block) = self.blocks.get(self.next).copied() else {
            let is_first = self.next == self.blocks.len();
            self.next = self.blocks.len() + 1;
            let reason = "the footer does not list the last messages of the file";
            return (is_first && self.has_unlisted).then(|| Err(Reason::Columns(reason.to_owned())));
        };
        self.next += 1;
        let batch = decode_block(&mut self.file, &mut self.decoder, block, self.bytes);
        Some(batch.and_then(|batch| batch.ok_or_else(wrong_head)))
    }
}

/// The offset of the first byte after a message.
fn end_of(block: &Block) -> u64 {
    [block.offset(), block.metaDataLength().into(), block.bodyLength()]
        .into_iter()
        .map(|bytes| u64::try_from(bytes).unwrap_or_default())
        .fold(0, u64::saturating_add)
}

/// The offset of the first byte after the message of the schema, which is the first message. Before it are
/// only the magic number and zeros, together at most 64 bytes.
fn end_of_schema(file: &mut File, file_bytes: u64) -> Result<u64, Reason> {
    let mut at = ARROW_FILE.len().next_multiple_of(8);
    let length = usize::try_from(file_bytes).unwrap_or(usize::MAX).min(PADDING_BYTES_MAX + 8);
    let beginning = read_at(file, 0, length)?;
    while beginning.get(at..at + 8).is_some_and(|bytes| bytes == [0; 8]) {
        at += 8;
    }
    let head = beginning.get(at..).unwrap_or_default();
    let length = |bytes: &[u8]| bytes.first_chunk().map_or(0, |bytes| u64::from(u32::from_le_bytes(*bytes)));
    Ok(match head.strip_prefix(&CONTINUATION) {
        Some(bytes) => at as u64 + 8 + length(bytes),
        None => at as u64 + 4 + length(head),
    })
}

fn not_arrow_end() -> Reason {
    let reason = "the file does not end like an Arrow file: it is cut off, or other bytes follow; \
                  download or write it again";
    Reason::Columns(reason.to_owned())
}

/// Checks that the messages of all blocks have no more bytes together than the file. Otherwise several blocks
/// refer to the same bytes.
pub(super) fn check_blocks<'b>(
    blocks: impl Iterator<Item = &'b Block>,
    file_bytes: u64,
) -> Result<(), Reason> {
    let bytes = |block: &Block| {
        let (head, body) = (u64::try_from(block.metaDataLength()), u64::try_from(block.bodyLength()));
        head.unwrap_or_default().saturating_add(body.unwrap_or_default())
    };
    if blocks.map(bytes).fold(0, u64::saturating_add) <= file_bytes {
        return Ok(());
    }
    Err(Reason::Columns("the footer lists messages with more bytes than the file".to_owned()))
}

/// Reads and decodes the message of a block. `None` if the message is a dictionary.
fn decode_block(
    file: &mut File,
    decoder: &mut Decoder,
    block: Block,
    file_bytes: u64,
) -> Result<Option<RecordBatch>, Reason> {
    let (at, head) = (u64::try_from(block.offset()).ok(), usize::try_from(block.metaDataLength()).ok());
    let body = usize::try_from(block.bodyLength()).ok();
    let (Some(at), Some(head), Some(body)) = (at, head, body) else { return Err(wrong_head()) };
    too_large("the head of a batch", head as u64, HEAD_BYTES_MAX)?;
    too_large("a batch of columns", body as u64, decoder.limits.columns_bytes_max)?;
    let length = head + body;
    if at.saturating_add(length as u64) > file_bytes {
        return Err(Reason::Truncated);
    }
    let bytes = Buffer::from_vec(read_at(file, at, length)?);
    let head_bytes = bytes.get(..head).ok_or(Reason::Truncated)?;
    // The head begins with its length. Since version 0.15 the continuation marker is before the length.
    let head_bytes = head_bytes.strip_prefix(&CONTINUATION).unwrap_or(head_bytes);
    let Some((length, head_bytes)) = head_bytes.split_first_chunk() else { return Err(wrong_head()) };
    let length = u32::from_le_bytes(*length) as usize;
    if length == 0 || length > head_bytes.len() {
        return Err(wrong_head());
    }
    let message = root_as_message(head_bytes).map_err(Reason::columns)?;
    decoder.decode(message, &bytes.slice(head), file_bytes)
}

fn read_at(file: &mut File, offset: u64, bytes: usize) -> Result<Vec<u8>, Reason> {
    file.seek(SeekFrom::Start(offset)).map_err(Reason::Io)?;
    let mut read = vec![0; bytes];
    file.read_exact(&mut read).map_err(Reason::Io)?;
    Ok(read)
}

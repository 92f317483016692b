//! Batches of an Arrow file, which has a list of its messages at the end.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};

use arrow_array::RecordBatch;
use arrow_buffer::Buffer;
use arrow_ipc::reader::read_footer_length;
use arrow_ipc::{Block, CompressionType, root_as_footer, root_as_message};
use arrow_schema::SchemaRef;

use super::{CONTINUATION, Decoder, HEAD_BYTES_MAX, MAGIC, PADDING_BYTES_MAX, no_header};
use crate::error::Reason;
use crate::limits::{Limits, too_large};

/// The messages of an Arrow file.
pub(crate) struct FileBatches {
    file: File,
    decoder: Decoder,
    blocks: Vec<Block>,
    next: usize,
    bytes: u64,
    /// The bytes that were decoded for dictionaries.
    decoded: u64,
    /// Whether there are messages behind those of the list.
    is_list_short: bool,
}

/// The most bytes between the last message and the list: a mark of the end, and padding.
const BEHIND_MESSAGES_MAX: u64 = 8 + PADDING_BYTES_MAX as u64;

impl FileBatches {
    pub(crate) fn open(mut file: File, limits: Limits) -> Result<Self, Reason> {
        let bytes = file.seek(SeekFrom::End(0)).map_err(Reason::Io)?;
        if bytes < 10 + MAGIC.len() as u64 {
            return Err(no_end());
        }
        let mut end = [0; 10];
        file.seek(SeekFrom::End(-10)).map_err(Reason::Io)?;
        file.read_exact(&mut end).map_err(Reason::Io)?;
        // The list is at the end, so nothing can be read without it.
        let length = read_footer_length(end).map_err(|_| no_end())?;
        too_large("a list of messages", length as u64, HEAD_BYTES_MAX)?;
        let at = bytes.checked_sub(10 + length as u64).ok_or_else(no_end)?;
        let footer = read_at(&mut file, at, length)?;
        let footer = root_as_footer(&footer).map_err(Reason::columns)?;
        let schema = footer.schema().ok_or_else(no_header)?;
        let mut decoder = Decoder::of(schema, limits)?;
        let dictionaries = footer.dictionaries().into_iter().flatten();
        check_places(dictionaries.chain(footer.recordBatches().into_iter().flatten()), bytes)?;
        for block in footer.dictionaries().into_iter().flatten() {
            if take_block(&mut file, &mut decoder, *block, bytes)?.is_some() {
                return Err(no_header());
            }
        }
        let blocks: Vec<_> = footer.recordBatches().into_iter().flatten().copied().collect();
        let listed = footer.dictionaries().into_iter().flatten().chain(&blocks).map(end_of).max();
        let end = listed.map_or_else(|| end_of_schema(&mut file, bytes), Ok)?;
        let is_list_short = end.saturating_add(BEHIND_MESSAGES_MAX) < at;
        let decoded = decoder.decoded;
        Ok(Self { file, decoder, blocks, next: 0, bytes, decoded, is_list_short })
    }

    /// Goes to the first batch, and has the batches have what is at these paths, or all columns where there are none.
    pub(crate) fn begin(&mut self, paths: Option<&[String]>) -> Result<(), Reason> {
        self.decoder.project(paths);
        (self.next, self.decoder.decoded) = (0, self.decoded);
        Ok(())
    }

    /// The columns, and what the file says of itself.
    pub(crate) fn schema(&self) -> &SchemaRef {
        &self.decoder.schema
    }

    /// How the last batch was compressed.
    pub(crate) fn compression(&self) -> Option<CompressionType> {
        self.decoder.compression
    }

    pub(crate) fn names(&self) -> &[String] {
        &self.decoder.paths
    }

    pub(crate) fn bytes_read(&self) -> u64 {
        let end =
            self.blocks.get(self.next).map_or(self.bytes, |block| block.offset().try_into().unwrap_or(0));
        end.min(self.bytes)
    }

    pub(crate) fn bytes_stored(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn next(&mut self) -> Option<Result<RecordBatch, Reason>> {
        let Some(block) = self.blocks.get(self.next).copied() else {
            let is_first = self.next == self.blocks.len();
            self.next = self.blocks.len() + 1;
            let reason = "the list of messages does not have the last ones";
            return (is_first && self.is_list_short).then(|| Err(Reason::Columns(reason.to_owned())));
        };
        self.next += 1;
        let batch = take_block(&mut self.file, &mut self.decoder, block, self.bytes);
        Some(batch.and_then(|batch| batch.ok_or_else(no_header)))
    }
}

/// The offset behind a message.
fn end_of(block: &Block) -> u64 {
    [block.offset(), block.metaDataLength().into(), block.bodyLength()]
        .into_iter()
        .map(|bytes| u64::try_from(bytes).unwrap_or_default())
        .fold(0, u64::saturating_add)
}

/// The offset behind the message that describes the columns, which is the first one. The magic number and zeros, together at most 64 bytes, are
/// in front of it.
fn end_of_schema(file: &mut File, file_bytes: u64) -> Result<u64, Reason> {
    let mut at = MAGIC.len().next_multiple_of(8);
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

fn no_end() -> Reason {
    let reason =
        "the end of the file is not that of an Arrow file: it is cut off, or followed by other bytes";
    Reason::Columns(reason.to_owned())
}

/// Checks that messages are not of the same bytes: together they have no more than the file.
pub(super) fn check_places<'b>(
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
    Err(Reason::Columns("messages that have more bytes than the file".to_owned()))
}

/// Reads the message that a block of a file is, and takes it.
fn take_block(
    file: &mut File,
    decoder: &mut Decoder,
    block: Block,
    file_bytes: u64,
) -> Result<Option<RecordBatch>, Reason> {
    let (at, head) = (u64::try_from(block.offset()).ok(), usize::try_from(block.metaDataLength()).ok());
    let body = usize::try_from(block.bodyLength()).ok();
    let (Some(at), Some(head), Some(body)) = (at, head, body) else { return Err(no_header()) };
    too_large("the description of a batch", head as u64, HEAD_BYTES_MAX)?;
    too_large("a batch of columns", body as u64, decoder.limits.columns_bytes_max)?;
    let length = head + body;
    if at.saturating_add(length as u64) > file_bytes {
        return Err(Reason::Truncated);
    }
    let bytes = Buffer::from_vec(read_at(file, at, length)?);
    let described = bytes.get(..head).ok_or(Reason::Truncated)?;
    // The length comes first, in versions since 0.15 behind a mark.
    let described = described.strip_prefix(&CONTINUATION).unwrap_or(described);
    let Some((length, described)) = described.split_first_chunk() else { return Err(no_header()) };
    let length = u32::from_le_bytes(*length) as usize;
    if length == 0 || length > described.len() {
        return Err(no_header());
    }
    let message = root_as_message(described).map_err(Reason::columns)?;
    decoder.take(message, &bytes.slice(head), file_bytes)
}

fn read_at(file: &mut File, offset: u64, bytes: usize) -> Result<Vec<u8>, Reason> {
    file.seek(SeekFrom::Start(offset)).map_err(Reason::Io)?;
    let mut read = vec![0; bytes];
    file.read_exact(&mut read).map_err(Reason::Io)?;
    Ok(read)
}

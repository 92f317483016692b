//! Batches of the Arrow IPC format: a file with a list of its messages at the end, or a stream of messages.
//!
//! A message is read into memory as a whole, so its size is bounded, and that of what it unpacks to, before memory is taken for
//! either.

use std::collections::{HashMap, HashSet, VecDeque};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_buffer::Buffer;
use arrow_ipc::convert::try_fb_to_schema;
use arrow_ipc::reader::{RecordBatchDecoder, read_dictionary, read_footer_length};
use arrow_ipc::{Block, CompressionType, Message, MessageHeader, root_as_footer, root_as_message};
use arrow_schema::{Schema, SchemaRef};

use super::{cells, guarded};
use crate::error::Reason;
use crate::limits::{Limits, too_large};
use crate::stream::Stream;

/// The first bytes of an Arrow file.
pub(super) const MAGIC: &[u8] = b"ARROW1";

/// What a message of a stream begins with, since version 0.15 of the format.
pub(super) const CONTINUATION: [u8; 4] = [0xff; 4];

/// The longest description of a message or file, in bytes.
const HEAD_BYTES_MAX: usize = 64 << 20;

/// How many times a dictionary may be added to: each time all of it is copied.
const ADDITIONS_MAX: u32 = 10_000;

/// How many bytes are copied in the time in which one is decoded, about.
const COPIED_PER_DECODED: u64 = 16;

/// What messages are about.
struct Decoder {
    schema: SchemaRef,
    /// The paths of all columns.
    paths: Vec<String>,
    dictionaries: HashMap<i64, ArrayRef>,
    /// The sizes of the dictionaries that there are, by their numbers.
    sizes: HashMap<i64, DictionarySize>,
    /// The bytes that were decoded so far.
    decoded: u64,
    /// The numbers of the columns that are needed.
    projection: Vec<usize>,
    /// How the last batch was compressed.
    compression: Option<CompressionType>,
    limits: Limits,
}

/// The size of a dictionary.
#[derive(Default, Clone, Copy)]
struct DictionarySize {
    bytes: u64,
    /// How many times it was added to.
    additions: u32,
}

impl Decoder {
    fn new(schema: Schema, limits: Limits) -> Self {
        let paths = cells::paths(schema.fields());
        let projection = (0..schema.fields().len()).collect();
        let schema = Arc::new(schema);
        let (dictionaries, sizes) = (HashMap::new(), HashMap::new());
        Self { schema, paths, dictionaries, sizes, decoded: 0, projection, compression: None, limits }
    }

    /// Has the next batches have what is at these paths, or all columns where there are none.
    fn project(&mut self, paths: Option<&[String]>) {
        let Some(paths) = paths else {
            self.projection = (0..self.schema.fields().len()).collect();
            return;
        };
        let holds = |name: &str, path: &String| {
            path.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        };
        let mut names = HashSet::new();
        // Of several columns of a name the first is read.
        let columns =
            self.schema.fields().iter().enumerate().filter(|(_, column)| names.insert(column.name()));
        let needed = columns.filter(|(_, column)| paths.iter().any(|path| holds(column.name(), path)));
        self.projection = needed.map(|(number, _)| number).collect();
    }

    /// Takes a message, of an input of which `stored` bytes were read. `None` where it is no batch.
    fn take(
        &mut self,
        message: Message<'_>,
        body: &Buffer,
        stored: u64,
    ) -> Result<Option<RecordBatch>, Reason> {
        let version = message.version();
        match message.header_type() {
            MessageHeader::RecordBatch => {
                let batch = message.header_as_record_batch().ok_or_else(no_header)?;
                let bytes = unpacked_bytes(&batch, body, &self.limits)?;
                self.charge(bytes, stored)?;
                self.compression = batch.compression().map(|compression| compression.codec());
                let schema = Arc::clone(&self.schema);
                let decode = || {
                    RecordBatchDecoder::try_new(body, batch, schema, &self.dictionaries, &version)?
                        .with_projection(Some(&self.projection))
                        .read_record_batch()
                };
                guarded(decode)?.map(Some).map_err(Reason::columns)
            }
            MessageHeader::DictionaryBatch => {
                let dictionary = message.header_as_dictionary_batch().ok_or_else(no_header)?;
                let values = dictionary.data().ok_or_else(no_header)?;
                let bytes = unpacked_bytes(&values, body, &self.limits)?;
                let copied = self.check_dictionary(dictionary.id(), bytes, dictionary.isDelta())?;
                self.charge(bytes.saturating_add(copied / COPIED_PER_DECODED), stored)?;
                let Self { schema, dictionaries, .. } = self;
                let decode = || read_dictionary(body, dictionary, schema, dictionaries, &version);
                guarded(decode)?.map(|()| None).map_err(Reason::columns)
            }
            MessageHeader::NONE => Ok(None),
            _ => Err(Reason::Columns("a message that is neither a batch nor a dictionary".to_owned())),
        }
    }

    /// Checks that the dictionaries are not too large with one that comes in the place of what its number stood for, or is added to that. Returns
    /// the bytes that are copied for it.
    fn check_dictionary(&mut self, number: i64, bytes: u64, is_addition: bool) -> Result<u64, Reason> {
        let before = self.sizes.get(&number).copied().unwrap_or_default();
        let (size, copied) = if is_addition {
            let bytes = before.bytes.saturating_add(bytes);
            (DictionarySize { bytes, additions: before.additions + 1 }, bytes)
        } else {
            (DictionarySize { bytes, additions: 0 }, 0)
        };
        if size.additions > ADDITIONS_MAX {
            return Err(Reason::Columns(format!("a dictionary that is added to over {ADDITIONS_MAX} times")));
        }
        self.sizes.insert(number, size);
        let all = self.sizes.values().fold(0_u64, |all, size| all.saturating_add(size.bytes));
        too_large("dictionaries", all, self.limits.columns_bytes_max)?;
        Ok(copied)
    }

    fn charge(&mut self, bytes: u64, stored: u64) -> Result<(), Reason> {
        self.decoded = self.decoded.saturating_add(bytes);
        self.limits.check_expansion(stored, self.decoded)
    }
}

/// The bytes that a batch has and unpacks to, if these are not too many. Each buffer of a compressed one says so in its first bytes, and
/// several may be of the same bytes.
fn unpacked_bytes(batch: &arrow_ipc::RecordBatch<'_>, body: &Buffer, limits: &Limits) -> Result<u64, Reason> {
    let (mut all, mut bytes) = (0_u64, 0_u64);
    for buffer in batch.buffers().into_iter().flatten() {
        let (begin, length) = (usize::try_from(buffer.offset()), usize::try_from(buffer.length()));
        let (Ok(begin), Ok(length)) = (begin, length) else { return Err(no_header()) };
        let stored = begin.checked_add(length).and_then(|end| body.get(begin..end));
        let Some(stored) = stored else { return Err(no_header()) };
        all = all.saturating_add(stored.len() as u64);
        if let (Some(_), Some(unpacked)) = (batch.compression(), stored.first_chunk::<8>()) {
            // It is -1 where the buffer is not compressed.
            bytes = bytes.saturating_add(u64::try_from(i64::from_le_bytes(*unpacked)).unwrap_or_default());
        }
    }
    let bytes = bytes.saturating_add(all.max(body.len() as u64));
    too_large("a batch of columns", bytes, limits.columns_bytes_max)?;
    Ok(bytes)
}

/// The messages of an Arrow file.
pub(crate) struct FileBatches {
    file: File,
    decoder: Decoder,
    blocks: Vec<Block>,
    next: usize,
    bytes: u64,
}

impl FileBatches {
    pub(crate) fn open(mut file: File, limits: Limits) -> Result<Self, Reason> {
        let bytes = file.seek(SeekFrom::End(0)).map_err(Reason::Io)?;
        if bytes < 10 + MAGIC.len() as u64 {
            return Err(Reason::Truncated);
        }
        let mut end = [0; 10];
        file.seek(SeekFrom::End(-10)).map_err(Reason::Io)?;
        file.read_exact(&mut end).map_err(Reason::Io)?;
        // The list is at the end, so nothing can be read without it.
        let length = read_footer_length(end).map_err(|_| Reason::Truncated)?;
        too_large("a list of messages", length as u64, HEAD_BYTES_MAX)?;
        let at = bytes.checked_sub(10 + length as u64).ok_or(Reason::Truncated)?;
        let footer = read_at(&mut file, at, length)?;
        let footer = root_as_footer(&footer).map_err(Reason::columns)?;
        let schema = footer.schema().ok_or_else(no_header)?;
        if !schema.endianness().equals_to_target_endianness() {
            return Err(Reason::Columns("numbers are in the byte order of another machine".to_owned()));
        }
        let dictionaries = footer.dictionaries().into_iter().flatten();
        check_places(dictionaries.chain(footer.recordBatches().into_iter().flatten()), bytes)?;
        let mut decoder =
            Decoder::new(guarded(|| try_fb_to_schema(schema))?.map_err(Reason::columns)?, limits);
        for block in footer.dictionaries().into_iter().flatten() {
            take_block(&mut file, &mut decoder, *block, bytes)?;
        }
        let blocks = footer.recordBatches().into_iter().flatten().copied().collect();
        Ok(Self { file, decoder, blocks, next: 0, bytes })
    }

    /// Goes to the first batch, and has the batches have what is at these paths, or all columns where there are none.
    pub(super) fn begin(&mut self, paths: Option<&[String]>) -> Result<(), Reason> {
        self.decoder.project(paths);
        (self.next, self.decoder.decoded) = (0, 0);
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

    pub(super) fn names(&self) -> &[String] {
        &self.decoder.paths
    }

    pub(super) fn bytes_read(&self) -> u64 {
        let end =
            self.blocks.get(self.next).map_or(self.bytes, |block| block.offset().try_into().unwrap_or(0));
        end.min(self.bytes)
    }

    pub(super) fn bytes_stored(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn next(&mut self) -> Option<Result<RecordBatch, Reason>> {
        loop {
            let block = *self.blocks.get(self.next)?;
            self.next += 1;
            let batch = take_block(&mut self.file, &mut self.decoder, block, self.bytes);
            if let Some(batch) = batch.transpose() {
                return Some(batch);
            }
        }
    }
}

/// Checks that messages are not of the same bytes: together they have no more than the file.
fn check_places<'b>(blocks: impl Iterator<Item = &'b Block>, file_bytes: u64) -> Result<(), Reason> {
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
    let ([0xff, 0xff, 0xff, 0xff, _, _, _, _, described @ ..] | [_, _, _, _, described @ ..]) = described
    else {
        return Err(no_header());
    };
    let message = root_as_message(described).map_err(Reason::columns)?;
    decoder.take(message, &bytes.slice(head), file_bytes)
}

fn read_at(file: &mut File, offset: u64, bytes: usize) -> Result<Vec<u8>, Reason> {
    file.seek(SeekFrom::Start(offset)).map_err(Reason::Io)?;
    let mut read = vec![0; bytes];
    file.read_exact(&mut read).map_err(Reason::Io)?;
    Ok(read)
}

/// The messages of a stream.
pub(crate) struct StreamBatches {
    stream: Stream,
    decoder: Decoder,
    /// Batches that were read and are handed over once more.
    again: VecDeque<Result<RecordBatch, Reason>>,
}

impl StreamBatches {
    pub(crate) fn open(mut stream: Stream, limits: Limits) -> Result<Self, Reason> {
        let Some(head) = read_head(&mut stream)? else { return Err(Reason::Truncated) };
        let message = root_as_message(&head).map_err(Reason::columns)?;
        let schema = message.header_as_schema().ok_or_else(no_header)?;
        if !schema.endianness().equals_to_target_endianness() {
            return Err(Reason::Columns("numbers are in the byte order of another machine".to_owned()));
        }
        let schema = guarded(|| try_fb_to_schema(schema))?.map_err(Reason::columns)?;
        read_body(&mut stream, message.bodyLength(), &limits)?;
        Ok(Self { stream, decoder: Decoder::new(schema, limits), again: VecDeque::new() })
    }

    /// Has the next batches have what is at these paths, or all columns where there are none.
    pub(super) fn project(&mut self, paths: Option<&[String]>) {
        self.decoder.project(paths);
    }

    /// Hands over once more what was read.
    pub(super) fn give_back(&mut self, batches: Vec<Result<RecordBatch, Reason>>) {
        self.again = batches.into();
    }

    /// The columns, and what the file says of itself.
    pub(crate) fn schema(&self) -> &SchemaRef {
        &self.decoder.schema
    }

    /// How the last batch was compressed.
    pub(crate) fn compression(&self) -> Option<CompressionType> {
        self.decoder.compression
    }

    pub(super) fn names(&self) -> &[String] {
        &self.decoder.paths
    }

    pub(super) fn bytes_read(&self) -> u64 {
        self.stream.bytes_read()
    }

    pub(crate) fn next(&mut self) -> Option<Result<RecordBatch, Reason>> {
        self.again.pop_front().or_else(|| self.read().transpose())
    }

    fn read(&mut self) -> Result<Option<RecordBatch>, Reason> {
        while let Some(head) = read_head(&mut self.stream)? {
            let message = root_as_message(&head).map_err(Reason::columns)?;
            let body = read_body(&mut self.stream, message.bodyLength(), &self.decoder.limits)?;
            let stored = self.stream.bytes_read();
            if let Some(batch) = self.decoder.take(message, &Buffer::from_vec(body), stored)? {
                return Ok(Some(batch));
            }
        }
        Ok(None)
    }
}

/// The description of the next message; `None` at the end.
fn read_head(stream: &mut Stream) -> Result<Option<Vec<u8>>, Reason> {
    let mut length = Vec::new();
    stream.read_up_to(4, &mut length)?;
    if length == CONTINUATION {
        length.clear();
        stream.read_up_to(4, &mut length)?;
    }
    let length = match *length {
        // Writers need not tell the end.
        [] | [0, 0, 0, 0] => return Ok(None),
        [a, b, c, d] => u32::from_le_bytes([a, b, c, d]) as usize,
        _ => return Err(Reason::Truncated),
    };
    too_large("the description of a batch", length as u64, HEAD_BYTES_MAX)?;
    let mut head = Vec::new();
    stream.read_up_to(length, &mut head)?;
    if head.len() < length { Err(Reason::Truncated) } else { Ok(Some(head)) }
}

fn read_body(stream: &mut Stream, bytes: i64, limits: &Limits) -> Result<Vec<u8>, Reason> {
    let bytes = u64::try_from(bytes).map_err(|_| no_header())?;
    too_large("a batch of columns", bytes, limits.columns_bytes_max)?;
    let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
    let mut body = Vec::new();
    stream.read_up_to(bytes, &mut body)?;
    if body.len() < bytes { Err(Reason::Truncated) } else { Ok(body) }
}

fn no_header() -> Reason {
    Reason::Columns("the description of a batch is not that of what follows".to_owned())
}

#[cfg(test)]
mod tests;

//! Batches of the Arrow IPC format: a file with a list of its messages at the end, or a stream of messages.
//!
//! A message is read into memory as a whole, so its size is bounded, and that of what it unpacks to, before memory is taken for
//! either.

mod file;
mod stream;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_buffer::Buffer;
use arrow_ipc::convert::try_fb_to_schema;
use arrow_ipc::reader::{RecordBatchDecoder, read_dictionary};
use arrow_ipc::{CompressionType, Message, MessageHeader};
use arrow_schema::{Schema, SchemaRef};

use super::cells;
use super::guard::guarded;
use crate::error::Reason;
use crate::limits::{Limits, too_large};
pub(crate) use file::FileBatches;
pub(crate) use stream::StreamBatches;

/// The first bytes of an Arrow file.
pub(super) const MAGIC: &[u8] = b"ARROW1";

/// What a message of a stream begins with, since version 0.15 of the format.
pub(super) const CONTINUATION: [u8; 4] = [0xff; 4];

/// The longest description of a message or file, in bytes.
const HEAD_BYTES_MAX: usize = 64 << 20;

/// The longest padding that is taken whatever it holds, in bytes: writers align to 8 or 64 bytes.
const PADDING_BYTES_MAX: usize = 64;

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
    /// How the last batch that could be decoded was compressed.
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
    /// For the columns that a file or stream describes.
    fn of(described: arrow_ipc::Schema<'_>, limits: Limits) -> Result<Self, Reason> {
        if !described.endianness().equals_to_target_endianness() {
            return Err(Reason::Columns("numbers are in the byte order of another machine".to_owned()));
        }
        let schema = guarded(|| try_fb_to_schema(described))?.map_err(Reason::columns)?;
        Ok(Self::new(schema, limits))
    }

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

    /// Takes a message, of an input of which `stored` bytes were read. `None` where it is a dictionary.
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
                let compression = batch.compression().map(|compression| compression.codec());
                let schema = Arc::clone(&self.schema);
                let decode = || {
                    RecordBatchDecoder::try_new(body, batch, schema, &self.dictionaries, &version)?
                        .with_projection(Some(&self.projection))
                        .read_record_batch()
                };
                let batch = guarded(decode)?.map_err(Reason::columns)?;
                self.compression = compression;
                Ok(Some(batch))
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
    let (mut all, mut bytes, mut used) = (0_u64, 0_u64, 0);
    for buffer in batch.buffers().into_iter().flatten() {
        let (begin, length) = (usize::try_from(buffer.offset()), usize::try_from(buffer.length()));
        let (Ok(begin), Ok(length)) = (begin, length) else { return Err(no_header()) };
        let end = begin.checked_add(length);
        let Some((stored, end)) = end.and_then(|end| Some((body.get(begin..end)?, end))) else {
            return Err(no_header());
        };
        used = used.max(end);
        all = all.saturating_add(stored.len() as u64);
        if let (Some(_), Some(unpacked)) = (batch.compression(), stored.first_chunk::<8>()) {
            // It is -1 where the buffer is not compressed.
            bytes = bytes.saturating_add(u64::try_from(i64::from_le_bytes(*unpacked)).unwrap_or_default());
        }
    }
    // A body that is too long has the messages behind it, too.
    let unused = body.get(used..).unwrap_or_default();
    if unused.len() > PADDING_BYTES_MAX && unused.iter().any(|byte| *byte != 0) {
        return Err(no_header());
    }
    let bytes = bytes.saturating_add(all.max(body.len() as u64));
    too_large("a batch of columns", bytes, limits.columns_bytes_max)?;
    Ok(bytes)
}

fn no_header() -> Reason {
    Reason::Columns("the description of a batch is not that of what follows".to_owned())
}

#[cfg(test)]
mod tests;

//! Reads batches in the Arrow IPC format: from a file, which has a list of its messages at the end, or from a
//! stream of messages.
//!
//! A message is a *head*, which describes it, and a *body*, which contains the buffers of its columns. The
//! whole message is read into memory. The size of the message and the size that it unpacks to are therefore
//! checked before memory is taken for either. Dictionaries stay in memory until a later message replaces
//! them, so the size of all dictionaries together is bounded as well.

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
use doppel_streams::{Limits, Reason, too_large};

use super::cells;
use super::guard::guarded;
pub(crate) use file::FileBatches;
pub(crate) use stream::StreamBatches;

/// The continuation marker, with which a message begins since version 0.15 of the format.
pub(super) const CONTINUATION: [u8; 4] = [0xff; 4];

/// The longest head of a message and the longest footer of a file, in bytes.
const HEAD_BYTES_MAX: usize = 64 << 20;

/// The longest padding that may contain any bytes. Writers align to 8 or 64 bytes.
const PADDING_BYTES_MAX: usize = 64;

/// How many times messages may add values to a dictionary. Each addition copies the whole dictionary.
const ADDITIONS_MAX: u32 = 10_000;

/// How many bytes can be copied in the time of decoding one byte, approximately.
const COPIED_PER_DECODED: u64 = 16;

/// The state with which the messages of a file or stream are decoded.
struct Decoder {
    schema: SchemaRef,
    /// The paths of all columns.
    paths: Vec<String>,
    dictionaries: HashMap<i64, ArrayRef>,
    /// The sizes of the present dictionaries, by their ids.
    sizes: HashMap<i64, DictionarySize>,
    /// The number of bytes decoded so far, for the limit on expansion.
    decoded: u64,
    /// The numbers of the columns that batches contain.
    projection: Vec<usize>,
    /// The compression of the last batch that could be decoded.
    compression: Option<CompressionType>,
    limits: Limits,
}

/// The size of a dictionary and its number of additions.
#[derive(Default, Clone, Copy)]
struct DictionarySize {
    bytes: u64,
    /// How many messages added values to the dictionary.
    additions: u32,
}

impl Decoder {
    /// Creates a decoder for the schema that a file or stream declares.
    fn of(declared: arrow_ipc::Schema<'_>, limits: Limits) -> Result<Self, Reason> {
        if !declared.endianness().equals_to_target_endianness() {
            let reason =
                "the file has the byte order of another machine; write it on this one, or as Parquet";
            return Err(Reason::Columns(reason.to_owned()));
        }
        let schema = guarded(|| try_fb_to_schema(declared))?.map_err(Reason::columns)?;
        Ok(Self::new(schema, limits))
    }

    fn new(schema: Schema, limits: Limits) -> Self {
        let paths = cells::paths(schema.fields());
        let projection = (0..schema.fields().len()).collect();
        let schema = Arc::new(schema);
        let (dictionaries, sizes) = (HashMap::new(), HashMap::new());
        Self { schema, paths, dictionaries, sizes, decoded: 0, projection, compression: None, limits }
    }

    /// Sets which top-level columns the following batches contain: the columns at `paths`, or all columns if
    /// `paths` is `None`.
    fn project(&mut self, paths: Option<&[String]>) {
        let Some(paths) = paths else {
            self.projection = (0..self.schema.fields().len()).collect();
            return;
        };
        let contains = |name: &str, path: &String| {
            path.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        };
        let mut names = HashSet::new();
        // If several columns have one name, only the first is read.
        let columns =
            self.schema.fields().iter().enumerate().filter(|(_, column)| names.insert(column.name()));
        let needed = columns.filter(|(_, column)| paths.iter().any(|path| contains(column.name(), path)));
        self.projection = needed.map(|(number, _)| number).collect();
    }

    /// Decodes a message. `stored` is the number of bytes of the input that were read so far. `None` if the
    /// message is a dictionary, which the decoder keeps.
    fn decode(
        &mut self,
        message: Message<'_>,
        body: &Buffer,
        stored: u64,
    ) -> Result<Option<RecordBatch>, Reason> {
        let version = message.version();
        match message.header_type() {
            MessageHeader::RecordBatch => {
                let batch = message.header_as_record_batch().ok_or_else(wrong_head)?;
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
                let dictionary = message.header_as_dictionary_batch().ok_or_else(wrong_head)?;
                let values = dictionary.data().ok_or_else(wrong_head)?;
                let bytes = unpacked_bytes(&values, body, &self.limits)?;
                let copied = self.check_dictionary(dictionary.id(), bytes, dictionary.isDelta())?;
                self.charge(bytes.saturating_add(copied / COPIED_PER_DECODED), stored)?;
                let Self { schema, dictionaries, .. } = self;
                let decode = || read_dictionary(body, dictionary, schema, dictionaries, &version);
                guarded(decode)?.map(|()| None).map_err(Reason::columns)
            }
            _ => Err(Reason::Columns("a message is neither a batch nor a dictionary".to_owned())),
        }
    }

    /// Checks that all dictionaries together are not too large after a message of `bytes` bytes. The message
    /// adds values to the dictionary `id` if `is_addition`, and replaces the dictionary otherwise. Returns
    /// how many bytes the message makes the decoder copy.
    fn check_dictionary(&mut self, id: i64, bytes: u64, is_addition: bool) -> Result<u64, Reason> {
        let before = self.sizes.get(&id).copied().unwrap_or_default();
        let (size, copied) = if is_addition {
            let bytes = before.bytes.saturating_add(bytes);
            (DictionarySize { bytes, additions: before.additions + 1 }, bytes)
        } else {
            (DictionarySize { bytes, additions: 0 }, 0)
        };
        if size.additions > ADDITIONS_MAX {
            let reason = format!("a dictionary is extended more than {ADDITIONS_MAX} times");
            return Err(Reason::Columns(reason));
        }
        self.sizes.insert(id, size);
        let all = self.sizes.values().fold(0_u64, |all, size| all.saturating_add(size.bytes));
        too_large("dictionaries", all, self.limits.columns_bytes_max)?;
        Ok(copied)
    }

    /// Counts bytes that are about to be decoded, and checks the limit on expansion.
    fn charge(&mut self, bytes: u64, stored: u64) -> Result<(), Reason> {
        self.decoded = self.decoded.saturating_add(bytes);
        self.limits.check_expansion(stored, self.decoded)
    }
}

/// The stored size of a batch plus its unpacked size, in bytes. Each buffer of a compressed batch declares
/// its unpacked size in its first 8 bytes. Several buffers may refer to the same stored bytes, so the buffers
/// are counted one by one.
///
/// # Errors
/// If the size is above the limit, or if the head of the batch does not fit its body.
fn unpacked_bytes(batch: &arrow_ipc::RecordBatch<'_>, body: &Buffer, limits: &Limits) -> Result<u64, Reason> {
    let (mut all, mut bytes, mut used) = (0_u64, 0_u64, 0);
    for buffer in batch.buffers().into_iter().flatten() {
        let (begin, length) = (usize::try_from(buffer.offset()), usize::try_from(buffer.length()));
        let (Ok(begin), Ok(length)) = (begin, length) else { return Err(wrong_head()) };
        let end = begin.checked_add(length);
        let Some((stored, end)) = end.and_then(|end| Some((body.get(begin..end)?, end))) else {
            return Err(wrong_head());
        };
        used = used.max(end);
        all = all.saturating_add(stored.len() as u64);
        if let (Some(_), Some(unpacked)) = (batch.compression(), stored.first_chunk::<8>()) {
            // The size -1 marks a buffer that is not compressed.
            bytes = bytes.saturating_add(u64::try_from(i64::from_le_bytes(*unpacked)).unwrap_or_default());
        }
    }
    // If the head declares a body that is too long, the body contains the following messages.
    let unused = body.get(used..).unwrap_or_default();
    if unused.len() > PADDING_BYTES_MAX && unused.iter().any(|byte| *byte != 0) {
        return Err(wrong_head());
    }
    let bytes = bytes.saturating_add(all.max(body.len() as u64));
    too_large("a batch of columns", bytes, limits.columns_bytes_max)?;
    Ok(bytes)
}

/// The error for a head that does not describe its message.
fn wrong_head() -> Reason {
    Reason::Columns("the head of a message does not fit the bytes after it".to_owned())
}

#[cfg(test)]
mod tests;

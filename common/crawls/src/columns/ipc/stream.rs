//! Reads the batches of an Arrow stream: the message of the schema, then one message after the other. A
//! stream may end with an end marker.
//!
//! Zeros over the head of a message look like an end marker. Bytes other than padding after an end marker are
//! therefore damage, so that a damaged stream never ends silently.

use std::collections::VecDeque;

use arrow_array::RecordBatch;
use arrow_buffer::Buffer;
use arrow_ipc::{CompressionType, root_as_message};
use arrow_schema::SchemaRef;
use doppel_streams::{Limits, Reason, Stream, too_large};

use super::{CONTINUATION, Decoder, HEAD_BYTES_MAX, PADDING_BYTES_MAX, wrong_head};

/// An open Arrow stream, as an iterator over its batches.
pub(crate) struct StreamBatches {
    stream: Stream,
    decoder: Decoder,
    /// Batches that were read before and that `next` returns first.
    returned: VecDeque<Result<RecordBatch, Reason>>,
    /// Whether the stream has ended, or is damaged here so that the rest cannot be read.
    ended: bool,
}

impl StreamBatches {
    /// Reads the message of the schema.
    pub(crate) fn open(mut stream: Stream, limits: Limits) -> Result<Self, Reason> {
        let head = match read_head(&mut stream) {
            Ok(Some(head)) => head,
            Ok(None) | Err(Reason::TooLarge { .. }) => return Err(not_arrow_beginning()),
            Err(reason) => return Err(reason),
        };
        let message = root_as_message(&head).map_err(Reason::columns)?;
        let schema = message.header_as_schema().ok_or_else(wrong_head)?;
        let decoder = Decoder::of(schema, limits)?;
        read_body(&mut stream, message.bodyLength(), &limits)?;
        Ok(Self { stream, decoder, returned: VecDeque::new(), ended: false })
    }

    /// Sets which columns the following batches contain: the columns at `paths`, or all columns if `paths` is
    /// `None`.
    pub(crate) fn project(&mut self, paths: Option<&[String]>) {
        self.decoder.project(paths);
    }

    /// Takes back batches that were read. [`next`](Self::next) returns them again before any others.
    pub(crate) fn give_back(&mut self, batches: Vec<Result<RecordBatch, Reason>>) {
        self.returned = batches.into();
    }

    /// The schema of the stream, with its metadata.
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

    /// The number of stored bytes read.
    pub(crate) fn bytes_read(&self) -> u64 {
        self.stream.bytes_read()
    }

    pub(crate) fn next(&mut self) -> Option<Result<RecordBatch, Reason>> {
        if let Some(batch) = self.returned.pop_front() {
            return Some(batch);
        }
        if self.ended {
            return None;
        }
        let batch = self.read().transpose();
        self.ended = !matches!(batch, Some(Ok(_)));
        batch
    }

    fn read(&mut self) -> Result<Option<RecordBatch>, Reason> {
        while let Some(head) = read_head(&mut self.stream)? {
            let message = root_as_message(&head).map_err(Reason::columns)?;
            let body = read_body(&mut self.stream, message.bodyLength(), &self.decoder.limits)?;
            let stored = self.stream.bytes_read();
            if let Some(batch) = self.decoder.decode(message, &Buffer::from_vec(body), stored)? {
                return Ok(Some(batch));
            }
        }
        Ok(None)
    }
}

/// Reads the head of the next message. `None` at the end of the stream.
fn read_head(stream: &mut Stream) -> Result<Option<Vec<u8>>, Reason> {
    let mut length = Vec::new();
    stream.read_up_to(4, &mut length)?;
    // Writers may omit the end marker.
    if length.is_empty() {
        return Ok(None);
    }
    if length == CONTINUATION {
        length.clear();
        stream.read_up_to(4, &mut length)?;
    }
    let length = match *length {
        [0, 0, 0, 0] => return check_end(stream).map(|()| None),
        [a, b, c, d] => u32::from_le_bytes([a, b, c, d]) as usize,
        _ => return Err(Reason::Truncated),
    };
    too_large("the head of a batch", length as u64, HEAD_BYTES_MAX)?;
    let mut head = Vec::new();
    stream.read_up_to(length, &mut head)?;
    if head.len() < length { Err(Reason::Truncated) } else { Ok(Some(head)) }
}

/// Checks that only padding follows an end marker. Zeros over the head of a message look like an end marker.
fn check_end(stream: &mut Stream) -> Result<(), Reason> {
    let mut after = Vec::new();
    stream.read_up_to(PADDING_BYTES_MAX + 1, &mut after)?;
    if after.len() <= PADDING_BYTES_MAX && after.iter().all(|byte| *byte == 0) {
        return Ok(());
    }
    Err(Reason::Columns("bytes follow the end marker of the stream".to_owned()))
}

fn not_arrow_beginning() -> Reason {
    Reason::Columns("the file does not begin like an Arrow file or stream".to_owned())
}

/// Reads the body of a message. `bytes` is the length that the head of the message declares.
fn read_body(stream: &mut Stream, bytes: i64, limits: &Limits) -> Result<Vec<u8>, Reason> {
    let bytes = u64::try_from(bytes).map_err(|_| wrong_head())?;
    too_large("a batch of columns", bytes, limits.columns_bytes_max)?;
    let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
    let mut body = Vec::new();
    stream.read_up_to(bytes, &mut body)?;
    if body.len() < bytes { Err(Reason::Truncated) } else { Ok(body) }
}

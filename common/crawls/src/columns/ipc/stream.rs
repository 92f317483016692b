//! Batches of an Arrow stream: one message after the other, and perhaps a mark at the end.

use std::collections::VecDeque;

use arrow_array::RecordBatch;
use arrow_buffer::Buffer;
use arrow_ipc::{CompressionType, root_as_message};
use arrow_schema::SchemaRef;

use super::{CONTINUATION, Decoder, HEAD_BYTES_MAX, PADDING_BYTES_MAX, no_header};
use crate::error::Reason;
use crate::limits::{Limits, too_large};
use crate::stream::Stream;

/// The messages of a stream.
pub(crate) struct StreamBatches {
    stream: Stream,
    decoder: Decoder,
    /// Batches that were read and are handed over once more.
    again: VecDeque<Result<RecordBatch, Reason>>,
    /// Whether the end or damage was met, behind which nothing is read.
    ended: bool,
}

impl StreamBatches {
    pub(crate) fn open(mut stream: Stream, limits: Limits) -> Result<Self, Reason> {
        let head = match read_head(&mut stream) {
            Ok(Some(head)) => head,
            Ok(None) | Err(Reason::TooLarge { .. }) => return Err(no_beginning()),
            Err(reason) => return Err(reason),
        };
        let message = root_as_message(&head).map_err(Reason::columns)?;
        let schema = message.header_as_schema().ok_or_else(no_header)?;
        let decoder = Decoder::of(schema, limits)?;
        read_body(&mut stream, message.bodyLength(), &limits)?;
        Ok(Self { stream, decoder, again: VecDeque::new(), ended: false })
    }

    /// Has the next batches have what is at these paths, or all columns where there are none.
    pub(crate) fn project(&mut self, paths: Option<&[String]>) {
        self.decoder.project(paths);
    }

    /// Hands over once more what was read.
    pub(crate) fn give_back(&mut self, batches: Vec<Result<RecordBatch, Reason>>) {
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

    pub(crate) fn names(&self) -> &[String] {
        &self.decoder.paths
    }

    pub(crate) fn bytes_read(&self) -> u64 {
        self.stream.bytes_read()
    }

    pub(crate) fn next(&mut self) -> Option<Result<RecordBatch, Reason>> {
        if let Some(batch) = self.again.pop_front() {
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
    // Writers need not mark the end.
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
    too_large("the description of a batch", length as u64, HEAD_BYTES_MAX)?;
    let mut head = Vec::new();
    stream.read_up_to(length, &mut head)?;
    if head.len() < length { Err(Reason::Truncated) } else { Ok(Some(head)) }
}

/// Checks that a mark of the end is at the end. Zeros in the place of a message look like it.
fn check_end(stream: &mut Stream) -> Result<(), Reason> {
    let mut behind = Vec::new();
    stream.read_up_to(PADDING_BYTES_MAX + 1, &mut behind)?;
    if behind.len() <= PADDING_BYTES_MAX && behind.iter().all(|byte| *byte == 0) {
        return Ok(());
    }
    Err(Reason::Columns("bytes follow where the stream is marked as ended".to_owned()))
}

fn no_beginning() -> Reason {
    Reason::Columns("the beginning of the file is not that of an Arrow file or stream".to_owned())
}

fn read_body(stream: &mut Stream, bytes: i64, limits: &Limits) -> Result<Vec<u8>, Reason> {
    let bytes = u64::try_from(bytes).map_err(|_| no_header())?;
    too_large("a batch of columns", bytes, limits.columns_bytes_max)?;
    let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
    let mut body = Vec::new();
    stream.read_up_to(bytes, &mut body)?;
    if body.len() < bytes { Err(Reason::Truncated) } else { Ok(body) }
}

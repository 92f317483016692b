//! Reads and decompresses whole request bodies. Limits bound the size of each body, the memory of all bodies
//! together, and the time to read a body.
//!
//! Invariants: a body in memory, compressed or not, holds a share of the memory budget (`buffer`) for as long
//! as anything reads it. The service refuses a body before the body exceeds a limit, not afterwards.

use std::io::{self, Read};
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, header};
use futures_util::StreamExt;
use tokio::time::{Instant, timeout_at};

use crate::access::Caller;
use crate::app::blocking_calls::BlockingCalls;
use crate::limits::Limits;
use crate::problem::Problem;
use crate::request::buffer::{BodyBuffer, too_large};
use crate::request::memory::BodyMemory;

/// Size of a decompression step, in bytes.
const STEP: usize = 64 << 10;

/// Binary logarithm of the maximum zstd window: 8 MiB, the maximum that RFC 9659 allows for HTTP.
const ZSTD_WINDOW_LOG: u32 = 23;

/// Content encoding of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Encoding {
    Identity,
    Gzip,
    Zstd,
}

/// Returns the media type of the body in lower case, without parameters. Empty if the request names none.
pub(crate) fn media_type(headers: &HeaderMap) -> String {
    let value = headers.get(header::CONTENT_TYPE).and_then(|v| v.to_str().ok()).unwrap_or_default();
    value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// A whole body as received, possibly compressed.
pub(crate) struct ReceivedBody {
    encoding: Encoding,
    packed: BodyBuffer,
    decompressed: BodyBuffer,
}

/// Receives a body whose decompressed size may be at most `max` bytes.
///
/// # Errors
/// 400 if the body breaks off, 408 if it arrives too slowly, 413 if it is too long, 415 if its encoding is
/// not gzip or zstd, 503 if the memory for all bodies is used up.
pub(crate) async fn read(
    memory: &BodyMemory,
    limits: &Limits,
    headers: &HeaderMap,
    body: Body,
    max: usize,
) -> Result<ReceivedBody, Problem> {
    let encoding = Encoding::of(headers)?;
    let wire_max =
        if encoding == Encoding::Identity { max.min(limits.wire_bytes) } else { limits.wire_bytes };
    let stated = headers.get(header::CONTENT_LENGTH).and_then(|v| v.to_str().ok()?.parse().ok());
    if stated.is_some_and(|length| length > wire_max) {
        return Err(too_large(wire_max));
    }
    let mut packed = BodyBuffer::new(memory, stated.unwrap_or(wire_max));
    let mut pieces = body.into_data_stream();
    let end = Instant::now() + limits.body_time;
    loop {
        let pause_end = Instant::now() + limits.body_pause;
        match timeout_at(end.min(pause_end), pieces.next()).await {
            Err(_) => return Err(slow(limits.body_pause, limits.body_time)),
            Ok(None) => break,
            Ok(Some(Err(error))) => return Err(Problem::bad_request(format!("the body broke off: {error}"))),
            Ok(Some(Ok(piece))) => packed.push(&piece)?,
        }
    }
    Ok(ReceivedBody { encoding, packed, decompressed: BodyBuffer::new(memory, max) })
}

impl ReceivedBody {
    /// Returns the body, decompressed if necessary. A low-priority thread decompresses it within `time`.
    ///
    /// # Errors
    /// 400 if the body is damaged, 413 if it is too long, 503 if the memory for all bodies is used up or
    /// decompression takes too long.
    pub(crate) async fn decompressed(
        self,
        caller: &Caller,
        calls: &BlockingCalls,
        time: Duration,
    ) -> Result<BodyBuffer, Problem> {
        if self.encoding == Encoding::Identity {
            return Ok(self.packed);
        }
        let turns = caller.unpacking();
        // The thread keeps the client registered. A client that disconnects while its body is decompressed
        // thereby gets no second share of the limits.
        let caller = caller.clone();
        let decompress = move || {
            let _caller = caller;
            self.decompress()
        };
        calls.run_low_priority(time, turns, decompress).await
    }

    /// Returns the body, decompressed if necessary. Blocks.
    ///
    /// # Errors
    /// 400 if the body is damaged, 413 if it is too long, 503 if the memory for all bodies is used up.
    fn decompress(self) -> Result<BodyBuffer, Problem> {
        let Self { encoding, packed, decompressed: mut out } = self;
        let damaged =
            |error: io::Error| Problem::bad_request(format!("the compressed body is damaged: {error}"));
        let mut reader: Box<dyn Read + '_> = match encoding {
            Encoding::Identity => return Ok(packed),
            Encoding::Gzip => Box::new(flate2::read::MultiGzDecoder::new(packed.bytes())),
            Encoding::Zstd => {
                let mut decoder =
                    zstd::stream::read::Decoder::with_buffer(packed.bytes()).map_err(damaged)?;
                decoder.window_log_max(ZSTD_WINDOW_LOG).map_err(damaged)?;
                Box::new(decoder)
            }
        };
        let mut piece = vec![0; STEP];
        loop {
            // A step takes about a tenth of a millisecond. Between steps, threads that answer requests run
            // first.
            std::thread::yield_now();
            match reader.read(&mut piece) {
                Ok(0) => return Ok(out),
                Ok(n) => out.push(&piece[..n])?,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(damaged(error)),
            }
        }
    }
}

impl Encoding {
    fn of(headers: &HeaderMap) -> Result<Self, Problem> {
        let mut values = headers.get_all(header::CONTENT_ENCODING).iter();
        let encoding = match values.next().map(|v| v.to_str().unwrap_or("?").trim().to_ascii_lowercase()) {
            None => Self::Identity,
            Some(name) => match name.as_str() {
                "" | "identity" => Self::Identity,
                "gzip" | "x-gzip" => Self::Gzip,
                "zstd" => Self::Zstd,
                _ => {
                    return Err(Problem::media_type(
                        "the content encoding is not supported; use gzip, zstd or none",
                    ));
                }
            },
        };
        match values.next() {
            None => Ok(encoding),
            Some(_) => {
                Err(Problem::media_type("the request has more than one content encoding; use gzip or zstd"))
            }
        }
    }
}

fn slow(pause: Duration, whole: Duration) -> Problem {
    Problem::slow_body(format!(
        "the body arrived too slowly; a pause may last at most {} s, and the whole body at most {} s",
        pause.as_secs_f32(),
        whole.as_secs_f32()
    ))
}

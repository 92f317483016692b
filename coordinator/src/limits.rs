//! All limits of the coordinator, with the arithmetic behind them (guarantee G6): bytes, counts and
//! durations.
//!
//! **Memory.** Request bodies and the answers to their lines take at most [`BODY_MEMORY_BYTES`] together. A
//! body holds its share as long as anything reads it, and an answer holds its share until it is sent. Every
//! line of a request reserves [`LINE_ANSWER_BYTES`] for its answer from the start, at most 26 MB for a
//! request. The texts that an answer repeats get memory before the line is recorded.
//!
//! **Threads.** A blocking call occupies a thread of the runtime's blocking pool until it ends, whether or
//! not its caller still waits. The pool has 512 threads by default. Calls of requests use at most
//! [`REQUESTS`] of them, health checks and metrics [`HEALTH_CALLS`], exports that are being sent
//! [`HEAVY_CALLS`], backups [`BACKUPS`], and samples [`SAMPLES`]. This makes 406 of 512, so no call ever
//! waits for a thread.
//!
//! Compressed bodies are decompressed on threads of their own, at most one for each processor, and at most
//! half as many for one client. More threads would only take processor time from the threads that answer
//! requests. Scrapes share three threads of their own. At most [`STATUS_HELPERS`] threads read rows for
//! questions about many pages.

mod clients;

use std::num::NonZero;
use std::thread::available_parallelism;
use std::time::Duration;

pub use doppel_engine::limits::*;
use doppel_protocol::{BATCH_PAGES_MAX, LIST_MAX};

pub use clients::{CLIENT, ClientLimits};

/// Maximum size of a body as received: 1,000 pages of 64 kB. HTML compresses about 5 to 1, so a compressed
/// body of this size exceeds [`BODY_BYTES`] after decompression.
pub const WIRE_BYTES: usize = 64 << 20;

/// Maximum size of a body of `POST /v1/pages` after decompression: about 4,000 pages of 64 kB.
pub const BODY_BYTES: usize = 256 << 20;

/// Memory for the bodies of all requests together, compressed and decompressed, and for the answers to their
/// lines. Three bodies of maximum size fit, and 100 MB remain for small bodies.
pub const BODY_MEMORY_BYTES: usize = 4 * BODY_BYTES;

/// Maximum number of lines of one `POST /v1/pages`. A body holds only a tenth as many pages of 26 kB, but
/// redirects and dead pages have short lines and can be sent in bulk.
pub const BODY_LINES: usize = 100_000;

/// Memory for the answer to a line, in bytes: 90 for the form and 160 for the reason of a retry. The URL and
/// the reason why a line is not a page need additional memory.
pub const LINE_ANSWER_BYTES: usize = 256;

/// Maximum length of the reason of a retry, in bytes of JSON. A longer reason is truncated.
pub const RETRY_REASON_BYTES: usize = 160;

/// Number of lines handed to tier 1 in one call. The number is large enough that many pages share one flush
/// of the store (about 1 ms), and small enough that their signatures (4 kB each on average) fit in a
/// processor cache.
pub const CHUNK_LINES: usize = 256;

/// Maximum number of body bytes handed to the extractors in one chunk. A single longer line forms a chunk of
/// its own.
pub const CHUNK_BYTES: usize = 16 << 20;

/// Maximum length in bytes of a request id that a client sends.
pub const REQUEST_ID_BYTES: usize = 64;

/// Maximum size of a small JSON body: 1,000 URLs of 1 kB.
pub const JSON_BYTES: usize = 1 << 20;

/// Maximum size of the JSON of a text or page to probe. JSON escapes make it larger than the 16 MB limit of a
/// page.
pub const PROBE_BYTES: usize = 32 << 20;

/// Maximum pause while a body arrives. After a longer pause, the service refuses the request.
pub const BODY_PAUSE: Duration = Duration::from_secs(15);

/// Maximum time in which a whole body must arrive: [`WIRE_BYTES`] at 0.5 MB/s.
pub const BODY_TIME: Duration = Duration::from_secs(128);

/// Maximum time in which the head of a request must arrive, and maximum idle time of a connection.
pub const HEAD_TIME: Duration = Duration::from_secs(30);

/// Maximum time for which a client may read nothing of an answer.
pub const WRITE_PAUSE: Duration = Duration::from_secs(60);

/// Minimum rate at which a client must read an answer, in bytes per second, averaged over [`WRITE_PAUSE`].
/// The rate allows more than a dozen lines of an export per second, for a client that works on each line. At
/// this rate, a slow client holds its permit for at most a day per 350 MB of its answer.
pub const WRITE_RATE: u32 = 4 << 10;

/// Maximum number of open connections of one address: a quarter of all. Further connections are closed.
/// Connections from the machine itself are not limited by address.
pub const ADDRESS_CONNECTIONS: usize = CONNECTIONS / 4;

/// Maximum number of open connections. An idle connection takes about 16 kB, so all take 64 MB.
pub const CONNECTIONS: usize = 4_096;

/// Maximum number of requests in progress, including long polls. Also the maximum number of blocking calls of
/// requests, including calls whose clients have disconnected. Further requests get 503.
pub const REQUESTS: usize = 384;

/// Maximum number of blocking calls of health checks and metrics. Further calls wait.
pub const HEALTH_CALLS: usize = 16;

/// Maximum time for which a request waits for a call of the tiers, before it gets 503. Calls take
/// milliseconds. A call that takes longer than this limit waits for a disk or for a writer that makes no
/// progress.
pub const CALL_TIME: Duration = Duration::from_secs(60);

/// Like [`CALL_TIME`], for calls whose work grows with the collection or the body: JSON lines, exports,
/// samples, plans, repairs, the group report and the purge of a host. They have permits or limits of their
/// own.
pub const LONG_CALL_TIME: Duration = Duration::from_secs(3_600);

/// Maximum time of a call for a health check or for metrics, including the wait for a permit. A check whose
/// call takes longer gets 503.
pub const HEALTH_TIME: Duration = Duration::from_secs(10);

/// Maximum number of concurrent scrapes. Further scrapes get 503. Several monitors can scrape at once, and
/// most of [`HEALTH_CALLS`] remain for readiness checks.
pub const SCRAPES: usize = 4;

/// Maximum time for which a scrape waits for the tiers and the nodes. The scrape contains the figures that
/// have arrived by then.
pub const SCRAPE_TIME: Duration = Duration::from_secs(4);

/// Maximum number of concurrent long polls of the change feed: a third of [`REQUESTS`]. Further long polls
/// get 503.
pub const LONG_POLLS: usize = 128;

/// Maximum number of concurrent exports, which are expensive and rare. Further exports get 503.
pub const HEAVY_CALLS: usize = 4;

/// Maximum number of flushes that wait for completion. Each asks every range up to 40 times a second whether
/// all pages are decided. Further flushes get 503.
pub const FLUSHES: usize = 8;

/// Maximum number of concurrent backups, because a backup retains all rows that change meanwhile. Further
/// backups get 503.
pub const BACKUPS: usize = 1;

/// Value of `Retry-After` in seconds: about the time in which tier 2 decides a full pass.
pub const RETRY_AFTER_S: u32 = 2;

/// Maximum number of URLs of one `POST /v1/status`.
pub const STATUS_URLS: usize = 1_000;

/// Maximum number of URLs for which the thread that received the request looks in the status table.
pub const STATUS_URLS_AT_ONCE: usize = 64;

/// Maximum number of threads that read rows for one `POST /v1/status`: the thread of the request, and up to
/// [`STATUS_HELPERS`] helpers shared by all requests.
pub const STATUS_THREADS: usize = 8;

/// Maximum number of helper threads for all status requests together.
pub const STATUS_HELPERS: usize = 32;

/// Minimum number of pages for which a further thread is worthwhile.
pub const STATUS_PAGES_EACH: usize = 32;

/// Maximum number of attempts at an answer that is too old when it is complete.
pub const ANSWER_ATTEMPTS: u32 = 4;

/// Maximum number of kept pages of a group with which an explanation compares a page.
pub const KEPT_BEFORE: usize = 20;

/// Number of events of one `GET /v1/changes` if the query names none.
pub const CHANGES_DEFAULT: usize = 1_000;

/// Maximum number of events of one `GET /v1/changes`: about 3 MB, or 160 MB if every URL has the maximum
/// length.
pub const CHANGES: usize = 10_000;

/// Maximum `wait` of `GET /v1/changes`, in seconds.
pub const CHANGES_WAIT_S: u64 = 60;

/// Step in which a long poll, or a flush that waits, asks tier 1. After a step, the thread and the permit are
/// freed if the client has disconnected or the service is draining.
pub const POLL_STEP: Duration = Duration::from_secs(2);

/// Maximum length of a cursor in bytes. A cursor has one number of 16 hexadecimal digits with a separator for
/// the collection, and two such numbers for each shard. A collection has at most 1,024 shards.
pub const CURSOR_BYTES: usize = 17 * (1 + 2 * 1_024);

/// Number of members, groups or repairs of one answer if the query names none.
pub const LIST_DEFAULT: usize = 100;

/// Maximum number of concurrent repairs. A repair may hold 256 MiB of signatures and keep a core busy.
pub const REPAIRS: usize = 1;

/// Maximum time for which a repair waits for its permit, before it gets 503.
pub const REPAIR_WAIT: Duration = Duration::from_secs(2);

/// Maximum number of URLs in the answer to a repair. The answer lists each URL twice, among the members
/// before and in their new sets: about 2 MB, or 160 MB if every URL has the maximum length.
pub const REPAIR_URLS: usize = 10_000;

/// Maximum number of groups of one `POST /v1/repair`.
pub const REPAIR_GROUPS: usize = 100;

/// Maximum length in bytes of a token name, and of the name under which a repair is audited.
pub const NAME_BYTES: usize = 100;

/// Maximum `timeout` of `POST /v1/flush`, in seconds.
pub const FLUSH_S: u64 = 3_600;

/// Default `timeout` of `POST /v1/flush`, in seconds.
pub const FLUSH_DEFAULT_S: u64 = 60;

/// Number of characters that `POST /v1/probe` shows of the text that each rule leaves out of the main
/// content. There are eleven rules.
pub const LEFT_OUT_CHARS: usize = 300;

/// Number of largest groups that the group report lists.
pub const LARGEST_GROUPS: usize = 20;

/// Maximum age of the group count in a scrape.
pub const GROUPS_AGE: Duration = Duration::from_secs(300);

/// Maximum number of shards for which each shard has its own metrics.
pub const SHARDS_SHOWN: usize = 256;

/// Maximum number of groups that the group report reads, in some seconds. If there are more groups, the
/// report says that it is truncated.
pub const REPORT_GROUPS: u64 = 5_000_000;

/// Maximum number of pages that the savings report reads, in about an hour on a large cluster. If there are
/// more pages, the report says that it is truncated.
pub const SAVINGS_PAGES: u64 = 50_000_000;

/// Minimum time for which a report is cached before the next one is made.
pub const REPORT_AGE: Duration = Duration::from_secs(10);

/// Minimum time for which a report is cached, in multiples of the time that making it took. Reports therefore
/// take at most a twentieth of a core.
pub const REPORT_AGE_TIMES: u32 = 20;

/// Time between two points of `GET /v1/load/history`.
pub const LOAD_STEP: Duration = Duration::from_secs(30);

/// Time between the first points of `GET /v1/load/history`, which is shorter so that a chart soon has data.
pub const LOAD_FIRST_STEP: Duration = Duration::from_secs(5);

/// Number of points that follow each other after [`LOAD_FIRST_STEP`].
pub const LOAD_FIRST_STEPS: usize = 12;

/// Maximum number of points of `GET /v1/load/history`: six hours.
pub const LOAD_POINTS: usize = 6 * 60 * 2;

/// Maximum number of partitions that a point lists. If there are more partitions, the point lists none.
pub const LOAD_PARTITIONS: usize = 64;

/// Time between two points of the history in `GET /v1/reports/load-balance`.
pub const HISTORY_STEP: Duration = Duration::from_secs(60);

/// Maximum number of points of the history in `GET /v1/reports/load-balance`: 24 hours, about 150 kB.
pub const HISTORY_POINTS: usize = 24 * 60;

/// Maximum number of contents in a sample. At 2.5 kB each, a sample takes 250 MB while it is in use.
pub const SAMPLE_CONTENTS: usize = 100_000;

/// Maximum number of samples that are being sent, each at the speed of its client's connection. Further
/// samples get 503.
pub const SAMPLES: usize = 1;

/// Maximum time for sending a sample: 250 MB at 420 kB a second. Other clients wait for the permit meanwhile,
/// so the answer breaks off after this time.
pub const SAMPLE_TIME: Duration = Duration::from_secs(600);

/// Minimum pause of a client after it received a sample, so that other clients get their turn. The pause
/// lasts as long as the client held the turn, if that was longer. During the pause, the client gets 429.
pub const SAMPLE_PAUSE: Duration = Duration::from_secs(10);

/// Maximum number of clients whose pause is remembered.
pub const PAUSES: usize = 4_096;

/// Maximum number of plans and what-if reports that are being made at once, because each keeps all cores busy
/// for seconds. Further requests get 503. What-if reports are cached like other reports ([`REPORT_AGE`]), so
/// that repeated requests for them leave the permit free.
pub const PLANNERS: usize = 1;

/// Size of a piece of an export or backup that is sent to the client, in bytes.
pub const PIECE_BYTES: usize = 64 << 10;

/// Time for which requests may continue after the service was asked to stop. The engine then still commits
/// its work, and the process ends within 10 s.
pub const DRAIN: Duration = Duration::from_secs(5);

// Tier 1 refuses longer lists and shortens longer answers.
const _: () =
    assert!(CHUNK_LINES <= BATCH_PAGES_MAX && LIST <= BATCH_PAGES_MAX && PROBE_PARTNERS <= BATCH_PAGES_MAX);
const _: () = assert!(CHANGES <= LIST_MAX && LIST <= LIST_MAX);

/// Limits that tests can lower.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Maximum size of a body as received. Default: [`WIRE_BYTES`].
    pub wire_bytes: usize,
    /// Maximum size of a body of pages after decompression. Default: [`BODY_BYTES`].
    pub body_bytes: usize,
    /// Memory for all bodies and answers to lines. Default: [`BODY_MEMORY_BYTES`].
    pub body_memory_bytes: usize,
    /// Maximum number of lines of a request. Default: [`BODY_LINES`].
    pub lines: usize,
    /// Number of lines in one call to tier 1. Default: [`CHUNK_LINES`].
    pub chunk_lines: usize,
    /// Maximum pause while a body arrives. Default: [`BODY_PAUSE`].
    pub body_pause: Duration,
    /// Maximum time in which a body must arrive. Default: [`BODY_TIME`].
    pub body_time: Duration,
    /// Maximum number of requests in progress. Default: [`REQUESTS`].
    pub requests: usize,
    /// Maximum number of bodies that are decompressed at once. Further bodies wait.
    pub unpacking: usize,
    /// Resources that one client may hold. Default: [`CLIENT`], with half of `unpacking`.
    pub client: ClientLimits,
    /// Maximum time for a call of the tiers. Default: [`CALL_TIME`].
    pub call_time: Duration,
    /// Maximum time for a health check or scrape. Default: [`HEALTH_TIME`].
    pub health_time: Duration,
    /// Maximum number of concurrent long polls. Default: [`LONG_POLLS`].
    pub long_polls: usize,
    /// Step of long polls and waiting flushes. Default: [`POLL_STEP`].
    pub poll_step: Duration,
    /// Minimum pause of a client after a sample. Default: [`SAMPLE_PAUSE`].
    pub sample_pause: Duration,
    /// Maximum time for which a repair waits for its permit. Default: [`REPAIR_WAIT`].
    pub repair_wait: Duration,
    /// Maximum number of URLs in the answer to a repair. Default: [`REPAIR_URLS`].
    pub repair_urls: usize,
    /// Maximum time for which a client may read nothing of an answer. Default: [`WRITE_PAUSE`].
    pub write_pause: Duration,
    /// Time for requests in progress after the service was asked to stop. Default: [`DRAIN`].
    pub drain: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        let processors = available_parallelism().map_or(1, NonZero::get);
        Self {
            wire_bytes: WIRE_BYTES,
            body_bytes: BODY_BYTES,
            body_memory_bytes: BODY_MEMORY_BYTES,
            lines: BODY_LINES,
            chunk_lines: CHUNK_LINES,
            body_pause: BODY_PAUSE,
            body_time: BODY_TIME,
            requests: REQUESTS,
            unpacking: processors,
            client: ClientLimits { unpacking: processors.div_ceil(2), ..CLIENT },
            call_time: CALL_TIME,
            health_time: HEALTH_TIME,
            long_polls: LONG_POLLS,
            poll_step: POLL_STEP,
            sample_pause: SAMPLE_PAUSE,
            repair_wait: REPAIR_WAIT,
            repair_urls: REPAIR_URLS,
            write_pause: WRITE_PAUSE,
            drain: DRAIN,
        }
    }
}

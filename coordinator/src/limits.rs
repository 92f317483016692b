//! Every limit of the front door, with its arithmetic (G6). Bytes, counts and durations.
//!
//! Memory: request bodies and the answers to their lines take at most [`BODY_MEMORY_BYTES`] together. A body
//! holds its share as long as anything reads it, an answer until it is sent. The answer to a line has
//! [`LINE_ANSWER_BYTES`] from the start, 26 MB for the most lines of a request, and room for the texts that
//! it repeats before the line is recorded.
//!
//! Threads: a call that blocks holds one of the runtime's blocking pool, of which there are 512 by default,
//! until it ends, whether or not its caller still waits. Calls of requests hold at most [`REQUESTS`],
//! health and metrics [`HEALTH_CALLS`], exports on their way out [`HEAVY_CALLS`], backups [`BACKUPS`], samples
//! [`SAMPLES`]: 406 of the 512, so none of them ever waits for a thread. Packed bodies are unpacked on threads of their own, as many at once
//! as there are processors, and half of these for one client; more would only take the processors from those that answer.
//! A scrape has three threads of its own, which scrapes share; at most [`STATUS_HELPERS`] read for questions about many pages.

mod clients;

use std::num::NonZero;
use std::thread::available_parallelism;
use std::time::Duration;

pub use doppel_engine::limits::*;
use doppel_protocol::{BATCH_MAX, LIST_MAX};

pub use clients::{CLIENT, ClientLimits};

/// A body as it comes over the wire: 1,000 pages of 64 kB. HTML packs about 5 to 1, so a compressed
/// body of a quarter of this already fills [`BODY_BYTES`].
pub const WIRE_BYTES: usize = 64 << 20;

/// A body of `POST /v1/pages` after decompression: about 4,000 pages of 64 kB.
pub const BODY_BYTES: usize = 256 << 20;

/// Request bodies in memory, packed and unpacked, and the answers to their lines, of all requests together:
/// three of the largest and 100 MB for small ones.
pub const BODY_MEMORY_BYTES: usize = 4 * BODY_BYTES;

/// Lines of one `POST /v1/pages`. Ten times the pages that fit at 26 kB each, so that redirects and
/// deaths, which are short, can be sent in bulk.
pub const LINES: usize = 100_000;

/// Memory for the answer to a line, in bytes: 90 for the form and 160 for the reason of a retry. Its URL, and the reason
/// why a line is not a page, come on top.
pub const LINE_ANSWER_BYTES: usize = 256;

/// The longest reason of a retry, in bytes as JSON; it is cut there.
pub const RETRY_REASON_BYTES: usize = 160;

/// Lines handed to tier 1 in one call: large enough to share one flush of the store (about 1 ms)
/// among many pages, small enough that its signatures (4 kB each on average) fit a cache.
pub const CHUNK_LINES: usize = 256;

/// Body bytes handed to the extractors in one chunk, unless one line is longer.
pub const CHUNK_BYTES: usize = 16 << 20;

/// The longest id that a request may come with.
pub const REQUEST_ID_BYTES: usize = 64;

/// A small JSON body: 1,000 URLs of 1 kB.
pub const JSON_BYTES: usize = 1 << 20;

/// A text or page to probe, as JSON. Above the 16 MB that a page may have, for escapes.
pub const PROBE_BYTES: usize = 32 << 20;

/// The longest pause within a body before the request is given up.
pub const BODY_PAUSE: Duration = Duration::from_secs(15);

/// The longest time a whole body may take: [`WIRE_BYTES`] at 0.5 MB/s.
pub const BODY_TIME: Duration = Duration::from_secs(128);

/// The longest time the head of a request may take, and the longest a connection may be idle.
pub const HEAD_TIME: Duration = Duration::from_secs(30);

/// The longest a client may go without reading what it asked for.
pub const WRITE_PAUSE: Duration = Duration::from_secs(60);

/// Bytes a second that a client has to take of an answer, on average over such a time: more than a dozen lines of an export, for a
/// reader that works on each. So one that drips holds a place for a day for each 350 MB of its answer at most.
pub const WRITE_RATE: u32 = 4 << 10;

/// Connections of one address at once, but for those of the machine itself: a quarter of all. Past it they are closed.
pub const ADDRESS_CONNECTIONS: usize = CONNECTIONS / 4;

/// Connections open at once; each costs about 16 kB while idle, so 64 MB.
pub const CONNECTIONS: usize = 4_096;

/// Requests in work at once, long polls among them; and blocking calls of requests at once, those whose
/// callers have gone among them. Past it: 503.
pub const REQUESTS: usize = 384;

/// Blocking calls of health and metrics at once. Past it they wait.
pub const HEALTH_CALLS: usize = 16;

/// How long a request waits for a call of the tiers. Such calls take milliseconds; one that takes longer than this waits
/// for a disk or for a writer that does not get on. Past it: 503.
pub const CALL_TIME: Duration = Duration::from_secs(60);

/// The same for calls whose work grows with the collection or the body: JSON lines, exports, samples, plans, repairs, the
/// group report and the purge of a host. They have permits or limits of their own.
pub const LONG_CALL_TIME: Duration = Duration::from_secs(3_600);

/// The same for health and metrics, with the wait for a permit.
pub const HEALTH_TIME: Duration = Duration::from_secs(10);

/// Scrapes at once. Past it: 503. Several monitors may ask, and most of [`HEALTH_CALLS`] are left to the question whether the service is
/// ready.
pub const SCRAPES: usize = 4;

/// How long a scrape waits for the tiers and the nodes; it has what has come by then.
pub const SCRAPE_TIME: Duration = Duration::from_secs(4);

/// Long polls of the change feed at once: a third of [`REQUESTS`]. Past it: 503.
pub const LONG_POLLS: usize = 128;

/// Exports at once: they are heavy and rare. Past it: 503.
pub const HEAVY_CALLS: usize = 4;

/// Flushes at once that wait. Each asks every range up to 40 times a second whether all is decided. Past it: 503.
pub const FLUSHES: usize = 8;

/// Backups at once: each keeps what changes meanwhile. Past it: 503.
pub const BACKUPS: usize = 1;

/// What Retry-After says, in seconds: about the time in which tier 2 decides a full pass.
pub const RETRY_AFTER_S: u32 = 2;

/// URLs of one `POST /v1/status`.
pub const STATUS_URLS: usize = 1_000;

/// Of so many URLs at most, what the status table has is told on the thread that took the request.
pub const STATUS_URLS_AT_ONCE: usize = 64;

/// Threads that read the rows for one of them: its own, and others as long as there are not [`STATUS_HELPERS`].
pub const STATUS_THREADS: usize = 8;

/// Threads that help with such questions, all together.
pub const STATUS_HELPERS: usize = 32;

/// Pages for which a further thread is worth it.
pub const STATUS_PAGES_EACH: usize = 32;

/// How often an answer is made that was too old when it was complete.
pub const ANSWER_ATTEMPTS: u32 = 4;

/// Kept pages of a group that an explanation compares a page with.
pub const KEPT_BEFORE: usize = 20;

/// Events of one `GET /v1/changes` when the query names no number.
pub const CHANGES_DEFAULT: usize = 1_000;

/// The most events of one `GET /v1/changes`: about 3 MB, and 160 MB if every URL were as long as may be.
pub const CHANGES: usize = 10_000;

/// The longest `wait` of `GET /v1/changes`, in seconds.
pub const CHANGES_WAIT_S: u64 = 60;

/// A long poll, or a flush that waits, asks tier 1 in steps of this, so that a caller who has gone, or the end of the service,
/// frees its thread and its place.
pub const POLL_STEP: Duration = Duration::from_secs(2);

/// The longest cursor taken, in bytes: a number of 16 hexadecimal digits and a separator for the collection,
/// and two such numbers for each of its shards, of which there are 1,024 at most.
pub const CURSOR_BYTES: usize = 17 * (1 + 2 * 1_024);

/// Members, groups or repairs of one answer when the query names no number.
pub const LIST_DEFAULT: usize = 100;

/// Repairs at once: each may hold 256 MiB of signatures and keep a core busy.
pub const REPAIRS: usize = 1;

/// How long a repair waits for its turn. Past it: 503.
pub const REPAIR_WAIT: Duration = Duration::from_secs(2);

/// URLs that the answer to a repair lists twice, as members before and in their sets: about 2 MB, and
/// 160 MB if every URL were as long as may be.
pub const REPAIR_URLS: usize = 10_000;

/// Groups of one `POST /v1/repair`.
pub const REPAIR_GROUPS: usize = 100;

/// The longest name that a repair is audited under, in bytes.
pub const NAME_BYTES: usize = 100;

/// The longest `timeout` of `POST /v1/flush`, in seconds.
pub const FLUSH_S: u64 = 3_600;

/// `timeout` of `POST /v1/flush` when the query names none, in seconds.
pub const FLUSH_DEFAULT_S: u64 = 60;

/// Characters of what each rule leaves out of the main content that `POST /v1/probe` shows. There are eleven rules.
pub const LEFT_OUT_CHARS: usize = 300;

/// Largest groups that the group report lists.
pub const LARGEST_GROUPS: usize = 20;

/// How old the count of groups may be at a scrape.
pub const GROUPS_AGE: Duration = Duration::from_secs(300);

/// The most shards that have samples of their own.
pub const SHARDS_SHOWN: usize = 256;

/// Groups that the group report reads: some seconds of work. Past it the report says that it was cut.
pub const REPORT_GROUPS: u64 = 5_000_000;

/// Pages that the savings report reads: about an hour of work in a large cluster. Past it the report says that it was cut.
pub const SAVINGS_PAGES: u64 = 50_000_000;

/// How long a report on groups or savings is kept before another one is made, at least.
pub const REPORT_AGE: Duration = Duration::from_secs(10);

/// The same in multiples of the time that making it took, so that reports take at most a twentieth of a core.
pub const REPORT_AGE_TIMES: u32 = 20;

/// Time between two points of `GET /v1/load/history`.
pub const LOAD_STEP: Duration = Duration::from_secs(30);

/// The same between the first of them, so that there is something to see soon.
pub const LOAD_FIRST_STEP: Duration = Duration::from_secs(5);

/// How many these are.
pub const LOAD_FIRST_STEPS: usize = 12;

/// Points of that: six hours.
pub const LOAD_POINTS: usize = 6 * 60 * 2;

/// Partitions past which its points have none.
pub const LOAD_PARTITIONS: usize = 64;

/// Time between two points of the load's history.
pub const HISTORY_STEP: Duration = Duration::from_secs(60);

/// Points of the load's history: 24 hours, some 150 kB.
pub const HISTORY_POINTS: usize = 24 * 60;

/// Contents of a sample, at most: at 2.5 kB each, 250 MB for as long as it is used.
pub const SAMPLE_CONTENTS: usize = 100_000;

/// Samples on their way to a client, at the pace of its connection. Past it: 503.
pub const SAMPLES: usize = 1;

/// How long one may take to be sent, since others wait for its place: 250 MB at 420 kB a second. Then it breaks off.
pub const SAMPLE_TIME: Duration = Duration::from_secs(600);

/// How long a client leaves the place for samples to others after it had one, at least. It leaves it for as long as it held it. Before that: 429.
pub const SAMPLE_PAUSE: Duration = Duration::from_secs(10);

/// Clients of which such a pause is remembered.
pub const PAUSES: usize = 4_096;

/// Plans and what-if reports being made at once: each keeps all cores busy for seconds. Past it: 503. A what-if report is kept as other reports
/// are ([`REPORT_AGE`]), so whoever asks for it again and again leaves the place free.
pub const PLANNERS: usize = 1;

/// Bytes of one piece of an export or a backup on its way to the client.
pub const PIECE_BYTES: usize = 64 << 10;

/// How long requests may go on once the service is told to end. With what the engine still commits, the process ends within 10 s.
pub const DRAIN: Duration = Duration::from_secs(5);

// Tier 1 refuses longer lists, and shortens longer answers.
const _: () = assert!(CHUNK_LINES <= BATCH_MAX && LIST <= BATCH_MAX && PROBE_PARTNERS <= BATCH_MAX);
const _: () = assert!(CHANGES <= LIST_MAX && LIST <= LIST_MAX);

/// The limits that tests make small.
#[derive(Debug, Clone)]
pub struct Limits {
    /// See [`WIRE_BYTES`].
    pub wire_bytes: usize,
    /// See [`BODY_BYTES`].
    pub body_bytes: usize,
    /// See [`BODY_MEMORY_BYTES`].
    pub body_memory_bytes: usize,
    /// See [`LINES`].
    pub lines: usize,
    /// See [`CHUNK_LINES`].
    pub chunk_lines: usize,
    /// See [`BODY_PAUSE`].
    pub body_pause: Duration,
    /// See [`BODY_TIME`].
    pub body_time: Duration,
    /// See [`REQUESTS`].
    pub requests: usize,
    /// Bodies that are being unpacked; further ones wait.
    pub unpacking: usize,
    /// See [`CLIENT`]. Of the bodies that are being unpacked it is half.
    pub client: ClientLimits,
    /// See [`CALL_TIME`].
    pub call_time: Duration,
    /// See [`HEALTH_TIME`].
    pub health_time: Duration,
    /// See [`LONG_POLLS`].
    pub long_polls: usize,
    /// See [`POLL_STEP`].
    pub poll_step: Duration,
    /// See [`SAMPLE_PAUSE`].
    pub sample_pause: Duration,
    /// See [`REPAIR_WAIT`].
    pub repair_wait: Duration,
    /// See [`REPAIR_URLS`].
    pub repair_urls: usize,
    /// See [`WRITE_PAUSE`].
    pub write_pause: Duration,
    /// See [`DRAIN`].
    pub drain: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        let processors = available_parallelism().map_or(1, NonZero::get);
        Self {
            wire_bytes: WIRE_BYTES,
            body_bytes: BODY_BYTES,
            body_memory_bytes: BODY_MEMORY_BYTES,
            lines: LINES,
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

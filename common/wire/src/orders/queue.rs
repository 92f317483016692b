//! The orders that the router has not taken yet, and what is known of the router. It makes no calls and knows no clock.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::time::{Duration, Instant};

use doppel_model::RangeId;
use doppel_protocol::{IndexCommand, IndexError, Orders, RefusedOrders};

use super::{OrdersAnswer, OrdersRequest};
use crate::pieces::{SIGNATURES_BYTES, fitting};

/// Commands in the queue, and their signatures in bytes. An empty queue takes more.
pub(super) const COMMANDS_MAX: usize = 16_384;
pub(super) const BYTES_MAX: usize = 64 << 20;

/// Commands of one call, and orders.
pub(super) const CALL_COMMANDS: usize = 8_192;

/// The first pause after a failure; it doubles up to the last.
const PAUSE: Duration = Duration::from_millis(50);
const LONG_PAUSE: Duration = Duration::from_secs(1);

/// The pause between questions when there is nothing to send.
const ASK_PAUSE: Duration = Duration::from_millis(250);

/// What the router has said is out of date after this time.
const SILENCE: Duration = Duration::from_secs(5);

/// The orders that the router has not taken yet, in the order in which they go there.
#[derive(Default)]
pub(super) struct Queue {
    entries: VecDeque<Entry>,
    commands: usize,
    bytes: usize,
    /// Whether the next call is to say so.
    flush: bool,
    /// None before its first answer.
    router: Option<Router>,
    /// After a call without an answer.
    failed: Option<Pause>,
    /// Ranges whose orders the router does not take now.
    held: BTreeMap<RangeId, Pause>,
    /// Ranges that have ever had orders here.
    known: BTreeSet<RangeId>,
    /// Those of them that have lost some and were not told.
    lost: BTreeSet<RangeId>,
}

struct Entry {
    orders: Orders,
    /// Of the signatures.
    bytes: usize,
}

/// The router as of its last answer.
struct Router {
    session: u64,
    waiting: Result<usize, IndexError>,
    at: Instant,
}

struct Pause {
    time: Duration,
    until: Instant,
}

/// A call that is under way.
pub(super) struct Sent {
    parts: Vec<Part>,
    flush: bool,
}

/// The first commands of an entry.
struct Part {
    /// The place of the entry. It stays while the call is under way: others only come behind it.
    entry: usize,
    commands: usize,
    bytes: usize,
}

impl Queue {
    /// Puts orders at the end, if there is room for them.
    pub(super) fn push(&mut self, orders: Orders) -> Result<(), RefusedOrders> {
        let bytes = orders.commands.iter().map(signature_bytes).sum();
        let fits = self.commands + orders.commands.len() <= COMMANDS_MAX
            && self.entries.len() < COMMANDS_MAX
            && self.bytes + bytes <= BYTES_MAX;
        if !fits && !self.entries.is_empty() {
            let error = IndexError::Unavailable(format!("{} orders wait for the router", self.commands));
            return Err(RefusedOrders { orders, error });
        }
        self.known.insert(orders.range);
        self.commands += orders.commands.len();
        self.bytes += bytes;
        self.entries.push_back(Entry { orders, bytes });
        Ok(())
    }

    pub(super) fn flush(&mut self) {
        self.flush = true;
    }

    /// Whether orders of the range may be lost. Says so once.
    pub(super) fn has_lost(&mut self, range: RangeId) -> bool {
        self.lost.remove(&range)
    }

    /// Commands here and in the router.
    pub(super) fn waiting(&self, now: Instant) -> Result<usize, IndexError> {
        let router = self.router.as_ref().filter(|router| now.duration_since(router.at) <= SILENCE);
        let Some(router) = router else {
            return Err(IndexError::Unavailable("the router does not answer".to_owned()));
        };
        Ok(router.waiting.clone()?.saturating_add(self.commands))
    }

    /// When the next call is to be made.
    pub(super) fn due(&self, now: Instant) -> Instant {
        if let Some(failed) = &self.failed {
            return failed.until;
        }
        let Some(router) = &self.router else { return now };
        if self.flush || self.entries.iter().any(|entry| !self.is_held(entry.orders.range, now)) {
            return now;
        }
        let ends = self.held.values().map(|pause| pause.until).filter(|until| *until > now);
        ends.fold(router.at + ASK_PAUSE, Instant::min)
    }

    /// The next call. Without a known session it only asks for that.
    pub(super) fn next_call(&mut self, now: Instant) -> (OrdersRequest, Sent) {
        let session = self.router.as_ref().map(|router| router.session);
        let mut request = OrdersRequest { session, orders: Vec::new(), flush: false };
        let mut sent = Sent { parts: Vec::new(), flush: false };
        if session.is_none() {
            return (request, sent);
        }
        let (mut commands, mut bytes, mut is_all) = (0, 0, true);
        for (entry, Entry { orders, .. }) in self.entries.iter().enumerate() {
            if self.is_held(orders.range, now) {
                continue;
            }
            if commands >= CALL_COMMANDS || bytes > SIGNATURES_BYTES {
                is_all = false;
                break;
            }
            let sizes = || orders.commands.iter().map(signature_bytes);
            let count = fitting(sizes().take(CALL_COMMANDS - commands), SIGNATURES_BYTES - bytes);
            let part = Part { entry, commands: count, bytes: sizes().take(count).sum() };
            commands += count.max(1);
            bytes += part.bytes;
            let (first, some) = (orders.first, orders.commands[..count].to_vec());
            request.orders.push(Orders { commands: some, first, ..*orders });
            sent.parts.push(part);
            if count < orders.commands.len() {
                is_all = false;
                break;
            }
        }
        request.flush = self.flush;
        sent.flush = self.flush;
        // What is left is still to be flushed.
        self.flush &= !is_all;
        (request, sent)
    }

    /// Takes note of an answer.
    pub(super) fn answered(&mut self, sent: &Sent, answer: OrdersAnswer, now: Instant) {
        let OrdersAnswer { session, taken, waiting } = answer;
        let known = self.router.as_ref().map(|router| router.session);
        if known == Some(session) && taken.len() != sent.parts.len() {
            let why = format!("{} answers about {} orders", taken.len(), sent.parts.len());
            return self.failed(sent, &why, now);
        }
        self.failed = None;
        let waiting = waiting.map(|waiting| usize::try_from(waiting).unwrap_or(usize::MAX));
        self.router = Some(Router { session, waiting, at: now });
        if known == Some(session) {
            return self.settle(&sent.parts, taken, now);
        }
        self.flush |= sent.flush;
        if known.is_some() {
            tracing::warn!(dropped = self.commands, "the router was started anew; orders to it may be lost");
            self.entries.clear();
            self.held.clear();
            self.lost.extend(&self.known);
            self.count();
        }
    }

    /// Takes note of a call without an answer.
    pub(super) fn failed(&mut self, sent: &Sent, error: &dyn fmt::Display, now: Instant) {
        if self.failed.is_none() {
            tracing::warn!(%error, "orders wait for the router");
        }
        self.flush |= sent.flush;
        self.failed = Some(Pause::after(self.failed.as_ref(), now));
    }

    /// Forgets what was taken, and what will never be.
    fn settle(&mut self, parts: &[Part], taken: Vec<Result<(), IndexError>>, now: Instant) {
        let (mut gone, mut lost, mut refused) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        for (part, taken) in parts.iter().zip(taken) {
            let Some(Entry { orders, bytes }) = self.entries.get_mut(part.entry) else { continue };
            let range = orders.range;
            match taken {
                Ok(()) => {
                    self.held.remove(&range);
                    orders.commands.drain(..part.commands);
                    orders.first += part.commands as u64;
                    *bytes -= part.bytes;
                    if orders.commands.is_empty() {
                        gone.insert(part.entry);
                    }
                }
                Err(error @ IndexError::StaleEpoch { .. }) => {
                    tracing::warn!(range = range.0, epoch = %orders.epoch, %error, "orders are dropped");
                    gone.insert(part.entry);
                }
                Err(error @ IndexError::Gap { .. }) => {
                    tracing::warn!(range = range.0, first = orders.first, %error, "orders of a range are lost");
                    lost.insert(range);
                }
                Err(error @ (IndexError::Unavailable(_) | IndexError::Stopping | IndexError::TooMuch(_))) => {
                    tracing::debug!(range = range.0, %error, "orders are sent again");
                    // Once, however many orders of the range went in the call.
                    if refused.insert(range) {
                        let pause = Pause::after(self.held.get(&range), now);
                        self.held.insert(range, pause);
                    }
                }
            }
        }
        let mut entry = 0..;
        self.entries.retain(|Entry { orders, .. }| {
            entry.next().is_none_or(|entry| !gone.contains(&entry)) && !lost.contains(&orders.range)
        });
        self.held.retain(|range, _| !lost.contains(range));
        self.lost.extend(lost);
        self.count();
    }

    fn count(&mut self) {
        self.commands = self.entries.iter().map(|entry| entry.orders.commands.len()).sum();
        self.bytes = self.entries.iter().map(|entry| entry.bytes).sum();
    }

    fn is_held(&self, range: RangeId, now: Instant) -> bool {
        self.held.get(&range).is_some_and(|pause| pause.until > now)
    }
}

impl Pause {
    fn after(last: Option<&Self>, now: Instant) -> Self {
        let time = last.map_or(PAUSE, |last| (last.time * 2).min(LONG_PAUSE));
        Self { time, until: now + time }
    }
}

fn signature_bytes(command: &IndexCommand) -> usize {
    match command {
        IndexCommand::Put { signature, .. } => signature.as_bytes().len(),
        IndexCommand::Remove { .. } | IndexCommand::Search { .. } => 0,
    }
}

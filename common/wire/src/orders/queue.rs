//! The queue of orders that the router has not accepted yet, and the last known state of the router. It makes
//! no calls and has no clock.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::time::{Duration, Instant};

use doppel_model::RangeId;
use doppel_protocol::{IndexCommand, IndexError, Orders, RefusedOrders};

use super::{OrdersAnswer, OrdersRequest};
use crate::transport::call_sizes::{SIGNATURES_BYTES, count_fitting};

/// Maximum number of commands in the queue, and maximum size of their signatures in bytes. An empty queue
/// accepts orders of any size.
pub(super) const COMMANDS_MAX: usize = 16_384;
pub(super) const BYTES_MAX: usize = 64 << 20;

/// Maximum number of commands in one call. Orders without commands count as one command.
pub(super) const CALL_COMMANDS: usize = 8_192;

/// First pause after a failure. Each further failure doubles the pause, up to the long pause.
const PAUSE: Duration = Duration::from_millis(50);
const LONG_PAUSE: Duration = Duration::from_secs(1);

/// Pause between calls when there is nothing to send.
const ASK_PAUSE: Duration = Duration::from_millis(250);

/// Time after which the router's last answer is out of date.
const ANSWER_OUTDATED_AFTER: Duration = Duration::from_secs(5);

/// The orders that the router has not accepted yet, in the order in which they are sent.
#[derive(Default)]
pub(super) struct Queue {
    entries: VecDeque<Entry>,
    commands: usize,
    bytes: usize,
    /// Whether the next call requests a flush.
    flush: bool,
    /// State of the router; `None` before its first answer.
    router: Option<RouterApi>,
    /// Backoff after a call without an answer.
    backoff: Option<Backoff>,
    /// Backoff of ranges whose orders the router does not accept now.
    refused_ranges: BTreeMap<RangeId, Backoff>,
    /// Ranges that have ever had orders in this queue.
    ranges: BTreeSet<RangeId>,
    /// Ranges that may have lost orders and do not know it yet.
    lost: BTreeSet<RangeId>,
}

struct Entry {
    orders: Orders,
    /// Size of the signatures in bytes.
    bytes: usize,
}

/// The router as of its last answer.
struct RouterApi {
    session: u64,
    waiting: Result<usize, IndexError>,
    at: Instant,
}

struct Backoff {
    time: Duration,
    until: Instant,
}

/// A call that is under way.
pub(super) struct InFlightCall {
    parts: Vec<EntryPrefix>,
    flush: bool,
}

/// The first commands of an entry, which a call sends.
struct EntryPrefix {
    /// Index of the entry. The index stays valid during the call, because new entries are only added behind
    /// it.
    entry: usize,
    commands: usize,
    bytes: usize,
}

impl Queue {
    /// Appends orders if the queue has room for them.
    pub(super) fn push(&mut self, orders: Orders) -> Result<(), RefusedOrders> {
        let bytes = orders.commands.iter().map(signature_bytes).sum();
        let fits = self.commands + orders.commands.len() <= COMMANDS_MAX
            && self.entries.len() < COMMANDS_MAX
            && self.bytes + bytes <= BYTES_MAX;
        if !fits && !self.entries.is_empty() {
            let error = IndexError::Unavailable(format!("{} orders wait for the router", self.commands));
            return Err(RefusedOrders { orders, error });
        }
        self.ranges.insert(orders.range);
        self.commands += orders.commands.len();
        self.bytes += bytes;
        self.entries.push_back(Entry { orders, bytes });
        Ok(())
    }

    pub(super) fn flush(&mut self) {
        self.flush = true;
    }

    /// Whether orders of the range may be lost. Returns true only once.
    pub(super) fn has_lost(&mut self, range: RangeId) -> bool {
        self.lost.remove(&range)
    }

    /// Returns the number of commands in this queue and in the router.
    pub(super) fn waiting(&self, now: Instant) -> Result<usize, IndexError> {
        let router =
            self.router.as_ref().filter(|router| now.duration_since(router.at) <= ANSWER_OUTDATED_AFTER);
        let Some(router) = router else {
            return Err(IndexError::Unavailable("the router does not answer".to_owned()));
        };
        Ok(router.waiting.clone()?.saturating_add(self.commands))
    }

    /// Returns when the next call is due.
    pub(super) fn due(&self, now: Instant) -> Instant {
        if let Some(backoff) = &self.backoff {
            return backoff.until;
        }
        let Some(router) = &self.router else { return now };
        if self.flush || self.entries.iter().any(|entry| !self.is_backing_off(entry.orders.range, now)) {
            return now;
        }
        let ends = self.refused_ranges.values().map(|backoff| backoff.until).filter(|until| *until > now);
        ends.fold(router.at + ASK_PAUSE, Instant::min)
    }

    /// Builds the next call. If the session is unknown, the call only asks for it.
    pub(super) fn next_call(&mut self, now: Instant) -> (OrdersRequest, InFlightCall) {
        let session = self.router.as_ref().map(|router| router.session);
        let mut request = OrdersRequest { session, orders: Vec::new(), flush: false };
        let mut call = InFlightCall { parts: Vec::new(), flush: false };
        if session.is_none() {
            return (request, call);
        }
        let (mut commands, mut bytes, mut is_all) = (0, 0, true);
        for (entry, Entry { orders, .. }) in self.entries.iter().enumerate() {
            if self.is_backing_off(orders.range, now) {
                continue;
            }
            if commands >= CALL_COMMANDS || bytes > SIGNATURES_BYTES {
                is_all = false;
                break;
            }
            let sizes = || orders.commands.iter().map(signature_bytes);
            let count = count_fitting(sizes().take(CALL_COMMANDS - commands), SIGNATURES_BYTES - bytes);
            let part = EntryPrefix { entry, commands: count, bytes: sizes().take(count).sum() };
            commands += count.max(1);
            bytes += part.bytes;
            let (first, some) = (orders.first, orders.commands[..count].to_vec());
            request.orders.push(Orders { commands: some, first, ..*orders });
            call.parts.push(part);
            if count < orders.commands.len() {
                is_all = false;
                break;
            }
        }
        request.flush = self.flush;
        call.flush = self.flush;
        // The remaining orders still have to be flushed.
        self.flush &= !is_all;
        (request, call)
    }

    /// Records the answer to a call.
    pub(super) fn record_answer(&mut self, call: &InFlightCall, answer: OrdersAnswer, now: Instant) {
        let OrdersAnswer { session, outcomes, waiting } = answer;
        let known = self.router.as_ref().map(|router| router.session);
        if known == Some(session) && outcomes.len() != call.parts.len() {
            let reason =
                format!("the router returned {} outcomes for {} orders", outcomes.len(), call.parts.len());
            return self.record_failure(call, &reason, now);
        }
        self.backoff = None;
        let waiting = waiting.map(|waiting| usize::try_from(waiting).unwrap_or(usize::MAX));
        self.router = Some(RouterApi { session, waiting, at: now });
        if known == Some(session) {
            return self.apply_outcomes(&call.parts, outcomes, now);
        }
        self.flush |= call.flush;
        if known.is_some() {
            tracing::warn!(
                dropped = self.commands,
                "the router has a new session; orders that the previous one had accepted may be lost"
            );
            self.entries.clear();
            self.refused_ranges.clear();
            self.lost.extend(&self.ranges);
            self.recount();
        }
    }

    /// Records that a call has no answer.
    pub(super) fn record_failure(&mut self, call: &InFlightCall, error: &dyn fmt::Display, now: Instant) {
        if self.backoff.is_none() {
            tracing::warn!(%error, "orders wait, because the router cannot be called");
        }
        self.flush |= call.flush;
        self.backoff = Some(Backoff::after(self.backoff.as_ref(), now));
    }

    /// Removes orders that the router accepted, and orders that it will never accept.
    fn apply_outcomes(&mut self, parts: &[EntryPrefix], outcomes: Vec<Result<(), IndexError>>, now: Instant) {
        let (mut finished, mut lost, mut refused) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        for (part, outcome) in parts.iter().zip(outcomes) {
            let Some(Entry { orders, bytes }) = self.entries.get_mut(part.entry) else { continue };
            let range = orders.range;
            match outcome {
                Ok(()) => {
                    self.refused_ranges.remove(&range);
                    orders.commands.drain(..part.commands);
                    orders.first += part.commands as u64;
                    *bytes -= part.bytes;
                    if orders.commands.is_empty() {
                        finished.insert(part.entry);
                    }
                }
                Err(error @ IndexError::StaleEpoch { .. }) => {
                    tracing::warn!(range = range.0, epoch = %orders.epoch, %error, "orders of a deposed owner are dropped");
                    finished.insert(part.entry);
                }
                Err(error @ IndexError::Gap { .. }) => {
                    tracing::warn!(range = range.0, first = orders.first, %error, "orders of a range are lost; the range determines its pending searches again");
                    lost.insert(range);
                }
                Err(error @ (IndexError::Unavailable(_) | IndexError::Stopping | IndexError::TooMuch(_))) => {
                    tracing::debug!(range = range.0, %error, "the router refuses orders of a range for now; they are sent again");
                    // The backoff grows once, however many orders of the range the call contained.
                    if refused.insert(range) {
                        let backoff = Backoff::after(self.refused_ranges.get(&range), now);
                        self.refused_ranges.insert(range, backoff);
                    }
                }
            }
        }
        let mut entry = 0..;
        self.entries.retain(|Entry { orders, .. }| {
            entry.next().is_none_or(|entry| !finished.contains(&entry)) && !lost.contains(&orders.range)
        });
        self.refused_ranges.retain(|range, _| !lost.contains(range));
        self.lost.extend(lost);
        self.recount();
    }

    fn recount(&mut self) {
        self.commands = self.entries.iter().map(|entry| entry.orders.commands.len()).sum();
        self.bytes = self.entries.iter().map(|entry| entry.bytes).sum();
    }

    fn is_backing_off(&self, range: RangeId, now: Instant) -> bool {
        self.refused_ranges.get(&range).is_some_and(|backoff| backoff.until > now)
    }
}

impl Backoff {
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

//! A circuit breaker for calls that another node can answer as well, so that no caller waits for a node that
//! hangs.
//!
//! A node that did not answer in time is skipped for a while. Otherwise every question would wait for it. A
//! caller without an alternative may still call the node with the full deadline.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::transport::call::Call;
use crate::transport::call_sizes::CallError;
use crate::transport::peer::Peer;
use crate::transport::wire_error::WireError;

/// How long a coordinator waits for a node of tier 1. A read takes about a millisecond; this is the longest
/// delay that a busy processor or disk should cause.
pub(crate) const FRONT_WAIT: Duration = Duration::from_millis(800);

/// How long a node of tier 1 waits for another node. The time is so short that the node can still answer the
/// coordinator that waits for it.
pub(crate) const NODE_WAIT: Duration = Duration::from_millis(400);

/// How long a node is skipped after it did not answer in time. By then, other nodes have noticed its silence.
const SKIP_TIME: Duration = Duration::from_secs(2);

/// Whether a node has answered in time lately. Clones share their state.
#[derive(Debug, Clone, Default)]
pub(crate) struct CircuitBreaker {
    /// Until when the node is skipped, and the reason.
    skip: Arc<Mutex<Option<(Instant, String)>>>,
}

/// Why a call has no answer.
pub(crate) enum CallFailure {
    Wire(WireError),
    /// The node was not called, because a recent call failed for this reason.
    Skipped(String),
}

impl CallError for CallFailure {
    fn is_too_large(&self) -> bool {
        matches!(self, Self::Wire(error) if error.is_answer_too_large())
    }
}

impl fmt::Display for CallFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Wire(error) => error.fmt(f),
            Self::Skipped(reason) => f.write_str(reason),
        }
    }
}

impl CircuitBreaker {
    fn skip(&self) -> MutexGuard<'_, Option<(Instant, String)>> {
        self.skip.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a call with a deadline of `time`, unless the node was late a moment ago.
    pub(crate) fn call<C: Call>(
        &self,
        peer: &Peer,
        request: &C::Request,
        time: Duration,
    ) -> Result<C::Answer, CallFailure> {
        if let Some((until, reason)) = &*self.skip()
            && Instant::now() < *until
        {
            return Err(CallFailure::Skipped(reason.clone()));
        }
        let answer = peer.call_within::<C>(request, time);
        *self.skip() = match &answer {
            Err(late @ WireError::Late { .. }) => Some((Instant::now() + SKIP_TIME, late.to_string())),
            _ => None,
        };
        answer.map_err(CallFailure::Wire)
    }
}

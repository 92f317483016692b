//! Calls to which another node has an answer as well, so that nobody waits for one that hangs.
//!
//! A node that has not answered in time is not asked so again for a while: each question would pay for it. It may still be asked
//! with all the time that a call has, where nobody else can answer.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::call::Call;
use crate::peer::{Peer, WireError};
use crate::pieces::NoAnswer;

/// How long a front door waits for a node of tier 1. A read takes a millisecond; this is the longest that a processor or a disk
/// that has other things to do should take.
pub(crate) const FRONT_WAITS: Duration = Duration::from_millis(800);

/// How long a node of tier 1 waits for another one: so short that it can still answer the front door that waits for it.
pub(crate) const NODE_WAITS: Duration = Duration::from_millis(400);

/// A node that was late is not asked again for so long. After that time others have noticed its silence.
const LATE: Duration = Duration::from_secs(2);

/// Whether a node has answered in time lately. Clones are of one node.
#[derive(Debug, Clone, Default)]
pub(crate) struct Haste {
    late: Arc<Mutex<Option<(Instant, String)>>>,
}

/// Why there is no answer.
pub(crate) enum Unanswered {
    Wire(WireError),
    /// It was not asked, because a moment ago this happened.
    Away(String),
}

impl NoAnswer for Unanswered {
    fn is_too_large(&self) -> bool {
        matches!(self, Self::Wire(error) if error.is_answer_too_large())
    }
}

impl fmt::Display for Unanswered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Wire(error) => error.fmt(f),
            Self::Away(why) => f.write_str(why),
        }
    }
}

impl Haste {
    fn late(&self) -> MutexGuard<'_, Option<(Instant, String)>> {
        self.late.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a call that gets so much time, unless the node was late a moment ago.
    pub(crate) fn call<C: Call>(
        &self,
        peer: &Peer,
        request: &C::Request,
        time: Duration,
    ) -> Result<C::Answer, Unanswered> {
        if let Some((until, why)) = &*self.late()
            && Instant::now() < *until
        {
            return Err(Unanswered::Away(why.clone()));
        }
        let answer = peer.call_within::<C>(request, time);
        *self.late() = match &answer {
            Err(late @ WireError::Late { .. }) => Some((Instant::now() + LATE, late.to_string())),
            _ => None,
        };
        answer.map_err(Unanswered::Wire)
    }
}

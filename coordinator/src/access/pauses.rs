//! Pauses of clients after work that the service does for one client at a time. A client that asks for such
//! work again and again thereby leaves the turn to others in between (guarantee G6).
//!
//! Invariant: at most [`PAUSES`] pauses are remembered. Past that limit, the pause that ends first is
//! forgotten.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::limits::PAUSES;

/// End of the pause of each client. `C` identifies a client.
#[derive(Debug)]
pub(super) struct ClientPauses<C: Clone + Eq + Hash>(Mutex<HashMap<C, Instant>>);

/// A client's turn. The client's pause begins when the turn is dropped.
#[derive(Debug)]
pub(super) struct ClientTurn<C: Clone + Eq + Hash> {
    pauses: Arc<ClientPauses<C>>,
    client: C,
    begin: Instant,
    least: Duration,
}

impl<C: Clone + Eq + Hash> Default for ClientPauses<C> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<C: Clone + Eq + Hash> ClientPauses<C> {
    /// Starts the turn of a client.
    ///
    /// # Errors
    /// The remaining time, if the client's pause is not over.
    pub(super) fn turn(
        self: &Arc<Self>,
        client: &C,
        least: Duration,
        now: Instant,
    ) -> Result<ClientTurn<C>, Duration> {
        let until = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(client).copied();
        match until.and_then(|until| until.checked_duration_since(now)).filter(|left| !left.is_zero()) {
            Some(left) => Err(left),
            None => Ok(ClientTurn { pauses: Arc::clone(self), client: client.clone(), begin: now, least }),
        }
    }

    /// Records that a client pauses until `until`.
    fn begin(&self, client: &C, until: Instant, now: Instant) {
        let mut pauses = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if pauses.len() >= PAUSES {
            pauses.retain(|_, until| *until > now);
        }
        if pauses.len() >= PAUSES {
            let first = pauses.iter().min_by_key(|(_, until)| **until).map(|(client, _)| client.clone());
            first.and_then(|client| pauses.remove(&client));
        }
        pauses.insert(client.clone(), until);
    }
}

impl<C: Clone + Eq + Hash> Drop for ClientTurn<C> {
    fn drop(&mut self) {
        let now = Instant::now();
        let pause = self.least.max(now.saturating_duration_since(self.begin));
        self.pauses.begin(&self.client, now + pause, now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEAST: Duration = Duration::from_secs(10);

    fn id(name: &str) -> String {
        name.to_owned()
    }

    #[test]
    fn a_client_pauses_after_its_turn_and_others_do_not() {
        let pauses = Arc::new(ClientPauses::default());
        let now = Instant::now();
        let turn = pauses.turn(&id("ann"), LEAST, now).unwrap();
        assert!(pauses.turn(&id("ann"), LEAST, now).is_ok(), "the pause begins at the end");
        drop(turn);
        let left = pauses.turn(&id("ann"), LEAST, Instant::now()).unwrap_err();
        assert!(left <= LEAST && left > LEAST / 2, "{left:?}");
        assert!(pauses.turn(&id("bob"), LEAST, now).is_ok());
        let later = Instant::now() + LEAST;
        assert!(pauses.turn(&id("ann"), LEAST, later).is_ok());
    }

    #[test]
    fn a_long_turn_has_a_pause_that_is_as_long() {
        let pauses = Arc::new(ClientPauses::default());
        let Some(begin) = Instant::now().checked_sub(8 * LEAST) else { return };
        drop(pauses.turn(&id("ann"), LEAST, begin));
        let left = pauses.turn(&id("ann"), LEAST, Instant::now()).unwrap_err();
        assert!(left > 7 * LEAST, "{left:?}");
    }

    #[test]
    fn pauses_are_bounded_and_the_longest_stay() {
        let pauses = Arc::new(ClientPauses::default());
        let now = Instant::now();
        for n in 0..2 * PAUSES {
            pauses.begin(&id(&format!("client-{n}")), now + LEAST + Duration::from_millis(n as u64), now);
        }
        assert_eq!(pauses.0.lock().unwrap().len(), PAUSES);
        assert!(pauses.turn(&id("client-0"), LEAST, now).is_ok());
        assert!(pauses.turn(&id(&format!("client-{}", 2 * PAUSES - 1)), LEAST, now).is_err());
        // All earlier pauses have ended, so they are removed.
        pauses.begin(&id("one-more"), now + 20 * LEAST, now + 10 * LEAST);
        assert_eq!(pauses.0.lock().unwrap().len(), 1);
    }
}

//! What one client may take at once of what all share, so that none keeps the others waiting (G6).
//!
//! A client is a token, or else the address that a request comes from. One on this machine that needs no token is not limited: it
//! could as well read the files.
//!
//! Invariant: a client is known as long as it has a request in work, and then forgotten, so there are no more clients than requests. Only its
//! [`Pauses`] outlast its requests.

use std::collections::HashMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use doppel_model::ClientId;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::pauses::{Pauses, Turn};
use super::{Role, TokenName};
use crate::limits::ClientLimits;
use crate::memory::BodyMemory;
use crate::problem::Problem;

/// Known clients past which those that have gone are looked for.
const SWEPT_FROM: usize = 1_024;

/// What makes requests those of one client: their token, or the address that they come from.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Id {
    Token(TokenName),
    Address(IpAddr),
}

impl Id {
    /// The name under which tier 1 tells clients apart. A token and an address never have the same.
    fn client(&self) -> ClientId {
        match self {
            Self::Token(name) => ClientId::of(&format!("token {name}")),
            Self::Address(address) => ClientId::of(&format!("address {address}")),
        }
    }
}

/// The clients with requests in work.
#[derive(Debug)]
pub(crate) struct Clients {
    limits: ClientLimits,
    memory: BodyMemory,
    known: Mutex<HashMap<Id, Weak<Share>>>,
    samples: Arc<Pauses<Id>>,
}

/// What a client holds.
#[derive(Debug)]
struct Share {
    requests: Arc<Semaphore>,
    long_polls: Arc<Semaphore>,
    exports: Arc<Semaphore>,
    flushes: Arc<Semaphore>,
    scrapes: Arc<Semaphore>,
    memory: BodyMemory,
    unpacking: Arc<Semaphore>,
}

/// A place of a client; dropping it gives it back.
#[derive(Debug)]
pub(crate) struct Place {
    _permit: OwnedSemaphorePermit,
    _share: Arc<Share>,
}

/// Who sent a request. Goes with it to its handler.
#[derive(Clone)]
pub(crate) struct Caller {
    token: Option<(TokenName, Role)>,
    /// None where it is not limited.
    id: Option<Id>,
    share: Option<Arc<Share>>,
    memory: BodyMemory,
    samples: Arc<Pauses<Id>>,
}

/// A client's turn to have a sample; its pause begins when this is dropped.
#[derive(Debug)]
pub(crate) struct SampleTurn {
    _turn: Turn<Id>,
}

impl Clients {
    pub(crate) fn new(limits: ClientLimits, memory: BodyMemory) -> Self {
        Self { limits, memory, known: Mutex::default(), samples: Arc::default() }
    }

    /// The client that has this token, or else this address; none is limited that has neither.
    pub(crate) fn caller(&self, token: Option<(TokenName, Role)>, address: Option<IpAddr>) -> Caller {
        let id = match (&token, address) {
            (Some((name, _)), _) => Some(Id::Token(name.clone())),
            (None, Some(address)) if !address.to_canonical().is_loopback() => {
                Some(Id::Address(doppel_http::network(address)))
            }
            (None, _) => None,
        };
        let share = id.as_ref().map(|id| self.share(id));
        let memory = share.as_ref().map_or_else(|| self.memory.clone(), |share| share.memory.clone());
        Caller { token, id, share, memory, samples: Arc::clone(&self.samples) }
    }

    fn share(&self, id: &Id) -> Arc<Share> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(share) = known.get(id).and_then(Weak::upgrade) {
            return share;
        }
        if known.len() >= SWEPT_FROM {
            known.retain(|_, share| share.strong_count() > 0);
        }
        let ClientLimits { requests, long_polls, exports, flushes, scrapes, body_bytes, unpacking } =
            self.limits;
        let share = Arc::new(Share {
            requests: Arc::new(Semaphore::new(requests)),
            long_polls: Arc::new(Semaphore::new(long_polls)),
            exports: Arc::new(Semaphore::new(exports)),
            flushes: Arc::new(Semaphore::new(flushes)),
            scrapes: Arc::new(Semaphore::new(scrapes)),
            memory: self.memory.part(body_bytes),
            unpacking: Arc::new(Semaphore::new(unpacking)),
        });
        known.insert(id.clone(), Arc::downgrade(&share));
        share
    }
}

impl Caller {
    /// The client in what it hands to tier 1; none where it is not limited.
    pub(crate) fn client(&self) -> ClientId {
        self.id.as_ref().map_or(ClientId::NONE, Id::client)
    }

    /// The client for a log line: the name of its token, or its address.
    pub(crate) fn shown(&self) -> String {
        match &self.id {
            Some(Id::Token(name)) => format!("token {name}"),
            Some(Id::Address(address)) => format!("address {address}"),
            None => "this machine".to_owned(),
        }
    }

    /// The name of its token.
    pub(crate) fn name(&self) -> Option<&TokenName> {
        self.token.as_ref().map(|(name, _)| name)
    }

    /// The memory for its bodies.
    pub(crate) fn memory(&self) -> &BodyMemory {
        &self.memory
    }

    /// The permits by which its bodies are unpacked; none where it is not limited.
    pub(crate) fn unpacking(&self) -> Option<Arc<Semaphore>> {
        self.share.as_ref().map(|share| Arc::clone(&share.unpacking))
    }

    /// A place among the requests of the client.
    pub(crate) fn enter(&self) -> Result<Option<Place>, Problem> {
        self.permit(|share| &share.requests, "requests in work")
    }

    /// A place among its long polls.
    pub(crate) fn enter_long_poll(&self) -> Result<Option<Place>, Problem> {
        self.permit(|share| &share.long_polls, "long polls")
    }

    /// A place among its exports.
    pub(crate) fn enter_export(&self) -> Result<Option<Place>, Problem> {
        self.permit(|share| &share.exports, "exports")
    }

    /// A place among its flushes that wait.
    pub(crate) fn enter_flush(&self) -> Result<Option<Place>, Problem> {
        self.permit(|share| &share.flushes, "flushes that wait")
    }

    /// A place among its scrapes.
    pub(crate) fn enter_scrape(&self) -> Result<Option<Place>, Problem> {
        self.permit(|share| &share.scrapes, "scrapes")
    }

    /// Its turn to have a sample, of which there is one at a time; none where the client is not limited. When the turn ends, others have theirs for
    /// `least`, or for as long as this one took.
    ///
    /// # Errors
    /// 429 as long as others have their turn.
    pub(crate) fn sample_turn(&self, least: Duration) -> Result<Option<SampleTurn>, Problem> {
        let turn = self.id.as_ref().map(|id| self.samples.turn(id, least, Instant::now()));
        let turn = turn.transpose().map_err(|left| Problem::client_pause("sample", left))?;
        Ok(turn.map(|turn| SampleTurn { _turn: turn }))
    }

    fn permit(&self, of: impl Fn(&Share) -> &Arc<Semaphore>, what: &str) -> Result<Option<Place>, Problem> {
        let Some(share) = &self.share else { return Ok(None) };
        let permit = Arc::clone(of(share)).try_acquire_owned().map_err(|_| Problem::client_limit(what))?;
        Ok(Some(Place { _permit: permit, _share: Arc::clone(share) }))
    }
}

impl fmt::Debug for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Caller").field("token", &self.token).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clients(requests: usize) -> Clients {
        let limits = ClientLimits {
            requests,
            long_polls: 1,
            exports: 1,
            flushes: 1,
            scrapes: 1,
            body_bytes: 4 << 10,
            unpacking: 1,
        };
        Clients::new(limits, BodyMemory::new(10 << 10))
    }

    fn address(text: &str) -> Option<IpAddr> {
        Some(text.parse().unwrap())
    }

    #[test]
    fn a_client_takes_its_share_and_no_more() {
        let clients = clients(2);
        let ann = || clients.caller(Some(("ann".parse().unwrap(), Role::Read)), address("127.0.0.1"));
        let bob = clients.caller(Some(("bob".parse().unwrap(), Role::Read)), None);
        let (one, other) = (ann(), ann());
        let held = (one.enter().unwrap(), other.enter().unwrap());
        assert_eq!(ann().enter().unwrap_err().status().as_u16(), 429);
        assert_eq!(one.client(), other.client());
        assert!(one.client() != bob.client() && bob.client() != ClientId::NONE);
        assert!(bob.enter().is_ok());
        let poll = one.enter_long_poll().unwrap();
        assert!(other.enter_long_poll().is_err() && bob.enter_long_poll().is_ok());
        let (flush, scrape) = (one.enter_flush().unwrap(), one.enter_scrape().unwrap());
        assert!(other.enter_flush().is_err() && bob.enter_flush().is_ok());
        assert!(other.enter_scrape().is_err() && bob.enter_scrape().is_ok());
        drop((flush, scrape));
        assert!(other.enter_flush().is_ok() && other.enter_scrape().is_ok());
        let mut share = one.memory().share();
        assert!(share.grow_to(4 << 10) && !other.memory().share().grow_to(1));
        let mut most = bob.memory().share();
        assert!(most.grow_to(4 << 10));
        drop((held, poll, share));
        assert!(ann().enter().is_ok() && ann().memory().share().grow_to(1 << 10));
    }

    #[test]
    fn addresses_are_clients_but_for_this_machine() {
        let clients = clients(1);
        let caller = |text: &str| clients.caller(None, address(text));
        let held = caller("10.0.0.1").enter().unwrap();
        assert!(held.is_some());
        for same in ["10.0.0.1", "::ffff:10.0.0.1"] {
            assert!(caller(same).enter().is_err(), "{same}");
        }
        let held = caller("2001:db8::1:2:3:4").enter().unwrap();
        assert!(held.is_some() && caller("2001:db8::9:9:9:9").enter().is_err());
        assert!(caller("2001:db8:0:1::1").enter().is_ok() && caller("10.0.0.2").enter().is_ok());
        for own in ["127.0.0.1", "127.8.8.8", "::1", "::ffff:127.0.0.1"] {
            let places = (0..9).map(|_| caller(own).enter().unwrap());
            assert!(places.into_iter().all(|place| place.is_none()), "{own}");
            assert_eq!(caller(own).client(), ClientId::NONE, "{own}");
        }
    }

    #[test]
    fn clients_that_have_gone_are_forgotten() {
        let clients = clients(1);
        for at in 0..5_000_u32 {
            clients.caller(None, Some(IpAddr::V4((0x0a00_0000 + at).into())));
        }
        assert!(clients.known.lock().unwrap().len() <= SWEPT_FROM);
    }
}

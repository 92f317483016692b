//! Limits on the shared resources that one client may use at once, so that no client keeps the others waiting
//! (guarantee G6).
//!
//! A token identifies a client. Without a token, the client is identified by the address of its request. A
//! client on this machine without a token has no limits, because it could read the files of the collection
//! directly.
//!
//! Invariant: the table holds a client only while the client has a request in progress, so there are never
//! more clients than requests. Only its [`ClientPauses`] outlast its requests.

use std::collections::HashMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use doppel_model::ClientId;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::pauses::{ClientPauses, ClientTurn};
use super::{Role, TokenName};
use crate::limits::ClientLimits;
use crate::problem::Problem;
use crate::request::memory::BodyMemory;

/// Number of table entries from which entries of clients without requests are removed.
const SWEPT_FROM: usize = 1_024;

/// Identity of a client: the name of its token, or its address.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum ClientIdentity {
    Token(TokenName),
    Address(IpAddr),
}

impl ClientIdentity {
    /// Returns the id by which tier 1 distinguishes clients. A token and an address never have equal ids.
    fn client(&self) -> ClientId {
        match self {
            Self::Token(name) => ClientId::of(&format!("token {name}")),
            Self::Address(address) => ClientId::of(&format!("address {address}")),
        }
    }
}

/// Table of the clients that have requests in progress.
#[derive(Debug)]
pub(crate) struct Clients {
    limits: ClientLimits,
    memory: BodyMemory,
    known: Mutex<HashMap<ClientIdentity, Weak<ClientResources>>>,
    samples: Arc<ClientPauses<ClientIdentity>>,
}

/// Resources available to one client.
#[derive(Debug)]
struct ClientResources {
    requests: Arc<Semaphore>,
    long_polls: Arc<Semaphore>,
    exports: Arc<Semaphore>,
    flushes: Arc<Semaphore>,
    scrapes: Arc<Semaphore>,
    memory: BodyMemory,
    unpacking: Arc<Semaphore>,
}

/// A permit on a resource of one client. Dropping the permit returns it.
#[derive(Debug)]
pub(crate) struct ClientPermit {
    _permit: OwnedSemaphorePermit,
    _resources: Arc<ClientResources>,
}

/// The client that sent a request. The request carries this value to its handler.
#[derive(Clone)]
pub(crate) struct Caller {
    token: Option<(TokenName, Role)>,
    /// Identity of the client. `None` if the client has no limits.
    id: Option<ClientIdentity>,
    resources: Option<Arc<ClientResources>>,
    memory: BodyMemory,
    samples: Arc<ClientPauses<ClientIdentity>>,
}

/// A client's turn to receive a sample. The client's pause begins when the turn is dropped.
#[derive(Debug)]
pub(crate) struct SampleTurn {
    _turn: ClientTurn<ClientIdentity>,
}

impl Clients {
    pub(crate) fn new(limits: ClientLimits, memory: BodyMemory) -> Self {
        Self { limits, memory, known: Mutex::default(), samples: Arc::default() }
    }

    /// Returns the client with this token, or else with this address.
    ///
    /// The client has no limits if it has no token and its address is unknown or a loopback address.
    pub(crate) fn caller(&self, token: Option<(TokenName, Role)>, address: Option<IpAddr>) -> Caller {
        let id = match (&token, address) {
            (Some((name, _)), _) => Some(ClientIdentity::Token(name.clone())),
            (None, Some(address)) if !address.to_canonical().is_loopback() => {
                Some(ClientIdentity::Address(doppel_http::network(address)))
            }
            (None, _) => None,
        };
        let resources = id.as_ref().map(|id| self.resources(id));
        let memory =
            resources.as_ref().map_or_else(|| self.memory.clone(), |resources| resources.memory.clone());
        Caller { token, id, resources, memory, samples: Arc::clone(&self.samples) }
    }

    fn resources(&self, id: &ClientIdentity) -> Arc<ClientResources> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(resources) = known.get(id).and_then(Weak::upgrade) {
            return resources;
        }
        if known.len() >= SWEPT_FROM {
            known.retain(|_, resources| resources.strong_count() > 0);
        }
        let ClientLimits { requests, long_polls, exports, flushes, scrapes, body_bytes, unpacking } =
            self.limits;
        let resources = Arc::new(ClientResources {
            requests: Arc::new(Semaphore::new(requests)),
            long_polls: Arc::new(Semaphore::new(long_polls)),
            exports: Arc::new(Semaphore::new(exports)),
            flushes: Arc::new(Semaphore::new(flushes)),
            scrapes: Arc::new(Semaphore::new(scrapes)),
            memory: self.memory.part(body_bytes),
            unpacking: Arc::new(Semaphore::new(unpacking)),
        });
        known.insert(id.clone(), Arc::downgrade(&resources));
        resources
    }
}

impl Caller {
    /// Returns the client's id for tier 1, or [`ClientId::NONE`] if the client has no limits.
    pub(crate) fn client(&self) -> ClientId {
        self.id.as_ref().map_or(ClientId::NONE, ClientIdentity::client)
    }

    /// Describes the client for a log line: the name of its token, or its address.
    pub(crate) fn shown(&self) -> String {
        match &self.id {
            Some(ClientIdentity::Token(name)) => format!("token {name}"),
            Some(ClientIdentity::Address(address)) => format!("address {address}"),
            None => "this machine".to_owned(),
        }
    }

    /// Returns the name of the client's token.
    pub(crate) fn name(&self) -> Option<&TokenName> {
        self.token.as_ref().map(|(name, _)| name)
    }

    /// Returns the memory budget for request bodies of this client.
    pub(crate) fn memory(&self) -> &BodyMemory {
        &self.memory
    }

    /// Returns the permits for decompressing bodies of this client. `None` if the client has no limits.
    pub(crate) fn unpacking(&self) -> Option<Arc<Semaphore>> {
        self.resources.as_ref().map(|resources| Arc::clone(&resources.unpacking))
    }

    /// Acquires a permit for a request of the client.
    ///
    /// # Errors
    /// 429 if the client has used all its permits.
    pub(crate) fn enter(&self) -> Result<Option<ClientPermit>, Problem> {
        self.permit(|resources| &resources.requests, "requests in progress")
    }

    /// Acquires a permit for a long poll of the client. 429 if the client has used all its permits for long
    /// polls.
    pub(crate) fn enter_long_poll(&self) -> Result<Option<ClientPermit>, Problem> {
        self.permit(|resources| &resources.long_polls, "long polls")
    }

    /// Acquires a permit for an export of the client. 429 if the client has used all its permits for exports.
    pub(crate) fn enter_export(&self) -> Result<Option<ClientPermit>, Problem> {
        self.permit(|resources| &resources.exports, "exports")
    }

    /// Acquires a permit for a flush that waits for completion. 429 if the client has used all its permits
    /// for waiting flushes.
    pub(crate) fn enter_flush(&self) -> Result<Option<ClientPermit>, Problem> {
        self.permit(|resources| &resources.flushes, "waiting flushes")
    }

    /// Acquires a permit for a scrape of the metrics. 429 if the client has used all its permits for scrapes.
    pub(crate) fn enter_scrape(&self) -> Result<Option<ClientPermit>, Problem> {
        self.permit(|resources| &resources.scrapes, "scrapes")
    }

    /// Starts the client's turn to receive a sample. `None` if the client has no limits.
    ///
    /// The service sends one sample at a time. After its turn, the client must pause for `least`, or for the
    /// duration of the turn if that was longer. Other clients can take their turn meanwhile.
    ///
    /// # Errors
    /// 429 during the client's pause.
    pub(crate) fn sample_turn(&self, least: Duration) -> Result<Option<SampleTurn>, Problem> {
        let turn = self.id.as_ref().map(|id| self.samples.turn(id, least, Instant::now()));
        let turn = turn.transpose().map_err(|left| Problem::client_pause("sample", left))?;
        Ok(turn.map(|turn| SampleTurn { _turn: turn }))
    }

    fn permit(
        &self,
        of: impl Fn(&ClientResources) -> &Arc<Semaphore>,
        what: &str,
    ) -> Result<Option<ClientPermit>, Problem> {
        let Some(resources) = &self.resources else { return Ok(None) };
        let permit =
            Arc::clone(of(resources)).try_acquire_owned().map_err(|_| Problem::client_limit(what))?;
        Ok(Some(ClientPermit { _permit: permit, _resources: Arc::clone(resources) }))
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
    fn addresses_identify_clients_except_on_this_machine() {
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
